"""Streams beside a first one: their copies of pinned memory run beside kernels, and what has to be in order is."""

import subprocess
from pathlib import Path

import pytest

from tests.device.processes import run_script

#: A copy to the device that is under way on the transfer queue, by a stream beside the first one, and ways to wait for
#: it. ``tell`` prints what one raises.
_UNDER_WAY = """
import ctypes, gc, threading
from triton.backends.spirv.runtime import PINNED, Queue, StreamContext
N = 64
def tell(call):
    try:
        print("no error", call(), flush=True)
    except Exception as error:
        print(f"{type(error).__name__}: {error}", flush=True)
def copied(stream, values):
    context, memory = current(), PINNED.take(4 * N)
    address = ctypes.addressof(memory)
    numpy.frombuffer(memory, numpy.float32, N)[:] = values
    to = buffers.empty(N, "float32")
    with StreamContext(stream):
        context.native.copy(to.data_ptr(), PINNED.block_of(address).device_address(context), 4 * N)
    return to
def used(stream, x):
    with StreamContext(stream):
        z = buffers.empty(N, "float32")
        add((1, 1, 1), x, x, z, N)
        return z.to_numpy().tolist() == [2.0 * x for x in range(N)]
add, stream, other = load(), Queue(), Queue()
values = numpy.arange(N, dtype=numpy.float32)
assert used(stream, copied(stream, values))
before = current()
os.environ["FAULTY_HELD"] = "1"
x = copied(stream, values)
event = stream.record_event()
def in_a_thread():
    thread = threading.Thread(target=tell, args=(event.synchronize,))
    thread.start()
    thread.join()
def behind():
    other.wait_stream(stream)
    return used(other, x)
WAYS = {
    "event": event.synchronize,
    "query": event.query,
    "stream": stream.synchronize,
    "device": before.native.synchronize,
    "thread": in_a_thread,
    "kernel": lambda: used(stream, x),
    "behind": behind,
    "download": lambda: x.to_numpy().tolist() == values.tolist(),
    "first": lambda: used(Queue.first(), copied(Queue.first(), values)),
}
"""
_AFTERWARDS = """
tell(lambda: x.to_numpy())
tell(event.synchronize)
tell(stream.synchronize)
os.environ.update(FAULTY_HELD="0", FAULTY_LOST="0")
x = event = None
gc.collect()
add = load()
print("right", used(stream, copied(stream, values)), current() is not before, current().index == before.index)
"""

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


_UNCHECKED = {"TRITON_SPIRV_VALIDATE": "0"}


@pytest.mark.only_on("Vulkan", "others have one queue")
@pytest.mark.parametrize("late_ms", [0, 2, -2])
def test_random_work_on_streams(add_file: Path, faulty_layer: dict[str, str], late_ms: int) -> None:
    """On the device as it is, and on two queues that run apart, one of which is late."""
    late = {"FAULTY_QUEUES": str(late_ms), "TRITON_SPIRV_VALIDATE": "0", "SEEDS": "6", **faulty_layer}
    done = run_script(_RANDOM, add_file, **(late if late_ms else {"SEEDS": "30"}))
    assert done.stdout == "right True\n", done.stdout + done.stderr


def _check_afterwards(lines: list[str], done: subprocess.CompletedProcess[str]) -> None:
    """What is of the device that failed says so, and a stream begins anew."""
    *left, waited, right = lines
    assert left and all("device that failed earlier" in line for line in left[-2:]), done.stdout + done.stderr
    assert waited == "no error None", done.stdout + done.stderr
    assert right == "right True True True" and done.returncode == 0, done.stdout + done.stderr


#: Ways to wait that end with an error where a copy does not end.
_WAYS = ("event", "stream", "device", "thread", "kernel", "behind")


@pytest.mark.only_on("Vulkan", "others have one queue")
@pytest.mark.parametrize("way", _WAYS)
def test_a_copy_that_does_not_end(add_file: Path, faulty_layer: dict[str, str], way: str) -> None:
    """It is named, what came behind it is not, and the device is opened again."""
    script = f"{_UNDER_WAY}tell(WAYS[{way!r}])\n{_AFTERWARDS}"
    done = run_script(script, add_file, FAULTY_QUEUES="1", TRITON_SPIRV_TIMEOUT="0.5", **_UNCHECKED, **faulty_layer)
    first, *rest = done.stdout.splitlines()
    assert "a copy did not end within the time limit of 500 ms" in first and "opens it again" in first, done.stderr
    _check_afterwards(rest, done)


@pytest.mark.only_on("Vulkan", "others have one queue")
@pytest.mark.parametrize("how", ["1", "2"])
@pytest.mark.parametrize("way", ["query", *_WAYS])
def test_a_device_that_is_lost_while_it_copies(
    add_file: Path, faulty_layer: dict[str, str], way: str, how: str
) -> None:
    script = f"{_UNDER_WAY}os.environ['FAULTY_LOST'] = {how!r}\ntell(WAYS[{way!r}])\n{_AFTERWARDS}"
    done = run_script(script, add_file, FAULTY_QUEUES="1", **_UNCHECKED, **faulty_layer)
    first, *rest = done.stdout.splitlines()
    # Another thread may have seen it first.
    assert "VK_ERROR_DEVICE_LOST" in first or "the device was lost in earlier work" in first, done.stdout + done.stderr
    assert "opens it again" in first, done.stdout
    _check_afterwards(rest, done)


@pytest.mark.only_on("Vulkan", "others have one queue")
@pytest.mark.parametrize("way", ["download", "first"])
def test_what_is_not_behind_a_copy_does_not_wait_for_it(add_file: Path, faulty_layer: dict[str, str], way: str) -> None:
    """And the process ends, though the copy does not."""
    script = f"{_UNDER_WAY}tell(WAYS[{way!r}])\n"
    done = run_script(script, add_file, FAULTY_QUEUES="1", TRITON_SPIRV_TIMEOUT="0.5", **_UNCHECKED, **faulty_layer)
    assert done.stdout.startswith("no error ") and done.returncode == 0, done.stdout + done.stderr
