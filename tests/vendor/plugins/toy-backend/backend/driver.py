"""A driver that is active where TRITON_DEFAULT_BACKEND names it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase


class ToyDriver(DriverBase):
    @classmethod
    def is_active(cls) -> bool:
        return os.environ.get("TRITON_DEFAULT_BACKEND") == "toy"

    def map_python_to_cpp_type(self, ty: str) -> str:
        raise NotImplementedError

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("toy", "one", 1)

    def get_active_torch_device(self) -> Any:
        raise NotImplementedError

    def get_benchmarker(self) -> Callable[..., Any]:
        raise NotImplementedError
