"""Whether what the axis analysis claims of a value, hints among it, is true of what the value turned out to be."""

from typing import Any

import numpy as np
from triton.backends.spirv.analysis.axis_info import AxisInfo

Array = np.ndarray[Any, Any]


def check_claims(info: AxisInfo, value: Array, step: int = 1) -> None:
    """Fails where a claim of ``info`` is not true of ``value``: integers, addresses whose elements are ``step`` bytes
    apart, or floats, of which only constancy is claimed, bit by bit."""
    numbers = np.asarray(value)
    assert info.rank == max(numbers.ndim, 1)
    if numbers.dtype.kind == "f":
        numbers = numbers.view(f"i{numbers.itemsize}")
    if info.constant is not None:
        assert (numbers == info.constant).all(), info
    for dim in range(info.rank):
        lines = np.moveaxis(numbers.reshape(numbers.shape or (1,)), dim, -1)
        extent = lines.shape[-1]
        blocks = lines.reshape(-1, min(info.contiguity[dim], extent)).view(_UNSIGNED[lines.itemsize])
        places = np.arange(blocks.shape[1], dtype=blocks.dtype) * blocks.dtype.type(step)
        assert (blocks == blocks[:, :1] + places).all(), f"{info}: contiguity along {dim}"
        least = min(info.divisibility[dim] - 1, int(np.iinfo(blocks.dtype).max))
        assert not (blocks[:, 0] & blocks.dtype.type(least)).any(), f"{info}: divisibility along {dim}"
        constant = lines.reshape(-1, min(info.constancy[dim], extent))
        assert (constant == constant[:, :1]).all(), f"{info}: constancy along {dim}"


_UNSIGNED = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}
