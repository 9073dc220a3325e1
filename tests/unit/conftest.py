"""Property tests here are not timed one by one: the machine that runs them may be busy."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
