"""Launches that follow each other are gathered, and handed to the driver in their order."""

import ctypes
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest
from triton.backends.spirv.runtime import buffer as buffers
from triton.backends.spirv.runtime.context import Context

_ENTRIES = [((0,), "x", "*fp32"), ((1,), "y", "*fp32"), ((2,), "z", "*fp32"), ((3,), "n", "i32")]
_FADD, _FMUL = (struct.pack("<I", 5 << 16 | opcode) for opcode in (129, 133))


@pytest.fixture
def multiply(launchable: Callable[..., Any], add_module: bytes) -> Iterator[Any]:
    """The kernel ``add`` with a product instead of the sum."""
    assert add_module.count(_FADD) == 1
    loaded = launchable(add_module.replace(_FADD, _FMUL), _ENTRIES)
    yield loaded
    loaded.kernel.unload()


@pytest.mark.parametrize("count", [1, 2, 5, 40])
def test_what_nobody_waits_for_is_run(add: Any, context: Context, count: int) -> None:
    """Nothing but the launches, and looks at memory that the kernel writes: no call into the runtime."""
    ones = [buffers.full(64, 1, "float32", context) for _ in range(2)]
    seen = context.native.allocate_staging(4 * 64 * count)
    ctypes.memset(seen.host, 0, 4 * 64 * count)
    context.native.synchronize()
    for index in range(count):
        add((1,), *ones, seen.address + 4 * 64 * index, 64)
    values = numpy.ctypeslib.as_array(ctypes.cast(seen.host, ctypes.POINTER(ctypes.c_float)), (64 * count,))
    end = time.monotonic() + 30
    while not (values == 2).all() and time.monotonic() < end:
        time.sleep(0.001)
    assert (values == 2).all()
    seen.free()


def test_kernels_that_alternate(add: Any, multiply: Any, context: Context) -> None:
    """A command buffer binds a pipeline where it changes."""
    start = numpy.arange(64, dtype=numpy.float32)
    value = buffers.from_numpy(start, context)
    one, half = (buffers.full(64, number, "float32", context) for number in (1, 0.5))
    expected = start
    for turn in range(300):
        add((1,), value, one, value, 64)
        expected = expected + numpy.float32(1)
        for _ in range(turn % 3):
            multiply((1,), value, half, value, 64)
            expected = expected * numpy.float32(0.5)
    assert (value.to_numpy() == expected).all()


def test_waits_between_launches(add: Any, context: Context) -> None:
    """Launches in a row, alone, after a pause and after a wait, in one sum."""
    total, one = buffers.zeros(64, "float32", context), buffers.full(64, 1, "float32", context)
    launches = 0
    for turn in range(60):
        for _ in range(turn % 7):
            add((1,), total, one, total, 64)
            launches += 1
        if turn % 3 == 0:
            context.native.synchronize()
        if turn % 5 == 0:
            time.sleep(0.002)
        if turn % 4 == 0:
            assert (total.to_numpy() == launches).all()
    assert (total.to_numpy() == launches).all()


def test_argument_blocks_of_many_sizes(
    launchable: Callable[..., Any], word_module: Callable[[int, bool], bytes], context: Context
) -> None:
    """Each command buffer of the ring holds the block of an indirect launch, and takes a longer one than before."""
    out = [buffers.zeros(count, "uint32", context) for count in (40, 1500, 3000)]
    kernels = []
    for buffer in out:
        entries = [((0,), "out", "*u32"), *(((1,), f"a{index}", "i32") for index in range(len(buffer) - 2))]
        kernels.append(launchable(word_module(len(buffer), True), entries, indirect=True))
    for turn in range(150):  # longer than the ring
        kernels[0]((len(out[0]),), out[0], turn)
    for turn in range(150):
        for kernel, buffer in zip(kernels, out, strict=True):
            kernel((len(buffer),), buffer, turn)
    for buffer in out:
        assert (buffer.to_numpy()[2:] == 149).all()


@pytest.mark.parametrize("bytes_", [4, 65536])
def test_small_uploads_do_not_wait(add: Any, context: Context, bytes_: int) -> None:
    """What is uploaded is in the command buffer: the host's memory is free again while earlier work still runs."""
    total, one = buffers.zeros(1 << 20, "float32", context), buffers.full(1 << 20, 1, "float32", context)
    words = numpy.arange(bytes_ // 4, dtype=numpy.int32)
    target = context.native.allocate_device(bytes_ + 8)
    context.native.fill(target.address, bytes_ + 8, 7)
    context.native.synchronize()
    still_runs = False
    for attempt in range(10):  # something else may have the processor until all is done
        for _ in range(64 << attempt // 2):
            add((1 << 14,), total, one, total, 1 << 20)
        launched = context.native.submitted
        for turn in range(5):
            sent = words + turn
            context.native.upload(target.address + 4, sent.ctypes.data, bytes_)
            sent.fill(-1)
        if still_runs := not context.native.done(launched):
            break
    assert still_runs
    found = numpy.empty(bytes_ // 4 + 2, numpy.int32)
    context.native.download(found.ctypes.data, target.address, bytes_ + 8)
    assert (found[1:-1] == words + 4).all() and found[0] == found[-1] == 7
    target.free()
