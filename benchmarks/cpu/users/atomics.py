"""What several programs add to."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
import triton
import triton.language as tl

from benchmarks.cpu.users.rows import Data, Row, numba


@triton.jit
def norm_backward(x, dy, weight, mean, rstd, dx, dw, db, n, BLOCK: tl.constexpr):
    """Layer norm's, weights by atomics."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    mask = at < n
    value, g = tl.load(x + row * n + at, mask=mask, other=0.0), tl.load(dy + row * n + at, mask=mask, other=0.0)
    r = tl.load(rstd + row)
    normal = tl.where(mask, (value - tl.load(mean + row)) * r, 0.0)
    scaled = g * tl.load(weight + at, mask=mask, other=0.0)
    a, b = tl.sum(normal * scaled, 0) / n, tl.sum(scaled, 0) / n
    tl.store(dx + row * n + at, (scaled - normal * a - b) * r, mask=mask)
    tl.atomic_add(dw + at, g * normal, mask=mask)
    tl.atomic_add(db + at, g, mask=mask)


@triton.jit
def norm_backward_locked(x, dy, weight, mean, rstd, dx, dw, db, locks, n, GROUPS: tl.constexpr, BLOCK: tl.constexpr):
    """Layer norm's, weights in groups with a lock each, as Triton's tutorial has it."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    mask = at < n
    value, g = tl.load(x + row * n + at, mask=mask, other=0.0), tl.load(dy + row * n + at, mask=mask, other=0.0)
    r = tl.load(rstd + row)
    normal = tl.where(mask, (value - tl.load(mean + row)) * r, 0.0)
    scaled = g * tl.load(weight + at, mask=mask, other=0.0)
    a, b = tl.sum(normal * scaled, 0) / n, tl.sum(scaled, 0) / n
    tl.store(dx + row * n + at, (scaled - normal * a - b) * r, mask=mask)
    group = row % GROUPS
    more_w, more_b = g * normal, g
    while tl.atomic_cas(locks + group, 0, 1) == 1:
        pass
    count = tl.load(locks + GROUPS + group)
    if count == 0:
        tl.atomic_xchg(locks + GROUPS + group, 1)
    else:
        more_w += tl.load(dw + group * n + at, mask=mask)
        more_b += tl.load(db + group * n + at, mask=mask)
    tl.store(dw + group * n + at, more_w, mask=mask)
    tl.store(db + group * n + at, more_b, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(locks + group, 0)


@triton.jit
def scatter_add(x, index, out, width, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    mask = at < width
    to = tl.load(index + row)
    tl.atomic_add(out + to * width + at, tl.load(x + row * width + at, mask=mask), mask=mask)


@triton.jit
def scatter_each(x, index, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.atomic_add(out + tl.load(index + at, mask=mask, other=0), tl.load(x + at, mask=mask), mask=mask)


@triton.jit
def histogram(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + tl.load(x + at, mask=at < n, other=0), 1, mask=at < n)


@triton.jit
def histogram_blocks(x, out, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    counts = tl.histogram(tl.load(x + at, mask=at < n, other=0), BINS, mask=at < n)
    tl.atomic_add(out + tl.arange(0, BINS), counts)


@triton.jit
def total(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + at, mask=at < n, other=0.0), 0))


@triton.jit
def append(x, out, count, n, BLOCK: tl.constexpr):
    """The numbers above 0, in any order between blocks."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=-1.0)
    chosen = value > 0
    ranks = tl.cumsum(chosen.to(tl.int32), 0)
    first = tl.atomic_add(count, tl.sum(chosen.to(tl.int32), 0))
    tl.store(out + first + ranks - 1, value, mask=chosen)


def _loop_of_adds(x, index, out):  # type: ignore[no-untyped-def]
    for at in range(index.size):
        out[index[at]] += x[at]


def _loop_of_counts(x, out):  # type: ignore[no-untyped-def]
    for at in range(x.size):
        out[x[at]] += 1


