"""Launches of kernels whose pipelines the driver still makes: they wait, and all behind them, and the host does not."""

import random
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
from triton.backends.spirv.runtime import Graph, array
from triton.backends.spirv.runtime import buffer as buffers
from triton.backends.spirv.runtime.context import Context, current
from triton.backends.spirv.runtime.kernel import Kernel
from triton.backends.spirv.runtime.launches.launch import make_launcher
from triton.backends.spirv.runtime.streams import DeviceInterface
from triton.backends.spirv.runtime.vulkan.pipeline import VulkanKernel

from tests.device.processes import run_script

pytestmark = pytest.mark.only_on("Vulkan", "the CPU device makes its kernels at once")
_N = 64


class Added:
    """The add kernel, called with (x, y, z, n). ``refused``: as Kernel has it."""

    def __init__(self, context: Context, module: bytes, refused: Callable[[], None]) -> None:
        entries = [((place,), name, "i32" if name == "n" else "*fp32") for place, name in enumerate("xyzn")]
        self.kernel = Kernel(context, "test", module, refused=refused)
        self.made = self.kernel._made
        self._launch = make_launcher(context, "test", entries, indirect=False, place="file.py:7")

    def __call__(self, *arguments: Any) -> None:
        self._launch(1, 1, 1, 0, self.kernel.handle, None, None, None, None, *arguments)


class Driver:
    """The driver's compiler as tests have it: it makes a kernel's pipeline when ``make`` says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: bytes) -> None:
        self._module, self.gates = module, list[threading.Event]()
        compiled = VulkanKernel._compiled

        def held(kernel: VulkanKernel, *args: Any, **kwargs: Any) -> Any:
            self._gate(kernel).wait()
            if not vars(kernel).get("works", True):
                raise RuntimeError("VK_ERROR_UNKNOWN")
            return compiled(kernel, *args, **kwargs)

        monkeypatch.setattr(VulkanKernel, "_compiled", held)

    def _gate(self, kernel: Any) -> threading.Event:
        """The kernel's own: another kernel may get its handle."""
        gate: threading.Event = vars(kernel).setdefault("gate", threading.Event())
        self.gates.append(gate)
        return gate

    def load(self, refused: Callable[[], None] = lambda: None, context: Context | None = None) -> Added:
        """The add kernel, whose pipeline is made later."""
        return Added(context or current(), self._module, refused)

    def make(self, *kernels: Added, works: bool = True) -> None:
        """What the kernels wait for happens, or fails."""
        for one in kernels:
            vars(one.made)["works"] = works
            self._gate(one.made).set()

    def ready(self) -> Added:
        """The add kernel, whose pipeline is made."""
        kernel = self.load()
        self.make(kernel)
        kernel(*[zeros()] * 3, _N)
        current().native.synchronize()
        return kernel


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch, add_module: bytes) -> Iterator[Driver]:
    one = Driver(monkeypatch, add_module)
    yield one
    for gate in one.gates:
        gate.set()
    current().native.synchronize()


def zeros() -> buffers.DeviceBuffer:
    return buffers.zeros(_N, "float32")


def ramp(first: float = 0, count: int = _N) -> Any:
    return first + numpy.arange(count, dtype="float32")


def in_a_thread(call: Callable[[], Any]) -> Callable[[], Any]:
    """Calls ``call`` in a thread. What is returned waits for its end, and gives or raises what it did."""
    told: dict[str, Any] = {}

    def run() -> None:
        try:
            told["value"] = call()
        except BaseException as error:
            told["error"] = error

    thread = threading.Thread(target=run)
    thread.start()

    def result() -> Any:
        thread.join()
        if "error" in told:
            raise told["error"]
        return told["value"]

    return result


def test_what_follows_a_launch_waits_with_it(driver: Driver) -> None:
    add, slow = driver.ready(), driver.load()
    x, y, z, sums = buffers.from_numpy(ramp()), buffers.full(_N, 2, "float32"), zeros(), zeros()
    large = buffers.zeros(1 << 16, "float32")
    before = current().native.submitted
    slow(x, y, z, _N)
    add(z, z, sums, _N)
    x.copy_from(ramp(100))
    y.fill(7)
    copied = zeros().copy_from(z)
    add(x, y, z, _N)
    event = DeviceInterface().Event()
    event.record()
    assert not event.query() and not current().native.done(before + 1)
    assert current().native.submitted == before + 7  # with the fill of zeros()
    driver.make(slow)
    event.synchronize()
    assert event.query() and current().native.done(current().native.submitted)
    numpy.testing.assert_array_equal(sums.to_numpy(), 2 * (ramp() + 2))
    numpy.testing.assert_array_equal(copied.to_numpy(), ramp() + 2)
    numpy.testing.assert_array_equal(z.to_numpy(), ramp(100) + 7)
    large.copy_from(ramp(1, 1 << 16))
    numpy.testing.assert_array_equal(large.to_numpy(), ramp(1, 1 << 16))


