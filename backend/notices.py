"""What a user should know once: lines of this module's logger, at most one of each kind in a process.

TRITON_SPIRV_QUIET=1 leaves them out, and so does ``logging``, under the name of this module. They are about how long
something takes, never about whether it is right.
"""

from __future__ import annotations

import logging

from . import settings

_log = logging.getLogger(__name__)
_told: set[str] = set()


def tell_once(kind: str, text: str) -> None:
    """Logs ``text`` as a warning if nothing of this ``kind`` was told in this process."""
    if kind not in _told:
        _told.add(kind)
        if not settings.QUIET.get():
            _log.warning("%s", text)
