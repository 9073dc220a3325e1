"""What rules about the types of operations are made of."""

from __future__ import annotations

from dataclasses import replace

from ..ir import Operation, Value
from ..type_reader import PLAIN_TYPES
from ..types import MemDescType, TensorType, Type

I1 = PLAIN_TYPES["i1"]


def shape(value: Value) -> tuple[int, ...]:
    """The shape of a tensor or a buffer, () of a scalar."""
    return value.type.shape if isinstance(value.type, TensorType | MemDescType) else ()


def element(value: Value) -> Type:
    """The type of a value's elements."""
    return value.type.element if isinstance(value.type, TensorType | MemDescType) else value.type


def with_element(type_: Type, element: Type) -> Type:
    """A type like ``type_`` of other elements."""
    return replace(type_, element=element) if isinstance(type_, TensorType) else element


def same_elements(operation: Operation) -> bool:
    """Whether all operands and results have elements of one type."""
    return len({element(value) for value in (*operation.operands, *operation.results)}) == 1


def alike(one: Value, other: Value) -> bool:
    """Whether two values have the same elements in the same shape."""
    return shape(one) == shape(other) and element(one) == element(other)


def moves(operation: Operation) -> bool:
    """Whether the result has the elements and the shape of the first operand."""
    return alike(operation.operands[0], operation.result)


def transposes(operation: Operation) -> bool:
    """Whether the result's dimensions are the operand's in the ``order`` of the operation."""
    source = shape(operation.operands[0])
    order = operation.attributes["order"]
    return same_elements(operation) and shape(operation.result) == tuple(source[dim] for dim in order)


def tensors(operation: Operation) -> list[Value]:
    """The operands and results that are tensors."""
    return [value for value in (*operation.operands, *operation.results) if isinstance(value.type, TensorType)]
