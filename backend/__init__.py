"""Triton's SPIR-V backend. ``import triton`` imports this file: it imports nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: What else is done once the torch device is registered: compiled operations are entered from outside torch/device/.
#: Called in order, without arguments, by torch/device/registration.py.
AT_REGISTRATION: list[Callable[[], None]] = []
#: What the torch device's own operations are entered as, from outside torch/device/: each makes another of an
#: operation.
AROUND_OPERATIONS: list[Callable[[Callable[..., Any]], Callable[..., Any]]] = []
