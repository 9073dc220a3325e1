"""Functions that are called, not inlined by the front end, on the device against the same as Python."""

import pytest
import torch
import triton
import triton.language as tl

from tests.fuzz.reference import run_as_python

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
    memory, expected = x.clone(), out.clone()
    scalar_calls[(1,)](x, out, n, m)
    run_as_python(scalar_calls, (1,), memory, expected, n, m)
    assert torch.equal(out, expected) and torch.equal(x, memory)


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
    x, expected = (torch.arange(BLOCK, dtype=torch.float32) / 8 for _ in range(2))
    tensor_calls[(1,)](x, n, BLOCK)
    run_as_python(tensor_calls, (1,), expected, n, BLOCK)
    torch.testing.assert_close(x, expected, rtol=1e-6, atol=0)


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
    x, out, expected = torch.arange(BLOCK, dtype=torch.float32), *torch.zeros(2, 3, BLOCK)
    nested_calls[(1,)](x, out, n, BLOCK, num_warps=1)
    run_as_python(nested_calls, (1,), x, expected, n, BLOCK)
    assert torch.equal(out, expected)


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
    products, expected = y.clone(), out.clone()
    shared_memory_calls[(1,)](x, y, out, rounds, SIDE, num_warps=num_warps)
    run_as_python(shared_memory_calls, (1,), x, products, expected, rounds, SIDE)
    torch.testing.assert_close(y, products, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-4)


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
