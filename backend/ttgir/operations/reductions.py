"""Operations with regions that combine elements: reductions, scans, and functions of several elements."""

from __future__ import annotations

from collections.abc import Sequence

from ..encodings import SliceEncoding
from ..ir import Operation, Value
from ..types import Type, encoding_of
from .definition import Encodings, End, Layouts, Memory, define
from .type_checks import alike, element, shape, tensors


def _elements(values: Sequence[Value]) -> list[Type]:
    return [element(value) for value in values]


def _reduces(operation: Operation) -> bool:
    axis, arguments = operation.attributes["axis"], operation.regions[0].entry.arguments
    kept = [extents[:axis] + extents[axis + 1 :] for extents in map(shape, operation.operands)]
    return (
        kept == list(map(shape, operation.results))
        and _elements(operation.operands) == _elements(operation.results)
        and [argument.type for argument in arguments] == _elements(operation.operands) * 2
    )


def _of_slices(operation: Operation) -> Encodings:
    source, *others = tensors(operation)
    encoding = encoding_of(source.type)
    if encoding is not None:
        for value in others[len(operation.operands) - 1 :]:
            yield value, SliceEncoding(operation.attributes["axis"], encoding)


def _scans(operation: Operation) -> bool:
    return all(map(alike, operation.operands, operation.results))


def _of_first(operation: Operation) -> Encodings:
    first, *others = tensors(operation)
    yield from ((value, encoding_of(first.type)) for value in others)


_LISTED = "$result attr-dict `:` type($result)"

# fmt: off
define("tt.reduce", "srcs* -> result*", "", "axis", memory=Memory.SCRATCH, ended_by=("tt.reduce.return",),
       types=_reduces, encodings=_of_slices)
define("tt.scan", "srcs* -> result*", "", "axis reverse", memory=Memory.SCRATCH, ended_by=("tt.scan.return",),
       types=_scans, encodings=_of_first)
define("tt.map_elementwise", "srcs* -> result*", "", "pack", ended_by=("tt.map_elementwise.return",),
       layouts=Layouts.OWN)
define("tt.reduce.return tt.scan.return", "result*", _LISTED, end=End.LEAVE)
define("tt.map_elementwise.return", "result*", "attr-dict ($result^ `:` type($result))?", end=End.LEAVE)
# fmt: on
