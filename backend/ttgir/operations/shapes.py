"""Operations that make tensors, and that give their elements other places."""

from __future__ import annotations

from ..encodings import SliceEncoding, transposed_back
from ..ir import Operation
from ..types import TensorType, encoding_of
from .definition import Encodings, Layouts, Memory, Pointers, define
from .type_checks import moves, same_elements, shape, tensors, transposes


def _splats(operation: Operation) -> bool:
    return same_elements(operation) and not shape(operation.operands[0])


def _broadcasts(operation: Operation) -> bool:
    source, result = shape(operation.operands[0]), shape(operation.result)
    return same_elements(operation) and len(source) == len(result) and all(map(_widens, source, result))


def _widens(extent: int, wider: int) -> bool:
    return extent in (1, wider)


def _of_result(operation: Operation) -> Encodings:
    source, result = tensors(operation)
    yield source, encoding_of(result.type)


def _expands(operation: Operation) -> bool:
    source, axis = shape(operation.operands[0]), operation.attributes["axis"]
    return same_elements(operation) and shape(operation.result) == (*source[:axis], 1, *source[axis:])


def _of_slice(operation: Operation) -> Encodings:
    source, result = tensors(operation)
    encoding = encoding_of(result.type)
    if encoding is not None:
        yield source, SliceEncoding(operation.attributes["axis"], encoding)


def _of_transposed(operation: Operation) -> Encodings:
    source, result = tensors(operation)
    encoding = encoding_of(result.type)
    if encoding is not None:
        yield source, transposed_back(encoding, tuple(operation.attributes["order"]))


def _reshapes(operation: Operation) -> bool:
    types = [value.type for value in (*operation.operands, *operation.results)]
    return same_elements(operation) and len({type_.size for type_ in types if isinstance(type_, TensorType)}) == 1


def _joins(operation: Operation) -> bool:
    return same_elements(operation) and shape(operation.result) == (*shape(operation.operands[0]), 2)


def _splits(operation: Operation) -> bool:
    return same_elements(operation) and (*shape(operation.results[0]), 2) == shape(operation.operands[0])


def _ranges(operation: Operation) -> bool:
    return shape(operation.result) == (operation.attributes["end"] - operation.attributes["start"],)


def _gathers(operation: Operation) -> bool:
    return shape(operation.operands[1]) == shape(operation.result)


def _of_indices(operation: Operation) -> Encodings:
    _, indices, result = tensors(operation)
    yield result, encoding_of(indices.type)


_CAST = "$src attr-dict `:` type($src) `->` type($result)"

# fmt: off
define("tt.splat", "src -> result", _CAST, pointers=Pointers.KEPT, repeatable=True, length=0, types=_splats)
define("tt.broadcast", "src -> result", _CAST, pointers=Pointers.KEPT, repeatable=True, length=0, types=_broadcasts,
       encodings=_of_result, by_element=True)
define("tt.trans", "src -> result", _CAST, "order", pointers=Pointers.KEPT, repeatable=True, layouts=Layouts.TURNED,
       length=0, types=transposes, encodings=_of_transposed, by_element=True)
define("tt.expand_dims", "src -> result", _CAST, "axis", pointers=Pointers.KEPT, repeatable=True, length=0,
       types=_expands, encodings=_of_slice, by_element=True)
define("tt.unsplat", "src -> result", "$src attr-dict `:` type($src)", equations="result=element(src)",
       pointers=Pointers.KEPT)
define("tt.reshape", "src -> result",
       "$src (`allow_reorder` $allow_reorder^)? (`efficient_layout` $efficient_layout^)? attr-dict `:` type($src) "
       "`->` type($result)", "allow_reorder:unit efficient_layout:unit", pointers=Pointers.EXCHANGED, repeatable=True,
       layouts=Layouts.TURNED, types=_reshapes)
# For tl.cat(can_reorder=True) alone, which 3.10 lacks (backend/upstream.py).
define("tt.cat", "lhs rhs -> result", "$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)", equations="rhs=lhs",
       pointers=Pointers.KEPT, layouts=Layouts.TURNED)
define("tt.join", "lhs rhs -> result", "$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)",
       equations="rhs=lhs", pointers=Pointers.KEPT, layouts=Layouts.TURNED, types=_joins)
define("tt.split", "src -> outLHS outRHS", "$src attr-dict `:` type($src) `->` type($outLHS)",
       equations="outRHS=outLHS", pointers=Pointers.KEPT, layouts=Layouts.TURNED, types=_splits)
define("tt.make_range", "-> result", "attr-dict `:` type($result)", "start end", repeatable=True, length=0,
       types=_ranges)
define("tt.gather", "src indices -> result", "$src `[` $indices `]` attr-dict `:` functional-type(operands, results)",
       "axis efficient_layout:unit", pointers=Pointers.EXCHANGED, memory=Memory.SCRATCH, layouts=Layouts.OWN,
       types=_gathers, encodings=_of_indices)
define("tt.histogram", "src mask? -> result", "$src (`,` $mask^)? attr-dict `:` type($src) `->` type($result)",
       equations="mask=i1(src)", memory=Memory.SCRATCH, layouts=Layouts.OWN)
define("ttg.convert_layout", "src -> result", _CAST, "force_warp_shuffle:unit", pointers=Pointers.EXCHANGED,
       memory=Memory.SCRATCH, types=moves)
# fmt: on
