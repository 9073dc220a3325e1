"""Which operations go into loops over strips (strips.py), by what they are cut, and how long their code is."""

from __future__ import annotations

from collections.abc import Iterable

from ..analysis.code_size import unrolled
from ..analysis.places import elementwise, order_is_free
from ..analysis.pointer_range import is_pointer
from ..driver_quirks import Driver
from ..layouts.conversion import ConversionError, Identity, RegisterPermutation, plan_conversion
from ..layouts.distributed import LayoutError, layout_of
from ..layouts.element_sizes import bytes_in_memory
from ..layouts.shuffles import SubgroupShuffle
from ..layouts.strip_layouts import cut_fits, same_registers
from ..ttgir.ir import DenseAttr, Function, Operation, Value
from ..ttgir.operations import Effect, definition_of
from ..ttgir.types import TensorType, element_type, strip_type
from .strip_reductions import folds, keeps_strips

#: Operations without operands that are tensors.
SOURCES = frozenset(("tt.splat", "tt.make_range", "arith.constant"))

#: Operations a strip of whose result is a strip of their operand, or needs none.
_ALWAYS = SOURCES | {"tt.expand_dims", "tt.trans", "tt.broadcast", "tt.join", "tt.split"}

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
        return not operation.attribute("isVolatile") and is_tensor(operation.result)
    if name == "arith.constant":
        return isinstance(attribute := operation.attribute("value"), DenseAttr) and attribute.splat
    if name == "tt.store":
        return is_tensor(operation["ptr"])
    return (
        name in _ALWAYS
        or (not operation.regions and elementwise(operation))
        or keeps_strips(operation)
        or (name == "tt.reshape" and _renames(operation))
    )


def ends(operation: Operation) -> bool:
    """Whether nothing is computed from an operation that may be cut: it writes to memory."""
    return operation.name in ("tt.store", "tt.atomic_rmw")


def sees_updates(function: Function) -> bool:
    """Whether a program may learn what another one updated before it ends: then the order of its updates and other
    accesses counts."""
    return any(
        one.name == "tt.call"
        or (one.name == "tt.load" and one.attribute("isVolatile"))
        or (Effect.ATOMIC in definition_of(one).effects and not _only_updates(one))
        for one in function.walk()
    )


def _only_updates(operation: Operation) -> bool:
    return operation.name == "tt.atomic_rmw" and not operation.result.uses


def updates(operation: Operation) -> bool:
    """Whether an operation updates elements atomically, and what it finds is not used."""
    return _only_updates(operation) and is_tensor(operation.result)


def converts(operation: Operation, most: int | None) -> bool:
    """Whether a ``ttg.convert_layout`` moves no element between lanes, or more than the driver's ``most_shuffles``, but
    no more for a strip."""
    if operation.name != "ttg.convert_layout" or most is None or is_pointer(operation["src"]):
        return False
    whole = _shuffles(operation, 0, 1)
    if whole is None or 0 < whole <= most:
        return False
    rank = operation.result.tensor.rank
    return any(converts_strips(operation, dim, _most_strips(operation, dim), most) for dim in range(rank))


def _most_strips(operation: Operation, dim: int) -> int:
    """In how many strips along ``dim`` a conversion's tensors can be cut at most."""
    types, strips = [operation["src"].tensor, operation.result.tensor], 1
    while all(cut_fits(type_, dim, 2 * strips) for type_ in types):
        strips *= 2
    return strips


def converts_strips(operation: Operation, dim: int, strips: int, most: int) -> bool:
    """Whether a conversion moves each of so many strips along ``dim`` with ``most`` shuffles or fewer."""
    count = _shuffles(operation, dim, strips)
    return count is not None and count <= most


def _shuffles(operation: Operation, dim: int, strips: int) -> int | None:
    """The 32-bit shuffles that move a strip of a conversion; None where it goes through memory."""
    types = [strip_type(value.tensor, dim, strips) for value in (operation["src"], operation.result)]
    size = bytes_in_memory(element_type(types[0]))
    try:
        moves = plan_conversion(layout_of(types[0]), layout_of(types[1]), size)
    except (ConversionError, LayoutError):
        return None
    if isinstance(moves, SubgroupShuffle):
        return len(moves.shuffles) * max(1, size // 4)
    return 0 if isinstance(moves, Identity | RegisterPermutation) else None


def _renames(reshape: Operation) -> bool:
    """Whether it gives registers other names, which are as good: elements may come in any order."""
    before, after = reshape["src"].tensor, reshape.result.tensor
    return before.shape == after.shape and order_is_free(reshape) and same_registers(before, after)


def is_tensor(value: Value) -> bool:
    return isinstance(value.type, TensorType)


def sunk(operation: Operation) -> Value:
    """A tensor of the shape that a sink is cut by."""
    return operation.operands[0] if ends(operation) or folds(operation) else operation.results[0]


def size_of(operation: Operation) -> int:
    type_ = sunk(operation).type
    return type_.size if isinstance(type_, TensorType) else 1
