"""What goes wrong, or ends, while launches are in flight."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from triton.backends.spirv.runtime import buffer as buffers

from tests.device.processes import run, run_script

_LONG = """
launch = load([((0,), "x", "*u32")])
zero = buffers.zeros(1, "uint32")
zero.to_numpy()
long = lambda grid: launch(grid, zero)
"""

#: Work of many threads at once is without the validation layer: where one thread asks for a semaphore's value while
#: another submits, version 1.3.239 may miss the signal and wait 10 s for it.
_UNCHECKED = {"TRITON_SPIRV_VALIDATE": "0"}


def test_a_launch_does_not_wait_and_the_time_limit_ends_the_wait(long_file: Path) -> None:
    script = """
grid = last(long, 20)
long(grid)
print("launched", current().native.done(current().native.submitted), flush=True)
for call in (current().native.synchronize, lambda: long((1, 1, 1)), zero.to_numpy):
    try:
        call()
    except RuntimeError as error:
        print(error, flush=True)
zero.free()
os._exit(0)
"""
    done = run_script(_LONG + script, long_file, TRITON_SPIRV_TIMEOUT="1")
    lines = done.stdout.splitlines()
    assert lines[:1] == ["launched False"], done.stderr
    assert lines[1].startswith("kernel 'test' did not end within the time limit of 1000 ms"), lines
    assert all(line.startswith("this belongs to a device that failed earlier") for line in lines[2:]), lines


@pytest.mark.only_on("Vulkan", "the CPU device counts the time of each kernel")
def test_the_time_limit_is_a_submissions_and_not_a_queues(long_file: Path) -> None:
    script = """
import threading, time
grid, took = last(long, 0.25), 0
while took < 3:
    start = time.monotonic()
    for _ in range(24):
        long(grid)
        threading.Thread(target=current().native.synchronize).start()  # what is waited for is submitted
    current().native.synchronize()
    took = time.monotonic() - start
print("ended", flush=True)
"""
    done = run_script(_LONG + script, long_file, TRITON_SPIRV_TIMEOUT="3", **_UNCHECKED)
    assert done.stdout == "ended\n", done.stdout + done.stderr


def test_ctrl_c_ends_a_wait(long_file: Path) -> None:
    script = """
import signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)
long(last(long, 20))
try:
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    current().native.synchronize()
    print("ended")
except KeyboardInterrupt:
    print("interrupted", current().native.done(current().native.submitted), flush=True)
os._exit(0)
"""
    done = run_script(_LONG + script, long_file)
    assert done.stdout == "interrupted False\n", done.stderr


def test_exit_with_work_in_flight(long_file: Path) -> None:
    script = """
grid = last(long, 0.2)
for _ in range(10):
    long(grid)
print("in flight", not current().native.done(current().native.submitted))
"""
    done = run_script(_LONG + script, long_file)
    assert (done.returncode, done.stdout, done.stderr) == (0, "in flight True\n", "")


@pytest.mark.only_on("Vulkan", "a forked child can use the CPU device")
def test_fork_with_work_in_flight(add_file: Path) -> None:
    script = """
