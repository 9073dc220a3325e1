"""The generator of elementwise kernels: types, shapes, strides, variants, and every operation of its tables."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes
from triton.backends.spirv.torch.ops.dtypes import promoted
from triton.backends.spirv.torch.ops.expressions import BINARY_FLOAT, PREDICATES, UNARY_FLOAT

from .conftest import compare

pytestmark = pytest.mark.usefixtures("no_fallbacks")

DTYPES = (
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.float64,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
)
DTYPES += (torch.uint8, torch.bool)


def values(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Numbers of both signs; of integers and bools small ones."""
    torch.manual_seed(3)
    if dtype.is_floating_point:
        return torch.randn(*shape).to(dtype)
    return torch.randint(0 if dtype in (torch.uint8, torch.bool) else -9, 2 if dtype == torch.bool else 9, shape).to(
        dtype
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_types(dtype: torch.dtype) -> None:
    x, y = values(7, 33, dtype=dtype), values(7, 33, dtype=dtype).flip(0)
    compare(lambda x, y: (x + y, x * y, x == y, x < y, torch.maximum(x, y), x.clamp_min(y), x.clamp(max=y)), x, y)
    compare(lambda x, y: (x / (y + 11), x.to(torch.float32), x.to(torch.int32), x.to(torch.bool)), x, y)


@pytest.mark.parametrize("one", DTYPES, ids=str)
def test_promotion(one: torch.dtype) -> None:
    x = values(5, dtype=one)
    for other in (torch.float16, torch.float64, torch.int8, torch.uint8, torch.bool):
        compare(lambda x, y: (x + y, x * y, x > y), x, values(5, dtype=other))
        compare(lambda x, y: (x + y, x * y), x, values(5, dtype=other)[0])
    compare(lambda x: (x + 2, x * 2.5, x > 1, x * True), x)


def test_types_of_results_are_torchs() -> None:
    dtypes = [*DTYPES, torch.float64, torch.complex64, torch.complex128]
    given = [torch.empty(shape, dtype=dtype, device="meta") for dtype in dtypes for shape in ((), (1,))]
    operands = [*given, True, 1, 1.5, 1j]
    for count in (2, 3):
        for found in itertools.product(operands, repeat=count):
            if any(isinstance(one, torch.Tensor) for one in found):
                _, dtype = elementwise_dtypes(*found, type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT)
                assert promoted(found) == dtype, found
    with pytest.raises(RuntimeError, match="UInt16"):
        promoted(torch.empty(1, dtype=dtype) for dtype in (torch.uint16, torch.int32))


_SHAPES: list[tuple[Callable[[torch.Tensor], torch.Tensor], Callable[[torch.Tensor], torch.Tensor]]] = [
    (lambda x: x, lambda x: x[:1]),
    (lambda x: x, lambda x: x[:, :1]),
    (lambda x: x[0], lambda x: x[:, 0][:, None]),
    (lambda x: x.t(), lambda x: x.t()),
    (lambda x: x.t(), lambda x: x.t().contiguous()),
    (lambda x: x[1::2, ::3], lambda x: x[:-1:2, 1::3][:, : x[1::2, ::3].shape[1]]),
    (lambda x: x.view(3, 3, 2, 19), lambda x: x.view(3, 3, 2, 19)[:, :1, :, 3:4]),
    (lambda x: x.view(3, 3, 2, 19).permute(3, 1, 0, 2), lambda x: x.view(3, 3, 2, 19)[0, 0, 0, 0]),
    (lambda x: x.view(-1)[1:], lambda x: x.view(-1)[:-1]),
    (lambda x: x[:0], lambda x: x[:1]),
    (lambda x: x[0, 0], lambda x: x[1, 1]),
    (lambda x: x[0, 0], lambda x: x),
    (lambda x: x.expand(2, 9, 38), lambda x: x[0]),
]


@pytest.mark.parametrize("views", _SHAPES)
def test_shapes_and_strides(views: Any) -> None:
    compare(lambda x: views[0](x) * 2 + views[1](x), values(9, 38))


def test_large_sizes() -> None:
    compare(lambda x, y: x * y + x, values(300, 1031), values(1031))
    compare(lambda x: x.t().contiguous(), values(300, 1031))


def test_variants() -> None:
    x, y = values(6, 10), values(10)
    compare(lambda x, y: (x.add_(y, alpha=3), x.mul_(2), x[1::2].sub_(y), x.sigmoid_()), x, y)
    compare(lambda x, y: torch.add(x, y, out=torch.empty(0, device=x.device)), x, y)
    compare(lambda x, y: torch.mul(x, y, out=torch.zeros(6, 20, device=x.device)[:, ::2]), x, y)
    compare(lambda x, y: torch.exp(x, out=x.t().contiguous().t()), x, y)
    for wrong in (lambda x: x.add_(torch.ones(3, 6, 10, device="spirv")), lambda x: x.int().add_(x)):
        with pytest.raises(RuntimeError, match="output with shape|result type"):
            wrong(x.to("spirv"))


def test_neighbours_of_a_view_stay() -> None:
    compare(lambda x: x[1:5, 2:7].mul_(3), values(9, 11))
    compare(lambda x: x.view(-1)[3:50:7].exp_(), values(9, 11))


def test_memory_that_operands_share() -> None:
    compare(lambda x: x[:, 1:].add_(x[:, :-1].clone()), values(5, 40))
    x = values(8, 8)
    there = x.to("spirv")
    assert torch.equal(there.add(there.t()).cpu(), x + x.t())
    for tensor in (x, there):  # torch's own rule
        with pytest.raises(RuntimeError, match="single memory location"):
            tensor.add_(tensor.t())
    with pytest.raises(RuntimeError, match="single memory location"):
        there[1:].add_(there[:-1])


#: On the CPU; the device gives the limits (test_special_functions.py).
_NAN_OF_INFINITIES = ("i0", "special_i1", "special_modified_bessel_i0", "special_modified_bessel_i1")
_NAN_OF_INFINITIES += tuple(f"special_bessel_{name}" for name in ("j0", "j1", "y0", "y1"))


@pytest.mark.parametrize("name", sorted({**UNARY_FLOAT, **{n: t for n, t in PREDICATES.items() if "other" not in t}}))
def test_functions_of_one(name: str) -> None:
    x = torch.tensor([0.0, -0.0, 0.3, -0.7, 1.0, -1.0, 2.5, -3.25, 17.0, float("nan"), float("inf"), float("-inf")])
    compare(getattr(torch.ops.aten, name), x[: -2 if name in _NAN_OF_INFINITIES else None])


@pytest.mark.parametrize("name", ["exp", "log1p", "tanh", "erf", "sigmoid", "rsqrt"])
def test_functions_of_float64(name: str) -> None:
    compare(getattr(torch.ops.aten, name), values(500).double(), tolerance=(1e-13, 1e-13))


@pytest.mark.parametrize(
    "name", [*BINARY_FLOAT, "remainder", "fmod", "floor_divide", "fmax", "fmin", "hypot", "nextafter"]
)
def test_functions_of_two(name: str) -> None:
    x = torch.tensor([0.0, -0.0, 0.3, -0.7, 1.0, -1.0, 2.5, -3.25, 1e30, float("inf"), float("-inf"), float("nan")])
    if name == "special_zeta":  # the CPU has NaN for some sums that are 0 (test_special_functions.py)
        x = x[:8]
    compare(getattr(torch.ops.aten, name), x[:, None], x[None, :])


@pytest.mark.parametrize(
    "name", ["remainder", "fmod", "floor_divide", "bitwise_left_shift", "bitwise_right_shift", "pow"]
)
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8], ids=str)
def test_functions_of_integers(name: str, dtype: torch.dtype) -> None:
    x = torch.tensor([-9, -8, -3, -1, 1, 2, 3, 7], dtype=dtype)
    compare(getattr(torch.ops.aten, name), x[:, None], x.abs() if "shift" in name or name == "pow" else x)


