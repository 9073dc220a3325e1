"""Functions that are called, not inlined by the front end, on the device against NumPy."""

from __future__ import annotations

import numpy
import pytest
import torch
import triton
import triton.language as tl

BLOCK = 64
SIDE = 16


# -- scalars and pointers ----------------------------------------------------------------------------------------
@triton.jit(noinline=True)
def combine(pointer, n, m):
    if n > 3:
        return n + m, n * 2.5
    if n < 0:
        tl.store(pointer + 1, -7.0)
        return m, -1.0
    return m - n, tl.load(pointer)


@triton.jit
def scalar_calls(x, out, n, m):
    a, b = combine(x, n, m)
    c, d = combine(x + 2, a, n)
    tl.store(out, a + b * 10)
    tl.store(out + 1, c + d * 10)


@pytest.mark.parametrize("n", [-2, 0, 3, 4])
@pytest.mark.parametrize("m", [-1, 2, 9])
def test_scalars_pointers_and_several_results(n: int, m: int) -> None:
    x, out = torch.tensor([1.5, 2, 3, 4, 5]), torch.zeros(2)
    scalar_calls[(1,)](x, out, n, m)
    memory = [1.5, 2, 3, 4, 5]

    def call(at: int, n: int, m: int) -> tuple[int, float]:
        if n > 3:
            return n + m, n * 2.5
        if n < 0:
            memory[at + 1] = -7.0
            return m, -1.0
        return m - n, memory[at]

    a, b = call(0, n, m)
    c, d = call(2, a, n)
    assert out.tolist() == [a + b * 10, c + d * 10]
    assert x.tolist() == memory


@triton.jit(noinline=True)
def add_row(pointer, amount, wide, flag, BLOCK: tl.constexpr):
    at = pointer + tl.arange(0, BLOCK)
    if flag:
        tl.store(at, tl.load(at) + amount + wide)


@triton.jit
def calls_without_results(x, n, BLOCK: tl.constexpr):
    wide = n.to(tl.int64) * 3
    for i in range(n):
        add_row(x + i * BLOCK, 0.5, wide, i % 2 == 0, BLOCK)


def test_a_call_in_a_loop_without_results() -> None:
    x = torch.zeros(5, BLOCK)
    calls_without_results[(1,)](x, 5, BLOCK)
    assert x[:, 0].tolist() == [15.5, 0, 15.5, 0, 15.5]
    assert (x == x[:, :1]).all()


# -- tensors: what the front end inlines but a branch prevents inside a loop -------------------------------------------
@triton.jit
def scaled(a, n):
    if n > 3:
        return a + 1, n
    elif n == 2:
        return a * a, n + 1
    return a * 3, n + 2


@triton.jit
def tensor_calls(x, n, BLOCK: tl.constexpr):
    at = x + tl.arange(0, BLOCK)
    a = tl.load(at)
    k = 0
    for _ in range(n):
        a, k = scaled(a, k)
        if k == 4:
            a, k = scaled(a - 1, k - 2)
    tl.store(at, a + k)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 6])
def test_tensors_in_and_out_of_a_function_with_early_returns(n: int) -> None:
    def call(a: numpy.ndarray, n: int) -> tuple[numpy.ndarray, int]:
        return (a + 1, n) if n > 3 else (a * a, n + 1) if n == 2 else (a * 3, n + 2)

    x = torch.arange(BLOCK, dtype=torch.float32) / 8
    a, k = x.numpy().copy(), 0
    for _ in range(n):
        a, k = call(a, k)
        if k == 4:
            a, k = call(a - 1, k - 2)
    tensor_calls[(1,)](x, n, BLOCK)
    numpy.testing.assert_allclose(x.numpy(), a + k, rtol=1e-6)


@triton.jit
def innermost(a, n):
    if n % 2 == 0:
        return a - 1
    return a + n


@triton.jit(noinline=True)
def middle(p, q, n, BLOCK: tl.constexpr):
    a = tl.load(p + tl.arange(0, BLOCK))
    for i in range(n):
        a = innermost(a, i)
        if n == 4:
            a = innermost(a, n)
    tl.store(q + tl.arange(0, BLOCK), a)
    return n + 1


