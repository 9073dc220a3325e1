"""The types of kernel arguments: their names, their bytes in the argument block, and how they are packed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from .elements import FLOATS


class Packing(Enum):
    """How a Python object is written. The signed and unsigned kinds of one width differ in their range alone."""

    POINTER = "kPointer"
    SIGNED = "kSigned"
    UNSIGNED = "kUnsigned"
    BOOL = "kBool"
    HALF = "kHalf"
    BFLOAT = "kBFloat"
    FLOAT = "kFloat"
    DOUBLE = "kDouble"


@dataclass(frozen=True)
class Scalar:
    """A type that is passed by value. ``name``: Triton's; ``c_type``: of its bytes in the argument block."""

    name: str
    bytes: int
    packing: Packing
    c_type: str


SCALARS: Mapping[str, Scalar] = {
    scalar.name: scalar
    for scalar in (
        Scalar("i1", 1, Packing.BOOL, "int8_t"),
        Scalar("i8", 1, Packing.SIGNED, "int8_t"),
        Scalar("i16", 2, Packing.SIGNED, "int16_t"),
        Scalar("i32", 4, Packing.SIGNED, "int32_t"),
        Scalar("i64", 8, Packing.SIGNED, "int64_t"),
        Scalar("u1", 1, Packing.BOOL, "uint8_t"),
        Scalar("u8", 1, Packing.UNSIGNED, "uint8_t"),
        Scalar("u16", 2, Packing.UNSIGNED, "uint16_t"),
        Scalar("u32", 4, Packing.UNSIGNED, "uint32_t"),
        Scalar("u64", 8, Packing.UNSIGNED, "uint64_t"),
        Scalar("fp16", 2, Packing.HALF, "uint16_t"),
        Scalar("bf16", 2, Packing.BFLOAT, "uint16_t"),
        Scalar("fp32", 4, Packing.FLOAT, "float"),
        Scalar("fp64", 8, Packing.DOUBLE, "double"),
    )
}

#: A pointer is passed as the device address of its first element.
POINTER = Scalar("*", 8, Packing.POINTER, "uint64_t")
#: Element types that a kernel can be passed pointers to, and no values of.
POINTEES = (*(one.triton for one in FLOATS.values() if one.triton and one.triton not in SCALARS), "fp8e4b15")


def triton_name(type_: str) -> str:
    """A type's name in Triton's terms, whether Triton or MLIR named it, as in the signature of a .ttgir file."""
    element = type_.lstrip("*")
    return type_[: len(type_) - len(element)] + (FLOATS[element].triton if element in FLOATS else element)


def argument_type(type_: str) -> Scalar:
    """How an argument of a type is passed. Raises KeyError for a type that is not."""
    return POINTER if type_.startswith("*") else SCALARS[triton_name(type_)]
