"""The tests that have to pass on Mesa's CPU driver as well as on the CPU device."""

from __future__ import annotations

#: File, or folder of files → why it is run on a Vulkan device, too.
FILES: dict[str, str] = {}
