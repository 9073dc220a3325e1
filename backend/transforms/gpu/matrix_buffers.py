"""Gives the buffers of operands of matrix dots rows at one distance, so that fragments can be loaded from them.

Upstream permutes the vectors of each row (``#ttg.swizzled_shared``), which suits loads of single registers. A matrix
load wants a stride instead. The rows are padded by as much as the widest access, so that eight of them, which a matrix
load reads at a time, lie in different banks.
"""

from __future__ import annotations

from dataclasses import replace

from ...analysis.matrix_dots import feeds_matrix_dots
from ...ttgir.encodings import PaddedSharedEncoding, SwizzledSharedEncoding
from ...ttgir.ir import Module, Operation, Value
from ...ttgir.types import FloatType, IntegerType, MemDescType

#: Bytes of the padding of a row.
PADDING = 16


def pad_matrix_buffers(module: Module) -> bool:
    """Rewrites the encodings of buffers of rank 2 that only matrix dots read, as they are or transposed. Whether there
    were any."""
    changed = False
    for operation in module.walk():
        if operation.name == "ttg.local_alloc" and operation.operands and _suits(operation.result):
            _pad(operation.result)
            changed = True
    return changed


def _suits(buffer: Value) -> bool:
    type_ = buffer.type
    return (
        isinstance(type_, MemDescType)
        and len(type_.shape) == 2
        and not type_.mutable
        and type_.alloc_shape in ((), type_.shape)
        and isinstance(type_.encoding, SwizzledSharedEncoding)
        and isinstance(type_.element, FloatType | IntegerType)
        and type_.element.width in (8, 16)
        and all(use.name == "ttg.local_dealloc" or _read_by_dots(use) for use in buffer.uses)
        and any(use.name != "ttg.local_dealloc" for use in buffer.uses)
    )


def _read_by_dots(use: Operation) -> bool:
    if use.name == "ttg.memdesc_trans":
        return bool(use.result.uses) and all(
            inner.name == "ttg.local_load" and _read_by_dots(inner) for inner in use.result.uses
        )
    return use.name == "ttg.local_load" and feeds_matrix_dots(use.result)


def _pad(buffer: Value) -> None:
    type_ = buffer.memdesc
    assert isinstance(type_.encoding, SwizzledSharedEncoding)
    assert isinstance(type_.element, FloatType | IntegerType)
    order, shape = type_.encoding.order, type_.shape
    intervals = ((shape[order[0]], PADDING * 8 // type_.element.width),)
    buffer.type = replace(type_, encoding=PaddedSharedEncoding(intervals, order, shape))
    turned = PaddedSharedEncoding(intervals, (order[1], order[0]), (shape[1], shape[0]))
    for use in buffer.uses:
        if use.name == "ttg.memdesc_trans":
            use.result.type = replace(use.result.memdesc, encoding=turned)
