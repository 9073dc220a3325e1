"""tl.map_elementwise: functions of single elements and of packs, with branches."""

import pytest
import torch
import triton
import triton.language as tl


@triton.jit
def _collatz(x):
    steps = 0
    while x != 1:
        if x % 2 == 0:
            x = x // 2
        else:
            x = 3 * x + 1
        steps += 1
    return steps


@triton.jit
def collatz(x_ptr, y_ptr, n, N: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=1)
    tl.store(y_ptr + offsets, tl.map_elementwise(_collatz, x), mask=offsets < n)


@pytest.mark.parametrize("warps", [1, 4])
def test_a_loop_that_each_element_leaves_on_its_own(warps: int) -> None:
    x = torch.arange(1, 101, dtype=torch.int32)
    y = torch.full((102,), -7, dtype=torch.int32)
    collatz[(1,)](x, y[1:], 100, N=128, num_warps=warps)

    def steps(value: int) -> int:
        return 0 if value == 1 else 1 + steps(value // 2 if value % 2 == 0 else 3 * value + 1)

    assert y.tolist() == [-7, *map(steps, range(1, 101)), -7]


@triton.jit
def _sign(x, low):
    if x < low:
        return -1, low
    if x == low:
        return 0, low
    return 1, x


@triton.jit
def signs(x_ptr, sign_ptr, value_ptr, low, N: tl.constexpr):
    offsets = tl.arange(0, N)
    sign, value = tl.map_elementwise(_sign, tl.load(x_ptr + offsets), low)
    tl.store(sign_ptr + offsets, sign)
    tl.store(value_ptr + offsets, value)


def test_several_returns_and_results() -> None:
    x = torch.randint(-3, 4, (256,), generator=torch.Generator().manual_seed(0)).float()
    sign, value = torch.zeros(256, dtype=torch.int32), torch.zeros(256)
    signs[(1,)](x, sign, value, 1.0, N=256)
    assert torch.equal(sign, torch.sign(x - 1).int()) and torch.equal(value, x.clamp(min=1))


@triton.jit
def _sorted_pair(a, b):
    if a > b:
        return b, a
    return a, b


@triton.jit
def pairs(x_ptr, y_ptr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    (ordered,) = tl.map_elementwise(_sorted_pair, tl.load(x_ptr + offsets), pack=2)
    tl.store(y_ptr + offsets, ordered)


def test_packs() -> None:
    """A pack is of consecutive elements of an invocation; here those are consecutive in memory too. In subgroups of 64
    an invocation has two."""
    x = torch.randn(512, generator=torch.Generator().manual_seed(1))
    y = torch.zeros(512)
    pairs[(1,)](x, y, N=512, num_warps=4)
    assert torch.equal(y.view(-1, 2), x.view(-1, 2).sort(1).values)


def test_a_pack_that_does_not_fit_is_refused() -> None:
    with pytest.raises(Exception, match="pack=2 does not divide"):
        pairs[(1,)](torch.zeros(8), torch.zeros(8), N=8, num_warps=4)
