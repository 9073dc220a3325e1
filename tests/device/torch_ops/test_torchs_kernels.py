"""Operations that torch's own kernels do on the memory of the device, where that is the processor."""

import gc
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from triton.backends.spirv import runtime
from triton.backends.spirv.settings import TORCH_COMPILED
from triton.backends.spirv.torch.device import cpu_fallback
from triton.backends.spirv.torch.ops import processor

from .conftest import compare_once, with_gradients


@pytest.fixture(autouse=True)
def calls(monkeypatch: pytest.MonkeyPatch, _torchs_kernels: None) -> Iterator[list[str]]:
    """The operations that torch's kernels do. Sizes are those of no other test: earlier calls may be repeated."""
    found: list[str] = []
    run = processor.by_torchs_kernel

    def counted(op: Any, *args: Any, **kwargs: Any) -> Any:
        found.append(op._schema.name)
        return run(op, *args, **kwargs)

    monkeypatch.setattr(processor, "by_torchs_kernel", counted)
    if runtime.current().device.api != "CPU":
        pytest.skip("kernels of a device that is not the processor")
    yield found


def _real(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3))


def _complex(*shape: int) -> torch.Tensor:
    return torch.complex(_real(*shape), _real(*shape).flip(-1))


_INDEX = torch.arange(37) % 11
_CASES: dict[str, tuple[Any, ...]] = {
    "rfft": (torch.fft.rfft, _real(7, 1031)),
    "irfft of a transposed view": (lambda x: torch.fft.irfft(x.T), _complex(131, 9)),
    "inverse of a view": (lambda x: torch.linalg.inv(x[1:, :-1]), _real(38, 38)),
    "solve": (torch.linalg.solve, _real(43, 43), _real(43, 3)),
    "large pads": (
        lambda x: (F.pad(x, (5, 6, 7, 2), mode="reflect"), F.pad(x, (1, 2), mode="replicate")),
        _real(9, 101, 103),
    ),
    "sort": (lambda x: x.sort(descending=True), (_real(9001) * 99).int()),
    "topk, median": (lambda x: (x.topk(7), x.median()), _real(3, 4001)),
    "unique": (lambda x: x.unique(return_inverse=True, return_counts=True), torch.arange(1237) % 101),
    "masks": (lambda x: (x[x > 0], x.masked_select(x < 0), (x > 0.5).nonzero()), _real(47, 43)),
    "scatter_reduce": (lambda x, i: x.scatter_reduce(0, i, x.roll(1), "amax"), _real(37), _INDEX),
    "index_reduce": (lambda x, i: x.index_reduce(0, i, x.flip(0), "amin"), _real(37, 5), _INDEX),
    "complex numbers": (
        lambda x, y: (x * y.conj(), x - 2 * y, x / y, x.sum(1), x @ y.T, -x),
        _complex(19, 23),
        _complex(19, 23),
    ),
    "double": (lambda x: x.double() @ x.T.double(), _real(67, 59)),
    "erfinv": (lambda x: torch.erfinv(x[::2]), _real(2003).tanh()),
    "ndtri": (torch.special.ndtri, _real(307).sigmoid()),
    "convolution": (lambda x, w, b: F.conv2d(x, w, b, padding=1), _real(2, 33, 29, 31), _real(35, 33, 3, 3), _real(35)),
    "convolution of channels that are last": (
        lambda x, w: F.conv2d(x.to(memory_format=torch.channels_last), w, stride=2),
        _real(3, 17, 61, 57),
        _real(40, 17, 3, 3),
    ),
    "transposed convolution": (
        lambda x, w: F.conv_transpose2d(x, w, stride=2, output_padding=1),
        _real(2, 31, 29, 23),
        _real(31, 37, 3, 3),
    ),
    "depthwise convolutions": (
        lambda x, w: (F.conv2d(x, w, groups=37, dilation=2), F.conv1d(x[..., 0], w[..., 0], padding=2, groups=37)),
        _real(3, 37, 41, 39),
        _real(37, 1, 3, 3),
    ),
    "powers": (lambda x: (x.abs() ** 2.5, x.abs() ** x, x.abs().pow_(0.3)), _real(97, 101)),
    "along rows": (
        lambda x, i: ((x * 9).long().cumsum(1), x.cummax(-1), x.cummin(1), x.gather(1, i), x.index_select(1, i[0])),
        _real(331, 401),
        torch.arange(331 * 401).view(331, 401) % 389,
    ),
    "along columns": (lambda x: (x.softmax(0), x.log_softmax(0), x[None].softmax(-2)), _real(311, 257)),
    "flips": (lambda x: (x.flip(1), x[:, 1:].flip(0, 1), x.rot90()), _real(283, 307)),
    "resampling": (
        lambda x, at: (F.interpolate(x, scale_factor=2, mode="bilinear"), F.grid_sample(x, at, align_corners=False)),
        _real(2, 5, 33, 31),
        _real(2, 21, 23, 2).tanh(),
    ),
    "joins": (
        lambda x, y: (torch.cat((x, x[7:], x[:1])), torch.cat((x[3:], y[3:]), 1), torch.cat((x + 1j * y, y + 0j), -1)),
        _real(257, 131),
        _real(257, 131).exp(),
    ),
    "rows of a table": (F.embedding, torch.arange(2023) % 211, _real(211, 37)),
    "norms of groups": (
        lambda x, w, b: (F.group_norm(x, 3), F.group_norm(x[1:], 5, w, b), F.group_norm(x.permute(0, 1, 3, 2), 15, w)),
        _real(3, 15, 29, 31),
        _real(15),
        _real(15),
    ),
    "products of integers": (lambda x: x @ x.T, torch.arange(127 * 131).view(127, 131) % 997),
    "out of another size": (lambda x: torch.erfinv(x, out=x.new_empty(3)), _real(71).tanh()),
    "in place, between others": (lambda x: x[1::2, 3:].mul_(2j), _complex(9, 17)),
}


