"""The tiles and parts that kernels have on a GPU, computed by whatever device there is."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from torch.nn import functional
from triton.backends.spirv.driver_quirks import DRIVERS, OTHER
from triton.backends.spirv.torch.ops import attention, convolution, depthwise, elementwise, matmul, reducing, rows
from triton.backends.spirv.torch.ops.device_facts import DeviceFacts, share_out
from triton.backends.spirv.torch.ops.tiles import ON_GPU, Tile, fastest, shared

from tests.device.helpers import device_capabilities

from .conftest import compare, with_gradients
from .test_convolution import near_exact, with_gradients_of_convolutions

pytestmark = pytest.mark.usefixtures("on_gpu", "no_fallbacks")


@pytest.fixture
def on_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for module in (attention, convolution, depthwise, elementwise, matmul, reducing, rows):
        monkeypatch.setattr(module, "kind_of", lambda device: DeviceFacts(False, 12, frozenset()))
    yield


def values(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8, torch.complex64])
@pytest.mark.parametrize("shape", [(70, 45), (32, 33), (3, 40, 1, 37), (64, 5, 64)])
def test_operands_in_other_orders(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """Tiles are square."""
    x = (values(*shape) * 9).to(dtype)

    def run(x: torch.Tensor) -> Any:
        turned = x.mT
        wide = torch.zeros(*turned.shape[:-1], 2 * turned.shape[-1], dtype=x.dtype, device=x.device)
        wide[..., ::2] = turned
        return turned.contiguous(), turned.contiguous() + turned, x.movedim(0, -1).contiguous() * 2, wide

    compare(run, x)


def test_which_tiles_are_square() -> None:
    gpu = DeviceFacts(False, 12, frozenset())
    contiguous, turned = (4500, 50, 1), (4500, 1, 90)
    sizes, steps, tile = elementwise._tiled(1024, (7, 90, 50), [contiguous, turned], gpu)
    assert (sizes, steps, tile) == ((7, 90, 50), [contiguous, turned], (32, 32))
    sizes, steps, tile = elementwise._tiled(1024, (90, 7, 50), [(350, 50, 1), (1, 4500, 90)], gpu)
    assert (sizes, steps, tile) == ((7, 90, 50), [(50, 350, 1), (4500, 1, 90)], (32, 32))
    assert elementwise._tiled(1024, (7, 90, 31), [contiguous, turned], gpu)[2] == (32, 32)  # as many as there are
    assert elementwise._tiled(1024, (7, 90, 50), [contiguous, (4500, 50, 2)], gpu)[2] == (16, 64)


@pytest.fixture
def copying(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels copy what has 4,096 bytes or more."""
    driver = device_capabilities().driver
    monkeypatch.setitem(DRIVERS, driver, replace(DRIVERS.get(driver, OTHER), kernel_copies=4096))


_COPIED = (torch.bool, torch.uint8, torch.float8_e5m2, torch.bfloat16, torch.uint32, torch.int64, torch.complex64)


@pytest.mark.parametrize("dtype", _COPIED, ids=str)
@pytest.mark.parametrize("first", [0, 1])
def test_copies_by_kernels_of_every_type(dtype: torch.dtype, first: int, copying: None) -> None:
    """Also repeated, where the launch is a prepared one, from and to any place, and of what is not dense."""
    x = torch.randint(0, 2 if dtype == torch.bool else 256, (9, 5000), dtype=torch.uint8)
    x = x.view(dtype) if dtype.itemsize > 1 or dtype == torch.float8_e5m2 else x.to(dtype)
    ours, target = x.to("spirv"), torch.zeros_like(x, device="spirv")
    wanted = torch.zeros_like(x)
    for row in (2, 5, 5):
        target[row, first:].copy_(ours[row, first:])
        wanted[row, first:].copy_(x[row, first:])
    target[:, 7].copy_(ours[:, 7])
    wanted[:, 7].copy_(x[:, 7])
    assert target.cpu().view(torch.uint8).equal(wanted.view(torch.uint8))
    assert ours.clone().cpu().view(torch.uint8).equal(x.view(torch.uint8))


