"""Kernels that make every operation of TTIR and TTGIR that Triton's front end, or one of its passes, can make.

``CASES``: one entry a kernel, with the operations that it stands for; tests/surface/test_operations.py proves that its
compilation has them, and docs/internals/operations.md names the kernel. An operation stands with one kernel.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import triton
import triton.language as tl
from triton.language.extra import cuda, libdevice


@dataclass(frozen=True)
class Case:
    """A kernel and how it is compiled. ``signature``: argument types in Triton's terms; ``makes``: the operations that
    the front end writes; ``passes``: those that upstream's passes make of it."""

    kernel: Any
    signature: str
    makes: str = ""
    passes: str = ""
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Of the kernel."""
        return str(self.kernel.__name__)


CASES: list[Case] = []


def _case(signature: str, makes: str, passes: str = "", options: dict[str, Any] | None = None) -> Callable[[Any], Any]:
    def add(function: Any) -> Any:
        kernel = triton.jit(function)
        CASES.append(Case(kernel, signature, makes, passes, options or {}))
        return kernel

    return add


# -- programs, memory, shapes ------------------------------------------------------------------------------------
@_case(
    "*fp32 *fp32 i32",
    "tt.func tt.return tt.get_program_id tt.get_num_programs tt.make_range tt.splat tt.addptr tt.load tt.store "
    "arith.constant arith.cmpi arith.addi arith.muli arith.addf",
)
def memory(x, out, n):
    at = tl.program_id(0) * 128 + tl.arange(0, 128)
    value = tl.load(x + at, mask=at < n, other=1.0) + tl.num_programs(0)
    tl.store(out + at, value, mask=at < n)


@_case(
    "*fp32 *fp32",
    "tt.expand_dims tt.broadcast tt.trans tt.reshape tt.join tt.split tt.cat tt.unsplat",
    "ttg.convert_layout",
)
def shapes(x, out):
    at = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    value = tl.trans(tl.load(x + at))
    left, right = tl.split(tl.join(value, value + 1.0))
    flat = tl.cat(tl.reshape(left, [256]), tl.reshape(right, [256]), can_reorder=True)
    tl.store(out + tl.arange(0, 512), flat)
    tl.store(out + 512, tl.reshape(tl.sum(tl.reshape(left, [256]), 0, keep_dims=True), []))


@_case("*fp32 *i32 *fp32", "tt.gather tt.histogram")
def gathers(x, index, out):
    at = tl.arange(0, 128)
    where = tl.load(index + at)
    tl.store(out + at, tl.gather(tl.load(x + at), where, 0) + tl.histogram(where, 128).to(tl.float32))


@_case("*i32 i64", "tt.int_to_ptr tt.ptr_to_int tt.bitcast")
def addresses(x, address):
    there = address.to(tl.pointer_type(tl.int32))
    tl.store(x, tl.load(there) + x.to(tl.int64).to(tl.int32))
    tl.store(x + 1, tl.load(x + 1).to(tl.float32, bitcast=True).to(tl.int32))


@_case("*fp32 *fp32", "tt.call")
def calls(x, out):
    tl.store(out, _apart(x))


@triton.jit(noinline=True)
def _apart(x):
    return tl.load(x) * 2


# -- atomics -----------------------------------------------------------------------------------------------------
@_case("*i32 *fp32", "tt.atomic_rmw tt.atomic_cas tt.atomic_load tt.atomic_store tt.atomic_poll")
def atomics(x, y):
    at = tl.arange(0, 64)
    tl.atomic_add(y + at, 1.0)
    tl.atomic_cas(x, 0, 1)
    tl.atomic_store(x + 1, tl.atomic_load(x + 2))
    tl.atomic_poll(x + 3, 1)


# -- reductions, scans, mapped functions -------------------------------------------------------------------------
@triton.jit
def _larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def _halves(a):
    return a // 2, a - 1


@_case("*i32 *i32", "tt.reduce tt.reduce.return tt.scan tt.scan.return tt.map_elementwise tt.map_elementwise.return")
def combines(x, out):
    at = tl.arange(0, 128)
    value = tl.load(x + at)
    half, less = tl.map_elementwise(_halves, value)
    tl.store(out + at, tl.associative_scan(half, 0, _larger) + tl.reduce(less, 0, _larger))


# -- dots --------------------------------------------------------------------------------------------------------
@_case("*fp16 *fp16 *fp32", "tt.dot", "ttg.local_alloc ttg.local_load")
def dots(a, b, out):
    i, k = tl.arange(0, 32), tl.arange(0, 16)
    left = tl.load(a + i[:, None] * 16 + k[None, :])
    right = tl.load(b + k[:, None] * 32 + i[None, :])
    tl.store(out + i[:, None] * 32 + i[None, :], tl.dot(left, right))


@_case("*u8 *u8 *u8 *u8 *fp32", "tt.dot_scaled", "ttg.fp4_to_fp")
def scaled_dots(a, a_scale, b, b_scale, out):
    i, k, s = tl.arange(0, 32), tl.arange(0, 32), tl.arange(0, 2)
    left = tl.load(a + i[:, None] * 32 + k[None, :])
    right = tl.load(b + k[:, None] * 32 + i[None, :])
    scales = i[:, None] * 2 + s[None, :]
    product = tl.dot_scaled(left, tl.load(a_scale + scales), "e2m1", right, tl.load(b_scale + scales), "e2m1")
    tl.store(out + i[:, None] * 32 + i[None, :], product)


# -- descriptors -------------------------------------------------------------------------------------------------
@_case(
    "*fp32 *fp32 i32 i32",
    "tt.make_tensor_descriptor tt.descriptor_load tt.descriptor_store tt.descriptor_gather tt.descriptor_scatter "
    "tt.descriptor_reduce",
)
def descriptors(x, out, rows, columns):
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [8, 16])
    target = tl.make_tensor_descriptor(out, [rows, columns], [columns, 1], [8, 16])
    value = source.load([0, 0])
    target.store([0, 0], value)
    target.atomic_add([8, 0], value)
    lines = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [1, 16])
    written = tl.make_tensor_descriptor(out, [rows, columns], [columns, 1], [1, 16])
    written.scatter(lines.gather(tl.arange(0, 8), 0), tl.arange(0, 8), 16)


# -- branches and loops ------------------------------------------------------------------------------------------
@_case("*fp32 i32", "scf.for scf.if scf.while scf.condition scf.yield ub.poison")
def branches(x, n):
    total = 0.0
    for step in range(n):
        total += tl.load(x + step)
    while n > 3:
        n = n // 2
        if n == 5:
            total = total * 2
        else:
            total = total - 1
    tl.store(x, total)


@_case("*fp32 i32", "cf.cond_br cf.br")
def early_returns(x, n):
    if n > 3:
        return
    tl.store(x, 1.0)


# -- debugging and hints -----------------------------------------------------------------------------------------
@_case("*fp32 i32", "tt.print tt.assert llvm.intr.assume ttg.barrier", options={"debug": True})
def debugs(x, n):
    tl.assume(n > 0)
    tl.device_assert(n < 100, "n is small")
    tl.device_print("n", n)
    tl.debug_barrier()
    tl.store(x, 1.0)


@_case("*i32", "tt.grid_dependency_wait tt.grid_dependency_launch_dependents")
def dependent_launches(x):
    cuda.gdc_wait()
    tl.store(x, 1)
    cuda.gdc_launch_dependents()


# -- integers ----------------------------------------------------------------------------------------------------
@_case(
    "*i32 *u32 i32 u32",
    "arith.subi arith.divsi arith.divui arith.remsi arith.remui arith.andi arith.ori arith.xori arith.shli "
    "arith.shrsi arith.shrui arith.minsi arith.minui arith.maxsi arith.maxui arith.select arith.extsi arith.extui "
    "arith.trunci math.absi tt.mulhiui",
)
def integers(x, y, a, b):
    tl.store(x + 0, a - 3)
    tl.store(x + 1, a // tl.load(x))
    tl.store(y + 1, b // tl.load(y))
    tl.store(x + 2, a % tl.load(x))
    tl.store(y + 2, b % tl.load(y))
    tl.store(x + 3, (a & 7) | (tl.load(x) ^ a))
    tl.store(x + 4, (a << tl.load(x)) + (a >> 3))
    tl.store(y + 4, b >> tl.load(y))
    tl.store(x + 5, tl.minimum(a, tl.load(x)) + tl.maximum(a, tl.load(x + 1)))
    tl.store(y + 5, tl.minimum(b, tl.load(y)) + tl.maximum(b, tl.load(y + 1)))
    tl.store(x + 6, tl.where(a > tl.load(x), a, tl.load(x + 2)))
    tl.store(x + 7, tl.abs(a) + (a.to(tl.int64) + b.to(tl.int64)).to(tl.int32))
    tl.store(y + 7, tl.umulhi(b, tl.load(y)))


# -- floats ------------------------------------------------------------------------------------------------------
@_case(
    "*fp32 *fp16 *fp8e5 *i32 *u32",
    "arith.subf arith.mulf arith.divf arith.remf arith.negf arith.cmpf arith.maxnumf arith.minnumf arith.maximumf "
    "arith.minimumf arith.truncf arith.extf arith.fptosi arith.fptoui arith.sitofp arith.uitofp tt.fp_to_fp tt.clampf "
    "tt.precise_sqrt tt.precise_divf tt.approx_divf math.absf math.ceil math.floor math.cos math.sin math.exp "
    "math.exp2 math.log math.log2 math.sqrt math.rsqrt math.erf math.fma",
)
def floats(x, h, e, i, u):
    at = tl.arange(0, 128)
    a, b = tl.load(x + at), tl.load(x + at + 128)
    c = tl.load(h + at).to(tl.float32)
    c += (a - b) * (a / b) - (a % b) + -a
    c = tl.where(a < b, tl.maximum(c, a), tl.minimum(c, b))
    c += tl.maximum(a, b, tl.PropagateNan.ALL) + tl.minimum(a, b, tl.PropagateNan.ALL)
    c = tl.clamp(c, a, b) + tl.sqrt_rn(a) + tl.div_rn(a, b) + tl.fdiv(a, b, ieee_rounding=True)
    c += tl.abs(a) + tl.ceil(a) + tl.floor(a) + tl.cos(a) + tl.sin(a) + tl.exp(a) + tl.exp2(a) + tl.log(a) + tl.log2(a)
    c += tl.fdiv(a, b, approx=True)
    c += tl.sqrt(a) + tl.rsqrt(a) + tl.erf(a) + tl.fma(a, b, c)
    c += tl.load(i + at).to(tl.float32) + tl.load(u + at).to(tl.float32)
    tl.store(h + at, c.to(tl.float16))
    tl.store(e + at, c.to(tl.float8e5))
    tl.store(i + at, c.to(tl.int32))
    tl.store(u + at, c.to(tl.uint32))


@_case("*fp32", "tt.extern_elementwise")
def externs(x):
    at = tl.arange(0, 128)
    tl.store(x + at, libdevice.acos(tl.load(x + at)))


@_case("*i32", "tt.elementwise_inline_asm")
def inline_assembly(x):
    at = tl.arange(0, 128)
    value = tl.load(x + at)
    tl.store(x + at, tl.inline_asm_elementwise("brev.b32 $0, $1;", "=r,r", [value], tl.int32, is_pure=True, pack=1))
