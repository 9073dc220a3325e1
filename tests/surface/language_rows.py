"""One row per function of triton.language: a kernel's body that uses it, and what NumPy gives.

A body reads ``x`` and ``y`` (float32), ``n`` and ``m`` (int32), ``u`` (uint32), 64 elements each, ``i`` (0 to 63), and
pointers ``x_ptr``, ``y_ptr``, ``n_ptr``, and ``w_ptr`` to a copy of ``m`` that it may write. It leaves its result in
``r``. The reference reads the same names as NumPy arrays. Each optional parameter of a function is passed by name in
one of its rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from examples.low_memory_dropout import philox, uniform

RNG = np.random.default_rng(21)
SIZE = 64
INPUTS = {
    "x": RNG.uniform(0.1, 4, SIZE).astype(np.float32),
    "y": RNG.uniform(-4, 4, SIZE).astype(np.float32),
    "n": RNG.integers(-40, 40, SIZE).astype(np.int32),
    "m": RNG.integers(0, 60, SIZE).astype(np.int32),
    "u": RNG.integers(0, 1 << 32, SIZE, dtype=np.uint64).astype(np.uint32),
}


@dataclass(frozen=True)
class Inputs:
    """The arrays by name; ``i`` is their places."""

    x: np.ndarray
    y: np.ndarray
    n: np.ndarray
    m: np.ndarray
    u: np.ndarray
    i: np.ndarray


@dataclass(frozen=True)
class Row:
    """``names``: the functions of triton.language that the row stands for. ``tolerance`` is relative."""

    names: str
    body: str
    reference: Callable[[Inputs], Any]
    tolerance: float = 0.0
    options: str = ""


def _square(values: np.ndarray) -> np.ndarray:
    return values.reshape(8, 8)


def erf(values: np.ndarray) -> np.ndarray:
    import math

    return np.array([math.erf(float(value)) for value in values], np.float32)


def _normal(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    bounded = np.maximum(np.float32(1e-7), first).astype(np.float64)
    result = np.sqrt(-2 * np.log(bounded)) * np.cos((np.float32(2 * np.pi) * second).astype(np.float64))
    return np.asarray(result.astype(np.float32))


def _second_word(seed: int, places: np.ndarray) -> np.ndarray:
    """The second word of Philox, from its rounds."""
    c = [places.astype(np.uint64), *(np.zeros_like(places, np.uint64) for _ in range(3))]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        left, right = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [
            (right >> np.uint64(32)) ^ c[1] ^ np.uint64(key[0]),
            right & low,
            (left >> np.uint64(32)) ^ c[3] ^ np.uint64(key[1]),
            left & low,
        ]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c[1].astype(np.uint32)


SOFT = 1e-6
ROWS: list[Row] = [
    # -- programs and places
    Row("program_id num_programs", "r = i + tl.program_id(0) + tl.program_id(1) * 2 + tl.num_programs(2)",
        lambda a: a.i + 1),
    Row("arange", "r = tl.arange(8, 72)", lambda a: a.i + 8),
    Row("zeros zeros_like full", "r = tl.zeros([64], tl.int32) + tl.zeros_like(n) + tl.full([64], 7, tl.int32)",
        lambda a: np.full(64, 7, np.int32)),
    Row("cdiv", "r = tl.cdiv(m, 7)", lambda a: -(-a.m // 7)),
    Row("swizzle2d", "a, b = tl.swizzle2d(i // 8, i % 8, 8, 8, 2)\nr = a * 100 + b",
        lambda a: np.array([(k // 16 * 2 + k % 16 % 2) * 100 + k % 16 // 2 for k in range(64)], np.int32)),
    # -- arithmetic
    Row("add", "r = tl.add(n, m, sanitize_overflow=False)", lambda a: a.n + a.m),
    Row("sub", "r = tl.sub(n, m, sanitize_overflow=False)", lambda a: a.n - a.m),
    Row("mul", "r = tl.mul(n, m, sanitize_overflow=False)", lambda a: a.n * a.m),
    Row("abs", "r = tl.abs(n)", lambda a: np.abs(a.n)),
    Row("maximum", "r = tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)", lambda a: np.maximum(a.x, a.y)),
    Row("minimum", "r = tl.minimum(x, y, propagate_nan=tl.PropagateNan.NONE)", lambda a: np.minimum(a.x, a.y)),
    Row("clamp", "r = tl.clamp(y, -1.0, x, propagate_nan=tl.PropagateNan.ALL)",
        lambda a: np.clip(a.y, np.float32(-1), a.x)),
    Row("where", "r = tl.where(x > y, x, y)", lambda a: np.where(a.x > a.y, a.x, a.y)),
    Row("fma", "r = tl.fma(x, y, x)", lambda a: (a.x.astype("f8") * a.y + a.x).astype("f4")),
    Row("fdiv", "r = tl.fdiv(x, y, ieee_rounding=True)", lambda a: a.x / a.y),
    Row("fdiv", "r = tl.fdiv(x, y, approx=True)", lambda a: a.x / a.y, SOFT),
    Row("div_rn", "r = tl.div_rn(x, y)", lambda a: a.x / a.y),
    Row("umulhi", "r = tl.umulhi(u, u + 1)",
        lambda a: ((a.u.astype("u8") * (a.u + np.uint32(1))) >> np.uint64(32)).astype("u4")),
    Row("floor", "r = tl.floor(y)", lambda a: np.floor(a.y)),
    Row("ceil", "r = tl.ceil(y)", lambda a: np.ceil(a.y)),
    Row("sqrt", "r = tl.sqrt(x)", lambda a: np.sqrt(a.x), SOFT),
    Row("sqrt_rn", "r = tl.sqrt_rn(x)", lambda a: np.sqrt(a.x)),
    Row("rsqrt", "r = tl.rsqrt(x)", lambda a: 1 / np.sqrt(a.x), SOFT),
    Row("exp", "r = tl.exp(y)", lambda a: np.exp(a.y), SOFT),
    Row("exp2", "r = tl.exp2(y)", lambda a: np.exp2(a.y), SOFT),
    Row("log", "r = tl.log(x)", lambda a: np.log(a.x.astype("f8")).astype("f4"), SOFT),
    Row("log2", "r = tl.log2(x)", lambda a: np.log2(a.x.astype("f8")).astype("f4"), SOFT),
    Row("sin", "r = tl.sin(y)", lambda a: np.sin(a.y.astype("f8")).astype("f4"), SOFT),
    Row("cos", "r = tl.cos(y)", lambda a: np.cos(a.y.astype("f8")).astype("f4"), SOFT),
    Row("erf", "r = tl.erf(y)", lambda a: erf(a.y), SOFT),
    Row("sigmoid", "r = tl.sigmoid(y)", lambda a: 1 / (1 + np.exp(-a.y)), SOFT),
    Row("softmax", "r = tl.softmax(tl.reshape(y, [8, 8]), dim=1, keep_dims=True, ieee_rounding=True)",
        lambda a: np.exp(_square(a.y)) / np.exp(_square(a.y)).sum(1, keepdims=True), SOFT),
    Row("cast", "r = tl.cast(y, tl.float16, fp_downcast_rounding='rtne').to(tl.float32)",
        lambda a: a.y.astype("f2").astype("f4")),
    Row("cast", "r = tl.cast(x, tl.int32, bitcast=True)", lambda a: a.x.view("i4")),
    Row("to_tensor", "r = tl.to_tensor(5) + n", lambda a: a.n + 5),
    Row("expect_zero", "r = tl.expect_zero(x, x < 0)", lambda a: a.x),
    # -- memory
    Row("load", "r = tl.load(x_ptr + i, mask=i < 60, other=3.0, cache_modifier='.cg', eviction_policy='evict_last', "
        "volatile=True)", lambda a: np.where(a.i < 60, a.x, np.float32(3))),
    Row("store", "tl.store(w_ptr + i, n, mask=i < 9, cache_modifier='.wb', eviction_policy='evict_first')\n"
        "tl.debug_barrier()\nr = tl.load(w_ptr + i)", lambda a: np.where(a.i < 9, a.n, a.m)),
    Row("debug_barrier", "tl.debug_barrier()\nr = n", lambda a: a.n),
    Row("make_tensor_descriptor load_tensor_descriptor store_tensor_descriptor",
        "source = tl.make_tensor_descriptor(x_ptr, [7, 8], [8, 1], [8, 8], padding_option='zero')\n"
        "target = tl.make_tensor_descriptor(w_ptr, [8, 8], [8, 1], [8, 8])\n"
        "tl.store_tensor_descriptor(target, [0, 0], tl.reshape(n, [8, 8]))\ntl.debug_barrier()\n"
        "r = tl.load_tensor_descriptor(source, [0, 0]) + target.load([0, 0])",
        lambda a: np.where(a.i < 56, a.x, 0).astype("f4") + a.n.astype("f4")),
    *(
        Row(f"atomic_{name}",
            f"before = tl.atomic_{name}(w_ptr + i, n, mask=i < 50, sem='acq_rel', scope='gpu')\n"
            "tl.debug_barrier()\nr = tl.load(w_ptr + i) * 1000 + tl.where(i < 50, before, 0)",
            lambda a, of=of: np.where(a.i < 50, of(a.m, a.n), a.m) * 1000 + np.where(a.i < 50, a.m, 0))
        for name, of in (
            ("add", np.add), ("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor),
            ("max", np.maximum), ("min", np.minimum), ("xchg", lambda m, n: n),
        )
    ),
    Row("atomic_cas", "r = tl.atomic_cas(w_ptr + i, m, n, sem='relaxed', scope='cta')\ntl.debug_barrier()\n"
        "r = r * 100 + tl.load(w_ptr + i)", lambda a: a.m * 100 + a.n),
    Row("atomic_load", "r = tl.atomic_load(w_ptr + i, mask=i < 64, sem='acquire', scope='gpu')", lambda a: a.m),
    Row("atomic_store", "tl.atomic_store(w_ptr + i, n, mask=i < 9, sem='release', scope='gpu')\ntl.debug_barrier()\n"
        "r = tl.load(w_ptr + i)", lambda a: np.where(a.i < 9, a.n, a.m)),
    Row("atomic_poll", "tl.store(w_ptr, 5)\ntl.debug_barrier()\n"
        "found = tl.atomic_poll(w_ptr, 5, sem='acquire', scope='gpu', timeout_ns=0)\nr = n + found.to(tl.int32)",
        lambda a: a.n + 1),
    # -- shapes
    Row("reshape", "r = tl.reshape(tl.reshape(n, [8, 8], can_reorder=False), [64])", lambda a: a.n),
    Row("view ravel", "r = tl.ravel(tl.reshape(n, [8, 8]), can_reorder=False) + tl.sum(tl.view(n, [8, 8]) * 0)",
        lambda a: a.n),
    Row("trans", "r = tl.trans(tl.reshape(n, [8, 8]), 1, 0)", lambda a: _square(a.n).T),
    Row("permute", "r = tl.permute(tl.reshape(n, [4, 2, 8]), (2, 0, 1))",
        lambda a: a.n.reshape(4, 2, 8).transpose(2, 0, 1)),
    Row("expand_dims unsqueeze squeeze",
        "r = tl.expand_dims(n, 0) + tl.expand_dims(tl.squeeze(tl.unsqueeze(m, 1), 1), 0)",
        lambda a: a.n + a.m),
    Row("broadcast", "a, b = tl.broadcast(tl.reshape(n, [8, 8]), tl.arange(0, 8)[None, :])\nr = a + b",
        lambda a: a.n + a.i % 8),
    Row("broadcast_to", "r = tl.broadcast_to(tl.arange(0, 8)[:, None], [8, 8])", lambda a: a.i // 8),
    Row("join split", "a, b = tl.split(tl.join(n, m))\nr = a - b", lambda a: a.n - a.m),
    Row("interleave", "r = tl.interleave(n, m)", lambda a: np.stack([a.n, a.m], 1)),
    Row("cat", "r = tl.cat(n, m, can_reorder=False, dim=0)", lambda a: np.concatenate([a.n, a.m])),
    Row("flip", "r = tl.flip(n, dim=0)", lambda a: a.n[::-1]),
    Row("gather", "r = tl.gather(n, m, 0)", lambda a: a.n[a.m]),
    # -- reductions, scans, sorts
    Row("sum", "r = tl.sum(tl.reshape(n, [8, 8]), axis=1, keep_dims=True, dtype=tl.int64)",
        lambda a: _square(a.n).sum(1, dtype="i8")),
    Row("xor_sum", "r = tl.xor_sum(tl.reshape(n, [8, 8]), axis=1, keep_dims=True)",
        lambda a: np.bitwise_xor.reduce(_square(a.n), 1)),
    Row("reduce_or", "r = tl.reduce_or(tl.reshape(n, [8, 8]), 1, keep_dims=True)",
        lambda a: np.bitwise_or.reduce(_square(a.n), 1)),
    Row("max", "v, k = tl.max(tl.reshape(n, [8, 8]), axis=1, return_indices=True, return_indices_tie_break_left=True, "
        "keep_dims=True)\nr = v * 10 + k", lambda a: _square(a.n).max(1) * 10 + _square(a.n).argmax(1).astype("i4")),
    Row("min", "v, k = tl.min(tl.reshape(n, [8, 8]), axis=1, return_indices=True, return_indices_tie_break_left=True, "
        "keep_dims=True)\nr = v * 10 + k", lambda a: _square(a.n).min(1) * 10 + _square(a.n).argmin(1).astype("i4")),
    Row("argmax", "r = tl.argmax(tl.reshape(n, [8, 8]), 0, tie_break_left=True, keep_dims=True)",
        lambda a: _square(a.n).argmax(0).astype("i4")),
    Row("argmin", "r = tl.argmin(tl.reshape(n, [8, 8]), 0, tie_break_left=True, keep_dims=True)",
        lambda a: _square(a.n).argmin(0).astype("i4")),
    Row("reduce", "r = tl.reduce(tl.reshape(n, [8, 8]), 0, larger, keep_dims=True)", lambda a: _square(a.n).max(0)),
    Row("associative_scan", "r = tl.associative_scan(n, 0, larger, reverse=True)",
        lambda a: np.maximum.accumulate(a.n[::-1])[::-1]),
    Row("cumsum", "r = tl.cumsum(n, axis=0, reverse=True, dtype=tl.int64)",
        lambda a: np.cumsum(a.n[::-1], dtype="i8")[::-1]),
    Row("cumprod", "r = tl.cumprod((n & 1) * 2 - 1, axis=0, reverse=False, dtype=tl.int32)",
        lambda a: np.cumprod((a.n & 1) * 2 - 1, dtype="i4")),
    Row("sort", "r = tl.sort(n, dim=0, descending=True)", lambda a: np.sort(a.n)[::-1]),
    Row("topk", "r = tl.topk(n, 8, dim=0, descending=True)", lambda a: np.sort(a.n)[::-1][:8]),
    Row("bitonic_merge", "half = tl.sort(tl.reshape(n, [2, 32]))\nr = tl.bitonic_merge(tl.where("
        "tl.arange(0, 2)[:, None] > 0, half, tl.flip(half)), dim=1, descending=True)",
        lambda a: np.sort(a.n.reshape(2, 32))[:, ::-1]),
    Row("histogram", "r = tl.histogram(m, 64, mask=i < 50)",
        lambda a: np.bincount(a.m[:50], minlength=64).astype("i4")),
    Row("inline_asm_elementwise",
        "r = tl.inline_asm_elementwise('lop3.b32 $0, $1, $2, 7, 0x96;', '=r,r,r', [n, m], tl.int32, True, 1)",
        lambda a: a.n ^ a.m ^ 7),
    Row("map_elementwise", "a, b = tl.map_elementwise(halves, n, pack=2)\nr = a * 100 + b",
        lambda a: a.m * 0 + np.trunc(a.n / 2).astype("i4") * 100 + a.n - 1),
    # -- dots
    Row("dot", "r = tl.dot(tl.reshape(x, [4, 16]), tl.reshape(y, [16, 4]), acc=tl.full([4, 4], 1.0, tl.float32), "
        "input_precision='ieee', max_num_imprecise_acc=0, out_dtype=tl.float32)",
        lambda a: a.x.reshape(4, 16) @ a.y.reshape(16, 4) + 1, 1e-4),
    Row("dot", "r = tl.dot(tl.reshape(x, [4, 16]), tl.reshape(y, [16, 4]), allow_tf32=False)",
        lambda a: a.x.reshape(4, 16) @ a.y.reshape(16, 4), 1e-4),
    Row("dot_scaled", "ones = tl.full([2, 1], 127, tl.uint8)\n"
        "r = tl.dot_scaled(tl.reshape((x.to(tl.float8e5)).to(tl.uint8, bitcast=True), [2, 32]), ones, 'e5m2', "
        "tl.reshape((y.to(tl.float8e5)).to(tl.uint8, bitcast=True), [32, 2]), ones, 'e5m2', "
        "acc=tl.zeros([2, 2], tl.float32), fast_math=False, lhs_k_pack=True, rhs_k_pack=True, out_dtype=tl.float32)",
        lambda a: _fp8(a.x).reshape(2, 32) @ _fp8(a.y).reshape(32, 2), 1e-4),
    # -- random numbers
    Row("randint", "r = tl.randint(7, i, n_rounds=10)", lambda a: philox(7, a.i)),
    Row("rand", "r = tl.rand(7, i, n_rounds=10)", lambda a: uniform(philox(7, a.i))),
    Row("randint4x", "a, b, c, d = tl.randint4x(7, i, n_rounds=10)\nr = b", lambda a: _second_word(7, a.i)),
    Row("rand4x", "a, b, c, d = tl.rand4x(7, i, n_rounds=10)\nr = b", lambda a: uniform(_second_word(7, a.i))),
    Row("randn", "r = tl.randn(7, i, n_rounds=10)",
        lambda a: _normal(uniform(philox(7, a.i)), uniform(_second_word(7, a.i))), 1e-5),
    Row("randn4x", "r, b, c, d = tl.randn4x(7, i, n_rounds=10)",
        lambda a: _normal(uniform(philox(7, a.i)), uniform(_second_word(7, a.i))), 1e-5),
    Row("philox", "a, b, c, d = tl.philox(7, i.to(tl.uint32), u * 0, u * 0, u * 0, n_rounds=10)\nr = a",
        lambda a: philox(7, a.i)),
    Row("philox_impl",
        "a, b, c, d = tl.philox_impl(i.to(tl.uint32), u * 0, u * 0, u * 0, u * 0 + 7, u * 0, n_rounds=10)\nr = b",
        lambda a: _second_word(7, a.i)),
    Row("uint_to_uniform_float", "r = tl.uint_to_uniform_float(u)", lambda a: uniform(a.u)),
    Row("pair_uniform_to_normal", "r, other = tl.pair_uniform_to_normal(x / 5, tl.abs(y) / 5)",
        lambda a: _normal(a.x / np.float32(5), np.abs(a.y) / np.float32(5)), 1e-5),
    # -- hints, debugging, compile time
    Row("assume multiple_of max_contiguous max_constancy",
        "tl.assume(tl.program_id(0) >= 0)\n"
        "r = tl.load(n_ptr + tl.max_contiguous(tl.multiple_of(i, 1), 64)) + tl.max_constancy(m, 1)",
        lambda a: a.n + a.m),
    Row("static_assert static_print", "tl.static_assert(SIZE >= 1, 'sizes are positive')\n"
        "tl.static_print('SIZE', SIZE, sep=' ', end='', file=None, flush=False)\nr = n", lambda a: a.n),
    Row("device_assert", "tl.device_assert(n < 1000, msg='small', mask=i < 10)\nr = n", lambda a: a.n),
    Row("device_print", "tl.device_print('', tl.sum(n), hex=True)\nr = n", lambda a: a.n),
    Row("range", "r = n\nfor k in tl.range(0, 6, 2, num_stages=2, loop_unroll_factor=2, "
        "disallow_acc_multi_buffer=True, flatten=True, warp_specialize=True, disable_licm=True):\n    r += k * m",
        lambda a: a.n + 6 * a.m),
    Row("static_range", "r = n\nfor k in tl.static_range(0, 6, step=2):\n    r += k * m", lambda a: a.n + 6 * a.m),
    Row("condition", "r = n\nk = tl.sum(m) % 5\nwhile tl.condition(k < 9, disable_licm=True):\n    r += m\n    k += 1",
        lambda a: a.n + a.m * (9 - int(a.m.sum()) % 5)),
    Row("constexpr", "FOUR: tl.constexpr = tl.constexpr(4)\nr = n * FOUR", lambda a: a.n * 4),
    Row("tuple", "pair = tl.tuple([n, m])\nr = pair[0] * 2 + pair[1]", lambda a: a.n * 2 + a.m),
    Row("aggregate_replace",
        "pair = Pair(n, m)\nother = tl.aggregate_replace(pair, first=m)\nr = other.first + other.second",
        lambda a: a.m * 2),
    Row("block_type dtype tensor pointer_type",
        "tl.static_assert(n.dtype == tl.int32)\ntl.static_assert(n_ptr.dtype.is_ptr())\n"
        "again = n_ptr.to(tl.int64).to(tl.pointer_type(tl.int32))\nr = tl.load(again + i)", lambda a: a.n),
]  # fmt: skip


def _fp8(values: np.ndarray) -> np.ndarray:
    import ml_dtypes

    return values.astype(ml_dtypes.float8_e5m2).astype(np.float32)


#: Methods of tensors that are no function of the module, and operators.
METHODS: list[Row] = [
    Row("T", "r = tl.reshape(n, [8, 8]).T", lambda a: _square(a.n).T),
    Row("to", "r = y.to(tl.bfloat16, fp_downcast_rounding='rtne').to(tl.float32)", lambda a: _bf16(a.y)),
    Row("to", "r = x.to(tl.int32, bitcast=True)", lambda a: a.x.view("i4")),
    Row("item", "r = tl.full([1], tl.sum(tl.reshape(n, [1, 64]), 1).item(), tl.int32)", lambda a: a.n.sum(dtype="i4")),
    Row("store", "(w_ptr + i).store(n)\ntl.debug_barrier()\nr = tl.load(w_ptr + i)", lambda a: a.n),
    Row("logical_and logical_or", "r = ((n > 0).logical_and(m > 30).logical_or(n < -30)).to(tl.int32)",
        lambda a: (((a.n > 0) & (a.m > 30)) | (a.n < -30)).astype("i4")),
    Row("__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__", "r = (n + m) * 3 - (2 + n) + (5 - m) * (4 * n) - n",
        lambda a: (a.n + a.m) * 3 - (2 + a.n) + (5 - a.m) * (4 * a.n) - a.n),
    Row("__truediv__ __rtruediv__", "r = tl.fdiv(x / y, 1.0 / x, ieee_rounding=True)", lambda a: a.x / a.y * a.x, SOFT),
    Row("__floordiv__ __rfloordiv__ __mod__ __rmod__", "r = m // 7 + 1000 // (m + 1) + m % 7 * 100 + 1000 % (m + 1)",
        lambda a: a.m // 7 + 1000 // (a.m + 1) + a.m % 7 * 100 + 1000 % (a.m + 1)),
    Row("__neg__ __invert__ __and__ __rand__ __or__ __ror__ __xor__ __rxor__",
        "r = -n + ~m + (n & m) + (3 & n) * 2 + (n | m) * 3 + (5 | n) + (n ^ m) + (9 ^ n)",
        lambda a: -a.n + ~a.m + (a.n & a.m) + (3 & a.n) * 2 + (a.n | a.m) * 3 + (5 | a.n) + (a.n ^ a.m) + (9 ^ a.n)),
    Row("__lshift__ __rlshift__ __rshift__ __rrshift__",
        "r = (n << (m & 7)) + (1 << (m & 7)) + (n >> 2) + (4096 >> (m & 7))",
        lambda a: (a.n << (a.m & 7)) + (1 << (a.m & 7)) + (a.n >> 2) + (4096 >> (a.m & 7))),
    Row("__gt__ __ge__ __lt__ __le__ __eq__ __ne__ __rgt__ __rge__ __rlt__ __rle__ __req__ __rne__",
        "r = (n > m) * 1 + (n >= m) * 2 + (n < m) * 4 + (n <= m) * 8 + (n == m) * 16 + (n != m) * 32 + (5 > n) * 64",
        lambda a: (a.n > a.m) * 1 + (a.n >= a.m) * 2 + (a.n < a.m) * 4 + (a.n <= a.m) * 8 + (a.n == a.m) * 16
        + (a.n != a.m) * 32 + (a.n < 5) * np.int32(64)),
    Row("__not__", "r = (not (tl.sum(n) > 100000)).to(tl.int32) + n", lambda a: a.n + 1),
    Row("__getitem__", "r = n[None, :] + m[None, :]", lambda a: a.n + a.m),
    Row("gather scatter load store atomic_add atomic_and atomic_max atomic_min atomic_or atomic_xor block_shape "
        "block_type dtype",
        "target = tl.make_tensor_descriptor(w_ptr, [8, 8], [8, 1], [8, 8])\n"
        "tl.static_assert(target.dtype == tl.int32 and target.block_shape[0] == 8)\n"
        "value = tl.reshape(n, [8, 8])\n"
        "target.store([0, 0], value)\ntl.debug_barrier()\ntarget.atomic_add([0, 0], value)\ntl.debug_barrier()\n"
        "target.atomic_max([0, 0], value)\ntl.debug_barrier()\ntarget.atomic_min([0, 0], value * 3)\n"
        "tl.debug_barrier()\ntarget.atomic_and([0, 0], value * 0 + 63)\ntl.debug_barrier()\n"
        "target.atomic_or([0, 0], value * 0 + 1)\ntl.debug_barrier()\ntarget.atomic_xor([0, 0], value * 0 + 3)\n"
        "tl.debug_barrier()\nr = target.load([0, 0])",
        lambda a: ((np.minimum(np.maximum(a.n * 2, a.n), a.n * 3) & 63) | 1) ^ 3),
]  # fmt: skip


def _bf16(values: np.ndarray) -> np.ndarray:
    import ml_dtypes

    return values.astype(ml_dtypes.bfloat16).astype(np.float32)
