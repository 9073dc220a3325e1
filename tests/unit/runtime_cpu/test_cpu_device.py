"""The CPU device: order, threads, faults, stops, forks, copies and events, with kernels in LLVM IR."""

import ctypes
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from .objects import X86, compiled, program_loop
from .programs import DELAY, DIVIDE, ENDLESS, FOREVER, NATIVE, SCRATCH, SLOW, SQUARES, UNTIL, Kernel, address, run


@pytest.fixture(params=[1, 2, 5])
def device(request: pytest.FixtureRequest) -> Iterator[Any]:
    made = NATIVE.CpuDevice(threads=request.param, timeout_ns=FOREVER)
    yield made
    assert made.close()


@pytest.fixture
def two() -> Iterator[Any]:
    made = NATIVE.CpuDevice(threads=2, timeout_ns=FOREVER)
    yield made
    assert made.close()


@pytest.mark.parametrize("grid", [(1, 1, 1), (7, 1, 1), (100, 3, 5), (1, 1, 1000), (300_001, 1, 1)])
def test_every_program_runs_once(device: Any, grid: tuple[int, int, int]) -> None:
    kernel = Kernel(SQUARES)
    count = grid[0] * grid[1] * grid[2]
    for waits in (True, True, False):
        out = np.full(count + 2, -1, np.int64)
        device.wait(kernel.launch(device, (address(out) + 8, 5), grid, waits))
        assert out[0] == out[-1] == -1 and (out[1:-1] == np.arange(count, dtype=np.int64) ** 2 + 5).all()


def test_programs_of_unequal_length_are_shared(two: Any) -> None:
    kernel = Kernel(SLOW)
    out = np.zeros(200, np.int64)
    for _ in range(3):
        kernel.launch(two, (address(out),), (200, 1, 1))
    assert (out == 3).all()


def test_short_launches_that_follow_each_other(two: Any) -> None:
    """Some 20 µs each: a helper that they keep awake takes programs of many of them, and each program runs once. How
    much faster that is, ``python -m benchmarks.cpu --scaling`` shows."""
    kernel, out = Kernel(SQUARES), np.empty(20_001, np.int64)
    for turn in range(3000):
        out[::1000] = -1
        kernel.launch(two, (address(out), turn), (20_000, 1, 1))
        assert (out[:20_000:1000] == np.arange(0, 20_000, 1000) ** 2 + turn).all() and out[-1] == -1


def test_launches_run_in_order(device: Any) -> None:
    """Each adds one to what the one before wrote; short and long ones, waited for and not."""
    slow, out = Kernel(SLOW), np.zeros(50, np.int64)
    last = 0
    for turn in range(40):
        last = slow.launch(device, (address(out),), (50 if turn % 3 else 1, 1, 1), waits=turn % 5 == 0)
    device.wait(last)
    assert device.done(last) and out.max() == 40 and out[0] == 40 and (out[1:] == 26).all()