@triton.jit
def nested_calls(x, out, n, BLOCK: tl.constexpr):
    n = middle(x, out, n, BLOCK)
    n = middle(out, out + BLOCK, n, BLOCK)
    middle(x, out + 2 * BLOCK, n, BLOCK)


@pytest.mark.parametrize("n", [0, 3, 4])
def test_functions_that_call_functions(n: int) -> None:
    def middle_of(a: numpy.ndarray, n: int) -> numpy.ndarray:
        for i in range(n):
            a = a - 1 if i % 2 == 0 else a + i
            if n == 4:
                a = a - 1
        return a

    x, out = torch.arange(BLOCK, dtype=torch.float32), torch.zeros(3, BLOCK)
    nested_calls[(1,)](x, out, n, BLOCK, num_warps=1)
    first = middle_of(x.numpy(), n)
    numpy.testing.assert_array_equal(out.numpy(), [first, middle_of(first, n + 1), middle_of(x.numpy(), n + 2)])


# -- shared memory -----------------------------------------------------------------------------------------------
@triton.jit(noinline=True)
def product(p, q, SIDE: tl.constexpr):
    """q = p · pᵀ, through shared memory that is the callee's."""
    i = tl.arange(0, SIDE)
    a = tl.load(p + i[:, None] * SIDE + i[None, :])
    b = tl.load(p + i[:, None] + i[None, :] * SIDE)
    c = tl.dot(a, b)
    tl.store(q + i[:, None] * SIDE + i[None, :], c)
    return tl.sum(tl.sum(c, 1), 0)


@triton.jit
def shared_memory_calls(x, y, out, n, SIDE: tl.constexpr):
    i = tl.arange(0, SIDE)
    square = i[:, None] * SIDE + i[None, :]
    j = tl.arange(0, 2 * SIDE)
    # This goes to shared memory at once and stays there during the first call, before the callee's.
    large = tl.load(x + j[:, None] * 2 * SIDE + j[None, :])
    a = tl.load(x + square)
    total = product(x, y, SIDE)
    total += tl.sum(tl.sum(tl.dot(large, large), 0), 0)
    for round in range(n):
        # The operands of the dots lie in shared memory while the callee uses its own.
        b = tl.trans(tl.dot(a, a))
        total += product(x + round * SIDE * SIDE, y + round * SIDE * SIDE, SIDE)
        a = tl.dot(b, a) * 0.5
        total += tl.sum(tl.sum(a, 0), 0)
    tl.store(out + square, a + total)


@pytest.mark.parametrize("num_warps", [1, 4, 8])
def test_callees_with_shared_memory_of_their_own(num_warps: int) -> None:
    rounds = 4
    x = torch.randn(rounds, SIDE, SIDE, generator=torch.Generator().manual_seed(0)) / 4
    y, out = torch.zeros_like(x), torch.zeros(SIDE, SIDE)
    shared_memory_calls[(1,)](x, y, out, rounds, SIDE, num_warps=num_warps)
    values = x.numpy().astype(numpy.float64)
    products = values @ values.transpose(0, 2, 1)
    numpy.testing.assert_allclose(y.numpy(), products, rtol=1e-4, atol=1e-5)
    large = values.reshape(2 * SIDE, 2 * SIDE)
    a, total = values[0], products[0].sum() + (large @ large).sum()
    for step in range(rounds):
        b = (a @ a).T
        total += products[step].sum()
        a = b @ a * 0.5
        total += a.sum()
    numpy.testing.assert_allclose(out.numpy(), a + total, rtol=1e-4, atol=1e-4)


@triton.jit
def larger(a, b):
    if a > b:
        return a
    return b


@triton.jit
def reduced_by_a_branching_function(x, out, BLOCK: tl.constexpr):
    tl.store(out, tl.reduce(tl.load(x + tl.arange(0, BLOCK)), 0, larger))


def test_a_combine_function_with_early_returns() -> None:
    x, out = torch.randn(BLOCK, generator=torch.Generator().manual_seed(1)), torch.zeros(1)
    reduced_by_a_branching_function[(1,)](x, out, BLOCK)
    assert out[0] == x.max()
