"""Which elements of a tensor are computed where, and whether pointers may lead to the same place."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..ttgir.ir import Block, DenseAttr, FloatBits, Operation, Value
from ..ttgir.operations import definition_of
from ..ttgir.types import IntegerType, TensorType
from .combinations import commutes
from .pointer_roots import Roots


def elementwise(operation: Operation) -> bool:
    """Whether each element of the results is computed from the operands' elements at the same place."""
    types = [value.type for value in (*operation.operands, *operation.results)]
    shapes = {type_.shape for type_ in types if isinstance(type_, TensorType)}
    return definition_of(operation).elementwise and len(shapes) == 1


def order_is_free(reshape: Operation) -> bool:
    """Whether the elements of a ``tt.reshape`` may come in any order: it says so, and no operation that is given the
    result pairs its elements with other tensors' elements, or combines them in their order. Upstream's add_combine lets
    a tt.reshape reorder whose users are reductions and histograms, these among them."""
    return reshape.flag("allow_reorder") and not _pairs(reshape)


def _pairs(operation: Operation) -> bool:
    for use in operation.result.uses:
        if use.name in ("tt.reduce", "tt.histogram") and len(use.operands) > 1:
            return True
        if use.name == "tt.reduce" and not commutes(use.regions[0]):
            return True
        if use.name == "ttg.convert_layout" and _pairs(use):
            return True
    return False


def may_share(pointer: Value, other: Value | None, roots: Roots) -> bool:
    """Whether two pointers may come from one argument; None is one of which nothing is known."""
    one, two = roots.get(pointer), None if other is None else roots.get(other)
    return one is None or two is None or not set(one).isdisjoint(two)


def same_pointer(one: Value, other: Value) -> bool:
    """Whether two pointers are computed alike."""
    if one is other:
        return True
    first, second = one.owner, other.owner
    if not (isinstance(first, Operation) and isinstance(second, Operation)):
        return False
    if first.name != second.name or first.name not in ("tt.addptr", "tt.splat"):
        return False
    return one.type == other.type and all(map(same_pointer, first.operands, second.operands))


#: Value → by how much its elements grow from one place to the next along each dimension; None if that is not known
#: to be the same constant everywhere.
Steps = dict[Value, tuple[int, ...] | None]


def no_two_alike(value: Value) -> bool:
    """Whether no two elements of a tensor of integers or pointers are equal, as far as constants tell: its steps along
    one dimension do not add up to those along another."""
    type_ = value.type
    if not isinstance(type_, TensorType):
        return True
    steps, reach = _steps(value, {}), 0
    if steps is None:
        return False
    for step, extent in sorted((abs(step), extent) for step, extent in zip(steps, type_.shape, strict=True)):
        if extent > 1 and step <= reach:
            return False
        reach += step * (extent - 1)
    return reach < 1 << 31  # no sum of 32 bits comes around


def _steps(value: Value, known: Steps) -> tuple[int, ...] | None:
    if not isinstance(value.type, TensorType):
        return ()
    if value not in known:
        known[value] = _found_steps(value, value.type, known)
    return known[value]


def _found_steps(value: Value, type_: TensorType, known: Steps) -> tuple[int, ...] | None:
    owner = value.owner
    if isinstance(type_.element, IntegerType) and type_.element.width < 32:
        return None
    if not isinstance(owner, Operation):
        return _carried_steps(value, owner, known)
    if owner.name in _STEPS:
        operands = [_steps(operand, known) for operand in owner.operands]
        return None if None in operands else _STEPS[owner.name](owner, operands)  # type: ignore[arg-type]
    equal = owner.name == "tt.splat" or constant(value) is not None
    return (0,) * type_.rank if equal else None


def _carried_steps(value: Value, body: Block, known: Steps) -> tuple[int, ...] | None:
    """The places of what an ``scf.for`` carries: the first value's, if each iteration keeps them."""
    loop = body.holder
    if loop is None or loop.name != "scf.for" or value.index == 0:
        return None
    first = _steps(loop.operands[2 + value.index], known)
    return first if _steps(body.terminator.operands[value.index - 1], {**known, value: first}) == first else None


def _sum(operation: Operation, operands: list[tuple[int, ...]]) -> tuple[int, ...]:
    sign = -1 if operation.name == "arith.subi" else 1
    return tuple(one + sign * other for one, other in zip(*operands, strict=True))


def _product(operation: Operation, operands: list[tuple[int, ...]]) -> tuple[int, ...] | None:
    for value, other in zip(operation.operands, reversed(operands), strict=True):
        if (factor := constant(value)) is not None:
            return tuple(factor * step for step in other)
    return None if any(map(any, operands)) else operands[0]


def _expanded(operation: Operation, operands: list[tuple[int, ...]]) -> tuple[int, ...]:
    axis = operation.attribute("axis")
    return (*operands[0][:axis], 0, *operands[0][axis:])


#: Operations whose results have the steps of their operands, in some way.
_STEPS: dict[str, Callable[[Operation, list[tuple[int, ...]]], tuple[int, ...] | None]] = {
    "tt.make_range": lambda operation, operands: (1,),
    "tt.expand_dims": _expanded,
    "tt.trans": lambda operation, operands: tuple(operands[0][dim] for dim in operation.attribute("order")),
    "arith.addi": _sum,
    "arith.subi": _sum,
    "tt.addptr": _sum,
    "arith.muli": _product,
    **dict.fromkeys(
        ("tt.broadcast", "arith.extsi", "arith.extui", "ttg.convert_layout"), lambda operation, operands: operands[0]
    ),
}


def constant(value: Value) -> int | None:
    """The number that all elements are, where it is known."""
    number = _number(value)
    return number if isinstance(number, int) else None


def is_zero(value: Value) -> bool:
    """Whether all elements are known to be 0, and not -0, which gives sums another sign."""
    number = _number(value)
    if isinstance(number, FloatBits):
        return number.bits == 0
    return isinstance(number, int | float) and number == 0 and math.copysign(1, number) > 0


def _number(value: Value) -> Any:
    """What all elements are, as the attribute of a constant has it; None where it is not known."""
    owner = value.owner
    if not isinstance(owner, Operation):
        return None
    if owner.name in ("tt.splat", "ttg.convert_layout"):
        return _number(owner["src"])
    if owner.name != "arith.constant":
        return None
    number = owner.attribute("value")
    if isinstance(number, DenseAttr):
        return number.values[0] if number.splat else None
    return number
