"""One row per function of Gluon's language: lines of a kernel that leave a result in ``r``, and what NumPy gives.

The lines read ``x`` and ``y`` (float32), ``n`` and ``m`` (int32, ``m`` from 0 to 63), ``u`` (uint32), 64 elements each
in the layout ``L``, ``i`` (0 to 63), and ``w``: pointers to a copy of ``m`` for the row alone. ``T`` and ``Q``
are layouts of tiles.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tests.surface.language_rows import Inputs, erf


class Row(NamedTuple):
    """``names``: the functions that the row stands for. ``tolerance`` is relative."""

    names: str
    body: str
    reference: Callable[[Inputs], Any]
    tolerance: float = 0.0


def _atomic(name: str, of: Callable[[Any, Any], Any]) -> Row:
    return Row(
        f"atomic_{name} barrier",
        f"before = gl.atomic_{name}(w, n)\ngl.barrier()\nr = gl.load(w) * 1000 + before",
        lambda a: of(a.m, a.n) * 1000 + a.m,
    )


SOFT = 1e-6
_SQUARE = "gl.SliceLayout(1, T)"

# fmt: off
ROWS = (
    Row("abs", "r = gl.abs(n)", lambda a: np.abs(a.n)),
    Row("add", "r = gl.add(n, m)", lambda a: a.n + a.m),
    Row("sub", "r = gl.sub(n, m)", lambda a: a.n - a.m),
    Row("mul", "r = gl.mul(n, m)", lambda a: a.n * a.m),
    Row("arange load store", "r = i", lambda a: a.i),
    Row("maximum", "r = gl.maximum(x, y)", lambda a: np.maximum(a.x, a.y)),
    Row("minimum", "r = gl.minimum(x, y)", lambda a: np.minimum(a.x, a.y)),
    Row("clamp", "r = gl.clamp(y, -1.0, 1.0)", lambda a: np.clip(a.y, -1, 1)),
    Row("where", "r = gl.where(x > y, x, y)", lambda a: np.where(a.x > a.y, a.x, a.y)),
    Row("fma", "r = gl.fma(x, y, x)", lambda a: (a.x.astype("f8") * a.y + a.x).astype("f4")),
    Row("fdiv", "r = gl.fdiv(x, y)", lambda a: a.x / a.y, SOFT),
    Row("div_rn", "r = gl.div_rn(x, y)", lambda a: a.x / a.y),
    Row("cdiv", "r = gl.cdiv(m, 7)", lambda a: -(-a.m // 7)),
    Row("umulhi", "r = gl.umulhi(u, u)",
        lambda a: ((a.u.astype("u8") * a.u.astype("u8")) >> np.uint64(32)).astype("u4")),
    Row("floor", "r = gl.floor(y)", lambda a: np.floor(a.y)),
    Row("ceil", "r = gl.ceil(y)", lambda a: np.ceil(a.y)),
    Row("sqrt", "r = gl.sqrt(x)", lambda a: np.sqrt(a.x), SOFT),
    Row("sqrt_rn", "r = gl.sqrt_rn(x)", lambda a: np.sqrt(a.x)),
    Row("rsqrt", "r = gl.rsqrt(x)", lambda a: 1 / np.sqrt(a.x), SOFT),
    Row("exp", "r = gl.exp(y)", lambda a: np.exp(a.y), SOFT),
    Row("exp2", "r = gl.exp2(y)", lambda a: np.exp2(a.y), SOFT),
    Row("log", "r = gl.log(x)", lambda a: np.log(a.x.astype("f8")), SOFT),
    Row("log2", "r = gl.log2(x)", lambda a: np.log2(a.x.astype("f8")), SOFT),
    Row("sin", "r = gl.sin(y)", lambda a: np.sin(a.y.astype("f8")), SOFT),
    Row("cos", "r = gl.cos(y)", lambda a: np.cos(a.y.astype("f8")), SOFT),
    Row("erf", "r = gl.erf(y)", lambda a: erf(a.y), SOFT),
    Row("cast", "r = gl.cast(y, gl.float16)", lambda a: a.y.astype("f2")),
    Row("to_tensor", "r = gl.to_tensor(5) + n", lambda a: a.n + 5),
    Row("expect_zero", "r = gl.expect_zero(x, x < 0)", lambda a: a.x),
    Row("full zeros", "r = gl.full([64], 7, gl.int32, L) + gl.zeros([64], gl.int32, L)", lambda a: a.i * 0 + 7),
    Row("full_like zeros_like", "r = gl.full_like(n, 7) + gl.zeros_like(n)", lambda a: a.i * 0 + 7),
    Row("multiple_of max_contiguous max_constancy assume",
        "gl.assume(n_programs > 0)\nr = gl.max_constancy(gl.max_contiguous(gl.multiple_of(i, 1), 1), 1)",
        lambda a: a.i),
    Row("program_id num_programs num_warps num_ctas",
        "r = i + gl.program_id(0) + gl.num_programs(0) * 100 + gl.num_warps() * 10 + gl.num_ctas()",
        lambda a: a.i + 141),
    Row("static_assert static_print device_assert",
        "gl.static_assert(x.dtype == gl.float32)\ngl.static_print('')\ngl.device_assert(m >= 0, 'm')\nr = i",
        lambda a: a.i),
    # -- shapes and layouts
    Row("expand_dims broadcast convert_layout",
        f"a = gl.expand_dims(gl.convert_layout(n, {_SQUARE}), 1)\n"
        "b = gl.expand_dims(gl.arange(0, 2, gl.SliceLayout(0, T)), 0)\n"
        f"a, b = gl.broadcast(a, b)\nr = gl.convert_layout(gl.sum(a * b, 1), L)", lambda a: a.n),
    Row("reshape ravel permute",
        "r = gl.convert_layout(gl.ravel(gl.permute(gl.reshape(n, [8, 8]), (1, 0))), L)",
        lambda a: a.n.reshape(8, 8).T.ravel()),
    Row("join split", "a, b = gl.split(gl.join(n, m))\nr = gl.convert_layout(a - b, L)", lambda a: a.n - a.m),
    Row("set_auto_layout",
        "r = n + gl.set_auto_layout(gl.arange(0, 64, gl.AutoLayout()), L)", lambda a: a.n + a.i),
    Row("to_linear_layout bank_conflicts allocate_shared_memory",
        "S: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])\n"
        "q: gl.constexpr = gl.bank_conflicts(n.type, gl.shared_memory_descriptor_type(gl.int32, [64], S, [64]))\n"
        "D: gl.constexpr = gl.to_linear_layout(L, [64])\n"
        "room = gl.allocate_shared_memory(gl.int32, [64], S, n)\nr = room.load(L) + q * 0",
        lambda a: a.n),
    # -- along a dimension
    Row("sum", "r = i + gl.sum(n, 0)", lambda a: a.i + a.n.sum(dtype="i4")),
    Row("max min", "r = i + gl.max(n, 0) * 1000 + gl.min(n, 0)", lambda a: a.i + a.n.max() * 1000 + a.n.min()),
    Row("xor_sum reduce_or", "r = i + gl.xor_sum(m, 0) * 1000 + gl.reduce_or(m, 0)",
        lambda a: a.i + np.bitwise_xor.reduce(a.m) * 1000 + np.bitwise_or.reduce(a.m)),
    Row("reduce", "r = i + gl.reduce(n, 0, larger)", lambda a: a.i + a.n.max()),
    Row("associative_scan", "r = gl.associative_scan(n, 0, larger)", lambda a: np.maximum.accumulate(a.n)),
    Row("cumsum", "r = gl.cumsum(n, 0)", lambda a: np.cumsum(a.n, dtype="i4")),
    Row("cumprod", "r = gl.cumprod((n & 1) * 2 - 1, 0)", lambda a: np.cumprod((a.n & 1) * 2 - 1, dtype="i4")),
    Row("gather", "r = gl.gather(n, m, 0)", lambda a: a.n[a.m]),
    Row("histogram", "r = gl.histogram(m, 64, layout=L)", lambda a: np.bincount(a.m, minlength=64)),
    Row("inline_asm_elementwise",
        "r = gl.inline_asm_elementwise('max.s32 $0, $1, $2;', '=r,r,r', [n, m], gl.int32, True, 1)",
        lambda a: np.maximum(a.n, a.m)),
    Row("map_elementwise", "r = gl.map_elementwise(larger, n, m)", lambda a: np.maximum(a.n, a.m)),
    Row("dot_fma",
        "a = gl.convert_layout(gl.reshape(x, [8, 8]), gl.DotOperandLayout(0, Q, 0))\n"
        "b = gl.convert_layout(gl.reshape(y, [8, 8]), gl.DotOperandLayout(1, Q, 0))\n"
        "c = gl.dot_fma(a, b, gl.zeros([8, 8], gl.float32, Q))\nr = gl.convert_layout(gl.reshape(c, [64]), L)",
        lambda a: (a.x.reshape(8, 8).astype("f8") @ a.y.reshape(8, 8)).ravel(), 1e-5),
    # -- atomics
    *(_atomic(name, of) for name, of in (
        ("add", np.add), ("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor), ("max", np.maximum),
        ("min", np.minimum), ("xchg", lambda m, n: n))),
    Row("atomic_cas", "before = gl.atomic_cas(w, m, n)\ngl.barrier()\nr = before * 1000 + gl.load(w)",
        lambda a: a.m * 1000 + a.n),
    Row("atomic_load atomic_store", "gl.atomic_store(w, n)\ngl.barrier()\nr = gl.atomic_load(w)", lambda a: a.n),
)
# fmt: on

#: Functions with their own tests: in tests/device/test_gluon.py, or in tests of what Triton shares.
ELSEWHERE = {
    "device_print": "tests/device/test_debug.py",
    "atomic_poll": "tests/surface/language_rows.py",
    "aggregate_replace": "it acts on the kernel's source alone",
    "fp4_to_fp": "tests/surface/operation_texts.py",
}

#: Function → what its refusal says.
REFUSED = {"inline_asm": "inline assembly", "warp_specialize": "warp"}
