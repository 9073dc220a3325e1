"""Sends a tile that a loop turns and carries on through a buffer, while upstream's passes choose layouts.

A turn is a transposition or another change of the shape. Upstream's pass that removes layout conversions follows each
layout of a value to all that is computed from it, and what a turn makes of a layout is another one. Around a loop, two
different turns make all orders of the bits of a place in a tile, so that the pass does not come to an end with 64
elements or more. Nor does it where it computes a turned tile again in other layouts, if the tile starts as a constant
or has fewer elements than there are threads. A value that is loaded from a buffer has a layout of its own: none is
followed around the loop. Behind the passes, the buffers become layout conversions again.
"""

from __future__ import annotations

from dataclasses import replace

from ..analysis.turned_tiles import turned_carried_tiles
from ..ttgir.encodings import SwizzledSharedEncoding
from ..ttgir.ir import Module, Operation, Value
from ..ttgir.type_reader import PLAIN_TYPES
from ..ttgir.types import MemDescType
from .rewriting import Rewriter


def buffer_turned_tiles(module: Module) -> bool:
    """Puts a buffer where a loop hands a tile that it turned to its next iteration. Whether there was one."""
    places = [place for function in module.functions.values() for place in turned_carried_tiles(function)]
    for place in places:
        operands = list(place.end.operands)
        operands[place.number] = _through_buffer(operands[place.number], Rewriter.before(place.end))
        place.end.set_operands(operands)
    return bool(places)


def _through_buffer(value: Value, place: Rewriter) -> Value:
    """The value again. The buffer is ``mutable``, as none is that upstream's passes make of a kernel in Triton's
    language. Buffers hold whole bytes."""
    if value.tensor.element == PLAIN_TYPES["i1"]:
        wide = place.make("arith.extui", [value], [replace(value.tensor, element=PLAIN_TYPES["i8"])]).result
        return place.make("arith.trunci", [_through_buffer(wide, place)], [value.type]).result
    type_ = value.tensor
    encoding = SwizzledSharedEncoding(1, 1, 1, tuple(reversed(range(type_.rank))))
    types = [MemDescType(type_.shape, type_.element, encoding, mutable=True)]
    buffer = place.make("ttg.local_alloc", [value], types).result
    return place.make("ttg.local_load", [buffer], [type_]).result


def convert_turned_tiles(module: Module) -> bool:
    """Makes layout conversions of these buffers. Whether there was one."""
    buffers = [operation for operation in module.walk() if _is_between_turns(operation)]
    for alloc in buffers:
        (value,) = alloc.operands
        for load in list(alloc.result.uses):
            again = value
            if load.result.type != value.type:
                again = Rewriter.before(load).make("ttg.convert_layout", [value], [load.result.type]).result
            load.result.replace_uses(again)
            load.erase()
        alloc.erase()
    return bool(buffers)


def _is_between_turns(operation: Operation) -> bool:
    """A buffer that one of upstream's passes has given another use stays one: it holds the same."""
    return (
        operation.name == "ttg.local_alloc"
        and bool(operation.operands)
        and operation.result.memdesc.mutable
        and all(use.name == "ttg.local_load" for use in operation.result.uses)
    )