@pytest.mark.parametrize("name", _CASES)
def test_values_are_torchs(name: str, calls: list[str]) -> None:
    function, *args = _CASES[name]
    for _ in range(3):  # the second call of a large result writes it in place
        compare_once(function, *args, tolerance=(0.0, 0.0))
    assert calls


_DIFFERENTIABLE = (
    "rfft; solve; large pads; complex numbers; erfinv; convolution; convolution of channels that are last; "
    "transposed convolution; depthwise convolutions; along columns; resampling; norms of groups"
)


@pytest.mark.parametrize("name", _DIFFERENTIABLE.split("; "))
def test_gradients_are_torchs(name: str) -> None:
    function, *args = _CASES[name]

    def total(*inputs: torch.Tensor) -> torch.Tensor:
        results = function(*inputs)
        return sum((x.abs() * 1).sum() for x in (results if isinstance(results, tuple) else (results,)))

    compare_once(with_gradients(total, strides=False), *args, tolerance=(1e-3, 1e-4))


def test_kernels_that_write_the_arguments_end_before(calls: list[str]) -> None:
    x = torch.zeros(1 << 21, device="spirv")
    for turn in range(1, 5):
        for _ in range(12):
            x += 1
        assert x.median().item() == 12 * turn
    image = torch.ones(4, 401, 409, device="spirv")
    for turn in range(4):
        before = F.pad(image, (3, 3, 3, 3)) * turn  # memory that the next result gets while this is computed
        del before
        padded = F.pad(image, (3, 3, 3, 3), mode="reflect")
        assert bool((padded == 1).all())
    assert {"aten::median", "aten::reflection_pad2d"} <= set(calls)


def test_errors_are_torchs() -> None:
    for device in ("cpu", "spirv"):
        with pytest.raises(torch.linalg.LinAlgError, match="singular"):
            torch.linalg.inv(torch.zeros(35, 35, device=device))
        x = torch.zeros(53, device=device)
        with pytest.raises(RuntimeError, match="single memory location"):
            torch.erfinv(x[:-1], out=x[1:])
        rows, table = torch.arange(307, device=device), torch.rand(307, 149, device=device)
        for _ in range(3):
            assert torch.equal(table.index_select(0, rows), table)
        for told, dim, wrong in (("^index", 0, rows + 1), ("^Dimension", 2, rows)):
            with pytest.raises(IndexError, match=f"{told} out of range"):
                table.index_select(dim, wrong)
        assert torch.equal(table.index_select(0, rows), table)


def test_later_calls_do_not_enter_python(calls: list[str]) -> None:
    """But for lists of SymInt, such as pads, which torch's C interface cannot pass; nor are those read anew."""
    for turn in range(5):
        x = (_real(59, 61) + turn).to("spirv")
        square = x[:, 2:].contiguous()
        torch.testing.assert_close(torch.linalg.det(square).cpu(), torch.linalg.det(square.cpu()))
        image = x.expand(31, 59, 61).contiguous()
        assert torch.equal(
            F.pad(image, (3, 1, 2, 0), mode="reflect").cpu(), F.pad(image.cpu(), (3, 1, 2, 0), mode="reflect")
        )
    assert [calls.count(name) for name in ("aten::_linalg_det", "aten::reflection_pad2d")] == [2, 2]


