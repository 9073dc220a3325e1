# mypy: allow-untyped-defs
"""Kernels of convolutions, whose images have their channels last: (N, D, H, W, groups, CP), without gaps.

An output's position (n, o, p, q) sees an image at n and, along each axis, at p step + start + r move through element r
of a window: that is a convolution, and the gradient of its input. Channels of a group are padded with zeros to CP, a
multiple of VECTOR, so that accesses are 16 bytes wide. What is summed is ordered by the window's elements, channels
innermost: where CP is whole steps, CHANNELS is None, and a step is of one element; otherwise CHANNELS is CP. ``pitch``
and ``channels``: elements of a position and of its group, in vectors.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .convolution_axes import split_position, window_place, within

#: Further outside of an image than any window reaches.
_FAR = tl.constexpr(-(1 << 30))


@triton.jit
def _quotient(i, factor, shift):
    """i // d, of what dividing_by(d) gives."""
    high = tl.umulhi(i.to(tl.uint32), factor.to(tl.uint32)) >> shift.to(tl.uint32)
    return tl.where(factor == 0, i, high.to(tl.int32))


@triton.jit
def image_kernel(
    out, image, weights, bias, rows, O, P, Q, D, H, W, K, pitch, channels, steps, depth, columns,  # noqa: E741
    step_d, step_h, step_w, start_d, start_h, start_w, move_d, move_h, move_w, T, R, S,
    first, weight_t, weight_r, weight_s, begin, out_n, out_k, out_d, out_h, out_w,
    HAS_BIAS: tl.constexpr, DEEP: tl.constexpr, GUARDED: tl.constexpr, ACROSS: tl.constexpr, DENSE: tl.constexpr,
    CHANNELS: tl.constexpr, VECTOR: tl.constexpr, UNIT: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """out at positions (rows = N O P Q) of ``image`` and ``weights`` (groups, depth, CP, 16 columns), whose element (t,
    r, s) of a window is ``first`` + t weight_t + r weight_r + s weight_s of ``depth``; T, R, S: of how many it is.

    ``steps``: of a window's element, where CHANNELS is None. GUARDED: windows may reach out of an image. ACROSS: out's
    positions follow each other in memory, not its channels. Distances out_… are in UNITs, and so is ``begin``, the
    first position's place. DENSE: all positions of an image's channel are next to each other, ``out_w`` UNITs."""
    group = tl.program_id(1)
    tiles = tl.cdiv(K, BN)
    at, k = tl.program_id(0) // tiles * BM, tl.program_id(0) % tiles * BN
    row = at + tl.arange(0, BM)[:, None]
    if not GUARDED:
        row = tl.minimum(row, rows - 1)
    n, o, p, q = split_position(row, O, P, Q, DEEP)
    f, g, h = o * step_d + start_d, p * step_h + start_h, q * step_w + start_w
    place = ((n * D + f) * H + g) * W + h
    if GUARDED:
        g = tl.where(row < rows, g, _FAR)
    total = tl.zeros((BM, BN), tl.float32)
    count = T * R * S * steps
    if CHANNELS is not None:
        count = tl.cdiv(T * R * S * CHANNELS, BK)
    column = k + tl.arange(0, BN)[None, :]
    step, next_t, next_r, next_s = 0, 0, 0, 0
    for i in range(0, count):
        if CHANNELS is not None:
            j = i * BK + tl.arange(0, BK)
            e, c, size = j // CHANNELS, j % CHANNELS, CHANNELS
            t, r, s = window_place(e, R, S, DEEP)
            known = e < T * R * S
        else:
            c, size = step * BK + tl.arange(0, BK), steps * BK
            t, r, s = next_t, next_r, next_s
            step += 1
            next_s = tl.where(step == steps, s + 1, s)
            step = tl.where(step == steps, 0, step)
            next_r = tl.where(next_s == S, r + 1, r)
            next_s = tl.where(next_s == S, 0, next_s)
            if DEEP:
                next_t = tl.where(next_r == R, t + 1, t)
                next_r = tl.where(next_r == R, 0, next_r)
        w = (group * depth + first + t * weight_t + r * weight_r + s * weight_s) * size + c
        w = weights + w[:, None] * (columns * 16) + column
        t, r, s = t * move_d, r * move_h, s * move_w
        moved = (t * H + r) * W + s
        if CHANNELS is not None:
            t, r, s, moved = t[None, :], r[None, :], s[None, :], moved[None, :]
        x = image + ((place + moved) * pitch + group * channels) * VECTOR + c[None, :]
        if CHANNELS is not None:
            inside = known[None, :]
            if GUARDED:
                inside = inside & within(f + t, g + r, h + s, D, H, W, DEEP)
            left, right = tl.load(x, mask=inside, other=0.0), tl.load(w, mask=known[:, None], other=0.0)
        elif GUARDED:
            left, right = tl.load(x, mask=within(f + t, g + r, h + s, D, H, W, DEEP), other=0.0), tl.load(w)
        else:
            left, right = tl.load(x), tl.load(w)
        total = tl.dot(left, right, total, input_precision="ieee")
    if HAS_BIAS:
        total += tl.load(bias + group * K + column, mask=column < K, other=0.0).to(tl.float32)
    result = total.to(out.dtype.element_ty)
    if ACROSS:
        row = at + tl.arange(0, BM)[None, :]
        column = k + tl.arange(0, BN)[:, None]
        if DENSE:
            i = row // UNIT
            n = i // out_w
            place = (n * out_n + (group * K + column) * out_k + i % out_w) * UNIT + row % UNIT
            known = i < rows // UNIT
        else:
            n, o, p, q = split_position(row, O, P, Q, DEEP)
            place = begin + n * out_n + (group * K + column) * out_k + o * out_d + p * out_h + q * out_w
            known = row < rows
        tl.store(out + place, tl.trans(result), mask=known & (column < K))
    else:
        row = at + tl.arange(0, BM)[:, None]
        n, o, p, q = split_position(row, O, P, Q, DEEP)
        place = (begin + n * out_n + o * out_d + p * out_h + q * out_w) * UNIT + group * K + column
        tl.store(out + place, result, mask=(row < rows) & (column < K))


@triton.jit
def weight_kernel(
    out, image, grad, share, rows, O, P, Q, D, H, W, C, K, pitch, channels, grad_pitch, grad_channels,  # noqa: E741
    step_d, step_h, step_w, start_d, start_h, start_w, move_d, move_h, move_w, T, R, S,
    factor_o, shift_o, factor_p, shift_p, factor_q, shift_q, out_part, out_group, out_e, out_c, stride_k,
    DEEP: tl.constexpr, GUARDED: tl.constexpr, CHANNELS: tl.constexpr,
    VECTOR: tl.constexpr, UNIT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """out, the gradient of weights, at (part, group, window's element e, channel c, channel k of ``grad``); distances
    but ``stride_k`` are in UNITs. The third axis of the grid are parts of the sum over ``rows``, of ``share`` each (a
    multiple of BK). A tile's rows are channels of a window's element; where CHANNELS is None, of one. factor_… and
    shift_…: what dividing_by() gives of O, P and Q."""
    group, part = tl.program_id(1), tl.program_id(2)
    tiles = tl.cdiv(K, BN)
    at, k = tl.program_id(0) // tiles * BM, tl.program_id(0) % tiles * BN
    j = at + tl.arange(0, BM)
    if CHANNELS is not None:
        e, c = j // CHANNELS, j % CHANNELS
    else:
        e = at // (channels * VECTOR)
        c = j - e * (channels * VECTOR)
    t, r, s = window_place(e, R, S, DEEP)
    t, r, s = t * move_d, r * move_h, s * move_w
    moved = (t * H + r) * W + s
    if CHANNELS is not None:
        t, r, s, moved = t[:, None], r[:, None], s[:, None], moved[:, None]
        r = tl.where((e < T * R * S)[:, None], r, _FAR)
    column = k + tl.arange(0, BN)[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    end = min(part * share + share, rows)
    for start in range(part * share, end, BK):
        i = start + tl.arange(0, BK)[None, :]
        p = _quotient(i, factor_q, shift_q)
        q = i - p * Q
        n = _quotient(p, factor_p, shift_p)
        p = p - n * P
        o = p * 0
        if DEEP:
            o, n = n, _quotient(n, factor_o, shift_o)
            o = o - n * O
        f, g, h = o * step_d + start_d, p * step_h + start_h, q * step_w + start_w
        x = ((n * D + f) * H + g) * W + h
        inside = i < end
        if GUARDED or CHANNELS is not None:
            inside = inside & within(f + t, g + r, h + s, D, H, W, DEEP)
        x = image + ((x + moved) * pitch + group * channels) * VECTOR + c[:, None]
        i = start + tl.arange(0, BK)[:, None]
        y = grad + (i * grad_pitch + group * grad_channels) * VECTOR + column
        left = tl.load(x, mask=inside, other=0.0)
        right = tl.load(y, mask=(i < end) & (column < grad_channels * VECTOR), other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    e += j * 0
    known = ((e < T * R * S) & (c < C))[:, None]
    place = (part * out_part + group * out_group + (e * out_e + c * out_c)[:, None]) * UNIT + column * stride_k
    tl.store(out + place, total.to(out.dtype.element_ty), mask=known & (column < K))
