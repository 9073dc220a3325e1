"""tl.gather against NumPy's take_along_axis."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

WARPS = (1, 4)


@triton.jit
def gather_1d(x_ptr, i_ptr, y_ptr, N: tl.constexpr, K: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    index = tl.load(i_ptr + tl.arange(0, K))
    tl.store(y_ptr + tl.arange(0, K), tl.gather(x, index, 0))


@triton.jit
def gather_2d(
    x_ptr, i_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr, IM: tl.constexpr, IN: tl.constexpr, AXIS: tl.constexpr
):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    offsets = tl.arange(0, IM)[:, None] * IN + tl.arange(0, IN)[None, :]
    tl.store(y_ptr + offsets, tl.gather(x, tl.load(i_ptr + offsets), AXIS))


def draw(shape: tuple[int, ...], extent: int, index: str = "int32") -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randint(0, extent, shape, generator=generator).to(getattr(torch, index))


@pytest.mark.parametrize("warps", WARPS)
@pytest.mark.parametrize(("size", "wanted"), [(1, 8), (8, 1), (64, 64), (32, 1024), (1024, 32), (512, 512)])
def test_one_dimension(size: int, wanted: int, warps: int) -> None:
    x, index = torch.randn(size), draw((wanted,), size)
    y = torch.full((wanted + 2,), 77.0)
    gather_1d[(1,)](x, index, y[1:], N=size, K=wanted, num_warps=warps)
    assert y[0] == 77 and y[-1] == 77, "a neighbour was written"
    assert torch.equal(y[1:-1], x[index.long()])


@pytest.mark.parametrize("dtype", ["int8", "float32", "int64"])
def test_of_many_registers(dtype: str) -> None:
    """A loop over registers on drivers that want one."""
    x = torch.randint(-100, 100, (2048,), generator=torch.Generator().manual_seed(0)).to(getattr(torch, dtype))
    index, y = draw((4096,), 2048), torch.zeros(4096, dtype=x.dtype)
    gather_1d[(1,)](x, index, y, N=2048, K=4096, num_warps=1)
    assert torch.equal(y, x[index.long()])


def test_unsigned_indices_past_the_signed_ones() -> None:
    x, index = torch.randn(512), torch.arange(256, dtype=torch.uint8)
    y = torch.zeros(256)
    gather_1d[(1,)](x, index, y, N=512, K=256)
    assert torch.equal(y, x[:256])


@pytest.mark.parametrize("warps", WARPS)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(4, 4), (32, 16), (2, 64), (64, 2), (128, 8)])
def test_two_dimensions(shape: tuple[int, int], axis: int, warps: int) -> None:
    for wanted in (2, 64):
        result = (wanted, shape[1]) if axis == 0 else (shape[0], wanted)
        x, index = torch.randn(shape), draw(result, shape[axis])
        y = torch.zeros(result)
        gather_2d[(1,)](x, index, y, M=shape[0], N=shape[1], IM=result[0], IN=result[1], AXIS=axis, num_warps=warps)
        assert np.array_equal(y.numpy(), np.take_along_axis(x.numpy(), index.long().numpy(), axis))


@triton.jit
def follow(x_ptr, y_ptr, steps, N: tl.constexpr):
    """Each element follows the chain of indices from its own place."""
    successor = tl.load(x_ptr + tl.arange(0, N))
    place = tl.arange(0, N)
    for _ in range(steps):
        place = tl.gather(successor, place, 0)
    tl.store(y_ptr + tl.arange(0, N), place)


@pytest.mark.parametrize("warps", WARPS)
def test_repeated_gathers(warps: int) -> None:
    x = torch.randperm(256, generator=torch.Generator().manual_seed(5)).int()
    y = torch.zeros_like(x)
    follow[(1,)](x, y, 7, N=256, num_warps=warps)
    place = torch.arange(256)
    for _ in range(7):
        place = x.long()[place]
    assert torch.equal(y.long(), place)