def test_transforms_of_no_elements_are_none(calls: list[str]) -> None:
    """MKL has an error instead."""
    x = torch.zeros(2, 0, 6, dtype=torch.complex64, device="spirv")
    found = torch.fft.fft(x), torch.fft.fft2(x, dim=(0, 2)), torch.fft.irfft(x), torch.fft.rfft2(x.real, dim=(0, 2))
    assert ([y.shape for y in found], calls) == ([(2, 0, 6), (2, 0, 6), (2, 0, 10), (2, 0, 4)], [])


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8])
def test_histograms_of_integers_are_counted_here(dtype: torch.dtype) -> None:
    """torch's kernel for processors refuses them."""
    counts = torch.tensor([0, 3, 3, 1, 0, 3, 5, 9, 3], dtype=dtype).to("spirv").histc(4, 0, 3)
    assert (counts.dtype, counts.tolist()) == (dtype, [2, 1, 0, 4])
    assert torch.tensor([0.5, 2.5, 2.5, 0]).to("spirv").histc(3, 0, 3).tolist() == [2, 0, 2]


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2, torch.uint16, torch.uint32], ids=str)
def test_types_that_torchs_kernels_refuse(dtype: torch.dtype, calls: list[str]) -> None:
    """Their bytes are moved by the kernels of this backend."""
    x, places = (_real(263, 269) * 40).to(torch.int32), torch.arange(263 * 269).view(263, 269) % 257
    kept = x.clamp(0).to(dtype)
    for function in (lambda x, i: x.flip(1), lambda x, i: x.gather(1, i), lambda x, i: x.rot90()):
        wanted = function(kept.to(torch.float64), places)
        found = function(kept.to("spirv"), places.to("spirv"))
        assert found.dtype == dtype and torch.equal(found.cpu().to(torch.float64), wanted)
    assert calls


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_first_of_equal_numbers_are_the_largest(dtype: torch.dtype, calls: list[str]) -> None:
    x = _real(211, 128).to(dtype)
    first = x.float().sort(dim=-1, descending=True, stable=True)[1][:, :8]
    assert torch.equal(x.to("spirv").topk(8)[1].cpu().sort(-1)[0], first.sort(-1)[0]) and calls == []


_CAPTURED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "cat": lambda x: torch.cat((x, x + 1)),
    "copies": lambda x: torch.empty_like(x).copy_(x).clone(),
    "bytes": lambda x: torch.cat((x > 0.25, x > 0.5), 1),
    "complex numbers": lambda x: torch.complex(x, x).clone(),
    "fills": lambda x: torch.zeros_like(x).fill_(3).add_(x).add_(torch.ones_like(x)),
    "pads": lambda x: torch.nn.functional.pad(x, (1, 2)),
    "indices": lambda x: torch.zeros_like(x).scatter_(1, x.argsort(1), x.sort(1).values).masked_fill(x > 0.5, 0.0),
}


@pytest.mark.parametrize("name", _CAPTURED)
def test_copies_and_fills_are_captured(name: str) -> None:
    """Those that are the device's own, outside of graphs, too."""
    x, made = torch.rand(5, 47).to("spirv"), _CAPTURED[name]
    for _ in range(3):
        made(x)
    with (graph := runtime.Graph()).capture():
        y = made(x)
    for _ in range(2):
        x.copy_(torch.rand(5, 47))
        graph.replay()
        assert torch.equal(y.cpu(), made(x.cpu()))


