"""tt.reduce against NumPy: shapes, axes, numbers of warps, combinations; types are in test_fuzz_functions.py."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

SHAPES_1D = (1, 2, 16, 64, 1024)
WARPS = (1, 2, 4, 8)


@triton.jit
def _product(a, b):
    return a * b


@triton.jit
def _either(a, b):
    return a | b


@triton.jit
def _both(a, b):
    return a & b


@triton.jit
def _apply(x, axis: tl.constexpr, OP: tl.constexpr, keep_dims: tl.constexpr):
    if OP == "sum":
        result = tl.sum(x, axis, keep_dims=keep_dims)
    elif OP == "max":
        result = tl.max(x, axis, keep_dims=keep_dims)
    elif OP == "prod":
        result = tl.reduce(x, axis, _product, keep_dims=keep_dims)
    elif OP == "argmax":
        result = tl.argmax(x, axis, keep_dims=keep_dims)
    elif OP == "argmin":
        result = tl.argmin(x, axis, keep_dims=keep_dims)
    return result


@triton.jit
def reduce_1d(x_ptr, y_ptr, n, N: tl.constexpr, OP: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets)
    y = _apply(x, 0, OP, False)
    tl.store(y_ptr, y)


@triton.jit
def reduce_2d(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, OP: tl.constexpr):
    rows, columns = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + rows * N + columns)
    y = _apply(x, AXIS, OP, True)
    if AXIS == 0:
        tl.store(y_ptr + columns, y)
    else:
        tl.store(y_ptr + rows, y)


@triton.jit
def reduce_3d(x_ptr, y_ptr, L: tl.constexpr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, OP: tl.constexpr):
    planes = tl.arange(0, L)[:, None, None]
    rows = tl.arange(0, M)[None, :, None]
    columns = tl.arange(0, N)[None, None, :]
    x = tl.load(x_ptr + (planes * M + rows) * N + columns)
    y = _apply(x, AXIS, OP, False)
    if AXIS == 0:
        tl.store(y_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], y)
    elif AXIS == 1:
        tl.store(y_ptr + tl.arange(0, L)[:, None] * N + tl.arange(0, N)[None, :], y)
    else:
        tl.store(y_ptr + tl.arange(0, L)[:, None] * M + tl.arange(0, M)[None, :], y)


def draw(shape: tuple[int, ...], dtype: str, op: str = "sum") -> torch.Tensor:
    """Random values; few distinct ones for argmax and argmin, so that there are ties."""
    generator = torch.Generator().manual_seed(len(shape) * 1000 + shape[-1])
    type_ = getattr(torch, dtype)
    if op.startswith("arg"):
        return torch.randint(-3, 4, shape, generator=generator).to(type_)
    if op == "prod":
        return torch.randint(1, 3, shape, generator=generator).to(type_)
    if type_.is_floating_point:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(type_)
    limits = torch.iinfo(type_)
    return torch.randint(limits.min, limits.max, shape, generator=generator, dtype=torch.int64).to(type_)


def expected(x: torch.Tensor, axis: int, op: str) -> np.ndarray:
    """NumPy's result, in float64 for floats and modulo 2^64 for integers."""
    values = x.to(torch.float64).numpy() if x.dtype.is_floating_point else x.to(torch.int64).numpy()
    rule = {"sum": np.sum, "max": np.max, "prod": np.prod, "argmax": np.argmax, "argmin": np.argmin}[op]
    return np.asarray(rule(values, axis=axis))


def result_type(dtype: str, op: str) -> torch.dtype:
    """What the kernel stores: integer sums of fewer than 32 bits are computed in 32."""
    if op.startswith("arg"):
        return torch.int32
    return torch.int32 if op == "sum" and dtype in ("int8", "int16") else getattr(torch, dtype)


#: Relative to the sum of magnitudes.
TOLERANCE = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 1e-5, "float64": 1e-13}


