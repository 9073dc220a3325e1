"""How many threads share a kernel's launches: what its earlier launches took decides."""

from typing import Any

import numpy as np
import pytest
from triton.backends.spirv.runtime.cpu.loaded_kernel import CpuKernel
from triton.backends.spirv.runtime.modules.module_info import ModuleInfo

from .objects import block, compiled, program_loop
from .programs import DELAY, FOREVER, NATIVE, Kernel, address


def chosen(
    times: dict[int, float], launches: int, noise: float = 0, spread: float = 0.1, sharing: Any = None
) -> np.ndarray:
    """How many threads run each of so many launches, where a program takes so many nanoseconds with each number.
    ``noise``: the part of launches that take up to a hundred times as long, ``spread``: how much longer others do."""
    random, sharing, found = np.random.default_rng(0), sharing or NATIVE.CpuSharing(max(times)), []
    for _ in range(launches):
        found.append(sharing.threads)
        longer = random.uniform(2, 100) if random.random() < noise else random.uniform(1, 1 + spread)
        sharing.add(times[found[-1]] * longer)
    return np.array(found)


@pytest.mark.parametrize("ratio", [1.2, 2, 8, 50])
@pytest.mark.parametrize("noise", [0, 0.1])
@pytest.mark.parametrize(
    ("fastest", "threads"), [(1, 2), (2, 2), (1, 16), (4, 16), (16, 16), (4, 12), (12, 12), (5, 5)]
)
def test_most_launches_run_the_fastest_way(ratio: float, noise: float, fastest: int, threads: int) -> None:
    numbers = [*(number for number in (1, 2, 4, 8) if number < threads), threads]
    ways = chosen({number: 1 if number == fastest else ratio for number in numbers}, 40_000, noise)
    slower = ways != fastest
    assert (ways[:8] == threads).all(), "all threads share the first launches"
    assert set(ways[1_000:]) == set(numbers), "slower ways are tried again"
    assert slower[100:].sum() * (ratio - 1) < (0.2 if noise else 0.03) * ways.size


def test_fewer_threads_are_taken_where_more_gain_nothing() -> None:
    assert (chosen({1: 3.0, 2: 2.0, 4: 1.0, 8: 1.0, 16: 1.0}, 1_000, spread=0.01)[100:] == 4).mean() > 0.9


def test_what_changes_is_found_again() -> None:
    sharing = NATIVE.CpuSharing(4)
    assert (chosen({1: 1.0, 2: 2.0, 4: 3.0}, 1_000, sharing=sharing)[20:] == 1).mean() > 0.9
    assert (chosen({1: 10.0, 2: 2.0, 4: 3.0}, 4_000, sharing=sharing)[2_000:] == 2).mean() > 0.9


#: out[program] = which program of the launch it was to begin, with the arguments out, counter, begun. Programs 0 and 32
#: wait for each other's bit of *begun.
ORDER = program_loop(f"""
  %out = load ptr, ptr %block
  %c = getelementptr i64, ptr %block, i64 1
  %counter = load ptr, ptr %c
  %f = getelementptr i64, ptr %block, i64 2
  %begun = load ptr, ptr %f
  %order = atomicrmw add ptr %counter, i64 1 monotonic
  %at = getelementptr i64, ptr %out, i64 %program
  store i64 %order, ptr %at
  %zero = icmp eq i64 %program, 0
  %middle = icmp eq i64 %program, 32
  %bit = select i1 %zero, i64 1, i64 2
  %waits = or i1 %zero, %middle
  br i1 %waits, label %tell, label %begin
tell:
  %before = atomicrmw or ptr %begun, i64 %bit release
  br label %spin
spin:
  %value = load atomic i64, ptr %begun acquire, align 8
  %both = icmp eq i64 %value, 3
  br i1 %both, label %begin, label %spin
begin:
{DELAY.replace("%body", "%begin")}
  br label %next""")

#: out[program] = the scratch memory of its thread, with the arguments out, flag. Program 0 waits until program 48 has
#: begun, unless *flag is not 0.
STRIPES = program_loop(f"""
  %out = load ptr, ptr %block
  %f = getelementptr i64, ptr %block, i64 1
  %flag = load ptr, ptr %f
  %own = ptrtoint ptr %scratch to i64
  %at = getelementptr i64, ptr %out, i64 %program
  store i64 %own, ptr %at
  %other = icmp eq i64 %program, 48
  %told = zext i1 %other to i64
  %ignored = atomicrmw or ptr %flag, i64 %told release
  %zero = icmp eq i64 %program, 0
  br i1 %zero, label %spin, label %begin
spin:
  %value = load atomic i64, ptr %flag acquire, align 8
  %set = icmp ne i64 %value, 0
  br i1 %set, label %begin, label %spin
begin:
{DELAY.replace("%body", "%begin")}
  br label %next""")