def test_pipelines_that_are_made_in_another_order(driver: Driver) -> None:
    x, kernels = buffers.full(_N, 1, "float32"), [driver.load() for _ in range(20)]
    for kernel in kernels:
        kernel(x, x, x, _N)
    for kernel in kernels[::-1]:
        assert not current().native.done(current().native.submitted)
        driver.make(kernel)
    assert (x.to_numpy() == 2**20).all()


@pytest.mark.parametrize("way", ["download", "synchronize", "event", "upload", "time", "graph", "replay", "many"])
def test_what_cannot_wait_with_a_launch_waits_for_it(driver: Driver, way: str) -> None:
    """It is called in a thread, which is not done before the pipeline is made."""
    add, slow, x, z = driver.ready(), driver.load(), buffers.from_numpy(ramp()), zeros()
    large, graph = buffers.zeros(1 << 22, "float32"), Graph()
    start, end = (DeviceInterface().Event(enable_timing=True) for _ in range(2))
    if way == "replay":
        with graph.capture():
            add(z, z, z, _N)
    slow(x, x, z, _N)

    def captured() -> None:
        with graph.capture():
            slow(z, x, z, _N)

    def timed() -> float:
        start.record()
        end.record()
        return float(start.elapsed_time(end))

    def many() -> None:
        for _ in range(5000):
            add(x, x, x, 0)

    calls: dict[str, Callable[[], Any]] = {
        "download": z.to_numpy,
        "synchronize": current().native.synchronize,
        "event": lambda: DeviceInterface().Event().record() or current().native.synchronize_stream(),
        "upload": lambda: large.copy_from(ramp(1, 1 << 22)),
        "time": timed,
        "graph": captured,
        "replay": graph.replay,
        "many": many,
    }
    ended = threading.Event()
    result = in_a_thread(lambda: (calls[way](), ended.set())[0])
    assert not ended.wait(0.1)
    driver.make(slow)
    value = result()
    if way == "graph":
        graph.replay()
    wanted = {"graph": 3, "replay": 4}.get(way, 2) * ramp()
    numpy.testing.assert_array_equal(z.to_numpy(), wanted)
    if way == "download":
        numpy.testing.assert_array_equal(value, wanted)
    if way == "upload":
        numpy.testing.assert_array_equal(large.to_numpy(), ramp(1, 1 << 22))
    if way == "time":
        assert value >= 0


def test_a_launch_with_host_arrays_waits_for_its_pipeline(driver: Driver, context: Context) -> None:
    slow, x, z = driver.load(context=context), ramp(), ramp()
    result = in_a_thread(lambda: slow(array(x), array(x), array(z), _N))
    driver.make(slow)
    result()
    numpy.testing.assert_array_equal(z, 2 * x)


def test_memory_that_is_freed_meanwhile_is_used_after_the_launch(driver: Driver) -> None:
    slow, z = driver.load(), zeros()
    x = buffers.from_numpy(ramp())
    address = x.data_ptr()
    slow(x, x, z, _N)
    x.free()
    again = [buffers.full(_N, 5, "float32") for _ in range(20)]  # lower memory may have become free, too
    assert address in [one.data_ptr() for one in again]
    driver.make(slow)
    numpy.testing.assert_array_equal(z.to_numpy(), 2 * ramp())
    assert all((one.to_numpy() == 5).all() for one in again)


def test_a_kernel_that_is_unloaded_meanwhile(driver: Driver) -> None:
    slow, unused, x = driver.load(), driver.load(), buffers.full(_N, 1, "float32")
    slow(x, x, x, _N)
    for kernel in (slow, unused):
        kernel.kernel.unload()
    driver.make(unused, slow)
    assert (x.to_numpy() == 2).all()


