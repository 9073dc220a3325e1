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

#: Further outside of an image than any window reaches.
_FAR = tl.constexpr(-(1 << 30))


@triton.jit
def _split(i, A, B, C, DEEP: tl.constexpr):
    """(i // (A B C), i // (B C) % A, i // C % B, i % C), with A = 1 unless DEEP."""
    if DEEP:
        return i // (A * B * C), i // (B * C) % A, i // C % B, i % C
    else:
        return i // (B * C), i * 0, i // C % B, i % C


@triton.jit
def _quotient(i, factor, shift):
    """i // d, of what dividing_by(d) gives."""
    high = tl.umulhi(i.to(tl.uint32), factor.to(tl.uint32)) >> shift.to(tl.uint32)
    return tl.where(factor == 0, i, high.to(tl.int32))


@triton.jit
def _within(f, g, h, D, H, W, DEEP: tl.constexpr):
    """Whether a place is in an image. Negative numbers are large ones without a sign."""
    inside = (g.to(tl.uint32) < H) & (h.to(tl.uint32, bitcast=True) < W)
    if DEEP:
        inside = inside & (f.to(tl.uint32) < D)
    return inside


@triton.jit
def channels_last_kernel(
    out, image, positions, C, channels, pitch, image_n, image_c,
    VECTOR: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """out (N, positions, groups, CP) of image (N, groups C, positions), whose positions are ``image_c`` channels apart
    and next to each other. The second axis of the grid are images and groups."""
    tiles = tl.cdiv(channels * VECTOR, COLUMNS)
    groups = pitch // channels
    n, group = tl.program_id(1) // groups, tl.program_id(1) % groups
    position, c = tl.program_id(0) // tiles * ROWS, tl.program_id(0) % tiles * COLUMNS
    row, column = position + tl.arange(0, ROWS)[None, :], c + tl.arange(0, COLUMNS)[:, None]
    place = n * image_n + (group * C + column) * image_c + row
    values = tl.load(image + place, mask=(row < positions) & (column < C), other=0.0)
    row, column = position + tl.arange(0, ROWS)[:, None], c + tl.arange(0, COLUMNS)[None, :]
    place = ((n * positions + row) * pitch + group * channels) * VECTOR + column
    tl.store(out + place, tl.trans(values), mask=(row < positions) & (column < channels * VECTOR))


@triton.jit
def image_kernel(
    out, image, weights, bias, rows, O, P, Q, D, H, W, K, pitch, channels, steps, depth, columns,  # noqa: E741
    step_d, step_h, step_w, start_d, start_h, start_w, move_d, move_h, move_w, T, R, S,
    first, weight_t, weight_r, weight_s, begin, out_n, stride_k, out_d, out_h, out_w,
    HAS_BIAS: tl.constexpr, DEEP: tl.constexpr, GUARDED: tl.constexpr, ACROSS: tl.constexpr, CHANNELS: tl.constexpr,
    VECTOR: tl.constexpr, UNIT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """out at positions (rows = N O P Q) of ``image`` and ``weights`` (groups, depth, CP, 16 columns), whose element (t,
    r, s) of a window is ``first`` + t weight_t + r weight_r + s weight_s of ``depth``; T, R, S: of how many it is.

    ``steps``: of a window's element, where CHANNELS is None. GUARDED: windows may reach out of an image. ACROSS: out's
    positions follow each other in memory, not its channels. The first position is at ``begin``; it and distances out_…
    are in UNITs."""
    group = tl.program_id(1)
    tiles = tl.cdiv(K, BN)
    at, k = tl.program_id(0) // tiles * BM, tl.program_id(0) % tiles * BN
    row = at + tl.arange(0, BM)[:, None]
    if not GUARDED:
        row = tl.minimum(row, rows - 1)
    n, o, p, q = _split(row, O, P, Q, DEEP)
    f, g, h = o * step_d + start_d, p * step_h + start_h, q * step_w + start_w
    place = ((n * D + f) * H + g) * W + h
    if GUARDED:
        g = tl.where(row < rows, g, _FAR)
    total = tl.zeros((BM, BN), tl.float32)
    count = T * R * S * steps
    if CHANNELS is not None:
        count = tl.cdiv(T * R * S * CHANNELS, BK)
    column = k + tl.arange(0, BN)[None, :]
    for i in range(0, count):
        if CHANNELS is not None:
            j = i * BK + tl.arange(0, BK)
            e, c, size = j // CHANNELS, j % CHANNELS, CHANNELS
        else:
            e = i // steps
            c, size = (i - e * steps) * BK + tl.arange(0, BK), steps * BK
        t, r, s = e * 0, e // S, e % S
        if DEEP:
            t, r = r // R, r % R
        w = ((group * depth + first + t * weight_t + r * weight_r + s * weight_s) * size + c)[:, None]
        w = weights + w * (columns * 16) + column
        t, r, s = t * move_d, r * move_h, s * move_w
        moved = (t * H + r) * W + s
        if CHANNELS is not None:
            t, r, s, moved = t[None, :], r[None, :], s[None, :], moved[None, :]
        x = image + ((place + moved) * pitch + group * channels) * VECTOR + c[None, :]
        if CHANNELS is not None:
            known = e < T * R * S
            inside = known[None, :]
            if GUARDED:
                inside = inside & _within(f + t, g + r, h + s, D, H, W, DEEP)
            left, right = tl.load(x, mask=inside, other=0.0), tl.load(w, mask=known[:, None], other=0.0)
        elif GUARDED:
            left, right = tl.load(x, mask=_within(f + t, g + r, h + s, D, H, W, DEEP), other=0.0), tl.load(w)
        else:
            left, right = tl.load(x), tl.load(w)
        total = tl.dot(left, right, total, input_precision="ieee")
    if HAS_BIAS:
        total += tl.load(bias + group * K + column, mask=column < K, other=0.0).to(tl.float32)
    result = total.to(out.dtype.element_ty)
    row = at + tl.arange(0, BM)
    if ACROSS:
        n, o, p, q = _split(row[None, :], O, P, Q, DEEP)
        column = k + tl.arange(0, BN)[:, None]
        place = (begin + n * out_n + o * out_d + p * out_h + q * out_w) * UNIT + (group * K + column) * stride_k
        tl.store(out + place, tl.trans(result), mask=(row < rows)[None, :] & (column < K))
    else:
        n, o, p, q = _split(row[:, None], O, P, Q, DEEP)
        place = (begin + n * out_n + o * out_d + p * out_h + q * out_w) * UNIT + (group * K + column) * stride_k
        tl.store(out + place, result, mask=(row < rows)[:, None] & (column < K))


@triton.jit
def weight_kernel(
    out, image, grad, share, rows, O, P, Q, D, H, W, C, K, pitch, channels, grad_pitch, grad_channels,  # noqa: E741
    step_d, step_h, step_w, start_d, start_h, start_w, move_d, move_h, move_w, T, R, S,
    factor_o, shift_o, factor_p, shift_p, factor_q, shift_q, out_part, out_group, out_e, out_c, stride_k,
    DEEP: tl.constexpr, GUARDED: tl.constexpr, CHANNELS: tl.constexpr,
    VECTOR: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """out, the gradient of weights, at (part, group, window's element e, channel c, channel k of ``grad``), distances
    apart. The third axis of the grid are parts of the sum over ``rows``, of ``share`` each (a multiple of BK).

    A tile's rows are channels of a window's element; where CHANNELS is None, of one. factor_… and shift_…: what
    dividing_by() gives of O, P and Q."""
    group, part = tl.program_id(1), tl.program_id(2)
    tiles = tl.cdiv(K, BN)
    at, k = tl.program_id(0) // tiles * BM, tl.program_id(0) % tiles * BN
    j = at + tl.arange(0, BM)
    if CHANNELS is not None:
        e, c = j // CHANNELS, j % CHANNELS
    else:
        e = at // (channels * VECTOR)
        c = j - e * (channels * VECTOR)
    t, r, s = e * 0, e // S, e % S
    if DEEP:
        t, r = r // R, r % R
    t, r, s = t * move_d, r * move_h, s * move_w
    moved = (t * H + r) * W + s
    if CHANNELS is not None:
        t, r, s, moved = t[None, :], r[None, :], s[None, :], moved[None, :]
        r = tl.where((e < T * R * S)[None, :], r, _FAR)
    column = k + tl.arange(0, BN)[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    end = min(part * share + share, rows)
    for start in range(part * share, end, BK):
        i = start + tl.arange(0, BK)[:, None]
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
            inside = inside & _within(f + t, g + r, h + s, D, H, W, DEEP)
        left = tl.load(image + ((x + moved) * pitch + group * channels) * VECTOR + c[None, :], mask=inside, other=0.0)
        y = grad + (i * grad_pitch + group * grad_channels) * VECTOR + column
        right = tl.load(y, mask=(i < end) & (column < grad_channels * VECTOR), other=0.0)
        total = tl.dot(tl.trans(left), right, total, input_precision="ieee")
    e, c = e + j * 0, c
    known = ((e < T * R * S) & (c < C))[:, None]
    place = part * out_part + group * out_group + (e * out_e + c * out_c)[:, None] + column * stride_k
    tl.store(out + place, total.to(out.dtype.element_ty), mask=known & (column < K))


@triton.jit
def _tile_of_channels(positions, channels, ACROSS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """(positions, channels) of a tile, from the first of each; positions are its last axis if ACROSS."""
    if ACROSS:
        return positions + tl.arange(0, ROWS)[None, :], channels + tl.arange(0, COLUMNS)[:, None]
    else:
        return positions + tl.arange(0, ROWS)[:, None], channels + tl.arange(0, COLUMNS)[None, :]


@triton.jit
def alone_kernel(
    out, image, weights, bias, rows, O, P, Q, D, H, W, K, image_n, image_c, image_d, image_h, image_w,  # noqa: E741
    step_d, step_h, step_w, start_d, start_h, start_w, move_d, move_h, move_w, T, R, S,
    depth, first, weight_t, weight_r, weight_s, begin, out_n, out_c, out_d, out_h, out_w, terms, each,
    HAS_BIAS: tl.constexpr, DEEP: tl.constexpr, ACROSS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """As image_kernel, of channels that are each convolved alone, in memory of any order: channel k of K is the sum of
    ``terms`` of weights (channels, depth), from k terms on, of which ``each`` belong to one channel of the image."""
    tiles = tl.cdiv(K, COLUMNS)
    at = tl.program_id(0)
    row, k = _tile_of_channels(at // tiles * ROWS, at % tiles * COLUMNS, ACROSS, ROWS, COLUMNS)
    n, o, p, q = _split(row, O, P, Q, DEEP)
    f, g, h = o * step_d + start_d, p * step_h + start_h, q * step_w + start_w
    place = n * image_n + f * image_d + g * image_h + h * image_w
    known = (row < rows) & (k < K)
    total = tl.zeros((COLUMNS, ROWS) if ACROSS else (ROWS, COLUMNS), tl.float32)
    for i in range(0, terms * T * R * S):
        term, e = i // (T * R * S), i % (T * R * S)
        t, r, s = e * 0, e // S, e % S
        if DEEP:
            t, r = r // R, r % R
        c = k * terms + term
        w = tl.load(weights + c * depth + first + t * weight_t + r * weight_r + s * weight_s, mask=k < K, other=0.0).to(
            tl.float32
        )
        t, r, s = t * move_d, r * move_h, s * move_w
        inside = known & _within(f + t, g + r, h + s, D, H, W, DEEP)
        moved = place + t * image_d + r * image_h + s * image_w
        total += w * tl.load(image + moved + c // each * image_c, mask=inside, other=0.0).to(tl.float32)
    if HAS_BIAS:
        total += tl.load(bias + k, mask=k < K, other=0.0).to(tl.float32)
    place = begin + n * out_n + k * out_c + o * out_d + p * out_h + q * out_w
    tl.store(out + place, total.to(out.dtype.element_ty), mask=known)


@triton.jit
def weight_alone_kernel(
    out, image, grad, share, rows, O, P, Q, D, H, W, K, image_n, image_c, image_d, image_h, image_w,  # noqa: E741
    grad_n, grad_c, grad_d, grad_h, grad_w, step_d, step_h, step_w, start_d, start_h, start_w, move_d, move_h, move_w,
    T, R, S, each, DEEP: tl.constexpr, ACROSS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """As weight_kernel, of channels that are each convolved alone: out (parts, K, T, R, S). A program has a tile's
    channels and one element of the window."""
    at = tl.program_id(0)
    e, part = tl.program_id(1), tl.program_id(2)
    t, r, s = e * 0, e // S, e % S
    if DEEP:
        t, r = r // R, r % R
    total = tl.zeros((COLUMNS, ROWS) if ACROSS else (ROWS, COLUMNS), tl.float32)
    end = min(part * share + share, rows)
    for start in range(part * share, end, ROWS):
        row, k = _tile_of_channels(start, at * COLUMNS, ACROSS, ROWS, COLUMNS)
        n, o, p, q = _split(row, O, P, Q, DEEP)
        f, g, h = (
            o * step_d + start_d + t * move_d,
            p * step_h + start_h + r * move_h,
            q * step_w + start_w + s * move_w,
        )
        known = (row < end) & (k < K)
        y = tl.load(grad + n * grad_n + k * grad_c + o * grad_d + p * grad_h + q * grad_w, mask=known, other=0.0)
        place = n * image_n + k // each * image_c + f * image_d + g * image_h + h * image_w
        x = tl.load(image + place, mask=known & _within(f, g, h, D, H, W, DEEP), other=0.0)
        total += x.to(tl.float32) * y.to(tl.float32)
    total = tl.sum(total, 1 if ACROSS else 0)
    k = at * COLUMNS + tl.arange(0, COLUMNS)
    tl.store(out + (part * K + k) * (T * R * S) + e, total.to(out.dtype.element_ty), mask=k < K)