#: out[program] = out[program - 1] + 1, with the argument out: each program waits until the one before has written.
CHAIN = program_loop("""
  %out = load ptr, ptr %block
  %at = getelementptr i64, ptr %out, i64 %program
  %before = getelementptr i64, ptr %at, i64 -1
  %zero = icmp eq i64 %program, 0
  br i1 %zero, label %write, label %spin
spin:
  %value = load atomic i64, ptr %before acquire, align 8
  %set = icmp ne i64 %value, 0
  br i1 %set, label %write, label %spin
write:
  %found = phi i64 [ 0, %body ], [ %value, %spin ]
  %sum = add i64 %found, 1
  store atomic i64 %sum, ptr %at release, align 8
  br label %next""")

#: out[program] = 1 if one thread has the launch, with the argument out. Then it takes some 100 µs, or else 1.
ALONE = program_loop("""
  %out = load ptr, ptr %block
  %g = getelementptr i32, ptr %grid, i64 3
  %threads = load i32, ptr %g
  %one = icmp eq i32 %threads, 1
  %result = zext i1 %one to i64
  %at = getelementptr i64, ptr %out, i64 %program
  store i64 %result, ptr %at
  %turns = select i1 %one, i64 100000, i64 1000
  br label %delay
delay:
  %turn = phi i64 [ 0, %body ], [ %later, %delay ]
  %later = add i64 %turn, 1
  call void asm sideeffect "", ""()
  %again = icmp ult i64 %later, %turns
  br i1 %again, label %delay, label %next""")


def contending(text: str, has_atomics: bool = True) -> CpuKernel:
    return CpuKernel("k", compiled(text), 0, ModuleInfo("k", (1, 1, 1), None, has_atomics=has_atomics), 64)


def ran_alone(has_atomics: bool) -> np.ndarray:
    """For each of 14 launches of ALONE on two threads, which programs began with one thread on it."""
    device, kernel = NATIVE.CpuDevice(threads=2, timeout_ns=FOREVER), contending(ALONE, has_atomics)
    found = np.full((14, 2_000), -1)
    for out in found:
        device.launch(kernel._kernel, block(address(out)), (out.size, 1, 1), name="k", waits=True)
    return found[1:]  # a launch of which nothing is known begins on one thread


@pytest.mark.parametrize("has_atomics", [False, True])
def test_one_thread_is_tried_for_kernels_with_atomics_alone(has_atomics: bool) -> None:
    assert ran_alone(has_atomics).any() == has_atomics


def test_one_thread_that_is_slower_gets_help() -> None:
    first, last = ran_alone(True)[:, [0, -1]].T
    assert first.any() and not last[first == 1].any()


def test_each_size_of_launch_has_its_number_of_threads() -> None:
    """One thread is faster for few programs, which say nothing of many."""
    device, kernel = NATIVE.CpuDevice(threads=2, timeout_ns=FOREVER), contending(ALONE)
    for size in (300, 4_000):
        found = np.full((14, size), -1)
        for out in found:
            device.launch(kernel._kernel, block(address(out)), (out.size, 1, 1), name="k", waits=True)
        assert not found[1:8].any() and found[8:, 0].any(), size


#: out[program] = the scratch memory of its thread, with the arguments out, turns: how long a program takes.
WHO = program_loop(f"""
  %out = load ptr, ptr %block
  %own = ptrtoint ptr %scratch to i64
  %at = getelementptr i64, ptr %out, i64 %program
  store i64 %own, ptr %at
  br label %begin
begin:
{DELAY.replace("%body", "%begin")}
  br label %next""")


def test_numbers_of_threads_between_are_tried() -> None:
    device, kernel = NATIVE.CpuDevice(threads=4, timeout_ns=FOREVER), contending(WHO)
    took = []
    for _ in range(30):
        out = np.zeros(3_000, np.int64)
        device.launch(kernel._kernel, block(address(out)), (out.size, 1, 1), name="k", waits=True)
        assert out.all()
        took.append(len({*out}))
    assert max(took) <= 4 and {1, 2} <= {*took[9:]}


def test_each_thread_begins_with_its_own_part() -> None:
    device, kernel = NATIVE.CpuDevice(threads=2, timeout_ns=FOREVER), Kernel(ORDER)
    for waits in (False, False, True):  # the first launch tells how long it takes
        out, counter, begun = np.full(64, -1), np.zeros(1, np.int64), np.full(1, 0 if waits else 3)
        kernel.launch(device, (address(out), address(counter), address(begun)), (64, 1, 1))
        assert sorted(out) == list(range(64))
    assert out[0] <= 1 and out[32] <= 1