add = load()
n = 1 << 20
x, z = buffers.full(n, 1, "float32"), buffers.zeros(n, "float32")
for _ in range(20):
    add((n // 64, 1, 1), x, z, z, n)
pid = os.fork()
if pid == 0:
    for call in (lambda: add((1, 1, 1), x, z, z, 1), z.to_numpy, lambda: buffers.empty(1 << 22, "int8")):
        try:
            call()
        except RuntimeError as error:
            print("child:", error, flush=True)
    x.free()
    os._exit(0)  # as multiprocessing ends its children: some drivers' own handlers at exit wait for ever in one
status = os.waitpid(pid, 0)[1]
print("parent:", status, z.to_numpy().min(), z.to_numpy().max())
"""
    done = run_script(script, add_file)
    assert done.stdout.count("child: the device was opened before this process was forked") == 3, done.stderr
    assert done.stdout.endswith("parent: 0 20.0 20.0\n"), done.stdout


@pytest.mark.only_on("Vulkan", "a forked child can use the CPU device")
def test_fork_while_threads_launch(add_file: Path) -> None:
    """Another thread may hold any of the runtime's locks at the fork, and is not there to open it in the child."""
    script = """
import signal, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12's, of a fork while there are threads
add = load()
n = 1 << 14
x, z = buffers.full(n, 1, "float32"), buffers.zeros(n, "float32")
event = current().native_module.Event(current().native, current().native.has_timestamps)
ending = False
def work():
    while not ending:
        for _ in range(40):
            add((n // 64, 1, 1), x, z, z, n)
        z[:8].to_numpy()
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
native = current().native
calls = (lambda: add((1, 1, 1), x, z, z, 1), lambda: native.copy(x.data_ptr(), z.data_ptr(), 4), z[:8].to_numpy,
         lambda: native.fill(z.data_ptr(), 4, 0), lambda: x[:8].copy_from(numpy.ones(8, "float32")), event.record)
refused = 0
for turn in range(60):
    pid = os.fork()
    if pid == 0:
        signal.alarm(10)
        try:
            calls[turn % len(calls)]()
        except RuntimeError as error:
            os._exit(7 if "forked" in str(error) else 8)
        os._exit(9)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status != 7:
        print("call", turn % len(calls), "of the child ended with", status)
        break
    refused += 1
ending = True
for thread in threads:
    thread.join()
print(refused)
"""
    done = run_script(script, add_file, TRITON_SPIRV_VALIDATE="0")
    assert (done.stdout, done.stderr) == ("60\n", "")


def test_many_threads_with_device_memory(add_file: Path, way: str) -> None:
    script = """
from tests.device.threads import together
add = load()
n, rounds = 1000, 200
one = buffers.full(n, 1, "float32")
totals = [buffers.zeros(n, "float32") for _ in range(8)]
def body(seed):
    for index in range(rounds):
        add((16, 1, 1), one, totals[seed], totals[seed], n)
        scratch = buffers.from_numpy(numpy.full(n, index, numpy.float32))
        add((16, 1, 1), scratch, one, scratch, n)
        if index % 50 == 0:
            assert (scratch.to_numpy() == index + 1).all()
together(body, range(8))
print(all((total.to_numpy() == rounds).all() for total in totals))
"""
    done = run_script(script, add_file, TRITON_SPIRV_HOST_MEMORY=way, **_UNCHECKED)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_many_threads_with_host_memory(add_file: Path, way: str) -> None:
    script = """
from tests.device.threads import together
add = load()
def body(seed):
    random = numpy.random.default_rng(seed)
    for _ in range(50):
        x, y = random.standard_normal(500, numpy.float32), random.standard_normal(500, numpy.float32)
        z = numpy.zeros(500, numpy.float32)
        add((8, 1, 1), array(x), array(y), array(z), 500)
        assert (z == x + y).all()
together(body, range(8))
"""
    done = run_script(script, add_file, TRITON_SPIRV_HOST_MEMORY=way, **_UNCHECKED)
    assert (done.returncode, done.stderr) == (0, "")


def test_threads_with_parts_of_one_array(add_file: Path, way: str) -> None:
    """Where it is copied, the whole array goes there and back for each of them."""
    script = """
from tests.device.threads import together
add = load()
whole, one = numpy.zeros((8, 5000), numpy.float32), numpy.ones(5000, numpy.float32)
def body(seed):
    for _ in range(40):
        add((79, 1, 1), array(whole[seed]), array(one), array(whole[seed]), 5000)
together(body, range(8))
print(set(whole.ravel().tolist()))
"""
    done = run_script(script, add_file, TRITON_SPIRV_HOST_MEMORY=way, **_UNCHECKED)
    assert (done.stdout, done.stderr) == ("{40.0}\n", "")


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_100000_launches_leave_memory_where_it_was(add: Any, context: Any) -> None:
    held = buffers.zeros(64, "float32", context)
    for _ in range(10_000):  # so that each command buffer of the ring has held as many launches as there is room for
        add((1,), held, held, held, 64)
    held.to_numpy()
    before, reserved = _resident(), context.memory.pool.reserved
    # The three ways of the fixture share the count: a third of a hundred thousand each.
    for _ in range(33_334):
        add((1,), held, held, held, 64)
    held.to_numpy()
    assert _resident() - before < 8 << 20
    assert context.memory.pool.reserved == reserved


def test_10000_allocations_leave_memory_where_it_was(context: Any) -> None:
    buffers.full(100_000, 1, "float32", context).to_numpy()
    before, reserved = _resident(), context.memory.pool.reserved
    for _ in range(10_000):
        buffers.empty(100_000, "float32", context)
    assert context.memory.pool.reserved == reserved
    assert _resident() - before < 4 << 20


def test_a_lost_device(add_file: Path, faulty_layer: dict[str, str]) -> None:
    script = """
add = load()
x = buffers.zeros(64, "float32")
x.to_numpy()
for call in (lambda: [(add((1, 1, 1), x, x, x, 64), current().native.synchronize()) for _ in range(20)],
             lambda: add((1, 1, 1), x, x, x, 64), current().native.synchronize, x.to_numpy,
             lambda: buffers.empty(1 << 22, "int8")):
    try:
        call()
        print("passed")
    except RuntimeError as error:
        print(type(error).__name__, getattr(error, "result", None), error, flush=True)
"""
    done = run_script(script, add_file, FAULTY_SUBMIT="10", TRITON_SPIRV_VALIDATE="0", **faulty_layer)
    lines = done.stdout.splitlines()
    assert len(lines) == 5, done.stderr
    assert lines[0].startswith("VulkanError -4 vkQueueSubmit failed: VK_ERROR_DEVICE_LOST (-4): the device reset")
    gone = "VulkanError -4 this belongs to a device that failed earlier"
    assert all(line.startswith(gone) for line in lines[1:4]), lines  # the kernel, the device and the tensor of before
    assert lines[4] == "passed"  # of the device as it was opened again
    assert done.returncode == 0 and done.stderr == ""


def test_what_the_driver_says_of_a_lost_device(add_file: Path, faulty_layer: dict[str, str]) -> None:
    """VK_EXT_device_fault: the address is known to the driver's precision."""
    script = """
add = load()
x = buffers.zeros(64, "float32")
try:
    for _ in range(20):
        add((1, 1, 1), x, x, x, 64)
        current().native.synchronize()
except RuntimeError as error:
    print(error, flush=True)
"""
    lost = {"FAULTY_SUBMIT": "10", "FAULTY_FAULT": "1", "TRITON_SPIRV_VALIDATE": "0"}
    done = run_script(script, add_file, **lost, **faulty_layer)
    assert (
        "accessed memory that is not there (the driver says: page fault; a write at 0x12345000 to 0x12345fff); results"
        in done.stdout
    ), done.stderr


@pytest.mark.only_on("Vulkan", "it asks the driver for its properties")
def test_a_driver_whose_allocations_are_held(add_file: Path) -> None:
    """Larger ones than maxMemoryAllocationSize are refused before the driver is asked."""
    script = """
from dataclasses import replace
from triton.backends.spirv.field_reports import Care
from triton.backends.spirv.runtime.context import devices
from triton.backends.spirv.runtime.vulkan.loader import Chain, vulkan
from triton.backends.spirv.runtime.vulkan.open_device import OpenVulkanDevice
info = devices()[0]
properties = Chain(["VkPhysicalDeviceProperties2", "VkPhysicalDeviceVulkan11Properties"])
vulkan().lib.vkGetPhysicalDeviceProperties2(info.handle, properties.head)
most = properties["VkPhysicalDeviceVulkan11Properties"].maxMemoryAllocationSize
for held in (False, True):
    opened = OpenVulkanDevice(replace(info, care=Care(holds_allocations=held)), False)
    for bytes_ in (1 << 20, most + 4096):
        try:
            opened.native.allocate_device(bytes_).free()
            print("passed")
        except RuntimeError as error:
            print("maxMemoryAllocationSize" in str(error), flush=True)
    opened.native.close()
    opened.close()
"""
    done = run_script(script, add_file, TRITON_SPIRV_VALIDATE="0")
    assert done.returncode == 0, done.stderr
    usual, large, held_usual, held_large = done.stdout.split()
    assert usual == held_usual == "passed" and large in ("passed", "False") and held_large == "True"


def test_memory_runs_out_and_comes_back(add_file: Path, faulty_layer: dict[str, str]) -> None:
    script = """
from triton.backends.spirv.runtime import OutOfDeviceMemory
add = load()
held = []
try:
    while True:
        held.append(buffers.zeros(4 << 20, "float32"))
except OutOfDeviceMemory as error:
    print(len(held), error)
x = held.pop()
add((1, 1, 1), x, x, x, 64)
del held
x = buffers.full(10 << 20, 2, "float32")  # larger than any that was there
add((1, 1, 1), x, x, x, 64)
print(x.to_numpy()[:65].sum())
"""
    done = run_script(script, add_file, FAULTY_MEMORY=str(72 << 20), TRITON_SPIRV_VALIDATE="0", **faulty_layer)
    first, last = done.stdout.splitlines()
    assert first.startswith("4 the device has no room for 16777216 bytes: 67108864 bytes are in use by tensors"), first
    assert last == "258.0"
    assert done.returncode == 0, done.stderr


def test_staging_memory_runs_out(add_file: Path, faulty_layer: dict[str, str]) -> None:
    """A launch with copies that have no room is refused whole: the tensors are as they were."""
    script = """
from triton.backends.spirv.runtime import array
add = load()
large = numpy.ones(16 << 20, numpy.float32)
try:
    add((1, 1, 1), array(large), array(large), array(large), 64)
except RuntimeError as error:
    print(type(error).__name__, error)
small = numpy.ones(64, numpy.float32)
add((1, 1, 1), array(small), array(small), array(small), 64)
print(large.sum() == large.size, small.sum())
"""
    done = run_script(
        script,
        add_file,
        FAULTY_MEMORY=str(32 << 20),
        TRITON_SPIRV_VALIDATE="0",
        TRITON_SPIRV_HOST_MEMORY="staged",
        **faulty_layer,
    )
    first, last = done.stdout.splitlines()
    assert first.startswith("VulkanError a Vulkan buffer of ") and "VK_ERROR_OUT_OF_DEVICE_MEMORY" in first, first
    assert last == "True 128.0"


@pytest.mark.only_on("Vulkan", "a forked child can use the CPU device")
def test_a_fork_with_an_event_in_flight(long_file: Path) -> None:
    """What the child asks of it is refused, not answered with what was true at the fork."""
    script = """
from triton.backends.spirv.runtime.streams import DeviceEvent, Queue
event, native = DeviceEvent(), current().native
reached = DeviceEvent()
reached.record()
long(last(long, 2))
event.record()
event.query()  # hands it over
pid = os.fork()
if pid == 0:
    for call in (event.query, Queue.first().query, lambda: native.done(native.submitted), event.synchronize):
        try:
            print(call(), flush=True)
        except RuntimeError as error:
            print("child:", error, flush=True)
    print(reached.query(), flush=True)
    os._exit(0)
os.waitpid(pid, 0)
"""
    *refused, last = run_script(_LONG + script, long_file).stdout.splitlines()
    assert len(refused) == 4 and last == "True"
    assert all(line.startswith("child: the device was opened before this process was forked") for line in refused), (
        refused
    )


@pytest.mark.only_on("Vulkan", "a forked child can use the CPU device")
def test_a_fork_while_another_thread_gives_memory_back(long_file: Path) -> None:
    """The allocator's lock is held by a thread that is not there in the child."""
    script = """
import signal, threading
buffers.zeros(1 << 20, "uint32")  # is idle then
long(last(long, 2))
thread = threading.Thread(target=current().memory.release_idle)
thread.start()
time.sleep(0.2)
pid = os.fork()
if pid == 0:
    signal.alarm(10)
    try:
        buffers.zeros(4 << 20, "uint32")
    except RuntimeError as error:
        print("child:", error, flush=True)
    os._exit(0)
print(os.waitpid(pid, 0)[1])
thread.join()
"""
    child, status = run_script(_LONG + script, long_file).stdout.splitlines()
    assert child.startswith("child: the device was opened before this process was forked") and status == "0"


def test_exit_while_daemon_threads_launch(add_file: Path) -> None:
    """Their later calls are refused; nothing is destroyed under them, and the process ends as it is asked to."""
    script = """
import threading
n = 1 << 12
def work():
    kernel = load()
    x = buffers.full(n, 1, "float32")
    while True:
        for _ in range(20):
            kernel((n // 64, 1, 1), x, x, x, n)
        x[:8].to_numpy()
        buffers.empty(1 << 22, "int8")
        current().memory.release_idle()
def compile():
    while True:
        Kernel(current(), "test", module).unload()
def quietly(body):
    try:
        body()
    except RuntimeError as error:
        if "the device is closed" not in str(error):
            os._exit(3)
for body in (work, work, compile):
    threading.Thread(target=quietly, args=(body, ), daemon=True).start()
time.sleep(0.2)
"""
    for _ in range(3):
        done = run_script(script, add_file, TRITON_SPIRV_VALIDATE="0")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_exit_while_daemon_threads_use_the_driver(add_file: Path, faulty_layer: dict[str, str]) -> None:
    """No thread is in the driver when its exit handlers run: threads launch, compile, open the device, or copy."""
    launching = """
kernel = load()
x = buffers.full(64, 1, "float32")
def work():
    while True:
        kernel((1, 1, 1), x, x, x, 64)
        buffers.empty(1 << 22, "int8")
        current().memory.release_idle()
"""
    compiling = "current()\ndef work():\n    while True:\n        Kernel(current(), 'test', module).unload()"
    opening = "def work():\n    load()"
    asking = "from triton.backends.spirv.runtime.context import devices\ndef work():\n    devices()"
    end = """
import threading
def quietly():
    try:
        work()
    except RuntimeError as error:
        if str(error) != "the device is closed":
            os._exit(3)
for _ in range(3):
    threading.Thread(target=quietly, daemon=True).start()
time.sleep(0.3)
"""
    for script, slow in (
        (launching, {}),
        (compiling, {"FAULTY_COMPILE": "100"}),
        (opening, {"FAULTY_OPEN": "2000"}),
        (asking, {"FAULTY_INSTANCE": "2000"}),
    ):
        done = run_script(
            script + end, add_file, TRITON_SPIRV_VALIDATE="0", FAULTY_EXIT="1", **{**faulty_layer, **slow}
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), script


def test_a_device_that_is_asked_for_while_the_process_ends(faulty_layer: dict[str, str]) -> None:
    """The thread that ends the process may still use it, another one may not."""
    script = """
import threading, weakref
def ask(who):
    try:
        print(who, current().index, flush=True)
    except RuntimeError as error:
        print(who, error, flush=True)
from triton.backends.spirv.runtime import context
ending, started = threading.Event(), threading.Event()
def later():
    started.set()
    ending.wait()
    ask("another")
    ending.clear()
threading.Thread(target=later, daemon=True).start()
started.wait()
def last():
    ending.set()
    while ending.is_set():
        time.sleep(0.01)
    ask("this")
weakref.finalize(context, last)
context._close_at_end()
"""
    done = run_script(script, TRITON_SPIRV_VALIDATE="0", FAULTY_EXIT="1", **faulty_layer)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "another the device is closed\nthis 0\n"


@pytest.mark.parametrize("first", ["torch", "triton"])
def test_exit_handlers_of_a_program_use_the_device(first: str) -> None:
    """Those that it registered before it first used the device, too."""
    script = f"""if True:
        import atexit, {first}
        def use():
            from triton.backends.spirv import runtime
            print(runtime.full(4, 2, "float32").to_numpy().sum())
        atexit.register(use)
        use()"""
    done = run([sys.executable, "-c", script], TRITON_SPIRV_BACKEND="1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "8.0\n8.0\n", "")


def test_ctrl_c_at_the_end_leaves_finalizers_of_others_alone() -> None:
    script = """
import tempfile
from triton.backends.spirv.runtime import context
folder = tempfile.TemporaryDirectory()
def close(self):
    raise KeyboardInterrupt
current()
context.Context.close = close
print(folder.name)
"""
    done = run_script(script)
    assert done.returncode == 0 and "KeyboardInterrupt" in done.stderr
    assert not Path(done.stdout.strip()).exists()


@pytest.mark.parametrize("ends", ["", "sys.exit(7)"])
def test_exit_while_the_driver_stays_in_a_call(add_file: Path, faulty_layer: dict[str, str], ends: str) -> None:
    """Exit handlers of C libraries are left out then; Python's run, and what was printed appears."""
    script = (
        """
import atexit, ctypes, threading
from triton.backends.spirv.runtime.ending import ENDING
ENDING.begin.__func__.__defaults__ = (0.5, )  # seconds
threading.Thread(target=current, daemon=True).start()
since = time.monotonic()
while time.monotonic() < since + 3:  # longer than any call before the one that stays
    time.sleep(0.01)
    since = since if ENDING._inside else time.monotonic()
atexit.register(print, "Python's")
ctypes.CDLL(None).puts(b"C's")
"""
        + ends
    )
    layer = {**faulty_layer, "FAULTY_EXIT": "1", "FAULTY_OPEN": "100000"}
    done = run_script(script, add_file, TRITON_SPIRV_VALIDATE="0", **layer)
    assert (done.returncode, done.stderr) == (7 if ends else 0, "")
    assert sorted(done.stdout.splitlines()) == ["C's", "Python's"]


@pytest.mark.parametrize("last", ["sum(range(10))", "raise_()", "Ends()"])
def test_exit_while_a_launch_runs_python(add_file: Path, last: str) -> None:
    """Until 3.13 Python ends such a thread by unwinding its stack, and C++ destructors on the way have no lock."""
    script = """
import threading
def raise_():
    try:
        raise ValueError
    except ValueError:
        pass
class Ends:
    def __del__(self):
        sum(range(10))
launch, x = load(), buffers.full(64, 1, "float32")
class Slow:
    dtype = x.dtype
    def data_ptr(self):
        while True:
            {last}
for _ in range(3):
    threading.Thread(target=launch, args=((1, 1, 1), x, Slow(), x, 64), daemon=True).start()
time.sleep(0.2)
"""
    done = run_script(script.replace("{last}", last), add_file, TRITON_SPIRV_VALIDATE="0")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_report_of_a_closed_device() -> None:
    """Its buffer is not mapped any more."""
    script = """
from triton.backends.spirv.runtime.reports.launchers import LaterLauncher
launcher = LaterLauncher(current(), "test", None, [], ADD)
launcher.read()
current().close()
try:
    launcher.read()
except RuntimeError as error:
    print(error)
"""
    done = run_script(script, TRITON_SPIRV_VALIDATE="0")
    assert (done.returncode, done.stdout, done.stderr) == (0, "the device is closed\n", "")


def test_exit_while_a_daemon_thread_copies(add_file: Path) -> None:
    """The host is at work on staging memory most of the time."""
    script = """
import threading
add = load()
large = [numpy.ones(16 << 20, numpy.float32) for _ in range(3)]
def work():
    try:
        while True:
            add((1, 1, 1), *map(array, large), 64)
    except RuntimeError as error:
        if "the device is closed" not in str(error):
            os._exit(3)
threading.Thread(target=work, daemon=True).start()
time.sleep({seconds})
"""
    for seconds in (0.5, 0.53, 0.56, 0.59):
        done = run_script(
            script.replace("{seconds}", str(seconds)),
            add_file,
            TRITON_SPIRV_VALIDATE="0",
            TRITON_SPIRV_HOST_MEMORY="staged",
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_closing_a_device_whose_work_never_ended(long_file: Path) -> None:
    """Idle memory, which would wait for the work, stays where it is."""
    script = """
long(last(long, 20))
buffers.zeros(1 << 20, "uint32")  # is idle then
try:
    current().native.synchronize()
except RuntimeError as error:
    print(error, flush=True)
current().close()
print("closed", flush=True)
os._exit(0)
"""
    first, second = run_script(_LONG + script, long_file, TRITON_SPIRV_TIMEOUT="1").stdout.splitlines()
    assert first.startswith("kernel 'test' did not end within the time limit of 1000 ms") and second == "closed"