def test_threads_launch_at_once(device: Any) -> None:
    """Eight threads launch on arrays of their own; one device runs all."""
    kernel, wrong = Kernel(SQUARES), []

    def launch(seed: int) -> None:
        for turn in range(150):
            count = 1 + (seed * 37 + turn * 101) % 3000
            out = np.full(count, -1, np.int64)
            device.wait(kernel.launch(device, (address(out), seed), (count, 1, 1), waits=turn % 2 == 0))
            if not (out == np.arange(count, dtype=np.int64) ** 2 + seed).all():
                wrong.append((seed, turn))

    threads = [threading.Thread(target=launch, args=(seed,)) for seed in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong


def test_scratch_is_aligned_and_each_thread_has_its_own(device: Any) -> None:
    kernel, out = Kernel(SCRATCH, 200_000), np.zeros(20_000, np.int64)
    kernel.launch(device, (address(out),), (20_000, 1, 1))
    assert (out == np.arange(20_000)).all()


def test_subnormal_numbers_are_kept(device: Any) -> None:
    """Whatever mode the calling thread is in; that mode is as before afterwards."""
    ir = program_loop("""
  %out = load ptr, ptr %block
  %v = getelementptr double, ptr %block, i64 1
  %value = load double, ptr %v
  %half = fmul double %value, 0.5
  %at = getelementptr double, ptr %out, i64 %program
  store double %half, ptr %at
  br label %next""")
    kernel, out = Kernel(ir), np.zeros(1000)
    smallest = 2.0**-1022
    if X86:
        mode = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        ir = """
declare void @llvm.x86.sse.ldmxcsr(ptr)
declare void @llvm.x86.sse.stmxcsr(ptr)
define void @set(ptr %p) { call void @llvm.x86.sse.ldmxcsr(ptr %p)
  ret void }
define void @get(ptr %p) { call void @llvm.x86.sse.stmxcsr(ptr %p)
  ret void }"""
        modes = NATIVE.CpuObject(compiled(ir))
        before, flushing, after = ctypes.c_uint32(), ctypes.c_uint32(0x9FC0), ctypes.c_uint32()
        mode(modes.function("get"))(ctypes.byref(before))
        mode(modes.function("set"))(ctypes.byref(flushing))
    try:
        for _ in range(2):
            kernel.launch(device, (address(out), smallest), (1000, 1, 1))
        if X86:
            mode(modes.function("get"))(ctypes.byref(after))
            assert after.value & 0x9FC0 == 0x9FC0
    finally:
        if X86:
            mode(modes.function("set"))(ctypes.byref(before))
    assert (out == 2.0**-1023).all()


# -- faults ------------------------------------------------------------------------------------------------------------
def test_a_wild_access_is_an_error_with_its_address_and_instruction(device: Any) -> None:
    kernel, out = Kernel(SQUARES), np.zeros(100, np.int64)
    for waits in (True, False):
        with pytest.raises(NATIVE.KernelFault) as caught:
            device.wait(kernel.launch(device, (0x1230, 0), (100, 1, 1), waits))
        error = caught.value
        assert isinstance(error, NATIVE.DeviceError) and isinstance(error, RuntimeError)
        assert str(error).startswith("add.py:7: kernel 'k' wrote to address 0x1") and "CHECK_BOUNDS" in str(error)
        assert error.kernel == kernel.native.handle and error.signal == signal.SIGSEGV
        assert 0x1230 <= error.address < 0x1230 + 800 and kernel.object.place(error.places[0])[1] == ".text"
        kernel.launch(device, (address(out), 1), (100, 1, 1))  # the device goes on
        assert (out == np.arange(100) ** 2 + 1).all()


def test_an_address_that_no_process_can_have(two: Any) -> None:
    with pytest.raises(NATIVE.KernelFault, match="an address that no process can have") as caught:
        Kernel(SQUARES).launch(two, (-(1 << 63) + 8, 0), (1, 1, 1))
    assert caught.value.address is None


def test_memory_that_may_only_be_read(two: Any) -> None:
    text = np.frombuffer(b"constant" * 600, np.int64)
    kernel = Kernel(SQUARES)
    with pytest.raises(NATIVE.KernelFault, match="where this process may not do so"):
        kernel.launch(two, (kernel.object.address, 0), (1, 1, 1))
    assert text[0] == np.frombuffer(b"constant", np.int64)[0]


@pytest.mark.skipif(not X86, reason="aarch64 divides by zero without a trap")
def test_a_division_by_zero_is_an_error(two: Any) -> None:
    out = np.zeros(1, np.int64)
    kernel = Kernel(DIVIDE)
    with pytest.raises(NATIVE.KernelFault, match="divided an integer by zero") as caught:
        kernel.launch(two, (address(out), 0), (1, 1, 1))
    assert caught.value.signal == signal.SIGFPE
    kernel.launch(two, (address(out), 10), (1, 1, 1))
    assert out[0] == 100


def test_an_instruction_that_does_not_exist(two: Any) -> None:
    trap = program_loop("  call void @llvm.trap()\n  br label %next", "declare void @llvm.trap()")
    with pytest.raises(NATIVE.KernelFault) as caught:
        Kernel(trap).launch(two, (), (1, 1, 1))
    assert caught.value.signal in (signal.SIGILL, signal.SIGTRAP)


def test_a_fault_in_a_function_that_a_kernel_calls(two: Any) -> None:
    ir = program_loop(
        """
  %to = load ptr, ptr %block
  call void @memcpy(ptr %to, ptr %scratch, i64 100000)
  br label %next""",
        "declare void @memcpy(ptr, ptr, i64)",
    )
    kernel = Kernel(ir, 100_000)
    with pytest.raises(NATIVE.KernelFault) as caught:
        kernel.launch(two, (0x5000,), (1, 1, 1))
    assert kernel.object.place(caught.value.places[0])[1] == ".text" and not caught.value.overflow


def test_a_stack_overflow_is_an_error(two: Any) -> None:
    ir = program_loop(
        "  call void @deeper(i64 0)\n  br label %next",
        """
define void @deeper(i64 %depth) noinline {
  %array = alloca [4000 x i8]
  call void asm sideeffect "", "r"(ptr %array)
  %next = add i64 %depth, 1
  call void @deeper(i64 %next)
  call void asm sideeffect "", "r"(ptr %array)
  ret void
}""",
    )
    kernel = Kernel(ir)

    def on_a_thread() -> None:
        message = r"more stack than its thread has \(SIGSEGV at 0x.*\); smaller blocks"
        with pytest.raises(NATIVE.KernelFault, match=message) as caught:
            kernel.launch(two, (), (1, 1, 1))
        assert caught.value.overflow

    on_a_thread()
    one = threading.Thread(target=on_a_thread)
    one.start()
    one.join()


def test_the_devices_threads_have_room_for_code_that_nothing_optimised(two: Any) -> None:
    kernel = Kernel(
        program_loop(
            "  call void @deep()\n  br label %next",
            """
define void @deep() noinline "probe-stack"="inline-asm" {
  %array = alloca [12000000 x i8]
  call void asm sideeffect "", "r"(ptr %array)
  ret void
}""",
        )
    )
    before = threading.stack_size(16 << 20)
    try:
        with ThreadPoolExecutor(1) as pool:
            launched = pool.submit(kernel.launch, two, (), (64, 1, 1))
    finally:
        threading.stack_size(before)
    two.wait(launched.result())


def test_one_fault_ends_the_other_threads(two: Any) -> None:
    """Program 0 waits without an end for a flag; the first program of the other thread faults."""
    ir = program_loop(f"""
  %flag = load ptr, ptr %block
  %f = getelementptr i64, ptr %block, i64 1
  %faulty = load i64, ptr %f
{DELAY}
  %faults = icmp eq i64 %program, %faulty
  br i1 %faults, label %fault, label %spin
spin:
  %value = load atomic i64, ptr %flag monotonic, align 8
  %done = icmp ne i64 %value, 0
  br i1 %done, label %next, label %spin
fault:
  store i64 1, ptr null
  br label %next""")
    flag = np.ones(1, np.int64)
    kernel = Kernel(ir)
    kernel.launch(two, (address(flag), -1), (50, 1, 1))  # its programs are known to be long from now on
    flag[0] = 0
    with pytest.raises(NATIVE.KernelFault, match="address 0x0"):
        kernel.launch(two, (address(flag), 25), (50, 1, 1))


@pytest.mark.parametrize("when", ["before", "after", "never"])
def test_faults_elsewhere_go_to_the_handler_that_was_there(when: str) -> None:
    """A fault of other code ends the process as it did; Python's faulthandler still says where."""
    made = run(f"""
if {when == "before"}: faulthandler.enable()
device = NATIVE.CpuDevice(threads=2, timeout_ns=FOREVER)
kernel = Kernel(SQUARES)
def fault():
    try:
        kernel.launch(device, (0x1230, 0), (100, 1, 1))
    except NATIVE.KernelFault:
        print("caught", flush=True)
fault()
if {when == "after"}: faulthandler.enable()
fault()
ctypes.string_at(8)
print("survived")
""")
    assert made.returncode == -signal.SIGSEGV and made.stdout == "caught\ncaught\n"
    assert made.stderr.count("Segmentation fault") == (when != "never")


def test_a_signal_that_is_sent_is_not_a_kernel_s_fault() -> None:
    made = run("""
device = NATIVE.CpuDevice(threads=2, timeout_ns=FOREVER)
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGSEGV)).start()
Kernel(ENDLESS).launch(device, (), (4, 1, 1))
""")
    assert made.returncode == -signal.SIGSEGV


# -- stops -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("on_main_thread", [True, False])
def test_the_time_limit_stops_a_kernel_and_the_device_goes_on(on_main_thread: bool) -> None:
    device = NATIVE.CpuDevice(threads=2, timeout_ns=200_000_000)
    until, endless, out = Kernel(UNTIL), Kernel(ENDLESS), np.zeros(10, np.int64)
    flag = np.ones(1, np.int64)
    for _ in range(3):
        until.launch(device, (address(flag),), (4, 1, 1))  # now it is known to be short
    flag[0] = 0
    failed: list[BaseException] = []

    def attempt() -> None:
        for kernel, values in ((endless, ()), (until, (address(flag),)), (endless, ())):
            with pytest.raises(
                NATIVE.DeviceError, match=r"add.py:7: kernel 'k' did not end within .* 200 ms .*stopped"
            ):
                kernel.launch(device, values, (4, 1, 1))

    def caught() -> None:
        try:
            attempt()
        except BaseException as error:
            failed.append(error)

    if on_main_thread:
        attempt()
    else:
        one = threading.Thread(target=caught)
        one.start()
        one.join()
    assert not failed
    Kernel(SQUARES).launch(device, (address(out), 0), (10, 1, 1))
    assert (out == np.arange(10) ** 2).all() and not device.failed
    assert device.close()


@pytest.mark.parametrize("known", [False, True])
def test_ctrl_c_stops_the_kernel_that_is_waited_for(known: bool) -> None:
    """Whether the kernel runs on the main thread, because it was short before, or on the worker."""
    made = run(f"""
device = NATIVE.CpuDevice(threads=2, timeout_ns=FOREVER)
until, flag, out = Kernel(UNTIL), np.ones(1, np.int64), np.zeros(10, np.int64)
if {known}:
    for _ in range(3):
        until.launch(device, (address(flag),), (4, 1, 1))
for _ in range(2):
    flag[0] = 0
    try:
        threading.Timer(0.4, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        until.launch(device, (address(flag),), (4, 1, 1))
    except KeyboardInterrupt:
        print("interrupted")
Kernel(SQUARES).launch(device, (address(out), 0), (10, 1, 1))
print((out == np.arange(10) ** 2).all(), signal.getsignal(signal.SIGINT) is signal.default_int_handler)
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(5)
except KeyboardInterrupt:
    print("as before")
""")
    assert made.stdout.splitlines() == ["interrupted"] * 2 + ["True True", "as before"], made.stderr


def test_handlers_of_signals_run_during_a_launch() -> None:
    """One that does not raise leaves the launch alone."""
    made = run("""
device = NATIVE.CpuDevice(threads=2, timeout_ns=FOREVER)
until, flag = Kernel(UNTIL), np.zeros(1, np.int64)
def handler(number, frame):
    print("handled", flush=True)
    flag[0] = 1
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.3)
until.launch(device, (address(flag),), (4, 1, 1))
print("ended")
""")
    assert made.stdout == "handled\nended\n", made.stderr


def test_an_interrupted_wait_leaves_work_alone_unless_it_never_ends() -> None:
    made = run("""
device = NATIVE.CpuDevice(threads=2, timeout_ns=FOREVER)
until, slow, endless = Kernel(UNTIL), Kernel(SLOW), Kernel(ENDLESS)
flag, out = np.zeros(1, np.int64), np.zeros(400, np.int64)
until.launch(device, (address(flag),), (4, 1, 1), waits=False)
values = [slow.launch(device, (address(out),), (400, 1, 1), waits=False) for _ in range(20)]
try:
    threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    device.wait(values[-1])
except KeyboardInterrupt:
    flag[0] = 1
device.wait(values[-1])
print((out == 20).all())
endless.launch(device, (), (4, 1, 1), waits=False)
after = slow.launch(device, (address(out),), (400, 1, 1), waits=False)
try:
    threading.Timer(2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    device.wait(after)
except KeyboardInterrupt:
    print("interrupted")
try:
    device.wait(after)
except NATIVE.DeviceError as error:
    print(error)
device.wait(after)
print((out == 21).all(), device.close())
""")
    assert made.stdout.splitlines() == [
        "True",
        "interrupted",
        "add.py:7: kernel 'k' was stopped by a signal: what it wrote is incomplete",
        "True True",
    ], made.stderr


# -- processes ---------------------------------------------------------------------------------------------------------
def test_a_forked_child_goes_on() -> None:
    """Its threads begin anew. What was queued in the parent is missing, and the child hears so once."""
    made = run("""
device = NATIVE.CpuDevice(threads=3, timeout_ns=FOREVER)
squares, slow = Kernel(SQUARES), Kernel(SLOW)
out = np.zeros(100_000, np.int64)
def check(value):
    out.fill(0)
    device.wait(squares.launch(device, (address(out), value), (100_000, 1, 1), waits=value % 2 == 0))
    return (out == np.arange(100_000) ** 2 + value).all()
assert check(0) and check(1)
def fork(body):
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            body()
            sys.stdout.flush()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
fork(lambda: print("child", check(2), check(3), device.close()))
print("parent", check(4), check(5))
for _ in range(50):
    slow.launch(device, (address(out),), (400, 1, 1), waits=False)
def busy():
    try:
        device.wait(device.submitted)
        print("nothing said")
    except NATIVE.DeviceError as error:
        print("child:", str(error).partition(": ")[0])
    print("child", check(6), check(7))
fork(busy)
device.synchronize()
print("parent", check(8), check(9), device.close())
""")
    assert made.stdout.splitlines() == [
        "child True True True",
        "parent True True",
        "child: this process was forked while kernels were running",
        "child True True",
        "parent True True True",
    ], made.stdout + made.stderr


def test_closing_waits_and_then_refuses(two: Any) -> None:
    device = NATIVE.CpuDevice(threads=2, timeout_ns=FOREVER)
    out = np.zeros(400, np.int64)
    slow = Kernel(SLOW)
    for _ in range(5):
        slow.launch(device, (address(out),), (400, 1, 1), waits=False)
    assert device.close() and (out == 5).all()
    for waits in (True, False):
        with pytest.raises(RuntimeError, match="the device is closed"):
            slow.launch(device, (address(out),), (400, 1, 1), waits)


# -- memory and time ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("size", [4, 1000, 300_000, 5_000_000])
def test_copies_and_fills(device: Any, size: int) -> None:
    first, second = device.allocate_device(size + 64), device.allocate_staging(size + 64)
    assert first.address % 256 == 0 and first.host == first.address and device.owns(first.address, size + 64)
    data = np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8)
    device.upload(first.address + 4, address(data), size)
    device.copy(second.address + 8, first.address + 4, size)
    back = np.zeros(size, np.uint8)
    device.download(address(back), second.address + 8, size)
    assert (back == data).all()
    around = np.zeros(size + 16, np.uint8)
    for word in (0x01020304, 0, 0x05050505):
        device.fill(second.address, size + 16 & ~3, 0x0A0B0C0D)
        device.fill(second.address + 8, size // 4 * 4, word)
        device.download(address(around), second.address, size + 16)
        words = around[: size // 4 * 4 + 16].view(np.uint32)
        assert (words[2:-2] == word).all() and (words[[0, 1, -2, -1]] == 0x0A0B0C0D).all()
    second.free()
    with pytest.raises(ValueError, match="are not memory of this device, or were freed"):
        device.copy(first.address, first.address + size + 60, 8)


def test_copies_are_in_order_with_launches(device: Any) -> None:
    slow, buffer = Kernel(SLOW), device.allocate_device(8 * 400)
    zeros, seventies = np.zeros(400, np.int64), np.full(100, 70, np.int64)
    device.upload(buffer.address, address(zeros), 3200)
    for _ in range(5):
        slow.launch(device, (buffer.address,), (400, 1, 1), waits=False)
    device.upload(buffer.address, address(seventies), 800)
    seventies.fill(-1)  # the memory may be used again
    slow.launch(device, (buffer.address,), (400, 1, 1), waits=False)
    found = np.zeros(400, np.int64)
    device.download(address(found), buffer.address, 3200)
    assert (found[:100] == 71).all() and (found[100:] == 6).all()


def test_memory_that_is_not_there_is_an_error(two: Any) -> None:
    with pytest.raises(NATIVE.DeviceError, match="has no memory for") as caught:
        two.allocate_device(1 << 60)
    assert caught.value.no_memory


def test_freed_memory_stays_until_its_work_is_done(two: Any) -> None:
    slow = Kernel(SLOW)
    for _ in range(3):
        buffer = two.allocate_device(8 * 400 * 1000)
        last = slow.launch(two, (buffer.address,), (400, 1, 1), waits=False)
        del buffer
    two.wait(last)


def test_events_and_graphs(device: Any) -> None:
    slow, out = Kernel(SLOW), np.zeros(64, np.int64)
    begin, end = NATIVE.Event(device, True), NATIVE.Event(device, True)
    begin.record()
    slow.launch(device, (address(out),), (64, 1, 1), waits=False)
    end.record()
    assert end.query() in (True, False)
    end.synchronize()
    assert end.query() and 0.5 < begin.elapsed_ms(end) < 10_000
    graph = NATIVE.Recording(device)
    graph.begin()
    for _ in range(3):
        slow.launch(device, (address(out),), (64, 1, 1), waits=False)
    graph.end(True)
    device.synchronize()
    assert (out == 1).all()
    graph.replay()
    graph.replay()
    graph.wait()
    assert (out == 7).all()
