"""Triton's SPIR-V backend. ``import triton`` imports this file: it imports nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: What else is done once the torch device is registered: compiled operations are entered from outside torch/device/.
#: Called in order, without arguments, by torch/device/registration.py.
AT_REGISTRATION: list[Callable[[], None]] = []
#: How the torch device's own operations are entered, from outside torch/device/: called by torch/device/registration.py
#: with a torch.library.Library, a torch operation, and what does it for tensors of the device.
ENTER_OPERATION: list[Callable[[Any, Any, Callable[..., Any]], None]] = []
