"""Waits that end by an exception while the device works on: what it uses stays until it is done.

A layer plays a device whose work takes as long as the test wants, and interrupts whoever waits for it.
"""

from pathlib import Path

import pytest
from triton.backends.spirv.runtime.context import current
from triton.backends.spirv.settings import ZERO_COPY

from tests.device.processes import run_script

_PENDING = """
import gc, signal, weakref
from triton.backends.spirv.runtime import Graph
from triton.backends.spirv.runtime.reports.launchers import ReportingLauncher
signal.signal(signal.SIGINT, signal.default_int_handler)
native, pool = current().native, current().staging_pool

class Tensor:
    '''Host memory of which one can ask whether something refers to it.'''
    is_cpu = True
    def __init__(self, values=1):
        self.array = numpy.full(64, values, numpy.float32)
        self.dtype = self.array.dtype
    def data_ptr(self):
        return self.array.__array_interface__["data"][0]
    def storage(self):
        return self.data_ptr(), self.array.nbytes, True

def reporting():
    kernel = Kernel(current(), "test", module)
    entries = [*ADD, ((4,), "the report buffer", "u64")]
    launch = make_launcher(current(), "test", entries, indirect=False)
    report = ReportingLauncher(current(), "test", launch, [], entries)
    return lambda *args: report(1, 1, 1, 0, kernel.handle, None, None, None, None, *args)

def pending(on):
    os.environ["FAULTY_PENDING"] = str(int(on))

def interrupted(call, *args):
    try:
        call(*args)
    except KeyboardInterrupt:
        return True
    return False

def idle():
    '''The staging buffer that the pool gives next.'''
    buffer = pool.take(1)
    pool.give(buffer)
    return buffer
"""


