"""Numbers that are read, and copies of a few elements between the host and the device: native kernels do them."""

import gc
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from triton.backends.spirv.runtime import current
from triton.backends.spirv.torch.device import tensor_memory

from tests.device.threads import together

_TYPES = [
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32),
    *(torch.uint64, torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.float8_e4m3fn),
]
#: Python's functions of this that do what native kernels leave.
_IN_PYTHON = {"copy_from", "_host_copy"}


def _in_python(call: Callable[[], Any]) -> set[str]:
    """Which of _IN_PYTHON a call enters."""
    entered = set()

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename == tensor_memory.__file__:
            entered.add(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return entered & _IN_PYTHON


def _bits(dtype: torch.dtype) -> torch.Tensor:
    """Numbers of a type among which are its largest, its smallest, and what is none."""
    if dtype == torch.bool:
        return torch.tensor([True, False, True, True])
    if dtype.is_floating_point or dtype.is_complex:
        values = [0.0, -0.0, 1.5, -2.25, 448.0, float("nan")]
        values += [] if dtype == torch.float8_e4m3fn else [float("inf"), -float("inf")]
        return torch.tensor(values, dtype=torch.float32).to(dtype)
    info = torch.iinfo(dtype)
    return torch.tensor([info.min, info.max, 1, 0], dtype=dtype)


def _same(found: Any, wanted: Any) -> bool:
    return type(found) is type(wanted) and (found == wanted or (found != found and wanted != wanted))


@pytest.mark.parametrize("dtype", _TYPES, ids=str)
def test_every_type(dtype: torch.dtype) -> None:
    host = _bits(dtype)
    on = torch.empty(host.shape, dtype=dtype, device="spirv").copy_(host)
    back = torch.empty_like(host).copy_(on)
    assert back.view(torch.uint8).tolist() == host.view(torch.uint8).tolist()
    for one, other in zip(on, host, strict=True):
        assert _same(one.item(), other.item())
        assert str(one.item()) == str(other.item())  # the sign of 0


_FORMS: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], bool]] = {
    "whole": (lambda x: x, True),
    "rows": (lambda x: x[1:], True),
    "a row": (lambda x: x[2], True),
    "an element": (lambda x: x[0, 1], True),
    "strides of one element": (lambda x: x[:, :1][:1], True),
    "turned": (lambda x: x.t(), False),
    "columns": (lambda x: x[:, 1:], False),
    "negated": (lambda x: torch._neg_view(x), False),
    "none": (lambda x: x[1:1], False),
}


@pytest.mark.parametrize("form", _FORMS)
def test_forms(form: str) -> None:
    """Contiguous ones need no Python. What lies beside them stays."""
    of, native = _FORMS[form]
    host, other = torch.arange(12.0).view(3, 4), torch.arange(100.0, 112.0).view(3, 4)
    on, there = host.to("spirv"), other.to("spirv")
    uploaded = _in_python(lambda: of(on).copy_(of(other)))
    of(host).copy_(of(other))
    assert torch.equal(on.cpu(), host)
    back, wanted = torch.zeros(3, 4), torch.zeros(3, 4)
    downloaded = _in_python(lambda: of(back).copy_(of(there)))
    of(wanted).copy_(of(other))
    assert torch.equal(back, wanted)
    assert ("copy_from" in uploaded, "copy_from" in downloaded) == (not native, not native)


def test_what_is_left_to_python() -> None:
    """Other types, sizes and layouts, many elements, and copies on the device or on the host alone."""
    on, few = torch.zeros(4, device="spirv"), torch.ones(4)
    many = torch.ones(1 << 14)
    for call, native in (
        (lambda: on.copy_(few), True),
        (lambda: on.copy_(few.double()), False),
        (lambda: on.copy_(few[0]), False),
        (lambda: on.view(2, 2).copy_(few.view(2, 2)), True),
        (lambda: many.to("spirv"), False),
        (lambda: many[1:].to("spirv"), True),
        (lambda: on.item() if on.dim() == 0 else on[1].item(), True),
        (lambda: on.half()[1].item(), False),
    ):
        assert (not _in_python(call)) == native
    assert on.cpu().tolist() == [1, 1, 1, 1]


def test_what_kernels_noted_is_raised_before_memory_is_read() -> None:
    on, host = torch.ones(4, device="spirv"), torch.zeros(4)
    told: list[int] = []

    def note(index: int) -> None:
        told.append(index)
        raise LookupError(str(index))

    tensor_memory.BEFORE_READING.append(note)
    try:
        for call in (lambda: host.copy_(on), on[0].item):
            with pytest.raises(LookupError, match="0"):
                call()
        on.copy_(host + 2)
    finally:
        tensor_memory.BEFORE_READING.remove(note)
    assert told == [0, 0]
    assert host.tolist() == [0, 0, 0, 0] and on.cpu().tolist() == [2, 2, 2, 2]


def test_writing_waits_for_its_lock() -> None:
    """That of threads that write what lies between a view's elements, too."""
    on = torch.zeros(4, device="spirv")
    thread = threading.Thread(target=lambda: on.copy_(torch.ones(4)))
    with tensor_memory.WRITING:
        thread.start()
        thread.join(0.2)
        assert thread.is_alive() and on[0].item() == 0
    thread.join()
    assert on[0].item() == 1


def test_no_tensor_is_kept() -> None:
    """By copies that are done, and by those that raise."""
    on, host = torch.zeros(4, device="spirv"), torch.ones(4)
    uses = [torch._C._storage_Use_Count(one.untyped_storage()._cdata) for one in (on, host)]

    def refuse(_: int) -> None:
        raise LookupError

    for _ in range(5):
        on.copy_(host)
        host.copy_(on)
        tensor_memory.BEFORE_READING.append(refuse)
        try:
            with pytest.raises(LookupError):
                host.copy_(on)
        finally:
            tensor_memory.BEFORE_READING.remove(refuse)
    gc.collect()
    assert [torch._C._storage_Use_Count(one.untyped_storage()._cdata) for one in (on, host)] == uses
    assert sys.getrefcount(on) == sys.getrefcount(host)


def test_copies_count_as_changes_of_a_tensor() -> None:
    on, host = torch.zeros(4, device="spirv"), torch.ones(4)
    result = on.copy_(host)
    assert result is on and on._version == 1
    leaf = torch.ones(4, requires_grad=True)
    (torch.empty(4, device="spirv").copy_(leaf) * 3).sum().backward()
    assert leaf.grad is not None and leaf.grad.tolist() == [3, 3, 3, 3]


def test_a_number_is_read_without_a_submission() -> None:
    """Where the host can read device memory, which it does once all is done that was submitted before."""
    native, one, stream = current().native, torch.zeros((), device="spirv"), torch.spirv.Stream()
    for turn in range(60):
        with torch.spirv.stream(stream if turn % 3 == 0 else torch.spirv.current_stream()):
            assert one.add_(1).item() == turn + 1
    before, _ = native.submitted, one.item()
    reads = current().device.api == "Vulkan" and native.allocate_device(1 << 20, read=True).host
    assert (native.submitted == before) == bool(reads)  # on the CPU device a copy is work as any


def test_threads_copy_at_once() -> None:
    def run(number: int) -> None:
        on = torch.empty(5, dtype=torch.int64, device="spirv")
        for turn in range(200):
            host = torch.full((5,), 1000 * number + turn)
            assert on.copy_(host)[3].item() == host[0]
            assert torch.empty_like(host).copy_(on).tolist() == host.tolist()

    together(run, range(4))