def test_random_work_of_two_threads(driver: Driver) -> None:
    """Each has memory of its own, which it also frees; a third thread makes pipelines meanwhile, in any order."""
    pending: list[Added] = []
    ended = threading.Event()
    ready = [driver.ready() for _ in range(2)]

    def make() -> None:
        draw = random.Random(0)
        while pending or not ended.wait(0.001):
            if pending:
                driver.make(pending.pop(draw.randrange(len(pending))))

    def work(seed: int) -> None:
        draw, add = random.Random(seed), ready[seed]
        arrays = [(zeros(), numpy.zeros(_N, "float32")) for _ in range(4)]
        for turn in range(400):
            (x, x_model), (y, y_model), (z, z_model) = draw.sample(arrays, 3)
            what = draw.choice(["add", "add", "slow", "fill", "upload", "large", "copy", "free", "download"])
            if what == "slow":
                add = driver.load()
                pending.append(add)
            if what in ("add", "slow"):
                add(x, y, z, _N)
                z_model[:] = x_model + y_model
            elif what == "fill":
                x_model[:] = turn
                x.fill(turn)
            elif what == "upload":
                x_model[:] = ramp(turn)
                x.copy_from(x_model.copy())
            elif what == "copy":
                y_model[:] = x_model
                y.copy_from(x)
            elif what == "large":
                values = ramp(turn, 1 << 15)
                assert (buffers.from_numpy(values)[-_N:].copy_from(x).to_numpy() == x_model).all()
            elif what == "free":
                index = next(index for index, (one, _) in enumerate(arrays) if one is x)
                x.free()
                arrays[index] = buffers.full(_N, turn, "float32"), numpy.full(_N, turn, "float32")
            elif draw.random() < 0.3:
                numpy.testing.assert_array_equal(x.to_numpy(), x_model)
            for _, model in arrays:
                model %= 1024
            if what in ("add", "slow") and (z_model != x_model + y_model).any():
                z.copy_from(z_model)
        for one, model in arrays:
            numpy.testing.assert_array_equal(one.to_numpy(), model)

    maker = in_a_thread(make)
    workers = [in_a_thread(lambda seed=seed: work(seed)) for seed in range(2)]
    try:
        for worker in workers:
            worker()
    finally:
        ended.set()
        maker()


def test_a_pipeline_that_is_refused_is_an_error_of_a_later_call(driver: Driver) -> None:
    add, told = driver.ready(), []
    slow = driver.load(lambda: told.append(True))
    x, z, other = buffers.from_numpy(ramp()), zeros(), zeros()
    current().native.synchronize()
    slow(x, x, z, _N)
    add(z, z, other, _N)
    other.fill(3)
    driver.make(slow, works=False)
    with pytest.raises(RuntimeError) as error:
        z.to_numpy()
    message = str(error.value)
    assert message.startswith("file.py:7: kernel 'test' did not run, and neither did what followed it: kernel 'test'")
    assert f"was refused by {current().device.name}: VK_ERROR_UNKNOWN" in message and "was saved as" in message
    assert told == [True]
    assert not z.to_numpy().any() and not other.to_numpy().any()
    with pytest.raises(RuntimeError, match="kernel 'test' was refused"):
        slow(x, x, z, _N)
    add(x, x, z, _N)
    numpy.testing.assert_array_equal(z.to_numpy(), 2 * ramp())


@pytest.mark.parametrize("call", ["launch", "fill", "query", "wait"])
def test_every_thread_whose_work_did_not_run_is_told_once(driver: Driver, call: str) -> None:
    add, slow, x, z = driver.ready(), driver.load(), buffers.full(_N, 1, "float32"), zeros()
    current().native.synchronize()
    turns = [threading.Event() for _ in range(2)]
    event = DeviceInterface().Event()

    def use() -> None:
        calls: dict[str, Callable[[], object]] = {
            "launch": lambda: add(x, x, z, _N),
            "fill": lambda: z.fill(9),
            "query": event.query,
            "wait": event.synchronize,
        }
        calls[call]()

    def other() -> None:
        add(x, x, x, _N)
        turns[0].set()
        turns[1].wait()
        with pytest.raises(RuntimeError, match="did not run"):
            use()
        use()

    slow(x, x, x, _N)
    event.record()
    result = in_a_thread(other)
    turns[0].wait()
    driver.make(slow, works=False)
    with pytest.raises(RuntimeError, match="did not run"):
        current().native.synchronize()
    use()
    turns[1].set()
    result()
    current().native.synchronize()
    assert (x.to_numpy() == 1).all()


