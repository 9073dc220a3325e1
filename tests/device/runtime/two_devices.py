"""A program for test_runtime_two_devices.py: one check, named by its argument, on a machine with two Vulkan devices."""

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import torch
import triton
import triton.language as tl
from triton.backends.spirv.runtime import array
from triton.backends.spirv.runtime import buffer as buffers
from triton.backends.spirv.runtime.context import of_device
from triton.backends.spirv.runtime.errors import DeviceUnavailable
from triton.backends.spirv.runtime.kernel import Kernel
from triton.backends.spirv.runtime.launches.launch import make_launcher

from tests.device.threads import together

N, ROUNDS = 10_000, 50
GRID = (triton.cdiv(N, 256),)


@triton.jit
def add_kernel(x, y, z, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


driver = triton.runtime.driver.active
interface = driver.get_device_interface()


def own_buffers() -> tuple[list[Any], list[Any]]:
    """On each device a buffer of values of its own, and one of zeros."""
    values = [numpy.random.default_rng(index).integers(0, 9, N).astype("float32") for index in range(2)]
    return (
        [buffers.from_numpy(values[index], of_device(index)) for index in range(2)],
        [buffers.zeros(N, "float32", of_device(index)) for index in range(2)],
    )


def launches_from_one_thread() -> None:
    x, total = own_buffers()
    for _ in range(ROUNDS):
        for index in range(2):
            with interface.device(index):
                add_kernel[GRID](x[index], total[index], total[index], N, BLOCK=256)
    for index in range(2):
        numpy.testing.assert_array_equal(total[index].to_numpy(), ROUNDS * x[index].to_numpy())


def launches_from_two_threads() -> None:
    x, total = own_buffers()
    both = threading.Barrier(2)

    def work(index: int) -> None:
        interface.set_device(index)
        both.wait()
        for _ in range(ROUNDS):
            add_kernel[GRID](x[index], total[index], total[index], N, BLOCK=256)

    together(work, range(2))
    for index in range(2):
        numpy.testing.assert_array_equal(total[index].to_numpy(), ROUNDS * x[index].to_numpy())


def the_current_device_is_the_threads_own() -> None:
    assert driver.get_current_device() == interface.current_device() == 0
    driver.set_current_device(1)
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(driver.get_current_device()))
    thread.start()
    thread.join()
    assert seen == [0]
    for device in (0, "spirv:0", torch.device("cpu", 0), buffers.zeros(1, "int8", of_device(0)).device):
        with interface.device(device):
            assert driver.get_current_device() == 0
        assert driver.get_current_device() == 1
    for wrong in (interface.device_count(), -1, "spirv:99"):
        refused(DeviceUnavailable, "there is no device 'spirv:", lambda wrong=wrong: interface.set_device(wrong))
    refused(ValueError, "'cuda:0' is no device of this backend", lambda: interface.set_device("cuda:0"))
    refused(KeyError, "inner", lambda: fail_on_device(0))
    assert driver.get_current_device() == 1


def fail_on_device(index: int) -> None:
    with interface.device(index):
        raise KeyError("inner")


def refused(error: type[Exception], message: str, call: Callable[[], Any]) -> None:
    """Fails unless the call raises that error, with the message in it."""
    try:
        call()
    except error as raised:
        assert message in str(raised), raised
    else:
        raise AssertionError(f"{message!r} was not raised")


def tensors_of_another_device_are_refused() -> None:
    x, total = own_buffers()
    add_kernel[GRID](x[0], total[0], total[0], N, BLOCK=256)
    refused(
        ValueError,
        "argument 'y' (*fp32): the tensor is on device 'spirv:1', the kernel was launched on 'spirv:0'",
        lambda: add_kernel[GRID](x[0], total[1], total[0], N, BLOCK=256),
    )
    with interface.device(1):
        refused(
            ValueError,
            "argument 'x' (*fp32): the tensor is on device 'spirv:0', the kernel was launched on 'spirv:1'",
            lambda: add_kernel[GRID](x[0], total[1], total[1], N, BLOCK=256),
        )
        add_kernel[GRID](x[1], total[1], total[1], N, BLOCK=256)
    for index in range(2):
        numpy.testing.assert_array_equal(total[index].to_numpy(), x[index].to_numpy())
    total[1].copy_from(x[0])
    numpy.testing.assert_array_equal(total[1].to_numpy(), x[0].to_numpy())


def copies_between_devices() -> None:
    """Of tensors that are many pieces, end anywhere and begin anywhere; their neighbours stay."""
    for count, skipped in ((1 << 18, 0), (7_000_003, 1), (9 << 20, 5)):
        x = torch.arange(count, dtype=torch.int32)
        there = (x.to("spirv:0") + 1)[skipped:]
        other = torch.full((count + 8,), -5, dtype=torch.int32, device="spirv:1")
        other[3 : 3 + there.numel()].copy_(there)
        expected = torch.full((count + 8,), -5, dtype=torch.int32)
        expected[3 : 3 + there.numel()] = (x + 1)[skipped:]
        assert torch.equal(other.cpu(), expected), count
        back = other.add_(2).to("spirv:0")
        assert back.device == torch.device("spirv:0") and torch.equal(back.cpu(), expected + 2), count


