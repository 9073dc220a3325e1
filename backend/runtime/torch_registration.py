"""What else is done once the torch device is registered: compiled operations are entered from outside this package."""

from __future__ import annotations

from collections.abc import Callable

#: Called in order, without arguments, by torch_device.register().
AT_REGISTRATION: list[Callable[[], None]] = []
