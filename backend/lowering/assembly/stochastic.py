"""cvt.rs: floats rounded up or down at random (PTX ISA, 9.7.9, cvt).

Random bits are added to as many of the bits that are discarded, the highest ones, so that a number is rounded away from
zero as often as it is near the next. The lowest value takes the lowest part of the random bits, and so on; which part
it takes, and in which order of bits, differs among NVIDIA's own GPUs where there are four values.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...ptx.program import Instruction, Operand, PtxError, Vector
from ...ptx.types import TYPES
from ..numerics.float_formats import BF16, FORMATS, FloatFormat
from ..numerics.numeric import Bool, Int, Numeric, Real
from .instruction_forms import check_count
from .registers import Registers


@dataclass(frozen=True)
class RandomlyRounded:
    """``count`` numbers of a format; ``random`` bits for each."""

    format: FloatFormat
    count: int
    random: int


_E2M1 = FloatFormat(4, 1, 1, 7, 7, 7)

#: By their names in cvt.rs.
TARGETS = {
    "f16x2": RandomlyRounded(FORMATS["f16"], 2, 13),
    "bf16x2": RandomlyRounded(BF16, 2, 16),
    "e4m3x4": RandomlyRounded(FORMATS["f8E4M3FN"], 4, 8),
    "e5m2x4": RandomlyRounded(FORMATS["f8E5M2"], 4, 8),
    "e2m1x4": RandomlyRounded(_E2M1, 4, 8),
}


def _code(n: Numeric, x: Real, random: Int, target: RandomlyRounded, saturate: bool) -> Int:
    """The code of an f32, rounded away from zero where ``random`` carries out of the bits that are discarded."""
    form, size = target.format, x.magnitude()
    drop, smallest = 23 - form.mantissa, 128 - form.bias
    kept, distance = size, n.integer(drop, 32)
    if smallest > 1:
        # Below the smallest normal number the significand moves down to units of the smallest subnormal one; above it
        # the exponent is kept over the significand, so that a carry moves into it.
        tiny = size.ult(smallest << 23)
        distance = n.where(tiny, n.integer(smallest + drop, 32) - (size >> 23), distance)
        kept = n.where(tiny, (size & 0x7FFFFF) | 0x800000, size - ((smallest - 1) << 23))
        far = distance.ugt(31)
        kept, distance = n.where(far, 0, kept), n.where(far, 31, distance)
    code = (kept + (random << (distance - target.random))) >> distance
    limit = form.infinity if form.infinity is not None and not saturate else form.largest
    code = n.where(code.ugt(limit), limit, code)
    return n.where(x.is_nan(), form.nan, code | ((x.bits() >> 31) << (form.width - 1)))


def convert_at_random(
    registers: Registers, instruction: Instruction, modifiers: list[str], to: str, of: str, guard: Bool | None
) -> None:
    """``cvt.rs.bf16x2.f32 d, a, b, random`` and ``cvt.rs.satfinite.e4m3x4.f32 d, {a, b, e, f}, random``, with ``a`` in
    the highest part."""
    n, target = registers.n, TARGETS.get(to)
    saturate = "satfinite" in modifiers
    if target is None or of != "f32" or set(modifiers) - {"rs", "satfinite"} or (target.count == 4 and not saturate):
        raise PtxError(
            f"'{instruction}' is not translated",
            "for f32, these are: cvt.rs to f16x2 and bf16x2, and cvt.rs.satfinite to e4m3x4, e5m2x4 and e2m1x4",
        )
    sources: list[Operand] = list(instruction.operands[1:-1])
    if target.count == 4:
        check_count(instruction, 3)
        values = instruction.operands[1]
        sources = [part for part in values.parts if part is not None] if isinstance(values, Vector) else []
        if len(sources) != 4:
            raise PtxError(f"'{instruction}' takes four numbers in braces")
    else:
        check_count(instruction, 4)
    random = registers.read(instruction.operands[-1], TYPES["b32"])
    assert isinstance(random, Int)
    result = n.integer(0, 32)
    for place, source in enumerate(reversed(sources)):
        x = registers.read(source, TYPES["f32"])
        assert isinstance(x, Real)
        part = (random >> (place * (32 // target.count))) & ((1 << target.random) - 1)
        result = result | (_code(n, x, part, target, saturate) << (place * target.format.width))
    registers.write(instruction.operands[0], TYPES[f"b{target.count * target.format.width}"], result, guard)
