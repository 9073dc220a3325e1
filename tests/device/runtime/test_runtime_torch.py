"""The torch device `spirv`: tensors in Vulkan memory, on whatever device there is."""

import copy
import gc
import logging
from collections.abc import Callable
from typing import Any

import pytest
import torch
from triton.backends.spirv.driver import SPIRVDriver
from triton.backends.spirv.runtime.context import current
from triton.backends.spirv.settings import ZERO_COPY
from triton.backends.spirv.torch import registration

ADD_ENTRIES = [((0,), "x", "*fp32"), ((1,), "y", "*fp32"), ((2,), "z", "*fp32"), ((3,), "n", "i32")]
DTYPES = [
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.float64,
    torch.int8,
    torch.uint8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.bool,
    torch.complex64,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
]


@pytest.fixture(autouse=True, scope="module")
def _registered() -> None:
    registration.register()
    registration.register()


@pytest.fixture
def fallbacks() -> Callable[[], dict[str, int]]:
    """What ran on the CPU since the test began."""
    before = registration.FALLBACKS.copy()
    return lambda: dict(registration.FALLBACKS - before)


def test_active_device() -> None:
    device = SPIRVDriver().get_active_torch_device()
    assert device == torch.device("cpu" if current().host_memory == ZERO_COPY else "spirv:0")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_goes_there_and_back(dtype: torch.dtype, fallbacks: Any) -> None:
    values = (torch.randn(5, 7) * 9).to(dtype)
    there = values.to("spirv")
    assert (there.device, there.dtype, there.shape, there.stride()) == (torch.device("spirv:0"), dtype, (5, 7), (7, 1))
    assert there.untyped_storage().nbytes() == values.nbytes
    assert torch.equal(there.cpu().view(torch.uint8), values.view(torch.uint8))
    again = torch.empty_like(values)
    again.copy_(there.t().contiguous().t() if dtype not in (torch.float8_e4m3fn, torch.float8_e5m2) else there)
    assert torch.equal(again.view(torch.uint8), values.view(torch.uint8))
    assert fallbacks() == {}


def test_factories(fallbacks: Any) -> None:
    assert torch.empty(3, 4, device="spirv").stride() == (4, 1)
    assert torch.empty(2, 3, 4, 5, device="spirv", memory_format=torch.channels_last).stride() == (60, 1, 15, 3)
    assert torch.empty_strided((2, 3), (1, 4), device="spirv").untyped_storage().nbytes() == 40
    assert torch.equal(torch.zeros(3, device="spirv").cpu(), torch.zeros(3))
    assert torch.equal(torch.ones(3, dtype=torch.int8, device="spirv").cpu(), torch.ones(3, dtype=torch.int8))
    assert torch.equal(torch.full((2, 2), 0.1, device="spirv").cpu(), torch.full((2, 2), 0.1))
    assert torch.equal(torch.tensor([[1, 2], [3, 4]], device="spirv").cpu(), torch.tensor([[1, 2], [3, 4]]))
    assert torch.zeros(0, 3, device="spirv").cpu().shape == (0, 3)
    assert torch.tensor(2.5, device="spirv").item() == 2.5
    assert fallbacks() == {}
    torch.manual_seed(3)
    there = torch.rand(10, device="spirv"), torch.randn(10, device="spirv")
    torch.manual_seed(3)
    again = torch.rand(10, device="spirv"), torch.randn(10, device="spirv")
    assert all(torch.equal(x.cpu(), y.cpu()) for x, y in zip(there, again, strict=True))
    assert there[0].min() >= 0 and there[0].max() < 1
    assert len(set(there[0].tolist())) == 10
    assert torch.equal(torch.arange(7, device="spirv").cpu(), torch.arange(7))
    assert fallbacks() == {}


_VIEWS: list[Callable[[torch.Tensor], torch.Tensor]] = [
    lambda x: x[1],
    lambda x: x[:, 2:5],
    lambda x: x[::2, 1::3],
    lambda x: x.t(),
    lambda x: x.view(-1)[3:],
    lambda x: x[None].expand(3, 6, 8),
    lambda x: x.unfold(0, 3, 2),
    lambda x: x.permute(1, 0)[2],
    lambda x: x.diagonal(),
    lambda x: x.reshape(4, 12),
    lambda x: x.view(torch.int32),
    lambda x: x.squeeze(),
    lambda x: x.detach(),
    lambda x: x.narrow(1, 2, 2),
    lambda x: x.chunk(3)[2],
    lambda x: x.unsqueeze(1),
]


@pytest.mark.parametrize("view", _VIEWS)
def test_views_share_memory(view: Callable[[torch.Tensor], torch.Tensor], fallbacks: Any) -> None:
    values = torch.randn(6, 8)
    there = values.to("spirv")
    seen = view(there)
    assert seen.untyped_storage().data_ptr() == there.untyped_storage().data_ptr()
    assert torch.equal(seen.cpu(), view(values))
    if seen.shape[0] != 3 or seen.ndim != 3:  # not the expanded one, whose elements share memory
        view(there).fill_(7)
        view(values).fill_(7)
        assert torch.equal(there.cpu(), values)
    assert fallbacks() == {}


