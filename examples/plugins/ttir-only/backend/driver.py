"""The driver half of the plugin: a target to compile for, and no device to run on."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase


class _NoDevice:
    """`driver.utils`: what upstream asks about the device and its binaries."""

    @staticmethod
    def get_device_properties(device: int) -> dict[str, int]:
        return {"max_shared_mem": 0}

    @staticmethod
    def load_binary(name: str, binary: bytes, shared: int, device: int) -> NoReturn:
        raise RuntimeError(f"ttir_only has no device to load '{name}' on")


class TTIROnlyDriver(DriverBase):
    # The patched tree reads this: the launch is skipped with a warning. Stock triton calls the launcher below.
    can_launch = False

    def __init__(self) -> None:
        super().__init__()
        self.utils = _NoDevice()
        self.launcher_cls = self._refuse_launch

    @classmethod
    def is_active(cls) -> bool:
        # Never claim a machine unasked: without TRITON_DEFAULT_BACKEND exactly one driver may be active.
        return os.environ.get("TRITON_DEFAULT_BACKEND") == "ttir_only"

    @classmethod
    def unavailable_reason(cls) -> str | None:
        return None if cls.is_active() else "needs TRITON_DEFAULT_BACKEND=ttir_only"

    @staticmethod
    def why_no_launch() -> str:
        return "ttir_only stops at TTIR, which no device runs"

    def _refuse_launch(self, src: Any, metadata: Any) -> NoReturn:
        raise RuntimeError(
            f"cannot launch '{metadata.name}': {self.why_no_launch()}; compile it with kernel.warmup(..., grid=(1,))"
        )

    # jit.run asks for these three before it compiles, so they must work without a device.
    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("ttir_only", "generic", 32)

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cpu")

    def map_python_to_cpp_type(self, ty: str) -> str:
        raise NotImplementedError("ttir_only has no C++ launcher")

    def get_benchmarker(self) -> Callable[..., list[float]]:
        # The autotuner times each configuration with this. Compile it, and call all equal.
        def benchmark(kernel_call: Callable[[], None], *, quantiles: Sequence[float], **kwargs: Any) -> list[float]:
            kernel_call()
            return [0.0] * len(quantiles)

        return benchmark
