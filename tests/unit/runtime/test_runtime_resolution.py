"""What a launch with CUDA memory is given, without CUDA: the sharing of memory is played by a table."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
import triton
from triton.backends.spirv.runtime.cuda import cuda_driver
from triton.backends.spirv.runtime.errors import NotShareable
from triton.backends.spirv.runtime.launches.resolution import HostResolution, Resolver, SharedResolution
from triton.backends.spirv.runtime.memory.host_memory import storage_of

SHARED = 1 << 40


class Sharing:
    """Vulkan has what CUDA has at SHARED + its address; ``calls`` are those for semaphores."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def address(self, tensor: Any, address: int) -> int:
        start, size, _ = storage_of(tensor, address)
        if not start <= address < start + size:
            raise NotShareable("it lies outside")
        return SHARED + address

    def signal(self, stream: int) -> tuple[int, int]:
        self.calls.append(("signal", stream))
        return 3, 7

    def wait(self, stream: int, submission: int) -> None:
        self.calls.append(("wait", stream, submission))


class OnCuda:
    """A tensor of the host that says it is CUDA's."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor
        self.data, self.shape, self.dtype = tensor.data, tensor.shape, tensor.dtype
        self.device = SimpleNamespace(type="cuda", index=0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tensor, name)


class Buffer:
    """A user's own class: an address alone."""

    device = SimpleNamespace(type="cuda", index=0)

    def data_ptr(self) -> int:
        return 1 << 20


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> Any:
    kept: list[Any] = []
    sharing = Sharing()
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: SimpleNamespace(cuda_stream=11))
    monkeypatch.delenv("TRITON_SPIRV_CUDA", raising=False)
    native = SimpleNamespace(submitted=5, keep=lambda used, since: kept.append((used, since)))
    return SimpleNamespace(
        cuda=lambda: sharing,
        native=native,
        kept=kept,
        calls=sharing.calls,
        raise_validation_errors=lambda: None,
        end_loan=lambda *_: None,
    )


def resolve(context: Any, *arguments: Any) -> tuple[Any, dict[str, str]]:
    pointers = [(argument, argument.data_ptr(), "cuda") for argument in arguments]
    transfers: dict[str, str] = {}
    resolver = Resolver(context, "k", [f"x{index}" for index in range(len(arguments))], None)
    return resolver.resolve(arguments, pointers, transfers), transfers


def test_tensors_and_their_wrappers_are_used_in_place(context: Any) -> None:
    tensor = torch.zeros(64)
    view = OnCuda(tensor[8:])
    wrapper = triton.reinterpret(view, triton.language.int32)
    resolution, transfers = resolve(context, view, wrapper)
    assert isinstance(resolution, SharedResolution)
    assert resolution.addresses == [SHARED + tensor.data_ptr() + 32] * 2
    assert (resolution.incoming, list(resolution.copies)) == ((3, 7), [])
    assert transfers == {"x0": "shared", "x1": "shared"}
    resolution.end(9)
    assert context.calls == [("signal", 11), ("wait", 11, 9)] and context.kept == []


def test_what_a_failed_launch_used_is_kept(context: Any) -> None:
    view = OnCuda(torch.zeros(4))
    resolution, _ = resolve(context, view)
    resolution.fail()
    assert context.kept == [((view,), 5)] and context.calls == [("signal", 11)]


def test_a_recorded_launch_has_nothing_to_wait_for(context: Any) -> None:
    resolution, _ = resolve(context, OnCuda(torch.zeros(4)))
    resolution.end(0)
    assert context.calls == [("signal", 11)]


def test_memory_of_no_known_size_is_refused_by_name(context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError, match="kernel 'k', argument 'x1': a Buffer does not give the size of its memory"):
        resolve(context, OnCuda(torch.zeros(4)), Buffer())
    monkeypatch.setenv("TRITON_SPIRV_CUDA", "staged")
    with pytest.raises(TypeError, match="kernel 'k', argument 'x0': CUDA memory of a Buffer cannot be copied"):
        resolve(context, Buffer())