def lines(script: str, module: Path, layer: dict[str, str], way: str = "") -> list[str]:
    done = run_script(
        _PENDING + script, module, TRITON_SPIRV_HOST_MEMORY=way, TRITON_SPIRV_VALIDATE="0", FAULTY_PENDING="0", **layer
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_arguments_live_until_the_launch_is_done(add_file: Path, faulty_layer: dict[str, str], way: str) -> None:
    """Whatever the device reaches them by: in place, imported, or copies."""
    script = """
add = load()
add((1, 1, 1), Tensor(), Tensor(), Tensor(), 64)
x, y, z = tensors = Tensor(), Tensor(), Tensor()
alive = [weakref.ref(tensor) for tensor in tensors]
pending(True)
print(interrupted(add, (1, 1, 1), x, y, z, 64))
del x, y, z, tensors
gc.collect()
print([tensor() is not None for tensor in alive])
pending(False)
native.synchronize()
print([tensor() is not None for tensor in alive])
"""
    assert lines(script, add_file, faulty_layer, way) == ["True", "[True, True, True]", "[False, False, False]"]


def test_copies_are_used_again_once_the_launch_is_done(add_file: Path, faulty_layer: dict[str, str]) -> None:
    script = """
add, one = load(), Tensor()
add((1, 1, 1), one, one, one, 64)
before = idle()
pending(True)
print(interrupted(add, (1, 1, 1), one, one, one, 64), idle() is before)
pending(False)
x, z = Tensor(3), Tensor()
add((1, 1, 1), x, x, z, 64)  # which comes later, and is waited for
print(set(z.array.tolist()), set(x.array.tolist()))
native.synchronize()
held = [pool.take(1) for _ in range(4)]
print(before in held)
"""
    assert lines(script, add_file, faulty_layer, "staged") == ["True False", "{6.0} {3.0}", "True"]


def test_a_report_buffer_is_used_again_once_the_launch_is_done(add_file: Path, faulty_layer: dict[str, str]) -> None:
    script = """
add, x = reporting(), buffers.full(64, 1, "float32")
add(x, x, x, 64)
before = idle()
pending(True)
print(interrupted(add, x, x, x, 64), idle() is before)
pending(False)
native.synchronize()
held = [pool.take(1) for _ in range(2)]
print(before in held, set(x.to_numpy().tolist()))
"""
    assert lines(script, add_file, faulty_layer) == ["True False", "True {4.0}"]


def test_a_replay_that_nobody_waited_for(add_file: Path, faulty_layer: dict[str, str]) -> None:
    """The next one waits before it writes to the report buffer, and what it uses outlives the graph."""
    script = """
add, x, graph = reporting(), buffers.full(64, 1, "float32"), Graph()
with graph.capture():
    add(x, x, x, 64)
graph.replay()
pending(True)
print(interrupted(graph.replay))
submitted = native.submitted
print(interrupted(graph.replay), native.submitted - submitted)
buffers_idle = [pool.take(1) for _ in range(4)]
for buffer in buffers_idle:
    pool.give(buffer)
del graph
gc.collect()
print(len({pool.take(1) for _ in range(4)} - set(buffers_idle)))
pending(False)
native.synchronize()
print(pool.take(1) not in buffers_idle, set(x.to_numpy().tolist()))
"""
    assert lines(script, add_file, faulty_layer) == ["True", "True 0", "0", "True {4.0}"]


def test_host_memory_outlives_a_replay(add_file: Path, faulty_layer: dict[str, str]) -> None:
    if current().host_memory != ZERO_COPY:
        pytest.skip("host memory is not the device's")
    script = """
add, x, graph = load(), Tensor(), Graph()
alive = weakref.ref(x)
with graph.capture():
    add((1, 1, 1), x, x, x, 64)
pending(True)
print(interrupted(graph.replay))
del graph, x
gc.collect()
print(alive() is not None)
pending(False)
native.synchronize()
print(alive() is None)
"""
    assert lines(script, add_file, faulty_layer) == ["True", "True", "True"]


def test_an_unloaded_kernel_stays_until_its_launches_are_done(add_file: Path, faulty_layer: dict[str, str]) -> None:
    script = """
kernel, x = Kernel(current(), "test", module), buffers.full(64, 1, "float32")
launch = make_launcher(current(), "test", ADD, indirect=False)
x.to_numpy()
pending(True)
launch(1, 1, 1, 0, kernel.handle, None, None, None, None, x, x, x, 64)
kernel.unload()
print(kernel.loaded)
pending(False)
print(set(x.to_numpy().tolist()), kernel.loaded)
"""
    assert lines(script, add_file, faulty_layer) == ["True", "{2.0} False"]


def test_the_process_ends_with_what_is_kept(add_file: Path, faulty_layer: dict[str, str]) -> None:
    script = """
add, x, graph = reporting(), buffers.full(64, 1, "float32"), Graph()
with graph.capture():
    add(x, x, x, 64)
one, add_host = Tensor(), load()
pending(True)
print(interrupted(graph.replay), interrupted(add, x, x, x, 64), interrupted(add_host, (1, 1, 1), one, one, one, 64))
pending(False)
"""
    assert lines(script, add_file, faulty_layer, "staged") == ["True True True"]


def test_closing_waits_again_where_it_was_interrupted(add_file: Path, faulty_layer: dict[str, str]) -> None:
    """Nothing is destroyed under work that runs."""
    script = """
add, x = load(), buffers.full(64, 1, "float32")
x.to_numpy()
pending(True)
add((1, 1, 1), x, x, x, 64)
print(interrupted(current().close))
pending(False)
add((1, 1, 1), x, x, x, 64)
print(set(x.to_numpy().tolist()))
current().close()
try:
    x.to_numpy()
except RuntimeError as error:
    print(error)
"""
    assert lines(script, add_file, faulty_layer) == ["True", "{4.0}", "the device is closed"]


def test_a_buffer_whose_freeing_was_interrupted_is_freed_later(add_file: Path, faulty_layer: dict[str, str]) -> None:
    script = """
add, x = load(), buffers.full(64, 1, "float32")
freed, dropped = native.allocate_device(64), native.allocate_device(64)
places = freed.address, dropped.address
x.to_numpy()
pending(True)
add((1, 1, 1), x, x, x, 64)
print(interrupted(freed.free), freed.address == places[0], native.owns(places[0], 64))
del dropped  # without a wait
print(native.owns(places[1], 64))
pending(False)
freed.free()
native.synchronize()
print(freed.address, native.owns(places[0], 64), native.owns(places[1], 64))
"""
    assert lines(script, add_file, faulty_layer) == ["True True True", "True", "0 False False"]


def test_a_handler_copies_while_a_copy_waits(add_file: Path, faulty_layer: dict[str, str]) -> None:
    """As one that saves what was computed before the process ends. Each has the values that it would have alone."""
    script = """
values = numpy.arange(5 << 20, dtype=numpy.int32)  # more than two chunks
x, y = buffers.from_numpy(values), buffers.from_numpy(-values)
def handler(*_):
    pending(False)
    print((y.to_numpy() == -values).all())
    y.copy_from(values + 1)
signal.signal(signal.SIGINT, handler)
native.synchronize()
pending(True)
print((x.to_numpy() == values).all())
print((y.to_numpy() == values + 1).all())
pending(True)
x.copy_from(values + 2)
print((x.to_numpy() == values + 2).all())
"""
    assert lines(script, add_file, faulty_layer) == ["True", "True", "True", "False", "True"]


def test_a_copy_that_waits_for_another_threads_is_interrupted(add_file: Path, faulty_layer: dict[str, str]) -> None:
    script = """
import threading
add, x = load(), buffers.full(64, 1, "float32")
x.to_numpy()
pending(True)
add((1, 1, 1), x, x, x, 64)
thread = threading.Thread(target=x.to_numpy)  # which the layer does not interrupt
thread.start()
time.sleep(0.1)
def interrupt():
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGINT)
sender = threading.Thread(target=interrupt)
sender.start()
print(interrupted(x.to_numpy))
interrupted(sender.join)  # where this thread's copy was the first, which the layer interrupts
pending(False)
thread.join()
print(set(x.to_numpy().tolist()))
"""
    assert lines(script, add_file, faulty_layer) == ["True", "{2.0}"]


def test_a_handler_allocates_while_memory_is_given_back(add_file: Path, faulty_layer: dict[str, str]) -> None:
    script = """
add, x = load(), buffers.full(64, 1, "float32")
buffers.zeros(1 << 20, "float32").to_numpy()  # is idle then
made = []
def handler(*_):
    pending(False)
    made.append(buffers.full(1 << 20, 3, "float32"))
signal.signal(signal.SIGINT, handler)
pending(True)
add((1, 1, 1), x, x, x, 64)
current().memory.release_idle()
made.append(buffers.full(1 << 20, 4, "float32"))
print([set(buffer.to_numpy().tolist()) for buffer in made], set(x.to_numpy().tolist()))
"""
    assert lines(script, add_file, faulty_layer) == ["[{3.0}, {4.0}] {2.0}"]


@pytest.mark.parametrize("trouble", ["a launch that fails", "a wait of the flusher that fails"])
def test_what_nobody_waits_for_is_run_after_trouble(add_file: Path, faulty_layer: dict[str, str], trouble: str) -> None:
    """A launch that is recorded while the device is busy is handed over once it is not: no call asks for it."""
    script = """
import ctypes
add, x = load(), buffers.full(64, 1, "float32")
kernel = Kernel(current(), "test", module)
indirect = make_launcher(current(), "test", ADD, indirect=True)
seen = native.allocate_staging(256)
values = numpy.ctypeslib.as_array(ctypes.cast(seen.host, ctypes.POINTER(ctypes.c_float)), (64,))
values[:] = 0
x.to_numpy()
pending(True)
for _ in range(2):  # the driver has these
    add((1, 1, 1), x, x, x, 64)
    time.sleep(0.1)
"""
    script += {
        "a launch that fails": """
add((1, 1, 1), x, x, seen.address, 64)
os.environ["FAULTY_MEMORY"] = "1"
try:
    indirect(1, 1, 1, 0, kernel.handle, None, None, None, None, x, x, x, 64)
except RuntimeError as error:
    print("failed")
""",
        "a wait of the flusher that fails": """
os.environ["FAULTY_WAIT"] = "1"
add((1, 1, 1), x, x, seen.address, 64)
print("failed")
""",
    }[trouble]
    script += """
time.sleep(0.5)
os.environ["FAULTY_WAIT"] = os.environ["FAULTY_MEMORY"] = "0"
pending(False)
end = time.monotonic() + 20
while not (values == 8).all() and time.monotonic() < end:
    time.sleep(0.001)
print(set(values.tolist()), flush=True)
os._exit(0)
"""
    assert lines(script, add_file, faulty_layer) == ["failed", "{8.0}"]


def test_closing_where_the_last_submission_fails(add_file: Path, faulty_layer: dict[str, str]) -> None:
    """Earlier work may still run: what it uses is destroyed behind its end."""
    script = """
add, x = load(), buffers.full(64, 1, "float32")
native.synchronize()
pending(True)
for _ in range(2):  # the driver has these
    add((1, 1, 1), x, x, x, 64)
    time.sleep(0.1)
add((1, 1, 1), x, x, x, 64)
os.environ["FAULTY_SUBMIT"] = os.environ["FAULTY_TELL"] = "1"
current().close()
os.environ["FAULTY_TELL"] = "0"
"""
    assert lines(script, add_file, faulty_layer) == ["idle", "destroyed"]
