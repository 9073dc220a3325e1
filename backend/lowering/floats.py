"""Conversions between float formats, and the computing format of each.

bf16 and fp8 have no arithmetic in core SPIR-V, and f16 has none on some devices. They are widened to f32, computed
with, and rounded to nearest even.
"""

from __future__ import annotations

from ..spirv import opcodes as op
from ..spirv.opcodes import Glsl
from ..ttgir.types import FloatType, Type
from .emitter import Emitter
from .numerics.float_formats import FORMATS, format_to_f32, round_to_format

F16, F32 = FloatType("f16"), FloatType("f32")


def compute_type(emitter: Emitter, type_: Type) -> Type:
    """The float type that arithmetic on ``type_`` is done in."""
    return type_ if emitter.elements.is_native(type_) else F32


def bf16_to_f32(emitter: Emitter, value: int) -> int:
    """Exact: bf16 is the upper half of f32."""
    f = emitter.f
    return f.bitcast(f.shl(f.zero_extend(value, 32), 16), emitter.module.float(32))


def f32_to_bf16(emitter: Emitter, value: int) -> int:
    """Round to nearest, ties to even; NaN is CUDA's (PTX ISA, cvt: 0x7FFF), whose bits take a selection alone.
    OpFConvert to the bfloat16 of SPV_KHR_bfloat16 is no shorter way: NVIDIA's 580.159 truncates, whatever rounding mode
    a module asks for. The odd bit is taken where it lies: its shift is then part of the sum there (a product of float32
    operands in bfloat16, 4096³ on an H200: 164 → 177 TFLOP/s)."""
    f, module = emitter.f, emitter.module
    bits = f.bitcast(value, module.u32)
    odd = f.shr(f.and_(bits, module.uint(0x10000)), 16)
    rounded = f.add(f.add(bits, odd), module.uint(0x7FFF))
    is_nan = f.emit(op.IsNan, module.bool, value)
    return f.zero_extend(f.shr(f.select(is_nan, module.uint(0x7FFF0000), rounded), 16), 16)


def f64_to_f32_round_to_odd(emitter: Emitter, value: int) -> int:
    """f64 → f32 so that a later rounding to a narrower format gives what one rounding would: where the f32 is inexact,
    its last bit is made odd (S. Boldo, G. Melquiond, "Emulation of a FMA and correctly rounded sums", 2008)."""
    f, module = emitter.f, emitter.module
    f32, f64, u32 = module.float(32), module.float(64), module.u32
    near = f.emit(op.FConvert, f32, value)
    back = f.emit(op.FConvert, f64, near)
    bits = f.bitcast(near, u32)
    inexact = f.emit(op.FOrdNotEqual, module.bool, back, value)
    even = f.compare(op.IEqual, f.and_(bits, module.uint(1)), module.uint(0))
    # The neighbour on the value's own side of an even f32 has magnitude one less or one more, and is odd.
    magnitude_less = f.emit(
        op.FOrdLessThan, module.bool, f.glsl(op.Glsl.FAbs, f64, value), f.glsl(op.Glsl.FAbs, f64, back)
    )
    neighbour = f.select(magnitude_less, f.sub(bits, module.uint(1)), f.add(bits, module.uint(1)))
    return f.bitcast(f.select(f.logical_and(inexact, even), neighbour, bits), f32)


def widen(emitter: Emitter, value: int, type_: Type) -> int:
    """A value of float ``type_`` as its compute_type."""
    if emitter.elements.is_native(type_):
        return value
    assert isinstance(type_, FloatType)
    if type_.name == "bf16":
        return bf16_to_f32(emitter, value)
    if type_.name in FORMATS:
        return format_to_f32(emitter, value, type_.name)
    raise NotImplementedError(f"arithmetic on {type_} is not supported; convert to float16 or float32 first")


def narrow(emitter: Emitter, value: int, type_: Type) -> int:
    """The compute_type value rounded to ``type_``."""
    if emitter.elements.is_native(type_):
        return value
    assert isinstance(type_, FloatType)
    if type_.name == "bf16":
        return f32_to_bf16(emitter, value)
    if type_.name in FORMATS:
        return round_to_format(emitter, value, type_.name)
    raise NotImplementedError(f"arithmetic on {type_} is not supported; convert to float16 or float32 first")


#: The smallest normal float16, and a float32 whose unit in the last place is that of subnormal float16s.
_SMALLEST_HALF, _UNIT_OF_SUBNORMALS = 2.0**-14, 0.75
#: Bits of a float32's significand that a float16 lacks.
_LOST_BITS = 13
#: The bits of 2**16, the smallest power of two that is past a float16's range, and of infinity, as float32s.
_PAST_HALVES, _INFINITY = 0x47800000, 0x7F800000