def rows(data: Data) -> Iterator[Row]:
    """The family's rows."""
    m, n = 512, 1000
    x, dy, weight = data.normal(m, n), data.normal(m, n), data.normal(n)
    mean, rstd = x.mean(1), 1 / (x.var(1, correction=0) + 1e-5).sqrt()
    dx, dw, db = torch.zeros(m, n), torch.zeros(n), torch.zeros(n)

    def backward() -> object:
        shape, wanted = [n], [True, True, True]
        return torch.ops.aten.native_layer_norm_backward(
            dy, x, shape, mean[:, None], rstd[:, None], weight, weight, wanted
        )

    def by_atomics() -> None:
        dw.zero_()
        db.zero_()
        norm_backward[(m,)](x, dy, weight, mean, rstd, dx, dw, db, n, BLOCK=1024)

    normal = (x.double() - mean.double()[:, None]) * rstd.double()[:, None]
    expected = (dy.double() * normal).sum(0)
    yield Row("layer norm's backward by atomics", by_atomics, dw, expected, {"torch": backward}, 1e-3)
    groups = 64
    gw, gb, locks = torch.zeros(groups, n), torch.zeros(groups, n), torch.zeros(2 * groups, dtype=torch.int32)
    summed = torch.zeros(n)

    def by_locks() -> None:
        locks.zero_()
        norm_backward_locked[(m,)](x, dy, weight, mean, rstd, dx, gw, gb, locks, n, GROUPS=groups, BLOCK=1024)
        torch.sum(gw, 0, out=summed)
        gb.sum(0)

    yield Row("layer norm's backward with locks", by_locks, summed, expected, {"torch": backward}, 1e-3)
    source, index, target = data.normal(4096, 128), data.integers(512, 4096), torch.zeros(512, 128)

    def added() -> None:
        target.zero_()
        scatter_add[(4096,)](source, index, target, 128, BLOCK=128)

    yield Row(
        "scatter add of rows 4096×128",
        added,
        target,
        torch.zeros(512, 128).double().index_add(0, index, source.double()),
        data.sides(lambda: torch.zeros(512, 128).index_add_(0, index, source)),
    )
    count = 1 << 18
    numbers, places, sums = data.normal(count), data.integers(4096, count), torch.zeros(4096)
    again = torch.zeros(4096)

    def each() -> None:
        sums.zero_()
        scatter_each[(count // 1024,)](numbers, places, sums, count, BLOCK=1024)

    yield Row(
        "scatter add of elements",
        each,
        sums,
        torch.zeros(4096).double().index_add(0, places, numbers.double()),
        data.sides(
            lambda: torch.zeros(4096).index_add_(0, places, numbers),
            numba=numba(_loop_of_adds, numbers, places, again),
            numpy=lambda: np.bincount(places.numpy(), numbers.numpy(), 4096),
        ),
    )
    values, bins = data.integers(256, count, dtype=torch.int32), torch.zeros(256, dtype=torch.int32)
    others = data.sides(
        lambda: torch.bincount(values, minlength=256),
        numba=numba(_loop_of_counts, values, torch.zeros(256, dtype=torch.int32)),
        numpy=lambda: np.bincount(values.numpy(), minlength=256),
    )
    by_blocks = lambda: histogram_blocks[(count // 1024,)](values, bins, count, BINS=256, BLOCK=1024)  # noqa: E731
    by_elements = lambda: histogram[(count // 1024,)](values, bins, count, BLOCK=1024)  # noqa: E731
    for name, launch in (("histogram by atomics", by_elements), ("tl.histogram", by_blocks)):

        def counted(launch=launch) -> None:  # type: ignore[no-untyped-def]
            bins.zero_()
            launch()

        yield Row(name, counted, bins, torch.bincount(values, minlength=256), others, 0)
    one = torch.zeros(1)

    def one_sum() -> None:
        one.zero_()
        total[(count // 4096,)](numbers, one, count, BLOCK=4096)

    yield Row("sum by one atomic a block", one_sum, one, numbers.double().sum(), data.sides(torch.sum, numbers), 1e-1)
    kept, taken = torch.zeros(count), torch.zeros(1, dtype=torch.int32)

    def appended() -> None:
        taken.zero_()
        append[(count // 1024,)](numbers, kept, taken, count, BLOCK=1024)

    yield Row("append what is chosen", appended, taken, (numbers > 0).sum(), {"torch": lambda: numbers[numbers > 0]}, 0)