def test_a_thread_that_only_reads_is_told_while_no_other_is(driver: Driver) -> None:
    slow, x, launched, read = driver.load(), buffers.full(_N, 1, "float32"), threading.Event(), threading.Event()

    def launch() -> None:
        slow(x, x, x, _N)
        launched.set()
        read.wait()
        with pytest.raises(RuntimeError, match="did not run"):
            x.fill(1)

    result = in_a_thread(launch)
    launched.wait()
    driver.make(slow, works=False)
    with pytest.raises(RuntimeError, match="did not run"):
        x.to_numpy()
    assert (x.to_numpy() == 1).all()
    read.set()
    result()


def test_ctrl_c_ends_the_wait(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    slow, x = driver.load(), buffers.full(_N, 1, "float32")
    slow(x, x, x, _N)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        timer = threading.Timer(0.3, lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            x.to_numpy()
    finally:
        signal.signal(signal.SIGINT, before)
    driver.make(slow)
    assert (x.to_numpy() == 2).all()


#: ``held()`` gives a kernel whose pipeline is made after ``gate`` is set.
_HELD = """
import threading
from triton.backends.spirv.runtime.vulkan.pipeline import VulkanKernel
gate, compiled, n = threading.Event(), VulkanKernel._compiled, 64
def waits(kernel, *args, **kwargs):
    gate.wait()
    return compiled(kernel, *args, **kwargs)
def held():
    VulkanKernel._compiled = waits
    kernel = Kernel(current(), "test", module, refused=lambda: None)
    VulkanKernel._compiled = compiled
    launch = make_launcher(current(), "test", ADD, indirect=False)
    return lambda *args: launch(1, 1, 1, 0, kernel.handle, None, None, None, None, *args, n)
x = buffers.full(n, 1, "float32")
"""


@pytest.mark.parametrize("launches", [0, 1])
def test_a_process_that_ends_waits(add_file: Path, launches: int) -> None:
    script = f"""
slow = held()
for _ in range({launches}):
    slow(x, x, x)
threading.Timer(0.3, gate.set).start()
print("ends", flush=True)
"""
    done = run_script(_HELD + script, add_file)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ends\n", "")


def test_an_error_that_nobody_saw_is_printed_at_the_end(add_file: Path) -> None:
    script = """
slow = held()
slow(x, x, x)
gate.set()
"""
    done = run_script(
        _HELD.replace("return compiled", "raise RuntimeError('no')\n    return compiled") + script, add_file
    )
    assert done.returncode == 0
    assert done.stderr.startswith("triton-spirv: kernel 'test' did not run, and neither did what followed it: "), done


def test_a_device_that_is_lost_meanwhile(add_file: Path, faulty_layer: dict[str, str]) -> None:
    script = """
slow = held()
slow(x, x, x)
os.environ["FAULTY_LOST"] = "1"
gate.set()
try:
    x.to_numpy()
except RuntimeError as error:
    print("lost" in str(error), flush=True)
os.environ["FAULTY_LOST"] = "0"
add, z = load(), buffers.full(n, 2, "float32")
add((1, 1, 1), z, z, z, n)
print((z.to_numpy() == 4).all(), flush=True)
"""
    done = run_script(_HELD + script, add_file, TRITON_SPIRV_VALIDATE="0", **faulty_layer)
    assert done.stdout == "True\nTrue\n", done.stderr


@pytest.mark.parametrize(("stream", "queues"), [("Queue.first()", "20"), ("stream", "20"), ("stream", "0")])
def test_a_copy_of_a_stream_comes_after_the_launch(
    add_file: Path, faulty_layer: dict[str, str], stream: str, queues: str
) -> None:
    """Also where the device has one queue for both."""
    script = f"""
import ctypes
from triton.backends.spirv.runtime import PINNED, Queue, StreamContext
slow, add, stream, context = held(), load(), Queue(), current()
memory = PINNED.take(4 * n)
values, address = numpy.frombuffer(memory, numpy.float32, n), ctypes.addressof(memory)
pinned = PINNED.block_of(address).device_address(context)
with StreamContext({stream}):
    slow(x, x, x)
threading.Timer(0.3, gate.set).start()
stream.wait_stream({stream})
with StreamContext(stream):
    context.native.copy(pinned, x.data_ptr(), 4 * n)
    x.fill(9)
stream.synchronize()
print((values == 2).all(), (x.to_numpy() == 9).all())
"""
    done = run_script(_HELD + script, add_file, TRITON_SPIRV_VALIDATE="0", FAULTY_QUEUES=queues, **faulty_layer)
    assert done.stdout == "True True\n", done.stderr