def _rounded_to_half(emitter: Emitter, value: int) -> int:
    """A float32 with a float16's value. OpQuantizeToF16 is for that, but may make 0 of what is subnormal as a float16,
    and infinity of what rounds to the largest one (SPIR-V specification, section 3.49.11): NVIDIA's driver does
    both."""
    f, module = emitter.f, emitter.module
    f32, u32, unit = emitter.type_id(F32), module.u32, module.real(_UNIT_OF_SUBNORMALS, 32)
    bits = f.bitcast(value, u32)
    odd = f.and_(f.shr(bits, _LOST_BITS), module.uint(1))
    half = f.add(f.add(bits, odd), module.uint((1 << _LOST_BITS - 1) - 1))
    sign = f.and_(bits, module.uint(1 << 31))
    half = f.and_(half, module.uint(-(1 << _LOST_BITS)))
    past = f.compare(op.UGreaterThanEqual, f.and_(half, module.uint((1 << 31) - 1)), module.uint(_PAST_HALVES))
    half = f.select(past, f.or_(sign, module.uint(_INFINITY)), half)
    normal = f.bitcast(half, f32)
    normal = f.select(f.emit(op.IsNan, module.bool, value), value, normal)  # whose bits might become an infinity's
    size = f.glsl(Glsl.FAbs, f32, value)
    rest = f.emit(op.FSub, f32, f.emit(op.FAdd, f32, size, unit), unit)
    subnormal = f.bitcast(f.or_(f.bitcast(rest, u32), sign), f32)
    small = f.compare(op.FOrdLessThan, size, module.real(_SMALLEST_HALF, 32))
    return f.select(small, subnormal, normal)


def f32_to_f16(emitter: Emitter, value: int, stays: bool = False) -> int:
    """Round to nearest, ties to even: one instruction where the device lets the module ask for that rounding.
    ``stays``: nothing widens the result again, so that a driver with the fault ``widens_unrounded`` has nothing to
    fold."""
    f16 = emitter.type_id(F16)
    if emitter.elements.is_native(F16) and emitter.capabilities.has("round_to_nearest_even16"):
        if emitter.capabilities.traits.faults.widens_unrounded and not stays:
            value = _rounded_to_half(emitter, value)
        return emitter.f.emit(op.FConvert, f16, value)
    return emitter.f.bitcast(round_to_format(emitter, value, "f16"), f16)


def convert(emitter: Emitter, value: int, source: Type, target: Type, stays: bool = False) -> int:
    """A float of ``source`` as ``target``, rounded once, to nearest even. ``stays``: nothing widens it again."""
    if source == target:
        return value
    assert isinstance(source, FloatType) and isinstance(target, FloatType)
    f, module = emitter.f, emitter.module
    if source.name == "f64":
        if target.name == "f32":
            return f.emit(op.FConvert, module.float(32), value)
        value, source = f64_to_f32_round_to_odd(emitter, value), F32
    if (source.name, target.name) == ("f8E5M2", "f16"):
        # Its upper half: NaNs, infinities and subnormals too.
        return f.bitcast(f.shl(f.zero_extend(value, 16), 8), emitter.type_id(target))
    wide = widen(emitter, value, source)
    if compute_type(emitter, source).name == "f16" and target.name != "f16":  # type: ignore[attr-defined]
        wide = f.emit(op.FConvert, module.float(64 if target.name == "f64" else 32), wide)
    elif target.name == "f64":
        return f.emit(op.FConvert, module.float(64), wide)
    if source.width == 8 and target.name == "bf16":
        # Each of these numbers is one of bfloat16, too.
        return f.zero_extend(f.shr(f.bitcast(wide, module.u32), 16), 16)
    return f32_to_f16(emitter, wide, stays) if target.name == "f16" else narrow(emitter, wide, target)


def convert_toward_zero(emitter: Emitter, value: int, source: Type, target: Type) -> int:
    """A float of ``source`` (at most 32 bits wide) as the narrower ``target``, rounded towards zero."""
    assert isinstance(target, FloatType)
    f, module = emitter.f, emitter.module
    wide = convert(emitter, value, source, F32)
    if target.name == "bf16":
        bits = f.bitcast(wide, module.u32)
        quiet = f.select(f.emit(op.IsNan, module.bool, wide), f.or_(bits, module.uint(0x400000)), bits)
        return f.zero_extend(f.shr(quiet, 16), 16)
    if target.name not in FORMATS:
        raise NotImplementedError(f"rounding towards zero to {target} is not supported; round to nearest even")
    return f.bitcast(round_to_format(emitter, wide, target.name, toward_zero=True), emitter.type_id(target))
