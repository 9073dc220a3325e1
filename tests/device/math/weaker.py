"""Devices with weaker arithmetic than the one at hand, made by changing what is emitted: what the tests accept of such
devices, and what the compiler makes up for, is checked if there is none."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from triton.backends.spirv import driver_quirks
from triton.backends.spirv.capabilities import Capabilities
from triton.backends.spirv.spirv import opcodes as op
from triton.backends.spirv.spirv.function import FunctionBuilder
from triton.backends.spirv.spirv.opcodes import Glsl

from tests.device import helpers

FEATURE = "preserve_denormals32"
#: Float arithmetic outside GLSL.std.450, without instructions that only move bits or signs.
ARITHMETIC = frozenset(
    {op.FAdd, op.FSub, op.FMul, op.FDiv, op.FRem, op.FConvert, op.ConvertFToU, op.ConvertFToS}
    | {number for name, number in vars(op).items() if name.startswith(("FOrd", "FUnord"))}
)
UNTOUCHED = frozenset({Glsl.FAbs, Glsl.FSign})
#: Instructions of GLSL.std.450 that, like division, Vulkan allows to be some units off.
LOOSE = frozenset({Glsl.Sqrt, Glsl.InverseSqrt})
SIGN, SMALLEST_NORMAL, INFINITY = 0x80000000, 0x00800000, 0x7F800000

Emit = Callable[..., int]


def _single(builder: FunctionBuilder, type_id: int) -> bool:
    return tuple(builder.module.kinds.get(type_id, ())) == ("float", 32)


def flush(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on kernels are compiled for a device without FEATURE, where each subnormal f32 operand and result of
    arithmetic is a zero of its sign; helpers.computes_with_subnormals() is false."""
    emit: Emit = FunctionBuilder.emit
    has = Capabilities.has

    def flushed(builder: FunctionBuilder, value: int) -> int:
        module = builder.module
        bits = emit(builder, op.Bitcast, module.u32, value)
        magnitude = emit(builder, op.BitwiseAnd, module.u32, bits, module.uint(SIGN - 1))
        tiny = emit(builder, op.ULessThan, module.bool, magnitude, module.uint(SMALLEST_NORMAL))
        sign = emit(builder, op.BitwiseAnd, module.u32, bits, module.uint(SIGN))
        kept = emit(builder, op.Select, module.u32, tiny, sign, bits)
        return emit(builder, op.Bitcast, builder.type_of(value), kept)

    def flushing(builder: FunctionBuilder, opcode: int, type_id: int, *operands: int) -> int:
        extended = opcode == op.ExtInst and operands[1] not in UNTOUCHED
        if opcode not in ARITHMETIC and not extended:
            return emit(builder, opcode, type_id, *operands)
        first = 2 if extended else 0
        inputs = (
            flushed(builder, value) if _single(builder, builder.type_of(value)) else value for value in operands[first:]
        )
        result = emit(builder, opcode, type_id, *operands[:first], *inputs)
        return flushed(builder, result) if _single(builder, type_id) else result

    monkeypatch.setattr(FunctionBuilder, "emit", flushing)
    monkeypatch.setattr(Capabilities, "has", lambda self, name: name != FEATURE and has(self, name))
    monkeypatch.setattr(helpers, "COMPUTING_WITH_SUBNORMALS", frozenset())


def loosen(monkeypatch: pytest.MonkeyPatch, units: int) -> None:
    """From now on kernels are compiled for a device whose f32 division and roots are off by so many units in the last
    place, where they are normal numbers, and which is not known for exact ones."""
    emit: Emit = FunctionBuilder.emit

    def moved(builder: FunctionBuilder, value: int) -> int:
        module = builder.module
        bits = emit(builder, op.Bitcast, module.u32, value)
        exponent = emit(builder, op.BitwiseAnd, module.u32, bits, module.uint(INFINITY))
        from_zero = emit(builder, op.ISub, module.u32, exponent, module.uint(SMALLEST_NORMAL))
        normal = emit(builder, op.ULessThan, module.bool, from_zero, module.uint(INFINITY - SMALLEST_NORMAL))
        step = emit(builder, op.Select, module.u32, normal, module.uint(units & 0xFFFFFFFF), module.uint(0))
        return emit(builder, op.Bitcast, builder.type_of(value), emit(builder, op.IAdd, module.u32, bits, step))

    def loose(builder: FunctionBuilder, opcode: int, type_id: int, *operands: int) -> int:
        result = emit(builder, opcode, type_id, *operands)
        inexact = opcode == op.FDiv or (opcode == op.ExtInst and operands[1] in LOOSE)
        return moved(builder, result) if inexact and _single(builder, type_id) else result

    monkeypatch.setattr(FunctionBuilder, "emit", loose)
    for name, driver in driver_quirks.DRIVERS.items():
        monkeypatch.setitem(driver_quirks.DRIVERS, name, replace(driver, exact_division=False))