def test_copies_between_layouts_and_dtypes() -> None:
    values = torch.randn(6, 8)
    there = values.to("spirv")
    for source in (values, there):
        target, expected = torch.zeros(8, 6, device="spirv"), torch.zeros(8, 6)
        target.copy_(source.t())
        expected.copy_(values.t())
        assert torch.equal(target.cpu(), expected)
        half = torch.zeros(12, 8, dtype=torch.float16, device="spirv")
        half[::2].copy_(source)
        assert torch.equal(half.cpu()[::2], values.half()) and not half.cpu()[1::2].any()
        row = torch.zeros(3, 8, device="spirv")
        row.copy_(source[2])
        assert torch.equal(row.cpu(), values[2].expand(3, 8))
    there[1:].copy_(there[:-1].clone())
    there[:5].copy_(there[1:6])  # overlapping
    assert torch.equal(there.cpu(), torch.cat([values[:5], values[4:5]]))
    wave = torch.randn(4, dtype=torch.complex64)
    assert torch.equal(wave.to("spirv").conj().cpu(), wave.conj().resolve_conj())
    assert torch.equal(wave.to("spirv").conj().imag.cpu(), wave.conj().imag)


@pytest.mark.parametrize("number", (True, -3, 300, 2.7, 1e30, 1 / 3, 2 + 1j / 3))
def test_copies_of_numbers(number: complex) -> None:
    kinds = [torch.complex128] if isinstance(number, complex) else [torch.float64, torch.float16, torch.bool]
    kinds += [torch.uint8, torch.int32] if isinstance(number, int) else []
    for dtype in kinds:
        there, expected = torch.zeros(3, 6, dtype=dtype, device="spirv"), torch.zeros(3, 6, dtype=dtype)
        assert there[:, ::2].copy_(number).is_spirv  # type: ignore[arg-type]
        expected[:, ::2].copy_(number)  # type: ignore[arg-type]
        assert torch.equal(there.cpu(), expected)


def test_the_rest_runs_on_the_cpu_and_is_counted(fallbacks: Any, caplog: pytest.LogCaptureFixture) -> None:
    x, y = torch.randn(8, 8), torch.randn(8, 8)
    there_x, there_y = x.to("spirv"), y.to("spirv")
    with caplog.at_level(logging.DEBUG, logger=registration.__name__):
        values = torch.linalg.eigvals(there_x)
    assert values.device.type == "spirv"
    assert torch.equal(values.cpu(), torch.linalg.eigvals(x))
    assert fallbacks()["aten::_linalg_eigvals"] == 1
    assert "aten::_linalg_eigvals runs on the CPU" in caplog.text
    there_x += there_y
    there_x[2].mul_(2)
    x += y
    x[2].mul_(2)
    assert torch.equal(there_x.cpu(), x)
    assert torch.equal(there_x[there_x > 0].cpu(), x[x > 0])
    assert torch.equal(torch.cat([there_x, there_y], 1).cpu(), torch.cat([x, y], 1))
    values, indices = there_x.max(dim=1)
    assert (values.device.type, indices.device.type) == ("spirv", "spirv")
    assert torch.equal(indices.cpu(), x.max(dim=1).indices)
    out = torch.empty(0, device="spirv")
    torch.add(there_x, 1, out=out)
    assert torch.equal(out.cpu(), x + 1)
    assert there_x.sum().item() == pytest.approx(x.sum().item())
    with pytest.raises(RuntimeError):
        there_x @ torch.zeros(3, 3, device="spirv")


def test_printing() -> None:
    assert repr(torch.tensor([1.0, 2.5]).to("spirv")) == "tensor([1.0000, 2.5000], device='spirv:0')"
    assert repr(torch.zeros(0, device="spirv")) == "tensor([], device='spirv:0')"


def test_a_copy_is_its_own() -> None:
    there = torch.ones(3, device="spirv")
    copy.deepcopy(there).fill_(0)
    assert there.cpu().all()


def test_pinned_memory_is_refused() -> None:
    with pytest.raises((ValueError, RuntimeError), match="pin"):
        torch.empty(3, device="spirv", pin_memory=True)


def test_kernels_take_the_address(launchable: Any, context: Any, add_module: bytes) -> None:
    if context is not current():
        return  # tensors are the current context's
    add = launchable(add_module, ADD_ENTRIES)
    x, y, z = (torch.full((100,), float(value), device="spirv") for value in (1, 2, 0))
    add((2,), x, y[1:], z[4:], 96)
    assert add.launcher.transfers == dict.fromkeys("xyz", "device")
    expected = torch.zeros(100)
    expected[4:] = 3
    assert torch.equal(z.cpu(), expected)
    host = torch.zeros(100)
    add((2,), x, z, host, 100)
    assert torch.equal(host, expected + 1)
    with pytest.raises(TypeError, match=r"argument 'x' .* elements of type fp32, not torch.float16"):
        add((1,), x.half(), y, z, 1)


def test_memory_is_used_again() -> None:
    module: Any = torch.get_device_module("spirv")
    gc.collect()
    torch.empty(1000, device="spirv")
    allocated, reserved = module.memory_allocated(), module.memory_reserved()
    for _ in range(10_000):
        torch.empty(1000, device="spirv")
    gc.collect()
    torch.empty(1000, device="spirv")
    assert module.memory_reserved() == reserved
    assert abs(module.memory_allocated() - allocated) < 1 << 16
    big = torch.empty(64 << 20, dtype=torch.uint8, device="spirv")
    del big
    module.empty_cache()
    assert module.memory_reserved() <= reserved


def test_module_says_what_there_is() -> None:
    module: Any = torch.get_device_module("spirv")
    assert module.is_available() and module.device_count() >= 1
    assert module.get_device_name() == current().device.name
    assert module.current_device() == 0
    with module.device(0):
        module.synchronize()
    with torch.device("spirv"):
        assert torch.zeros(2).device == torch.device("spirv:0")
