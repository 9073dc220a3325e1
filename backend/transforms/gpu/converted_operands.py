"""Operands of matrix dots that are converted behind shared memory are converted before it.

Upstream moves elementwise operations between the load from shared memory and the dot, where every subgroup that takes a
part of the operand repeats them, and fragments have to be made register by register. Done on the tile that is stored,
each element is converted once, and fragments are loaded as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...analysis.matrix_dots import feeds_matrix_dots
from ...ttgir.ir import DenseAttr, Module, Operation, Value
from ...ttgir.operations import definition_of
from ...ttgir.types import FloatType, IntegerType, MemDescType, TensorType, Type
from ..rewriting import Rewriter


def convert_operands(module: Module) -> bool:
    """Moves the operations between a load and the dots that it feeds before the buffer that is loaded from. Whether
    there were any."""
    loads = [operation for operation in module.walk() if operation.name == "ttg.local_load"]
    return any([_convert(load) for load in loads])


def _convert(load: Operation) -> bool:
    way = list(_way(load))
    chain = list(_chain(load.result))
    if not way or not chain or not feeds_matrix_dots(chain[-1].result):
        return False
    alloc, element = way[0], chain[-1].result.tensor.element
    if not isinstance(element, FloatType | IntegerType) or element.width not in (8, 16):
        return False
    tile, at = alloc["src"], Rewriter.before(alloc)
    source = tile.tensor
    value = load.result
    for operation in chain:
        operands = [tile if one is value else _again(at, one, source) for one in operation.operands]
        converted = replace(source, element=operation.result.tensor.element)
        tile, value = at.copy(operation, operands=operands, types=[converted]).result, operation.result
    for operation in way:
        own = operation.result.type
        type_: Type = replace(own, element=element) if isinstance(own, MemDescType) else value.type
        place = _first_use(value) if operation is load else operation
        tile = Rewriter.before(place).copy(operation, operands=[tile], types=[type_]).result
    value.replace_uses(tile)
    for operation in reversed([*way, *chain]):
        operation.erase()
    return True


def _first_use(value: Value) -> Operation:
    """The operation before which a fragment is loaded: its first use, in its block. So the buffers of all operands are
    filled between the same two barriers, as those of operands that are not converted."""
    block = value.owner.block if isinstance(value.owner, Operation) else value.owner
    assert block is not None
    uses = set(value.uses)
    return next(one for one in block.operations if not uses.isdisjoint(one.walk()))


def _way(load: Operation) -> Iterator[Operation]:
    """What stores a tile to a buffer, views it and loads it, if nothing else uses the buffer; else nothing."""
    found, owner = [load], load["src"].owner
    while isinstance(owner, Operation) and owner.block is load.block and len(owner.results[0].uses) == 1:
        found.append(owner)
        if owner.name == "ttg.local_alloc":
            yield from reversed(found) if owner.operands else ()
            return
        if owner.name != "ttg.memdesc_trans":
            return
        owner = owner["src"].owner


def _chain(value: Value) -> Iterator[Operation]:
    """Elementwise operations one after the other, each the only use of the one before, of which all other operands are
    the same for all elements."""
    while len(set(value.uses)) == 1:
        use = value.uses[0]
        others = [one for one in use.operands if one is not value]
        if (
            not definition_of(use).elementwise
            or definition_of(use).effects
            or len(use.results) != 1
            or use.regions
            or not all(map(_is_one_number, others))
        ):
            return
        yield use
        value = use.result


def _is_one_number(value: Value) -> bool:
    owner = value.owner
    if not isinstance(owner, Operation):
        return False
    if owner.name != "arith.constant":
        return owner.name == "tt.splat"
    return not isinstance(value.type, TensorType) or _splat(owner.attribute("value"))


def _splat(number: object) -> bool:
    return isinstance(number, DenseAttr) and number.splat


def _again(at: Rewriter, value: Value, like: TensorType) -> Value:
    """A number, or a tensor of one number, in the encoding of ``like``."""
    owner = value.owner
    assert isinstance(owner, Operation)
    if not isinstance(value.type, TensorType):
        return value
    type_ = replace(like, element=value.type.element)
    attributes = dict(owner.attributes)
    if owner.name == "arith.constant":
        attributes |= {"value": replace(owner.attribute("value"), type=type_)}
    return at.copy(owner, types=[type_], attributes=attributes).result
