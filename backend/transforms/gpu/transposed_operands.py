"""Transposed operands of matrix dots go through a buffer that is read across.

Where what is transposed was loaded in the same loop, upstream converts its layout before ``tt.trans``, by way of
scratch memory of the conversion's own. A buffer can be read transposed instead: it may be the same one that another dot
reads as it is, whole fragments can be loaded from it, and the next iteration's load can be made ahead.
"""

from __future__ import annotations

from ...analysis.matrix_dots import feeds_matrix_dots
from ...ttgir.attribute_values import DenseArray
from ...ttgir.encodings import BlockedEncoding, SwizzledSharedEncoding
from ...ttgir.ir import Module, Operation, Value
from ...ttgir.types import FloatType, IntegerType, MemDescType, TensorType
from ..buffer_operands import buffers_with
from ..rewriting import Rewriter

#: Bytes that are read at a time, and rows that are read at a time: what lies in different banks (upstream's
#: SwizzledSharedEncodingAttr::get for NVIDIA's fragments).
_VECTOR, _ROWS, _BANKS = 16, 8, 128


def buffer_transposed_operands(module: Module) -> bool:
    """Rewrites every conversion that only transposed operands of matrix dots need. Whether there were any."""
    found = [operation for operation in module.walk() if operation.name == "ttg.convert_layout" and _suits(operation)]
    for conversion in found:
        _rewrite(conversion)
    return bool(found)


def _suits(conversion: Operation) -> bool:
    source = conversion["src"].type
    return (
        isinstance(source, TensorType)
        and source.rank == 2
        and isinstance(source.encoding, BlockedEncoding)
        and isinstance(source.element, FloatType | IntegerType)
        and source.element.width in (8, 16, 32)
        and bool(conversion.result.uses)
        and all(use.name == "tt.trans" and feeds_matrix_dots(use.result) for use in conversion.result.uses)
    )


def _rewrite(conversion: Operation) -> None:
    tensor = conversion["src"]
    filled = buffers_with(tensor, conversion)
    buffer = next((one for one in filled if isinstance(one.memdesc.encoding, SwizzledSharedEncoding)), None)
    if buffer is None:
        buffer = Rewriter.before(conversion).make("ttg.local_alloc", [tensor], [_buffer_type(tensor)]).result
    for turned in list(conversion.result.uses):
        _read_across(turned, buffer)
    conversion.erase()


def _read_across(turned: Operation, buffer: Value) -> None:
    """Puts a load from the transposed ``buffer`` in the place of a tt.trans, before the first dot that needs it."""
    block, type_ = turned.block, buffer.memdesc
    assert block is not None and isinstance(type_.encoding, SwizzledSharedEncoding)
    place, encoding = turned, type_.encoding
    if all(use.block is block for use in turned.result.uses):
        place = min(turned.result.uses, key=block.operations.index)
    rewriter = Rewriter(block, place, turned.location)
    across = SwizzledSharedEncoding(
        encoding.vec, encoding.per_phase, encoding.max_phase, (encoding.order[1], encoding.order[0])
    )
    view_type = MemDescType((type_.shape[1], type_.shape[0]), type_.element, across, type_.memory_space)
    view = rewriter.make("ttg.memdesc_trans", [buffer], [view_type], {"order": DenseArray((1, 0))}).result
    load = rewriter.make("ttg.local_load", [view], [turned.result.type])
    turned.result.replace_uses(load.result)
    turned.erase()


def _buffer_type(tensor: Value) -> MemDescType:
    type_ = tensor.tensor
    assert isinstance(type_.encoding, BlockedEncoding)
    assert isinstance(type_.element, FloatType | IntegerType)
    size, order = type_.element.width // 8, type_.encoding.order
    row = type_.shape[order[0]] * size
    per_phase = min(_ROWS, max(1, _BANKS // row))
    vector = min(_VECTOR, row) // size
    phases = max(1, min(_ROWS // per_phase, row // (vector * size)))
    return MemDescType(type_.shape, type_.element, SwizzledSharedEncoding(vector, per_phase, phases, order))
