"""How large elements are in memory: what layouts, plans and the lowering count in."""

from __future__ import annotations

from ..ttgir.types import FloatType, IndexType, IntegerType, PointerType, Type, element_type

#: The widest access of one invocation, in bits.
MAX_BITS = 128


def bits_in_memory(type_: Type) -> int:
    """Bits an element takes in memory: i1 takes a byte."""
    type_ = element_type(type_)
    if isinstance(type_, PointerType | IndexType):
        return 64
    if isinstance(type_, IntegerType):
        return max(8, type_.width)
    if isinstance(type_, FloatType):
        return type_.width
    raise NotImplementedError(f"values of type {type_} have no size in memory")


def bytes_in_memory(type_: Type) -> int:
    """Bytes an element takes in memory."""
    return bits_in_memory(type_) // 8