def test_cases() -> None:
    x = values(3, 50) * 3
    compare(lambda x: (x.clamp(-1, 1), x.clamp(min=0.5), x.clamp(max=x[0]), x**2, x**3, x.abs() ** 0.5, x**-1), x)
    compare(lambda x: (torch.nan_to_num(x / 0), torch.where(x > 0, x, -1.0), x.masked_fill(x > 1, 7), x.tril(2)), x)
    compare(lambda x: (x.tril(-2), x.triu(-1), x.tril(300), 2**x, x**x), values(5, 6, dtype=torch.uint8))
    compare(lambda x: (x.round(decimals=2), x.mul(99).round(decimals=-1), x.round_(decimals=0)), x)
    compare(lambda x: (x.div(0.7, rounding_mode="floor"), x.div(0.7, rounding_mode="trunc")), x)
    compare(lambda x: (torch.cat([x, x * 2], 1), torch.cat([x.t(), x.t()]), torch.stack([x, x])), x)


def test_sums_of_more_elements_than_a_grid_has_programs() -> None:
    count = (1 << 26) + 77
    x = torch.ones(count, dtype=torch.int8, device="spirv")
    x.add_(1)
    assert x.view(-1)[[0, 12345678, count - 1]].tolist() == [2, 2, 2]
    assert int(x.sum()) == 2 * count


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (lambda x: x + 1, 1),
        (lambda x: x.t().contiguous() if x.dim() > 1 else x, 1),
        (lambda x: x.sum(), 1),
        (lambda x: x.sum(-1), 2),
        (lambda x: x.sum(0), 2),
    ],
    ids=["in a line", "turned", "all", "rows", "columns"],
)
def test_sizes_of_small_tensors_have_one_kernel(function: Any, count: int, launches: list[Any]) -> None:
    """Of each number of dimensions, and of whether something is kept."""
    for shape in ((3,), (700,), (5, 7), (31, 3), (2, 301), (333, 3)):
        compare(function, values(*shape))
    assert len({(kernel._function, kernel._divisible, *kernel._types.items()) for kernel in launches}) == count


def test_strides_that_widen_no_access_have_one_kernel(launches: list[Any]) -> None:
    """Of an operand whose elements along a row are apart: multiples of 16 or not."""
    for columns in (15, 16, 48):
        x, y = values(40, columns).to("spirv"), values(40).to("spirv")
        x[:, ::3] * y[:, None]
    made = {(kernel._function, kernel._divisible) for kernel in launches}
    assert len({function for function, _ in made}) == 1
    assert all("self_i0" not in divisible and "other_i0" not in divisible for _, divisible in made)


@pytest.mark.parametrize("alpha", [-1, 0, 2, 256, True])
def test_a_factor_of_booleans_is_one(alpha: int) -> None:
    x, y = torch.tensor([True, True, False, False]), torch.tensor([True, False, True, False])
    compare(lambda x, y: (torch.add(x, y, alpha=alpha), x.clone().add_(y, alpha=alpha)), x, y)
