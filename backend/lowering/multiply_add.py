"""Contraction of ``a * b + c`` into one rounding, decided here and not left to the driver.

Floating-point instructions are decorated NoContraction, so what is fused does not differ between drivers. Where
``enable_fp_fusion`` is on, a product is fused into its only use, and one of any type but float16 into each sum of its
own block, whatever else uses it, as LLVM does for NVIDIA's GPUs (``enableAggressiveFMAFusion``). So attention scales
its scores for their maximum, and again, at no cost, where the maximum is subtracted. With float16, NVIDIA's driver
580.159 then gives values that are off by more than a rounding. Numbers that are computed in f32 have exact products
there, and the sum alone is rounded to their type.
"""

from __future__ import annotations

from ..spirv import opcodes as op
from ..spirv.opcodes import Glsl
from ..ttgir.ir import Operation, Value
from ..ttgir.types import Type
from .floats import F16, compute_type, narrow, widen
from .lowering import Lowering
from .zeros import kept_zero


def _product(value: Value, user: Operation, type_: Type) -> Operation | None:
    owner = value.owner
    if not isinstance(owner, Operation) or owner.name != "arith.mulf":
        return None
    if value.uses == [user]:
        return owner
    return owner if owner.block is user.block and type_ != F16 else None


def fuse_multiply_add(ctx: Lowering, operation: Operation, type_: Type) -> bool:
    """Lowers an ``arith.addf`` or ``arith.subf`` with a product operand to Fma. Returns whether it did."""
    if operation.name not in ("arith.addf", "arith.subf") or not ctx.options.asked.enable_fp_fusion:
        return False
    left, right = operation.operands
    product = _product(left, operation, type_)
    addend, negate_product, negate_addend = right, False, operation.name == "arith.subf"
    if product is None:
        product = _product(right, operation, type_)
        addend, negate_product, negate_addend = left, operation.name == "arith.subf", False
    if product is None:
        return False
    f, type_id = ctx.f, ctx.type_id(compute_type(ctx, type_))

    def emit(a: int, b: int, c: int) -> int:
        a, b, c = (widen(ctx, kept_zero(ctx, value, type_), type_) for value in (a, b, c))
        a = f.emit(op.FNegate, type_id, a) if negate_product else a
        c = f.emit(op.FNegate, type_id, c) if negate_addend else c
        return narrow(ctx, f.glsl(Glsl.Fma, type_id, a, b, c), type_)

    registers = (ctx.registers(value) for value in (*product.operands, addend))
    ctx.define(operation.result, [emit(a, b, c) for a, b, c in zip(*registers, strict=True)])
    return True
