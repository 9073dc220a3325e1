"""Puts dot operands that come out of a layout conversion in buffers, where a kernel's dots are too much code unrolled.

Within one subgroup upstream converts an operand's layout from registers to registers. A loop over K cannot choose among
registers: the dot is unrolled, or the operand goes to workgroup memory after all, a second time. From a buffer that is
filled instead of the conversion each dot's loop reads what it needs, and several dots read the same one.
"""

from __future__ import annotations

from ..analysis.code_size import multiply_adds
from ..ttgir.encodings import BlockedEncoding, SwizzledSharedEncoding
from ..ttgir.ir import Module, Operation, Value
from ..ttgir.types import FloatType, IntegerType, MemDescType, TensorType, operand_of
from .rewriting import Rewriter
from .sink_buffers import is_filled


def buffer_operands(module: Module, limit: int) -> bool:
    """Gives each dot its own load of an operand that was converted, in functions whose dots have more than ``limit``
    multiply-adds a lane. Whether there was one."""
    changed = False
    for function in module.functions.values():
        operations = list(function.walk())
        if multiply_adds(operations) > limit:
            changed = any([_buffer(operation) for operation in operations if _suits(operation)]) or changed
    return changed


def _suits(operation: Operation) -> bool:
    if operation.name != "ttg.convert_layout" or not operation.result.uses:
        return False
    source = operation["src"].type
    return (
        isinstance(source, TensorType)
        and source.rank == 2
        and isinstance(source.encoding, BlockedEncoding)
        and isinstance(source.element, FloatType | IntegerType)
        and source.element.width >= 8
        and isinstance(operand_of(operation.result.type), BlockedEncoding)
        and all(use.name == "tt.dot" for use in operation.result.uses)
    )


def _buffer(conversion: Operation) -> bool:
    value, converted = conversion["src"], conversion.result
    kept = (one for one in buffers_with(value, conversion) if all(use.name != "ttg.local_dealloc" for use in one.uses))
    buffer = next(kept, None)
    if buffer is None:
        buffer = Rewriter.before(conversion).make("ttg.local_alloc", [value], [_buffer_type(value)]).result
    for dot in dict.fromkeys(converted.uses):
        load = Rewriter.before(dot).make("ttg.local_load", [buffer], [converted.type])
        dot.replace_operand(converted, load.result)
    conversion.erase()
    return True


def buffers_with(value: Value, before: Operation) -> list[Value]:
    """Buffers with ``value`` in them that are filled in the block of ``before``, before it, and never again."""
    assert before.block is not None
    above = before.block.operations[: before.block.operations.index(before)]
    return [use.result for use in value.uses if is_filled(use) and use in above]


def _buffer_type(value: Value) -> MemDescType:
    type_ = value.tensor
    assert isinstance(type_.encoding, BlockedEncoding)
    return MemDescType(type_.shape, type_.element, SwizzledSharedEncoding(1, 1, 1, type_.encoding.order))
