"""What is measured: a kernel on arrays in a device's memory, with its configurations and the error of its result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


class SpirvMemory:
    """Arrays in the memory of the Vulkan device."""

    def __init__(self) -> None:
        from triton.backends.spirv import runtime
        from triton.backends.spirv.runtime.context import current

        self._runtime = runtime
        self.device = current().device.name

    def put(self, array: np.ndarray) -> Any:
        """The array on the device."""
        return self._runtime.from_numpy(array)

    def get(self, tensor: Any) -> np.ndarray:
        """The tensor's values."""
        return tensor.to_numpy()


class CudaMemory:
    """CUDA tensors of torch."""

    def __init__(self) -> None:
        import torch

        self._torch = torch
        self.device = torch.cuda.get_device_name()

    def put(self, array: np.ndarray) -> Any:
        """The array on the device."""
        if array.dtype == BFLOAT16:
            return self._torch.from_numpy(array.view(np.int16)).view(self._torch.bfloat16).cuda()
        return self._torch.from_numpy(array).cuda()

    def get(self, tensor: Any) -> np.ndarray:
        """The tensor's values."""
        if tensor.dtype == self._torch.bfloat16:
            return tensor.view(self._torch.int16).cpu().numpy().view(BFLOAT16)
        return tensor.cpu().numpy()


@dataclass(frozen=True)
class Sizes:
    """How large the problems are. ``elements`` of vectors; ``rows``, ``columns`` of matrices whose rows are mapped;
    ``square``, ``large``: extents of matmul; ``heads``, ``length`` of attention."""

    elements: int = 1 << 27
    rows: int = 8192
    columns: int = 4096
    square: int = 4096
    large: int = 8192
    heads: int = 32
    length: int = 4096


#: What any device computes in no time.
SMALL = Sizes(elements=5000, rows=194, columns=512, square=128, large=256, heads=2, length=256)


@dataclass
class Case:
    """A kernel to measure. ``run(config)`` launches it; ``error(values)`` is its result's relative error.

    ``amount``: bytes moved or operations of one call; ``unit``: what the rate is given in, and the divisor.
    """

    name: str
    unit: tuple[str, float]
    amount: float
    out: Any
    run: Callable[[dict[str, Any]], Any]
    error: Callable[[np.ndarray], float]
    tolerance: float
    configs: list[dict[str, Any]] = field(default_factory=list)


GIGABYTES, TERAFLOPS = ("GB/s", 1e9), ("TFLOP/s", 1e12)
RNG = np.random.default_rng(0)


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Random numbers of the standard normal distribution."""
    return RNG.standard_normal(shape, dtype=np.float32).astype(dtype, copy=False)


def relative_error(values: np.ndarray, expected: np.ndarray) -> float:
    """‖values − expected‖ / ‖expected‖, NaN where any value is."""
    return float(np.linalg.norm((values.astype(np.float64) - expected).ravel()) / np.linalg.norm(expected.ravel()))


def poisoned(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    """What an output holds before the first run: NaN, which no comparison passes."""
    return np.full(shape, np.nan, dtype)
