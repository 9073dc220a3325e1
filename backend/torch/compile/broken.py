"""What this torch lacks: noted by the hooks of ``internals/``, and the reason why a device is refused."""

from __future__ import annotations

#: Hooks that this torch has no place for: name → what is missing.
BROKEN: dict[str, str] = {}