def test_programs_that_may_wait_are_divided_in_stripes() -> None:
    device, kernel = NATIVE.CpuDevice(threads=2, timeout_ns=20 * 10**9), contending(STRIPES)
    for waits in (False, False, True):  # the first launch tells how long it takes
        out, flag = np.zeros(512, np.int64), np.full(1, not waits, np.int64)
        device.launch(kernel._kernel, block(address(out), address(flag)), (512, 1, 1), name="k", waits=True)
        assert out.all()
    assert out[0] != out[48] and len({*out}) == 2


@pytest.mark.parametrize("threads", [2, 7])
def test_a_program_may_wait_for_one_of_a_lower_number(threads: int) -> None:
    device, kernel = NATIVE.CpuDevice(threads=threads, timeout_ns=60 * 10**9), contending(CHAIN)
    for programs in (20_011, 5, 20_011, 131, 20_011):
        out = np.zeros(programs, np.int64)
        device.launch(kernel._kernel, block(address(out)), (programs, 1, 1), name="k", waits=True)
        assert np.array_equal(out, np.arange(1, programs + 1))


#: Each thread that shares a launch counts its programs in its scratch memory, and adds them to out[0] behind its last;
#: out[1] are programs that one thread alone had, out[2] threads that ended, out[3] locks that were not free. With the
#: arguments out, where: whether what is added is (a pointer to it is null otherwise).
COUNTED = program_loop(
    f"""
  %out = load ptr, ptr %block
  %b = getelementptr i64, ptr %block, i64 1
  %where = load ptr, ptr %b
  %g = getelementptr i32, ptr %grid, i64 3
  %threads = load i32, ptr %g
  %keeps = icmp eq i32 %threads, 3
  %alone = getelementptr i64, ptr %out, i64 1
  %place = select i1 %keeps, ptr %scratch, ptr %alone
  %old = load i64, ptr %place
  %new = add i64 %old, 1
  store i64 %new, ptr %place
  %kept = insertelement <2 x ptr> <ptr null, ptr poison>, ptr %where, i64 1
  %both = insertelement <2 x ptr> %kept, ptr %out, i64 0
  %behind = getelementptr i64, ptr %scratch, i64 1
  store <2 x ptr> %both, ptr %behind, align 8
{DELAY.replace("%body", "%body").replace("100000", "3000")}
  br label %next""",
    """define void @"k.updates"(ptr %scratch, ptr %grid, ptr %stop, i32 %begins) nounwind {
entry:
  %behind = getelementptr i64, ptr %scratch, i64 1
  %new = icmp ne i32 %begins, 0
  br i1 %new, label %begin, label %end
begin:
  store i64 0, ptr %scratch
  store ptr null, ptr %behind
  ret void
end:
  %out = load ptr, ptr %behind
  %none = icmp eq ptr %out, null
  br i1 %none, label %nothing, label %add
nothing:
  ret void
add:
  %l = getelementptr i32, ptr %grid, i64 4
  %locks = load ptr, ptr %l
  %f = getelementptr i32, ptr %grid, i64 6
  %number = load i32, ptr %f
  %lock = getelementptr [16 x i32], ptr %locks, i32 %number
  %taken = atomicrmw xchg ptr %lock, i32 1 acquire
  %held = load i64, ptr %scratch
  %w = getelementptr i64, ptr %scratch, i64 2
  %where = load ptr, ptr %w
  %sum = atomicrmw add ptr %where, i64 %held monotonic
  %ends = getelementptr i64, ptr %out, i64 2
  %count = atomicrmw add ptr %ends, i64 1 monotonic
  %wide = zext i32 %taken to i64
  %busy = getelementptr i64, ptr %out, i64 3
  %more = atomicrmw add ptr %busy, i64 %wide monotonic
  store atomic i32 0, ptr %lock release, align 4
  ret void
}""",
)


@pytest.mark.parametrize("threads", [2, 5])
def test_each_thread_makes_its_updates_once(threads: int) -> None:
    device, kernel = NATIVE.CpuDevice(threads=threads, timeout_ns=FOREVER), contending(COUNTED)

    def run(programs: int, adds: bool = True) -> np.ndarray:
        out = np.zeros(4, np.int64)
        arguments = block(address(out), address(out) if adds else 0)
        device.launch(kernel._kernel, arguments, (programs, 1, 1), name="k", waits=True)
        return out

    shared = 0
    for programs in (3_001, 7_000, 3_001, 2, 3_001):
        out = run(programs)
        assert out[0] + out[1] == programs and out[2] <= threads and out[3] == 0
        shared += out[0]
    assert shared > 0
    with pytest.raises(NATIVE.KernelFault):
        run(3_001, adds=False)
    assert run(3_001)[3] == 0, "a launch that ended with locks taken"
