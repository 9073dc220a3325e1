"""The argument block: how a kernel reads what the launcher passes (docs/internals/abi.md).

Arguments lie in declaration order at their natural alignment. A block within the device's push-constant limit is the
push constant itself; a larger one is in a buffer whose address is the push constant. The block is read in 32-bit
words, so that no 8- or 16-bit push-constant feature is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..abi.block import WORD_BYTES, ArgumentBlock, HiddenArgument, lay_out
from ..abi.scalars import argument_type
from ..layouts.element_sizes import bits_in_memory
from ..spirv import opcodes as op
from ..spirv.opcodes import MemoryAccess, StorageClass
from ..ttgir.ir import Function
from ..ttgir.types import FloatType, IntegerType, PointerType, Type
from .lowering import Lowering


def argument_block(types: list[Type]) -> ArgumentBlock:
    """Where arguments of these types lie."""
    for type_ in types:
        if not isinstance(type_, PointerType | IntegerType | FloatType):
            raise NotImplementedError(f"kernel arguments of type {type_} are not supported")
    return lay_out(bits_in_memory(type_) // 8 for type_ in types)


def read_arguments(
    ctx: Lowering, kernel: Function, hidden: Sequence[HiddenArgument]
) -> tuple[ArgumentBlock, dict[HiddenArgument, int]]:
    """Defines the kernel's block arguments. The ids of the ``hidden`` ones, which come after them, are returned."""
    assert kernel.body is not None
    arguments = kernel.body.entry.arguments
    types = [argument.type for argument in arguments] + [
        IntegerType(8 * argument_type(added.type).bytes) for added in hidden
    ]
    block = argument_block(types)
    if not types:
        return block, {}
    reader = _Words(ctx, block)
    values = [_value(ctx, reader, type_, offset) for type_, offset in zip(types, block.offsets, strict=True)]
    for argument, value in zip(arguments, values, strict=False):
        if ctx.capabilities.traits.faults.folds_narrow and isinstance(argument.type, PointerType):
            ctx.f.unknown_zero = ctx.f.shr(value, 63)  # no device has addresses so high
        if argument in ctx.pointer_bases:
            ctx.base_addresses[argument], value = value, ctx.module.uint(0)
        ctx[argument] = value
    return block, dict(zip(hidden, values[len(arguments) :], strict=True))


class _Words:
    """Reads 32-bit words of the block."""

    def __init__(self, ctx: Lowering, block: ArgumentBlock) -> None:
        self._ctx, module = ctx, ctx.module
        indirect = block.is_indirect(ctx.capabilities.push_constant_bytes)
        pushed = 2 if indirect else block.bytes // WORD_BYTES
        self._type = module.struct([module.array(module.u32, pushed, 4)], [0])
        self._variable = module.variable(StorageClass.PushConstant, self._type, "arguments")
        self._address = self._pair(0, self._pushed) if indirect else 0

    def _pushed(self, index: int) -> int:
        ctx, module = self._ctx, self._ctx.module
        pointer = ctx.f.access(
            module.pointer(StorageClass.PushConstant, module.u32), self._variable, module.uint(0), module.uint(index)
        )
        return ctx.f.emit(op.Load, module.u32, pointer)

    def _pair(self, index: int, word: Callable[[int], int]) -> int:
        ctx, module = self._ctx, self._ctx.module
        pair = ctx.f.emit(op.CompositeConstruct, module.vector(module.u32, 2), word(index), word(index + 1))
        return ctx.f.bitcast(pair, module.int(64))

    def word(self, index: int) -> int:
        """Word ``index``."""
        if not self._address:
            return self._pushed(index)
        ctx, module = self._ctx, self._ctx.module
        address = ctx.f.add(self._address, module.uint(4 * index, 64))
        pointer = ctx.device_pointer(address, module.u32)
        return ctx.f.emit(op.Load, module.u32, pointer, MemoryAccess.Aligned, 4)

    def pair(self, index: int) -> int:
        """Words ``index`` and ``index`` + 1 as a 64-bit integer."""
        return self._pair(index, self.word)


def _value(ctx: Lowering, reader: _Words, type_: Type, offset: int) -> int:
    f, module = ctx.f, ctx.module
    bits = bits_in_memory(type_)
    type_id = ctx.type_id(type_)
    if bits == 64:
        return f.bitcast(reader.pair(offset // 4), type_id)
    word = reader.word(offset // 4)
    if bits == 32:
        return f.bitcast(word, type_id)
    word = f.shr(word, 8 * (offset % 4))
    if type_ == IntegerType(1):
        return f.compare(op.INotEqual, f.and_(word, module.uint(1)), module.uint(0))
    return f.bitcast(f.zero_extend(word, bits), type_id)
