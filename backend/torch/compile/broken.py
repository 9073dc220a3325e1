"""What this torch lacks, as noted by the hooks of ``internals/``, and why a device is therefore refused."""

from __future__ import annotations

#: Hooks that this torch has no place for: name → what is missing.
BROKEN: dict[str, str] = {}