def torch_tensors() -> None:
    from triton.backends.spirv.torch import registration

    registration.register()
    values = [torch.arange(N) % 7.0, torch.arange(N) % 5.0]
    x = [values[index].to(f"spirv:{index}") for index in range(2)]
    out = [torch.zeros(N, device=tensor.device) for tensor in x]
    for index in range(2):
        with torch.get_device_module("spirv").device(x[index].device):
            add_kernel[GRID](x[index], x[index], out[index], N, BLOCK=256)
    assert [str(tensor.device) for tensor in out] == ["spirv:0", "spirv:1"]
    assert all(torch.equal(out[index].cpu(), 2 * values[index]) for index in range(2))
    moved = out[1].to(x[0].device)
    assert str(moved.device) == "spirv:0" and torch.equal(moved.cpu(), 2 * values[1])
    refused(
        ValueError,
        "argument 'x' (*fp32): the tensor is on device 'spirv:1'",
        lambda: add_kernel[GRID](x[1], x[1], out[1], N, BLOCK=256),
    )
    for operation in (torch.add, torch.outer, torch.dot, torch.isin):
        refused(RuntimeError, "all tensors", lambda operation=operation: operation(x[0][:3], x[1][:3]))
    assert torch.equal((x[1] + 1).cpu(), values[1] + 1) and str((x[1] + 1).device) == "spirv:1"


def gradients() -> None:
    weights = [torch.full((3,), float(index + 2), device=f"spirv:{index}", requires_grad=True) for index in range(2)]
    loss = (weights[1] * weights[1]).sum().to("spirv:0") + (weights[0] * 3).sum()
    loss.cpu().backward()
    assert [weight.grad.tolist() for weight in weights] == [[3.0] * 3, [6.0] * 3]
    assert [str(weight.grad.device) for weight in weights] == ["spirv:0", "spirv:1"]
    layer = torch.nn.Linear(4, 2).to("spirv:1")
    layer(torch.ones(3, 4, device="spirv:1")).sum().backward()
    assert str(layer.weight.grad.device) == "spirv:1" and layer.weight.grad.tolist() == [[3.0] * 4] * 2
    with torch.accelerator.device_index(1):
        assert torch.empty(1, device="spirv").device == torch.accelerator.current_stream().device
    assert torch._C._is_multithreading_enabled()


def host_memory_goes_to_the_current_device() -> None:
    one, out = numpy.ones(N, numpy.float32), numpy.zeros(N, numpy.float32)
    for index in (1, 0, 1):
        with interface.device(index):
            before = [of_device(other).native.submitted for other in range(2)]
            add_kernel[GRID](array(one), array(one), array(out), N, BLOCK=256)
            after = [of_device(other).native.submitted for other in range(2)]
        assert after[index] > before[index] and after[1 - index] == before[1 - index]
        assert (out == 2).all()
        out.fill(0)


def kernels_are_loaded_for_each_device() -> None:
    launches_from_one_thread()
    compiled = [next(iter(add_kernel.device_caches[index][0].values())) for index in range(2)]
    assert len(add_kernel.device_caches) == 2 and compiled[0] is not compiled[1]
    assert [kernel.module.context.index for kernel in compiled] == [0, 1]
    assert compiled[0].function != compiled[1].function
    assert of_device(0).opened.handle != of_device(1).opened.handle


def events_and_waits() -> None:
    """Device 1 is at work for about a second; device 0 has none."""
    spirv = Path(sys.argv[2]).read_bytes()
    busy = of_device(1)
    kernel = Kernel(busy, "long", spirv)
    launch = make_launcher(busy, "long", [((0,), "x", "*u32")], indirect=False)
    zero = buffers.zeros(1, "uint32", busy)
    timing = [interface.Event(enable_timing=True) for _ in range(2)]
    count = 1

    def work() -> float:
        timing[0].record()
        launch(min(count, 65535), -(-count // 65535), 1, 0, kernel.handle, None, None, None, None, zero)
        timing[1].record()
        return float(timing[0].elapsed_time(timing[1]))

    with interface.device(1):
        while min(work() for _ in range(3)) < 50:  # the processors may be busy with something else
            count *= 2
        for _ in range(20):
            launch(min(count, 65535), -(-count // 65535), 1, 0, kernel.handle, None, None, None, None, zero)
    other, idle = interface.current_stream("spirv:1"), interface.current_stream()
    assert (other.device_index, idle.device_index) == (1, 0)
    event = other.record_event()
    interface.synchronize(0)
    idle.wait_stream(interface.default_stream(0))
    assert idle.query() and not event.query() and not other.query()
    refused(RuntimeError, "an event of 'spirv:1' cannot be recorded on 'spirv:0'", lambda: event.record())
    idle.wait_event(event)
    assert event.query()
    own = interface.Event(enable_timing=True)
    own.record()
    refused(RuntimeError, "two events of one device", lambda: own.elapsed_time(timing[0]))
    interface.synchronize("spirv:1")
    assert other.query()
    kernel.unload()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    print("right")