def check(y: torch.Tensor, x: torch.Tensor, axis: int, op: str) -> None:
    want = expected(x, axis, op).reshape(-1)
    if x.dtype.is_floating_point and op == "sum":
        scale = np.abs(x.to(torch.float64).numpy()).sum(axis=axis).max()
        got = y.to(torch.float64).numpy()
        assert np.abs(got - want).max() <= TOLERANCE[str(x.dtype).removeprefix("torch.")] * scale
    elif y.dtype.is_floating_point:
        assert np.array_equal(y.to(torch.float64).numpy(), want)
    else:
        assert np.array_equal(y.numpy(), want.astype(y.numpy().dtype))


@pytest.mark.parametrize("size", SHAPES_1D)
@pytest.mark.parametrize("warps", WARPS)
def test_sizes_and_warps(size: int, warps: int) -> None:
    for op in ("sum", "argmax"):
        x = draw((size,), "float32", op)
        y = torch.zeros(1, dtype=result_type("float32", op))
        reduce_1d[(1,)](x, y, size, N=size, OP=op, num_warps=warps)
        check(y, x, 0, op)


@pytest.mark.parametrize("shape", [(1, 16), (16, 1), (2, 64), (64, 2), (16, 64), (1024, 2), (2, 1024)])
@pytest.mark.parametrize("warps", WARPS)
def test_two_dimensions(shape: tuple[int, int], warps: int) -> None:
    for axis, op, dtype in ((0, "sum", "int32"), (1, "sum", "int32"), (0, "argmin", "float16"), (1, "max", "int64")):
        x = draw(shape, dtype, op)
        y = torch.zeros(shape[1 - axis], dtype=result_type(dtype, op))
        reduce_2d[(1,)](x, y, M=shape[0], N=shape[1], AXIS=axis, OP=op, num_warps=warps)
        check(y, x, axis, op)


@pytest.mark.parametrize("axis", (0, 1, 2))
@pytest.mark.parametrize("shape", [(2, 16, 64), (16, 2, 1), (1, 64, 16), (8, 8, 8)])
def test_three_dimensions(shape: tuple[int, int, int], axis: int) -> None:
    for warps, op in ((1, "sum"), (4, "argmax"), (8, "prod")):
        x = draw(shape, "int32", op)
        y = torch.zeros(np.delete(shape, axis).prod(), dtype=torch.int32)
        reduce_3d[(1,)](x, y, L=shape[0], M=shape[1], N=shape[2], AXIS=axis, OP=op, num_warps=warps)
        check(y, x, axis, op)


@triton.jit
def _welford(mean_a, square_a, count_a, mean_b, square_b, count_b):
    count = count_a + count_b
    delta = mean_b - mean_a
    ratio = count_b / count
    return mean_a + delta * ratio, square_a + square_b + delta * delta * count_a * ratio, count


@triton.jit
def welford(x_ptr, mean_ptr, variance_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    mean, square, count = tl.reduce((x, tl.zeros_like(x), tl.full((M, N), 1.0, tl.float32)), AXIS, _welford)
    offsets = tl.arange(0, N if AXIS == 0 else M)
    tl.store(mean_ptr + offsets, mean)
    tl.store(variance_ptr + offsets, square / count)


@pytest.mark.parametrize("axis", (0, 1))
@pytest.mark.parametrize("warps", WARPS)
def test_three_operands(axis: int, warps: int) -> None:
    x = torch.randn(32, 64, generator=torch.Generator().manual_seed(1)) + 5
    mean, variance = torch.zeros(x.shape[1 - axis]), torch.zeros(x.shape[1 - axis])
    welford[(1,)](x, mean, variance, M=32, N=64, AXIS=axis, num_warps=warps)
    values = x.double().numpy()
    np.testing.assert_allclose(mean.numpy(), values.mean(axis), rtol=1e-5)
    np.testing.assert_allclose(variance.numpy(), values.var(axis), rtol=1e-4)


@triton.jit
def booleans(x_ptr, any_ptr, all_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]) > 0
    offsets = tl.arange(0, N if AXIS == 0 else M)
    tl.store(any_ptr + offsets, tl.reduce(x, AXIS, _either))
    tl.store(all_ptr + offsets, tl.reduce(x, AXIS, _both))