def test_graphs_and_the_setting_have_them_compiled(calls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.rand(5, 47, device="spirv", dtype=torch.float64)
    torch.erfinv(x)
    calls.clear()
    with (graph := runtime.Graph()).capture():
        y = torch.erfinv(x)
    x.fill_(0.5)
    graph.replay()
    torch.testing.assert_close(y.cpu(), torch.full_like(y, 0.4769362762044699, device="cpu"))
    monkeypatch.setenv(TORCH_COMPILED.name, "1")
    compare_once(torch.fft.rfft, _real(3, 53), tolerance=(1e-4, 1e-4))
    assert calls == []


@pytest.mark.parametrize(
    "operation", ["x.flip(0)", "torch.fake_quantize_per_tensor_affine(x, 1.0, 0, 0, 9)", "(x == 0).nonzero()[:, 0]"]
)
def test_torch_gets_what_the_pool_holds_idle(operation: str) -> None:
    pytest.importorskip("resource")
    program = f"""
import resource, torch
from benchmarks.suites.recorder import data
def run(x): return {operation}
x, idle = torch.zeros(1 << 25, device="spirv"), torch.zeros(1 << 27, device="spirv")
run(x[:9 << 14])
del idle
resource.setrlimit(resource.RLIMIT_DATA, (data() + (1 << 26), -1))
print(run(x).shape)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=240)
    assert done.stdout == f"torch.Size([{1 << 25}])\n", done.stderr


def test_observers_of_channels_get_their_sizes() -> None:
    """For quantization-aware training: they begin without elements, and their second call finds them."""
    x, found = torch.randn(4, 6), []
    for device in ("cpu", "spirv"):
        state = [torch.empty(0), torch.empty(0), torch.ones(1), torch.zeros(1, dtype=torch.int32)]
        state = [tensor.to(device) for tensor in state]
        yes = torch.ones(1, dtype=torch.int64, device=device)
        for y in (x, 2 * x):
            result = torch.fused_moving_avg_obs_fake_quant(y.to(device), yes, yes, *state, 0.1, -128, 127, 0, True)
        found.append([tensor.cpu() for tensor in (result, *state)])
    torch.testing.assert_close(found[1], found[0])


_FLIPS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "by native calls": lambda x: x.flip(1),
    "by Python": lambda x: F.conv2d(x[None, None], x.new_ones(1, 1, 5, 5).triu(), padding=2)[0, 0],
    "several": lambda x: torch.native_group_norm(x[None], None, None, 1, 2003, 129, 1, 1e-5)[0][0],
}


@pytest.mark.parametrize("name", _FLIPS)
def test_results_are_in_the_memory_that_torch_gave_them(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first call on, they are read, written, resized and counted as other tensors are."""
    monkeypatch.setattr(cpu_fallback, "copy_of_host", None)
    x = _real(2003, 129)
    given, wanted = x.to("spirv"), _FLIPS[name](x)
    gc.collect()  # what earlier tests left in cycles would be freed between the counts
    before = torch.spirv.memory_allocated()  # type: ignore[attr-defined]
    for _ in range(5):
        made = _FLIPS[name](given)
        torch.testing.assert_close(made.cpu(), wanted, rtol=1e-4, atol=1e-4)
        assert made.untyped_storage().nbytes() == x.nbytes and made.stride() == wanted.stride()
        segments = torch.spirv.memory_snapshot()  # type: ignore[attr-defined]
        assert made.data_ptr() in {segment["address"] for segment in segments}
        in_use = torch.spirv.memory_allocated()  # type: ignore[attr-defined]
        assert sum(segment["allocated_size"] for segment in segments) == in_use >= before + x.nbytes
        assert torch.equal((made[1:, ::2] * 2).cpu(), made.cpu()[1:, ::2] * 2)
        made[3].zero_().add_(1)
        assert torch.equal(made[3].cpu(), torch.ones(129))
        kept = made.view(-1)[:7]
        made = made.clone().resize_(5000, 129)
        assert kept[0].item() == pytest.approx(wanted[0, 0].item(), rel=1e-4, abs=1e-4)
        del made, kept
        assert torch.spirv.memory_allocated() == before  # type: ignore[attr-defined]


def test_memory_of_results_stays_until_what_was_submitted_is_done() -> None:
    x = _real(1409, 701)
    given, wanted = x.to("spirv"), x.flip(1)
    for _ in range(8):
        made = given.flip(1)
        busy = (given @ given.T) @ given
        later = made * 2 + busy * 0
        del made
        others = [torch.full_like(x, 7.0) for _ in range(4)]  # in what is free
        assert torch.equal(later.cpu(), wanted * 2)
        del others


def test_results_that_share_memory_are_copied(calls: list[str]) -> None:
    host = _real(97, 61)
    made = cpu_fallback._taken(host, torch.device("spirv", 0))
    again, part = (cpu_fallback._taken(one, torch.device("spirv", 0)) for one in (host, host[1:]))
    assert made.data_ptr() == host.data_ptr() and host.data_ptr() != again.data_ptr() and torch.equal(again.cpu(), host)
    assert torch.equal(part.cpu(), host[1:]) and part.untyped_storage().nbytes() == host[1:].nbytes
    own = cpu_fallback._taken(cpu_fallback._in_place((again,))[0], torch.device("spirv", 0))
    again.zero_()
    assert torch.equal(own.cpu(), host) and calls == []


_GROWING = """
import torch
from pathlib import Path
from triton.backends.spirv.torch import registration
registration.register()
def pages():
    return int(Path("/proc/self/statm").read_text().split()[1])
for count in range(200):
    if count == 4:
        before = pages()
    x = torch.ones((1 << 17) + (count << 10), device="spirv")
    for _ in range(3):
        torch.cat((x, x))
print((pages() - before) * 4096 >> 20)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="says nothing of a process's memory")
def test_results_of_growing_sizes_leave_no_memory_behind() -> None:
    done = subprocess.run([sys.executable, "-c", _GROWING], capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[-1]) < 100  # MB of 500 that were results
