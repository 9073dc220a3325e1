"""The element types of tensors: the name of each in MLIR, in Triton's signatures and in arrays, and what it holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class FloatElement:
    """A float type. ``name``: MLIR's; ``triton``: in the types of arguments, empty if kernels are passed none of them;
    ``array``: the dtype of NumPy, ml_dtypes or torch. ``mantissa``: bits without the leading one; ``bias``: of the
    exponent. ``added_in``: the type in which a dot adds products of this one, each of which is exact there; empty if
    dots take none."""

    name: str
    bits: int
    triton: str = ""
    array: str = ""
    mantissa: int = 0
    bias: int = 0
    added_in: str = ""

    @property
    def bytes(self) -> int:
        """Bytes of one in memory."""
        return -(-self.bits // 8)


#: Every float type that MLIR can print in TTGIR. The last four are read, and not computed with.
FLOATS: Mapping[str, FloatElement] = {
    one.name: one
    for one in (
        FloatElement("f16", 16, "fp16", "float16", 10, 15, "f32"),
        FloatElement("bf16", 16, "bf16", "bfloat16", 7, 127, "f32"),
        FloatElement("f32", 32, "fp32", "float32", 23, 127, "f32"),
        FloatElement("f64", 64, "fp64", "float64", 52, 1023, "f64"),
        FloatElement("f8E4M3FN", 8, "fp8e4nv", "float8_e4m3fn", 3, 7, "f32"),
        FloatElement("f8E4M3FNUZ", 8, "fp8e4b8", "float8_e4m3fnuz", 3, 8, "f32"),
        FloatElement("f8E5M2", 8, "fp8e5", "float8_e5m2", 2, 15, "f32"),
        FloatElement("f8E5M2FNUZ", 8, "fp8e5b16", "float8_e5m2fnuz", 2, 16, "f32"),
        FloatElement("tf32", 32),
        FloatElement("f8E4M3B11FNUZ", 8),
        FloatElement("f8E8M0FNU", 8),
        FloatElement("f4E2M1FN", 4),
    )
}

#: The dtypes of arrays that a kernel can point at, by name.
ARRAY_TYPES = frozenset(
    {
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *(one.array for one in FLOATS.values() if one.array),
    }
)
