"""Which operations go into loops over strips (strips.py), by what they are cut, and how long their code is."""

from __future__ import annotations

from collections.abc import Iterable

from ..analysis.code_size import unrolled
from ..analysis.places import elementwise, order_is_free
from ..driver_quirks import Driver
from ..layouts.strips import same_registers
from ..ttgir.ir import DenseAttr, Operation, Value
from ..ttgir.operations import definition_of
from ..ttgir.types import TensorType
from .strip_reductions import folds, keeps_strips

#: Operations without operands that are tensors.
SOURCES = frozenset(("tt.splat", "tt.make_range", "arith.constant"))

#: Operations a strip of whose result is a strip of their operand, or needs none.
_ALWAYS = SOURCES | {"tt.expand_dims", "tt.trans", "tt.broadcast"}

#: Operations that take many times as long as others of their length.
DIVISIONS = frozenset(f"arith.{name}" for name in ("divsi", "divui", "remsi", "remui"))

#: Instructions of code that is rather computed twice than kept in an array.
_LIGHT = 2


def is_light(operation: Operation) -> bool:
    """Whether an operation only computes, and little."""
    return operation.name != "tt.load" and not operation.regions and definition_of(operation).length <= _LIGHT


def cost_of(operations: Iterable[Operation], driver: Driver) -> int:
    """Instructions that operations take which could be in a loop."""
    return sum(unrolled(one, driver) for one in operations if one.name == "tt.reduce" or may_be_cut(one))


def may_be_cut(operation: Operation) -> bool:
    """Whether a strip of the operation's tensors is computed from strips of its operands."""
    name = operation.name
    if name == "tt.load":
        return not operation.attributes.get("isVolatile") and is_tensor(operation.result)
    if name == "arith.constant":
        return isinstance(attribute := operation.attributes["value"], DenseAttr) and attribute.splat
    if name == "tt.store":
        return is_tensor(operation.operands[0])
    return (
        name in _ALWAYS
        or (not operation.regions and elementwise(operation))
        or keeps_strips(operation)
        or (name == "tt.reshape" and _renames(operation))
    )


def _renames(reshape: Operation) -> bool:
    """Whether it gives registers other names, which are as good: elements may come in any order."""
    before, after = reshape.operands[0].tensor, reshape.result.tensor
    return before.shape == after.shape and order_is_free(reshape) and same_registers(before, after)


def is_tensor(value: Value) -> bool:
    return isinstance(value.type, TensorType)


def sunk(operation: Operation) -> Value:
    """A tensor of the shape that a sink is cut by."""
    return operation.operands[0] if not operation.results or folds(operation) else operation.results[0]


def size_of(operation: Operation) -> int:
    type_ = sunk(operation).type
    return type_.size if isinstance(type_, TensorType) else 1
