"""Triton's SPIR-V backend. ``import triton`` imports this file: it imports nothing."""

from __future__ import annotations

from collections.abc import Callable

#: What else is done once the torch device is registered: compiled operations are entered from outside runtime/.
#: Called in order, without arguments, by runtime/torch_device.py.
AT_REGISTRATION: list[Callable[[], None]] = []
