"""Streams beside a first one: their copies of pinned memory run beside kernels, and what has to be in order is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.device.processes import run_script

#: Random work on three streams, which waits for the stream that used its memory last. What is freed is not waited for:
#: whoever gets the memory next has to.
_RANDOM = """
import ctypes, random
from triton.backends.spirv.runtime import PINNED, Queue, StreamContext
context, add, N = current(), load(), 64
native = context.native
streams = [Queue.first(), Queue(), Queue()]
class Tensor:
    def __init__(self, stream):
        self.buffer, self.last, self.model = buffers.empty(N, "float32"), stream, None
def pinned():
    memory = PINNED.take(4 * N)
    address = ctypes.addressof(memory)
    return numpy.frombuffer(memory, numpy.float32, N), PINNED.block_of(address).device_address(context)
def use(stream, *tensors):
    for tensor in tensors:
        if tensor.last is not stream:
            stream.wait_stream(tensor.last)
            tensor.last = stream
    return [tensor.buffer for tensor in tensors]
for seed in range(int(os.environ["SEEDS"])):
    draw = random.Random(seed)
    tensors, downs = [], []
    for turn in range(50):
        stream = draw.choice(streams)
        with StreamContext(stream):
            what = draw.choice(["up", "up", "add", "add", "add", "down"])
            if what == "up" or len(tensors) < 3:
                tensor = draw.choice(tensors) if len(tensors) > 5 else Tensor(stream)
                tensors += [] if tensor in tensors else [tensor]
                used = draw.choice(tensors)
                values, address = pinned()
                values[:] = tensor.model = draw.randrange(100) + numpy.arange(N, dtype=numpy.float32)
                native.copy(use(stream, tensor)[0].data_ptr(), address, 4 * N)
            elif what == "add":
                used, other, result = draw.choice(tensors), draw.choice(tensors), Tensor(stream)
                add((1, 1, 1), *use(stream, used, other, result), N)
                result.model = used.model + other.model
                tensors.append(result)
            elif what == "down":
                used, (values, address) = draw.choice(tensors), pinned()
                native.copy(address, use(stream, used)[0].data_ptr(), 4 * N)
                downs.append((stream.record_event(), values, used.model.copy()))
            if draw.random() < 0.5:
                tensors.remove(used)
            used = tensor = other = result = None
    draw.shuffle(downs)
    for event, values, model in downs:
        event.synchronize()
        assert (values == model).all(), (seed, turn, values[:4], model[:4])
    del downs, tensors, values
context.raise_validation_errors()
print("right", native.copied > 0)
"""


@pytest.mark.only_on("Vulkan", "others have one queue")
@pytest.mark.parametrize("late_ms", [0, 2, -2])
def test_random_work_on_streams(add_file: Path, faulty_layer: dict[str, str], late_ms: int) -> None:
    """On the device as it is, and on two queues that run apart, one of which is late."""
    late = {"FAULTY_QUEUES": str(late_ms), "TRITON_SPIRV_VALIDATE": "0", "SEEDS": "6", **faulty_layer}
    done = run_script(_RANDOM, add_file, **(late if late_ms else {"SEEDS": "30"}))
    assert done.stdout == "right True\n", done.stdout + done.stderr
