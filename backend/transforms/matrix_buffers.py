"""Gives the buffers of operands of matrix dots rows at one distance, so that fragments can be loaded from them.

Upstream permutes the vectors of each row (``#ttg.swizzled_shared``), which suits loads of single registers. A matrix
load wants a stride instead. The rows are padded by as much as the widest access, so that eight of them, which a matrix
load reads at a time, lie in different banks.
"""

from __future__ import annotations

from dataclasses import replace

from ..ttgir.encodings import DotOperandEncoding, NvidiaMmaEncoding, PaddedSharedEncoding, SwizzledSharedEncoding
from ..ttgir.ir import Module, Operation, Value
from ..ttgir.types import FloatType, IntegerType, MemDescType, TensorType

#: Bytes of the padding of a row.
PADDING = 16


def pad_matrix_buffers(module: Module) -> bool:
    """Rewrites the encodings of buffers of rank 2 that only matrix dots read. Whether there were any."""
    changed = False
    for function in module.functions.values():
        for block in function.body.blocks if function.body is not None else ():
            for top in block.operations:
                for operation in top.walk():
                    if operation.name == "ttg.local_alloc" and operation.operands and _suits(operation.result):
                        operation.result.type = _padded(operation.result.type)
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
        and bool(buffer.uses)
        and all(use.name == "ttg.local_dealloc" or _read_by_dots(use) for use in buffer.uses)
    )


def _read_by_dots(load: Operation) -> bool:
    if load.name != "ttg.local_load" or not isinstance(load.result.type, TensorType):
        return False
    encoding = load.result.type.encoding
    return (
        isinstance(encoding, DotOperandEncoding)
        and isinstance(encoding.parent, NvidiaMmaEncoding)
        and bool(load.result.uses)
        and all(use.name == "tt.dot" for use in load.result.uses)
    )


def _padded(type_: object) -> MemDescType:
    assert isinstance(type_, MemDescType) and isinstance(type_.encoding, SwizzledSharedEncoding)
    assert isinstance(type_.element, FloatType | IntegerType)
    order = type_.encoding.order
    row = type_.shape[order[0]]
    padding = PADDING * 8 // type_.element.width
    return replace(type_, encoding=PaddedSharedEncoding(((row, padding),), order, type_.shape))
