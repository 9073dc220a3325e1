"""``ttg.fp4_to_fp``: two e2m1 numbers per byte to a float format that holds them exactly.

e2m1 has a sign, two bits of exponent with bias 1 and one of mantissa: 0, 0.5, 1, 1.5, 2, 3, 4, 6.
"""

from __future__ import annotations

from ..abi.elements import FLOATS
from ..layouts.linear import flatten, unflatten
from ..spirv import opcodes as op
from ..ttgir.ir import Operation
from ..ttgir.types import FloatType
from .errors import UnsupportedOperation
from .lowering import Lowering
from .registry import lowers
from .rolled import map_unpacked

#: What numbers of four bits become.
TARGETS = ("f16", "bf16", "f32")


def _decode(ctx: Lowering, code: int, target: FloatType) -> int:
    """The low four bits of an i32 as a float."""
    f, module = ctx.f, ctx.module
    mantissa, bias = FLOATS[target.name].mantissa, FLOATS[target.name].bias
    half = (bias - 1) << mantissa
    magnitude = f.and_(code, module.uint(7))
    normal = f.add(f.shl(magnitude, mantissa - 1), module.uint(half))
    # Below 1 there are 0 and the subnormal 0.5.
    bits = f.select(f.compare(op.ULessThan, magnitude, module.uint(2)), f.mul(magnitude, module.uint(half)), normal)
    bits = f.or_(bits, f.shl(f.and_(code, module.uint(8)), target.width - 4))
    return f.bitcast(f.zero_extend(bits, target.width), ctx.type_id(target))


@lowers("ttg.fp4_to_fp")
def _fp4_to_fp(ctx: Lowering, operation: Operation) -> None:
    source, result = operation["src"], operation.result
    target = result.tensor.element
    if not isinstance(target, FloatType) or target.name not in TARGETS:
        raise UnsupportedOperation(
            operation, f"e2m1 numbers are not converted to {target}", "convert them to float16, bfloat16 or float32"
        )
    axis = int(operation.attribute("axis"))
    lookup: dict[int, int] = {}
    for register, place in zip(ctx.registers(source), ctx.layout(source.tensor).images("register"), strict=True):
        lookup.setdefault(place, register)
    rows = []
    for place in ctx.layout(result.tensor).images("register"):
        point = list(unflatten(place, result.tensor.shape))
        point[axis], upper = divmod(point[axis], 2)
        rows.append((lookup[flatten(point, source.tensor.shape)], ctx.module.uint(4 if upper else 0, 8)))

    def emit(pair: int, first_bit: int) -> int:
        wide, count = ctx.f.zero_extend(pair, 32), ctx.f.zero_extend(first_bit, 32)
        return _decode(ctx, ctx.f.binary(op.ShiftRightLogical, wide, count), target)

    map_unpacked(ctx, operation, rows, emit)