def test_a_copy_within_one_tensor(copying: None) -> None:
    x = values(9000)
    ours = x.to("spirv")
    for source, target in ((0, 4500), (100, 3000), (3000, 100)):
        ours[target : target + 4000].copy_(ours[source : source + 4000])
        x[target : target + 4000] = x[source : source + 4000].clone()
    assert torch.equal(ours.cpu(), x)


@pytest.mark.parametrize("elements", [1023, 1024, 70001])
def test_copies_by_kernels(elements: int, launches: list[Any], copying: None) -> None:
    """From as many bytes on as the driver's data say."""
    x = values(elements)
    ours, target = x.to("spirv"), torch.zeros(elements + 2, device="spirv")
    launches.clear()
    target[1:-1].copy_(ours)
    assert len(launches) == (elements >= 1024)
    assert torch.equal(target.cpu(), torch.nn.functional.pad(x, (1, 1)))


@pytest.mark.parametrize("count", [12 * 8 * 4096 - 1, 12 * 8 * 4096, 12 * 8 * 4096 + 4095])
def test_many_elements(count: int) -> None:
    """Of the longest tensors whose tiles are short, and of others."""
    compare(lambda x: (x + x, x.to(torch.int8), torch.where(x > 0, x, 1)), values(count))


@pytest.mark.parametrize(
    ("m", "n", "k"), [(256, 128, 64), (129, 65, 31), (128, 64, 2048), (3, 70, 1500), (1100, 900, 20)]
)
def test_products(m: int, n: int, k: int) -> None:
    """Of whole tiles and others, in parts and not."""
    for added in (values(n), values(m, n)):
        compare(torch.addmm, added, values(m, k), values(k, n, seed=1), tolerance=(1e-4, 1e-3))
    compare(torch.mm, values(k, m).T, values(n, k, seed=1).T, tolerance=(1e-4, 1e-3))


@pytest.mark.parametrize("shape", [(3000, 40), (40, 3000), (7, 500, 9), (1, 20011)])
def test_reductions_in_parts(shape: tuple[int, ...]) -> None:
    x = values(*shape)

    def run(x: torch.Tensor) -> Any:
        return x.sum(0), x.sum(-1), x.sum(), x.amax(0), x.argmax(-1), x.var(-1), x.mean(-1)

    compare(run, x, tolerance=(1e-5, 1e-3))


@pytest.mark.parametrize("shape", [(90, 64), (9, 1000), (3, 4096), (70, 1)])
def test_rows(shape: tuple[int, ...]) -> None:
    """A program has several rows of them, or one."""
    x = values(*shape)
    compare(lambda x: (x.softmax(-1), x.log_softmax(-1), functional.layer_norm(x, x.shape[1:])), x)


def test_gradients_of_a_layer_norm() -> None:
    norm = with_gradients(lambda x, weight, bias: functional.layer_norm(x, (48,), weight, bias))
    compare(norm, values(9, 301, 48), values(48), values(48), tolerance=(1e-4, 1e-3))