def test_mirrors_of_wrapped_tensors_come_back_after_the_launch(context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_SPIRV_CUDA", "staged")
    tensor = torch.arange(64, dtype=torch.float32)
    copied: list[Any] = []

    def resolve_host(self: Resolver, args: Any, pointers: Any, transfers: dict[str, str]) -> HostResolution:
        copied.extend(pointers)
        return HostResolution(context, args, pointers)

    monkeypatch.setattr(Resolver, "_resolve_host", resolve_host)
    # .cpu() of what is on the CPU would be the tensor itself.
    monkeypatch.setattr(torch.Tensor, "cpu", torch.Tensor.clone)
    wrapper = triton.reinterpret(OnCuda(tensor[8:]), triton.language.int32)
    resolution, _ = resolve(context, wrapper)
    ((mirror, address, place),) = copied
    assert (address - mirror.data_ptr(), mirror.numel(), place) == (32, 256, "host")
    mirror.view(torch.float32)[9] = -1
    assert tensor[9] == 9
    resolution.end(0)
    assert tensor[9] == -1 and tensor[10] == 10


class Bare:
    """A user's own class that tells an address and no device."""

    def __init__(self, address: int, **attributes: Any) -> None:
        self.address = address
        vars(self).update(attributes)

    def data_ptr(self) -> int:
        return self.address


class Driver:
    """CUDA's driver with one allocation on GPU 0, and pinned host memory right after it."""

    START, BYTES = 1 << 33, 1 << 21

    def cuPointerGetAttribute(self, data: Any, attribute: int, address: Any) -> int:
        offset = address.value - self.START
        if not 0 <= offset < 2 * self.BYTES:
            return 1
        data._obj.value = {2: 2 if offset < self.BYTES else 1, 9: 0}[attribute]
        return 0

    def cuMemGetAddressRange_v2(self, start: Any, size: Any, address: Any) -> int:
        start._obj.value, size._obj.value = self.START, self.BYTES
        return 0


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> type[Driver]:
    monkeypatch.setattr(cuda_driver, "_libcuda", Driver)
    monkeypatch.setattr(cuda_driver, "_is_loaded", lambda: True)
    return Driver


def resolve_host_pointers(context: Any, *arguments: Any) -> tuple[Any, dict[str, str]]:
    transfers: dict[str, str] = {}
    resolver = Resolver(context, "k", [f"x{index}" for index in range(len(arguments))], None)
    return resolver.resolve(arguments, [(each, each.data_ptr(), "host") for each in arguments], transfers), transfers


def test_cuda_memory_without_a_device_is_used_in_place(context: Any, cuda: type[Driver]) -> None:
    first, inner = Bare(cuda.START), Bare(cuda.START + 64)
    resolution, transfers = resolve_host_pointers(context, first, inner)
    assert isinstance(resolution, SharedResolution)
    assert resolution.addresses == [SHARED + cuda.START, SHARED + cuda.START + 64]
    assert transfers == {"x0": "shared", "x1": "shared"}
    resolution.end(9)
    assert context.calls == [("signal", 11), ("wait", 11, 9)]


@pytest.mark.parametrize("offset", [-8, Driver.BYTES, 4 * Driver.BYTES], ids=["before", "pinned", "after"])
def test_other_memory_without_a_device_is_the_hosts(context: Any, cuda: type[Driver], offset: int) -> None:
    with pytest.raises(TypeError, match="kernel 'k', argument 'x0': a Bare does not give the size of its memory"):
        resolve_host_pointers(context, Bare(cuda.START + offset))


def test_memory_that_tells_its_place_is_believed(context: Any, cuda: type[Driver]) -> None:
    for attributes in ({"device": "somewhere"}, {"is_cpu": True}):
        with pytest.raises(TypeError, match="does not give the size"):
            resolve_host_pointers(context, Bare(cuda.START, **attributes))


def test_cuda_is_not_loaded_to_ask_it(context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_driver, "_is_loaded", lambda: False)
    monkeypatch.setattr(cuda_driver, "_libcuda", lambda: pytest.fail("libcuda was loaded"))
    with pytest.raises(TypeError, match="does not give the size"):
        resolve_host_pointers(context, Bare(Driver.START))


def test_cuda_memory_without_a_device_is_not_staged(
    context: Any, cuda: type[Driver], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_SPIRV_CUDA", "staged")
    with pytest.raises(TypeError, match="kernel 'k', argument 'x0': CUDA memory of a Bare cannot be copied"):
        resolve_host_pointers(context, Bare(cuda.START))
