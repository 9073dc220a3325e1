"""Which elements of a tensor are computed where, and whether pointers may lead to the same place."""

from __future__ import annotations

from ..ttgir.ir import DenseAttr, Operation, Value
from ..ttgir.traits import traits
from ..ttgir.types import TensorType
from .pointer_roots import Roots


def elementwise(operation: Operation) -> bool:
    """Whether each element of the results is computed from the operands' elements at the same place."""
    types = [value.type for value in (*operation.operands, *operation.results)]
    shapes = {type_.shape for type_ in types if isinstance(type_, TensorType)}
    return traits(operation).elementwise and len(shapes) == 1


def order_is_free(reshape: Operation) -> bool:
    """Whether the elements of a ``tt.reshape`` may come in any order: it says so, and no operation that is given the
    result pairs its elements with those of other tensors. Upstream's add_combine lets a tt.reshape reorder whose users
    are reductions and histograms, these among them."""
    return "allow_reorder" in reshape.attributes and not _pairs(reshape)


def _pairs(operation: Operation) -> bool:
    for use in operation.result.uses:
        if use.name in ("tt.reduce", "tt.histogram") and len(use.operands) > 1:
            return True
        if use.name == "ttg.convert_layout" and _pairs(use):
            return True
    return False


def may_share(pointer: Value, other: Value, roots: Roots) -> bool:
    """Whether two pointers may come from one argument."""
    one, two = roots.get(pointer), roots.get(other)
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


def distinct(value: Value, dim: int) -> bool:
    """Whether elements that differ in their place along ``dim`` differ in value too, a stride of 0 left aside."""
    owner = value.owner
    if not isinstance(owner, Operation):
        return False
    match owner.name:
        case "tt.make_range":
            return True
        case "tt.broadcast" | "arith.extsi" | "arith.extui":
            return distinct(owner.operands[0], dim)
        case "tt.expand_dims":
            return owner.attributes["axis"] != dim and distinct(
                owner.operands[0], dim - (owner.attributes["axis"] < dim)
            )
        case "tt.addptr" | "arith.addi" | "arith.muli":
            one, other = owner.operands
            return (distinct(one, dim) and uniform(other, dim)) or (uniform(one, dim) and distinct(other, dim))
    return False


def uniform(value: Value, dim: int) -> bool:
    """Whether elements that differ only in their place along ``dim`` are equal."""
    type_, owner = value.type, value.owner
    if not isinstance(type_, TensorType) or type_.shape[dim] == 1:
        return True
    if not isinstance(owner, Operation):
        return False
    if owner.name == "tt.expand_dims":
        return uniform(owner.operands[0], dim - (owner.attributes["axis"] < dim))
    if owner.name == "arith.constant":
        return isinstance(attribute := owner.attributes["value"], DenseAttr) and attribute.splat
    if owner.name in ("tt.splat", "tt.broadcast") or elementwise(owner):
        return all(uniform(operand, dim) for operand in owner.operands)
    return False