@pytest.mark.parametrize("axis", (0, 1))
@pytest.mark.parametrize("warps", WARPS)
def test_booleans(axis: int, warps: int) -> None:
    x = torch.randint(0, 16, (16, 32), generator=torch.Generator().manual_seed(axis))
    x[3] = 0
    x[:, 5] = 1
    any_, all_ = torch.zeros(x.shape[1 - axis], dtype=torch.bool), torch.zeros(x.shape[1 - axis], dtype=torch.bool)
    booleans[(1,)](x, any_, all_, M=16, N=32, AXIS=axis, num_warps=warps)
    assert torch.equal(any_, (x > 0).any(axis)) and torch.equal(all_, (x > 0).all(axis))


@triton.jit
def _mixed(byte_a, wide_a, half_a, byte_b, wide_b, half_b):
    return byte_a ^ byte_b, wide_a + wide_b, tl.maximum(half_a, half_b)


@triton.jit
def mixed_sizes(x_ptr, bytes_ptr, wides_ptr, halves_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    byte, wide, half = tl.reduce((x.to(tl.int8), x.to(tl.int64) << 33, x.to(tl.float16)), 0, _mixed)
    tl.store(bytes_ptr, byte)
    tl.store(wides_ptr, wide)
    tl.store(halves_ptr, half)


@pytest.mark.parametrize("warps", WARPS)
def test_operands_of_different_sizes(warps: int) -> None:
    x = torch.randint(-100, 100, (512,), generator=torch.Generator().manual_seed(3), dtype=torch.int32)
    byte, wide, half = (torch.zeros(1, dtype=t) for t in (torch.int8, torch.int64, torch.float16))
    mixed_sizes[(1,)](x, byte, wide, half, N=512, num_warps=warps)
    assert byte[0] == np.bitwise_xor.reduce(x.numpy().astype(np.int8))
    assert wide[0] == int(x.long().sum()) << 33 and half[0] == x.max()


@triton.jit
def in_a_loop(x_ptr, y_ptr, n, N: tl.constexpr):
    total = 0.0
    for start in range(0, n, N):
        offsets = start + tl.arange(0, N)
        x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
        total += tl.sum(x) / (1 + tl.max(tl.abs(x)))
    tl.store(y_ptr, total)


def test_reductions_that_share_memory_in_a_loop() -> None:
    x = torch.randn(1003, generator=torch.Generator().manual_seed(4))
    y = torch.zeros(1)
    in_a_loop[(1,)](x, y, 1003, N=128)
    blocks = [block.double() for block in x.split(128)]
    want = sum(float(block.sum() / (1 + block.abs().max())) for block in blocks)
    assert abs(float(y) - want) < 1e-4


@triton.jit
def _later(v1, i1, v2, i2):
    take = v2 >= v1
    return tl.where(take, v2, v1), tl.where(take, i2, i1)


@triton.jit
def taken_one_by_one(x_ptr, picked_ptr, left_ptr, N: tl.constexpr, K: tl.constexpr, HOW: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    for round in range(K):
        if HOW == "max":
            at = tl.argmax(x, 0, tie_break_left=False)
        elif HOW == "min":
            at = tl.argmin(-x, 0, tie_break_left=False)
        else:
            _, at = tl.reduce((x, i), 0, _later)
        tl.store(picked_ptr + round, at)
        x = tl.where(i == at, -1, x)
    tl.store(left_ptr + i, x)


@pytest.mark.parametrize("how", ("max", "min", "later"))
@pytest.mark.parametrize("dtype", ("int32", "float32"))
@pytest.mark.parametrize("warps", (1, 4))
def test_lanes_agree_on_one_of_equals(how: str, dtype: str, warps: int) -> None:
    for size in (8, 32, 512):
        x = (torch.arange(size) // 4 % 5).to(getattr(torch, dtype))
        picked, left = torch.zeros(8, dtype=torch.int32), torch.zeros_like(x)
        taken_one_by_one[(1,)](x, picked, left, N=size, K=8, HOW=how, num_warps=warps)
        wanted = sorted(range(size), key=lambda place: (x[place].item(), place))[:-9:-1]
        assert picked.tolist() == wanted
        x[wanted] = -1
        assert torch.equal(left, x)


@triton.jit
def zeros_of_both_signs(x_ptr, y_ptr, z_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(y_ptr + at, tl.broadcast_to(tl.max(x, AXIS, keep_dims=True), (M, N)))
    tl.store(z_ptr + at, tl.broadcast_to(tl.min(x, AXIS, keep_dims=True), (M, N)))


@pytest.mark.parametrize("axis", (0, 1))
@pytest.mark.parametrize("shape", [(1, 64), (64, 1), (8, 8), (4, 128), (128, 4)])
@pytest.mark.parametrize("warps", (1, 4))
def test_lanes_agree_on_the_sign_of_a_zero(shape: tuple[int, int], axis: int, warps: int) -> None:
    random = torch.Generator().manual_seed(shape[0])
    x = torch.where(torch.rand(shape, generator=random) < 0.5, 0.0, -0.0)
    y, z = torch.ones_like(x), torch.ones_like(x)
    zeros_of_both_signs[(1,)](x, y, z, M=shape[0], N=shape[1], AXIS=axis, num_warps=warps)
    for found in (y, z):
        signs = torch.signbit(found)
        assert not found.any() and torch.equal(signs, signs.select(axis, 0).unsqueeze(axis).expand(shape))


@triton.jit
def _matrices(a, b, c, d, e, f, g, h):
    return a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h


@triton.jit
def products(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    rows, columns = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + rows * N + columns)
    a, b, c, d = tl.reduce((x, x * 3 + 1, x ^ 5, 7 - x), AXIS, _matrices, keep_dims=True)
    places, size = y_ptr + rows * N + columns, M * N
    tl.store(places, tl.broadcast_to(a, (M, N)))
    tl.store(places + size, tl.broadcast_to(b, (M, N)))
    tl.store(places + 2 * size, tl.broadcast_to(c, (M, N)))
    tl.store(places + 3 * size, tl.broadcast_to(d, (M, N)))


@pytest.mark.parametrize("axis", (0, 1))
@pytest.mark.parametrize("shape", [(1, 64), (64, 1), (4, 128), (128, 4), (16, 32), (2, 1024)])
@pytest.mark.parametrize("warps", (1, 4))
def test_every_lane_combines_in_the_order_of_the_elements(shape: tuple[int, int], axis: int, warps: int) -> None:
    """Products of matrices, which do not commute."""
    x = torch.randint(-(1 << 31), 1 << 31, shape, generator=torch.Generator().manual_seed(warps)).to(torch.int32)
    y = torch.zeros((4, *shape), dtype=torch.int32)
    products[(1,)](x, y, M=shape[0], N=shape[1], AXIS=axis, num_warps=warps)
    values = np.moveaxis(x.numpy(), axis, 0)
    with np.errstate(over="ignore"):
        matrices = np.array([[values, values * 3 + 1], [values ^ 5, 7 - values]])  # row, column, place, line
        product = matrices[:, :, 0]
        for place in range(1, len(values)):
            product = np.einsum("ijn,jkn->ikn", product, matrices[:, :, place])
    wanted = np.broadcast_to(np.expand_dims(product.reshape(4, -1), 1 + axis), y.shape)
    assert np.array_equal(y.numpy(), wanted)
