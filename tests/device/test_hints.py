"""Hints to the compiler, from Python source: they change no result."""

import numpy
import pytest
import torch
import triton
import triton.language as tl


@triton.jit
def assumes(x, out, n, step, COUNT: tl.constexpr, BLOCK: tl.constexpr):
    tl.assume(n > 0)
    tl.assume(step % 16 == 0)
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(COUNT):
        tl.assume(row * step >= 0)
        total += tl.load(x + row * step + i, mask=i < n)
    if n > 3:
        tl.assume(step > 3)
        total *= 2
    tl.store(out + i, total, mask=i < n)


@pytest.mark.parametrize(("n", "step"), [(1, 64), (3, 16), (61, 64), (64, 64)])
def test_assume(n: int, step: int) -> None:
    x = torch.arange(5 * 64 + 64, dtype=torch.float32)
    out = torch.full((64,), -1.0)
    assumes[(1,)](x, out, n, step, COUNT=5, BLOCK=64)
    rows = sum(x.numpy()[row * step : row * step + n] for row in range(5))
    numpy.testing.assert_array_equal(out.numpy()[:n], rows * (2 if n > 3 else 1))
    numpy.testing.assert_array_equal(out.numpy()[n:], -1)


@triton.jit
def callee(x, i):
    tl.assume(i >= 0)
    return tl.load(x + i)


@triton.jit
def assumes_in_a_call(x, out):
    tl.store(out, callee(x, tl.program_id(0) + 2))


def test_assume_in_a_called_function() -> None:
    x, out = torch.arange(4, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    assumes_in_a_call[(1,)](x, out)
    assert out.item() == 2


@triton.jit
def describes(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    i = tl.max_contiguous(tl.multiple_of(i, BLOCK), BLOCK)
    value = tl.max_constancy(tl.load(x + i), 1)
    tl.debug_barrier()
    tl.store(out + i, value + 1)


def test_descriptions_of_values() -> None:
    x, out = torch.arange(256, dtype=torch.float32), torch.zeros(256)
    describes[(4,)](x, out, BLOCK=64)
    numpy.testing.assert_array_equal(out.numpy(), x.numpy() + 1)


@triton.jit
def turns(q, w, v, out, stride, HINT: tl.constexpr, N: tl.constexpr):
    """Of the weights only the transpose is used, so matrix units compute them transposed."""
    i = tl.arange(0, N)
    places = i[:, None] * N + i[None, :]
    a = tl.load(q + places)
    weights = i[:, None] * stride + i[None, :]
    if HINT:
        weights = tl.max_contiguous(tl.multiple_of(weights, [1, 16]), [1, 16])
    scores = tl.dot(a, tl.trans(a)) * tl.load(w + weights)
    tl.store(out + places, tl.dot(tl.trans(scores.to(tl.float16)), tl.load(v + places)))


@pytest.mark.parametrize("hint", [False, True])
@pytest.mark.parametrize("units", [0, 1])
@pytest.mark.parametrize("count", [16, 32])
def test_hints_turn_with_what_is_turned(hint: bool, units: object, count: int) -> None:
    rng = numpy.random.default_rng(3)
    q, v = (torch.from_numpy(rng.integers(-3, 4, (count, count)).astype(numpy.float16)) for _ in range(2))
    w = torch.from_numpy(rng.integers(-3, 4, (count, count)).astype(numpy.float32))
    out = torch.zeros(count, count)
    turns[(1,)](q, w, v, out, count, hint, count, num_warps=1, matrix_units=units)
    scores = (q.double() @ q.double().T * w.double()).half().double()
    numpy.testing.assert_array_equal(out.numpy(), (scores.T @ v.double()).numpy())


@triton.jit
def tiles_in_turn(a, b, c, tiles, K, FLATTEN: tl.constexpr, BLOCK: tl.constexpr):
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=FLATTEN):
        rows, columns = tile * BLOCK + tl.arange(0, BLOCK), tl.arange(0, BLOCK)
        total = tl.zeros((BLOCK, BLOCK), tl.float32)
        for start in range(0, K, BLOCK):
            depth = start + tl.arange(0, BLOCK)
            left = tl.load(a + rows[:, None] * K + depth[None, :], depth[None, :] < K, 0.0)
            right = tl.load(b + depth[:, None] * BLOCK + columns[None, :], depth[:, None] < K, 0.0)
            total = tl.dot(left, right, total)
        tl.store(c + rows[:, None] * BLOCK + columns[None, :], total)


@pytest.mark.parametrize("k", [0, 16, 53])
def test_loops_that_are_to_be_flattened_stay_nested(k: int) -> None:
    """docs/internals/performance.md says why. The values are the same, with no step of the inner loop, too."""
    torch.manual_seed(k)
    a, b = torch.randn(5 * 16, k), torch.randn(k, 16)
    found = []
    for flatten in (False, True):
        c = torch.full((5 * 16 + 1, 16), -1.0)
        kernel = tiles_in_turn[(2,)](a, b, c, 5, k, FLATTEN=flatten, BLOCK=16)
        numpy.testing.assert_allclose(c.numpy()[:-1], (a.double() @ b.double()).numpy(), rtol=0, atol=1e-4)
        assert (c[-1] == -1).all()
        found.append((c, kernel.asm["ttgir"].count("scf.for"), kernel.asm["spv"]))
    assert torch.equal(found[0][0], found[1][0]) and found[0][1:] == found[1][1:]


@triton.jit
def promises_of_remainders(a, b, out, copied, N: tl.constexpr, K: tl.constexpr, BLOCK: tl.constexpr):
    """As templates of torch for batches of matrices: rows of N elements are not aligned, so that no GPU is misled."""
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = tl.max_contiguous(tl.multiple_of(columns % N, BLOCK), BLOCK)
    rows = tl.arange(0, K)
    right = tl.load(b + rows[:, None] * N + inside[None, :])
    tl.store(copied + rows[:, None] * N + columns[None, :], right, mask=columns[None, :] < N)
    total = tl.dot(tl.load(a + rows[:, None] * K + rows[None, :]), right)
    tl.store(out + rows[:, None] * N + columns[None, :], total, mask=columns[None, :] < N)


def test_a_promise_that_alignment_makes_good() -> None:
    a, b = torch.randint(-4, 5, (32, 32)).float(), torch.randint(-4, 5, (32, 17)).float()
    out, copied = torch.zeros(32, 17), torch.zeros(32, 17)
    promises_of_remainders[(2,)](a, b, out, copied, N=17, K=32, BLOCK=16)
    numpy.testing.assert_array_equal(copied.numpy(), b.numpy())
    numpy.testing.assert_array_equal(out.numpy(), a.numpy() @ b.numpy())