@pytest.mark.parametrize("groups", [1, 2])
def test_gradients_of_a_convolution(groups: int) -> None:
    """That of the weight in parts."""
    convolution = with_gradients(partial(functional.conv2d, stride=2, padding=1, groups=groups))
    compare(convolution, values(5, 4, 37, 41), values(6, 4 // groups, 3, 3), values(6), tolerance=(1e-4, 2e-3))


@pytest.mark.parametrize(
    ("size", "weight", "options"),
    [
        ((4, 64, 40, 40), (128, 64, 3, 3), {"padding": 1}),
        ((4, 32, 41, 40), (72, 32, 3, 3), {"stride": 2, "padding": 1}),
        ((40, 3, 20, 20), (64, 3, 7, 7), {"stride": 2, "padding": 3}),
        ((9, 128, 13, 13), (160, 128, 1, 1), {"stride": 2}),
        ((40, 16, 20, 20), (32, 1, 3, 3), {"padding": 1, "groups": 16}),
    ],
    ids=str,
)
@pytest.mark.parametrize("order", [torch.contiguous_format, torch.channels_last], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.usefixtures("compiled")
def test_convolutions_against_float64(
    size: Any, weight: Any, options: Any, order: torch.memory_format, dtype: torch.dtype, monkeypatch: Any
) -> None:
    """Of the tiles of multiply-adds, and of matrix units."""
    for module in (convolution, depthwise, matmul, reducing):
        monkeypatch.setattr(module, "kind_of", lambda device: DeviceFacts(False, 12, frozenset({"bf16"})))
    x = values(*size).to(dtype).contiguous(memory_format=order)
    near_exact(with_gradients_of_convolutions(dtype, 2, **options), x, (values(*weight) / 8).to(dtype))


@pytest.mark.parametrize(
    ("length", "width", "options"),
    [(45, 24, {"is_causal": True}), (64, 32, {"is_causal": True}), (20, 8, {"scale": -0.25}), (20, 8, {"scale": 0.0})],
    ids=["masked", "whole", "negative scale", "scale of zero"],
)
def test_attention_and_its_gradients(length: int, width: int, options: dict[str, Any]) -> None:
    attended = with_gradients(partial(functional.scaled_dot_product_attention, **options), strides=False)
    compare(attended, *(values(1, 2, length, width, seed=seed) for seed in range(3)), tolerance=(1e-4, 1e-3))


@pytest.mark.parametrize("length", [32, 45], ids=["whole", "masked"])
def test_gradients_of_attention_on_matrix_units(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores are (keys, queries)."""
    small = attention.Blocks(16, 16)
    tiles = {False: attention.Tiles(small, small, small)}
    monkeypatch.setattr(attention, "ON_MATRIX_UNITS", tiles)
    monkeypatch.setattr(attention, "kind_of", lambda device: DeviceFacts(False, 12, frozenset({"bf16"})))
    parts = [values(1, 2, length, 16, seed=seed).to(torch.bfloat16) for seed in range(4)]

    def run(*parts: torch.Tensor) -> list[torch.Tensor]:
        q, k, v = (part.detach().requires_grad_() for part in parts[:3])
        out = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return [out.detach(), *torch.autograd.grad(out, (q, k, v), parts[3])]

    found = run(*(part.to("spirv") for part in parts))
    for one, expected in zip(found, run(*(part.double() for part in parts)), strict=True):
        assert (one.cpu().double() - expected).norm() < 0.01 * expected.norm()


def test_parts_keep_a_device_busy_and_are_not_too_short() -> None:
    assert share_out(132, 132, 1 << 20, 512) == 1
    assert share_out(4, 132, 1 << 20, 512) == 66
    assert share_out(4, 132, 8192, 512) == 16
    assert share_out(4, 132, 100, 512) == 1


def test_programs_that_share_a_compute_unit_take_longer_than_one() -> None:
    tile = Tile(128, 64, 16, times=(1.8, 2.4, 3.0))
    assert [tile.time(programs) for programs in range(5)] == [0.0, 1.8, 2.4, 3.0, 4.8]


@pytest.mark.parametrize(
    ("sizes", "most"),
    [((1536, 384, 12608, 1), 16), ((8192, 4096, 1024, 1), 1), ((64, 64, 100, 1), 1), ((64, 64, 1 << 20, 1), 128)],
    ids=str,
)
def test_products_are_divided_where_a_device_would_idle(sizes: tuple[int, int, int, int], most: int) -> None:
    on = DeviceFacts(False, 132, frozenset())
    found = fastest(ON_GPU, on, torch.float32, sizes)
    assert (1 < found.parts <= most) if most > 1 else found.parts == 1
    assert fastest(ON_GPU, on, torch.float32, sizes, divides=False).parts == 1
    parts, share = shared(sizes[2], found.parts, found.tile.step)
    assert share % found.tile.step == 0 and parts * share >= sizes[2] > (parts - 1) * share
