"""Atomic updates that each of several threads keeps in a log and makes later, together."""

import ctypes
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.cpu.decoded_module import KernelModule
from triton.backends.spirv.cpu.delayed_updates import DelayedUpdates
from triton.backends.spirv.cpu.divergence import Divergence
from triton.backends.spirv.cpu.host import host_of
from triton.backends.spirv.cpu.module_translation import translate
from triton.backends.spirv.cpu.objects import make
from triton.backends.spirv.optional import DELAYED_UPDATES
from triton.backends.spirv.runtime.native_module import native

from tests.unit.cpu.kernels import PROFILES_HERE, block_of, compiled

RANDOM = np.random.default_rng(33)
INT, FLOAT = np.zeros(4, np.int32), np.zeros(4, np.float32)


@triton.jit
def scatter(index, x, out, n, rounds, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place, value = tl.load(index + at, mask=at < n, other=0), tl.load(x + at, mask=at < n, other=5)
    tl.atomic_add(out + place, value, mask=at < n)


@triton.jit
def rows(index, x, out, n, rounds, BLOCK: tl.constexpr):
    """Neighbouring elements, from an odd one on, every other one."""
    at, value = tl.arange(0, BLOCK), tl.load(x + tl.arange(0, BLOCK), mask=tl.arange(0, BLOCK) < n, other=5)
    mask = (at < n) & ((at + tl.program_id(0) // 37) % 2 == 0)
    tl.atomic_add(out + 3 + tl.program_id(0) % 37 * n + at, value, mask=mask)


@triton.jit
def rows_anywhere(index, x, out, n, rounds, other, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    to, value = tl.load(index + row) * n, tl.load(x + row * n + at, mask=at < n, other=5)
    tl.atomic_add(out + to + at, value, mask=at < n)
    tl.atomic_add(other + to + at, value + value, mask=at < n)


@triton.jit
def in_order(index, x, out, n, rounds, BLOCK: tl.constexpr):
    """Each program's elements are its own: the last update counts."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place, value = tl.load(index + at, mask=at < n, other=0), tl.load(x + at, mask=at < n, other=5)
    tl.atomic_xchg(out + place, value, mask=at < n)
    tl.atomic_add(out + place, 3, mask=at < n)
    tl.atomic_max(out + place, 2, mask=at < n)


@triton.jit
def neighbours_in_order(index, x, out, n, rounds, BLOCK: tl.constexpr):
    at = tl.program_id(0) * 16 + tl.arange(0, 16)
    tl.atomic_max(out + at, tl.load(x + at, mask=at < n, other=5), mask=at < n)
    tl.atomic_add(out + at, 3, mask=at < n)
    tl.atomic_max(out + at, 2, mask=at < n)
    tl.atomic_add(out + at, 1, mask=at < n)


@triton.jit
def found(index, x, out, n, rounds, BLOCK: tl.constexpr):
    tl.store(x + tl.program_id(0), tl.atomic_add(out, 1))


@triton.jit
def read_after(index, x, out, n, rounds, BLOCK: tl.constexpr):
    tl.atomic_add(out + tl.arange(0, BLOCK), 1.0)
    tl.debug_barrier()
    tl.store(x + tl.arange(0, BLOCK), tl.load(out + tl.arange(0, BLOCK)))


@triton.jit
def in_a_loop(index, x, out, n, rounds, BLOCK: tl.constexpr):
    for _ in range(rounds):  # two registers
        tl.atomic_add(out + tl.arange(0, BLOCK // 2), 1.0)


@triton.jit
def volatile(index, x, out, n, rounds, BLOCK: tl.constexpr):
    while tl.load(index, volatile=True) == 0:
        pass
    tl.atomic_add(out + tl.arange(0, BLOCK), 1.0)


@triton.jit
def exchanged(index, x, out, n, rounds, BLOCK: tl.constexpr):
    tl.atomic_cas(index, 0, 1)
    tl.atomic_add(out + tl.arange(0, BLOCK), 1.0)


def _log_of(program: KernelModule) -> DelayedUpdates:
    return DelayedUpdates(program, 16, Divergence(program, 16, 16))


def _log(kernel: Any) -> tuple[KernelModule, DelayedUpdates]:
    made = compiled(PROFILES_HERE[-1], kernel, [INT, FLOAT, FLOAT, 4, 4], {"BLOCK": 64})
    program = KernelModule(made.asm["spv"])
    return program, _log_of(program)


@triton.jit
def rows_in_a_loop(index, x, out, n, rounds, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0), rounds, tl.num_programs(0)):
        value = tl.load(x + row * n + at, mask=at < n, other=5)
        tl.atomic_add(out + 3 + row % 3 * n + at, value, mask=at < n)
        tl.atomic_add(out + 3 + 3 * n + at * 5 % BLOCK, value, mask=at < n)


@triton.jit
def read_in_a_loop(index, x, out, n, rounds, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    for _ in range(rounds):
        tl.atomic_add(out + at, 1.0, mask=at < n)
        tl.store(out + at, tl.load(out + at, mask=at < n) * 2, mask=at < n)


@triton.jit
def in_strips(index, x, out, n, rounds, BLOCK: tl.constexpr):
    """What is updated is read before and after. Programs add to the same elements behind those of their own."""
    at, first = tl.arange(0, BLOCK), tl.program_id(0) * n
    old = tl.load(out + first + at, mask=at < n, other=0)
    tl.store(x + first + at, old * 2, mask=at < n)
    tl.atomic_add(out + first + at, old + 1, mask=at < n)
    tl.atomic_add(out + tl.num_programs(0) * n + 3 + at, old, mask=at < n)
    if rounds > 1:
        tl.atomic_max(out + first + at, 9, mask=at < n)
        tl.debug_barrier()
        new = tl.load(out + first + (n - 1 - at), mask=at < n, other=0)
        tl.atomic_xchg(x + first + at, new, mask=at < n)


@pytest.mark.parametrize("kernel", [scatter, rows, read_after, rows_in_a_loop], ids=lambda kernel: kernel.fn.__name__)
def test_each_register_is_an_update(kernel: Any) -> None:
    program, log = _log(kernel)
    assert log.most == (8 if kernel is rows_in_a_loop else 4) and log.bytes > 0
    program.without = frozenset({DELAYED_UPDATES})
    assert _log_of(program).bytes == 0


@pytest.mark.parametrize("kernel", [found, in_a_loop, volatile, exchanged], ids=lambda kernel: kernel.fn.__name__)
def test_updates_that_a_program_could_see_are_made_at_once(kernel: Any) -> None:
    assert _log(kernel)[1].most == 0


class _Launches:
    """Of a kernel on several threads, until its time is known and all take part."""

    def __init__(self, profile: str, kernel: Any, arguments: list[Any], block: int, threads: int = 2) -> None:
        made = compiled(profile, kernel, arguments, {"BLOCK": block})
        code = make(made.asm["spv"], PROFILES[profile].subgroup_size, PROFILES[profile].processor)
        self._module, self._block = native(), block_of(arguments)
        self._kernel = self._module.CpuKernel(self._module.CpuObject(code.code), made.metadata.name, code.scratch)
        self._device = self._module.CpuDevice(threads=threads, timeout_ns=60 * 10**9)

    def run(self, programs: int, times: int = 1, arguments: Sequence[Any] = ()) -> None:
        block = block_of(list(arguments)) if arguments else self._block
        for _ in range(times):
            self._device.launch(self._kernel, block, [programs, 1, 1], name="delayed")


#: One of 4,096 elements is a loop over strips.
@pytest.mark.parametrize("block", [64, 4096])
@pytest.mark.parametrize("dtype", ["int32", "float32", "int64", "float64"])
def test_sums_of_scattered_elements(profile: str, dtype: str, block: int) -> None:
    n, bins, times = 200_003, 601, 5
    index, x = RANDOM.integers(0, bins, n).astype(np.int32), RANDOM.integers(-4, 5, n).astype(dtype)
    out = np.full(bins + 9, 7, dtype)
    _Launches(profile, scatter, [index, x, out, n, 0], block).run(-(-n // block), times)
    assert np.array_equal(out, 7 + times * np.bincount(index, x, bins + 9))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_records_fit_in_the_room_for_those_of_a_program(profile: str, dtype: str) -> None:
    arrays = [np.zeros(4, dtype)] * 3
    spirv = compiled(profile, scatter, [*arrays, 4, 4], {"BLOCK": 64}).asm["spv"]
    text = translate(spirv, host_of(PROFILES[profile].processor), PROFILES[profile].subgroup_size).text
    record = re.search(r"getelementptr <\{ (.*?) \}>, ptr %log.record", text)
    full = re.search(r"%waits = icmp ugt i64 %held, (\d+)", text)
    assert record is not None and full is not None
    sizes = {"i64": 8, "<16 x i64>": 128, "<16 x i32>": 64, "<16 x i1>": 2}
    assert (1 << 16) - int(full[1]) >= 4 * sum(sizes[part] for part in record[1].split(", "))


@pytest.mark.parametrize("n", [1, 16, 45, 64])
def test_neighbours_keep_their_bits(profile: str, n: int) -> None:
    """What lies beside may be integers, whose bits are those of a signaling NaN. -0.0 remains if nothing else is added,
    and subnormal numbers are."""
    x, bits = RANDOM.integers(-4, 5, 64).astype(np.float32), np.full(37 * n + 80, 0x7F800001, np.uint32)
    x[:3], bits[3 : 3 + 37 * n] = [-0.0, 1e-45, np.inf], 0x80000000
    _Launches(profile, rows, [INT, x, bits.view(np.float32), n, 0], 64).run(37 * 200, 5)
    assert np.array_equal(bits[3 : 3 + 37 * n], np.tile((x[:n] * np.float32(500)).view(np.uint32), 37))
    assert (np.r_[bits[:3], bits[3 + 37 * n :]] == 0x7F800001).all()


@pytest.mark.parametrize(("dtype", "n"), [("int32", 45), ("float32", 1), ("float32", 45), ("float64", 64)])
def test_updates_in_a_loop(profile: str, dtype: str, n: int) -> None:
    count, times = 60_001, 3
    x, out = RANDOM.integers(-4, 5, count * n).astype(dtype), np.full(3 * n + 73, 7, dtype)
    _Launches(profile, rows_in_a_loop, [INT, x, out, n, count], 64).run(16, times)
    sums = times * np.stack([x.reshape(count, n)[row::3].sum(0) for row in range(3)])
    expected = np.r_[[0] * 3, sums.reshape(-1), [0] * 70] + 7.0
    expected[3 + 3 * n + np.arange(n) * 5 % 64] += sums.sum(0)
    assert np.array_equal(out, expected)


def test_a_program_reads_what_it_updated_in_a_loop(profile: str) -> None:
    _Launches(profile, read_in_a_loop, [INT, FLOAT, out := np.zeros(40_008, np.float32), 40_003, 10], 64).run(626)
    assert (out[:40_003] == 2**11 - 2).all() and not out[40_003:].any()


#: Of 65,536 elements, the updates of a program take ten times the room of the log.
@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize(("n", "block", "programs"), [(1000, 1024, 800), (4096, 4096, 131), (60_001, 65_536, 31)])
def test_loops_over_strips_keep_updates(profile: str, n: int, block: int, programs: int, rounds: int) -> None:
    old = RANDOM.integers(-4, 5, (programs, n)).astype(np.int32)
    x, out = np.full(programs * n + 5, 77, np.int32), np.zeros((programs + 1) * n + 9, np.int32)
    launches = _Launches(profile, in_strips, [INT, x, out, n, rounds], block)
    for _ in range(4):
        out[:], out[: programs * n] = 7, old.reshape(-1)
        launches.run(programs)
        new = np.maximum(2 * old + 1, 9) if rounds > 1 else 2 * old + 1
        seen = new[:, ::-1] if rounds > 1 else 2 * old
        sums = np.r_[[7] * 3, 7 + old.sum(0), [7] * 6]
        assert np.array_equal(out, np.r_[new.reshape(-1), sums])
        assert np.array_equal(x, np.r_[seen.reshape(-1), [77] * 5])


def test_rounds_of_strips_are_independent() -> None:
    made = compiled(PROFILES_HERE[-1], in_strips, [INT, INT, INT, 4, 4], {"BLOCK": 4096})
    program = KernelModule(made.asm["spv"])
    marked = [block for block in program.blocks.values() if block.independent]
    assert marked and not any(block.label in _log_of(program).kept for block in marked[:1])
    assert all(block.merge in _log_of(program).kept for block in marked)


#: More rows than a log holds, or as many, or few; some lie across the parts of memory that have locks of their own.
@pytest.mark.parametrize("threads", [2, 5, 16])
@pytest.mark.parametrize(
    ("n", "places", "count", "overlap", "byte"),
    [(1, 1, 90_001, 0, 0), (45, 600, 30_001, 7, 2), (64, 9_000, 30_001, 100_000, 0), (61, 3_000, 30_001, 3_001, 1)],
)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_sums_of_rows(
    profile: str, dtype: str, n: int, places: int, count: int, overlap: int, byte: int, threads: int
) -> None:
    index, x = RANDOM.integers(0, places, count).astype(np.int32), RANDOM.integers(-4, 5, (count, n)).astype(dtype)
    size = places * n
    out = np.zeros(4 * (size + 100_040) + 4, np.uint8)[byte : byte - 4].view(dtype)
    out[:] = 7
    launches = _Launches(profile, rows_anywhere, [index, x, out[9:], n, 0, out[9 + overlap :]], 64, threads)
    launches.run(count, 10)
    sums = np.zeros((places, n))
    np.add.at(sums, index, x.astype(np.float64))
    expected = np.full(out.size, 7.0)
    expected[9:][:size] += 10 * sums.ravel()
    expected[9 + overlap :][:size] += 20 * sums.ravel()
    assert np.array_equal(out, expected)


def test_a_table_finds_the_sums_of_rows_in_any_order(profile: str) -> None:
    """2²⁴ + 1 is 2²⁴ in fp32, however often."""
    index, x = RANDOM.integers(0, 37, 74_000).astype(np.int32), np.ones((74_000, 16), np.float32)
    out = np.full((2, 37, 16), 2.0**24, np.float32)
    _Launches(profile, rows_anywhere, [index, x, out[0], 16, 0, out[1]], 16).run(74_000, 5)
    assert (out[0] > 2**24 + 5_000).all() and (out[1] > 2**24 + 10_000).all()


def test_launches_of_several_threads_of_the_program(profile: str) -> None:
    n, places, count = 45, 600, 8_001
    index, x = RANDOM.integers(0, places, count).astype(np.int32), RANDOM.integers(-4, 5, (count, n)).astype(np.int32)
    outs = np.zeros((3, 2, places, n), np.int32)
    launches = _Launches(profile, rows_anywhere, [index, x, outs[0, 0], n, 0, outs[0, 1]], 64, 4)
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda out: launches.run(count, 9, [index, x, out[0], n, 0, out[1]]), outs))
    sums = np.zeros((places, n), np.int32)
    np.add.at(sums, index, x)
    assert all(np.array_equal(out, [9 * sums, 18 * sums]) for out in outs)


def test_updates_of_a_program_keep_their_order(profile: str) -> None:
    n = 300_007
    index, x = RANDOM.permutation(n).astype(np.int32), RANDOM.integers(-9, 9, n).astype(np.int32)
    out = np.zeros(n + 5, np.int32)
    _Launches(profile, in_order, [index, x, out, n, 0], 128).run(-(-n // 128), 3)
    assert np.array_equal(out[index], np.maximum(x + 3, 2)) and not out[n:].any()
    out[:n] = -100
    _Launches(profile, neighbours_in_order, [INT, x, out, n, 0], 16).run(-(-n // 16))
    assert np.array_equal(out[:n], np.maximum(x + 3, 2) + 1) and not out[n:].any()


@pytest.mark.parametrize(("kernel", "n", "programs"), [(scatter, 200_003, 3_126), (rows_anywhere, 1, 200_003)])
@pytest.mark.parametrize("threads", [2, 5])
def test_an_update_outside_is_an_error_and_the_next_launch_works(
    profile: str, kernel: Any, n: int, programs: int, threads: int
) -> None:
    count = 200_003
    index, x, out = np.zeros(count, np.int32), np.ones(count, np.int32), np.zeros(9, np.int32)
    launches = _Launches(profile, kernel, [index, x, out, n, 0, *[out[1:]] * (kernel is rows_anywhere)], 64, threads)
    launches.run(programs, 3)
    index[count // 2 :] = -(2**31)
    with pytest.raises(native().KernelFault, match="no memory of this process"):
        launches.run(programs)
    index[:], out[:] = 0, 0
    launches.run(programs, 2)
    assert out[0] == 2 * count and out[1] == (4 * count if kernel is rows_anywhere else 0) and not out[2:].any()


class _Thread:
    """A thread of a launch, with locks of which others have one."""

    def __init__(self, profile: str, arguments: list[Any]) -> None:
        made = compiled(profile, rows_anywhere, arguments, {"BLOCK": PROFILES[profile].subgroup_size})
        code = make(made.asm["spv"], PROFILES[profile].subgroup_size, PROFILES[profile].processor)
        self._object, at = native().CpuObject(code.code), ctypes.c_void_p
        entry, updates = [self._object.function(made.metadata.name + end) for end in ("", ".updates")]
        self._entry = ctypes.CFUNCTYPE(None, at, ctypes.c_uint64, ctypes.c_uint64, at, at, at)(entry)
        self._updates = ctypes.CFUNCTYPE(None, at, at, at, ctypes.c_int32)(updates)
        self._scratch, self._block = np.zeros(code.scratch + 64, np.uint8), block_of(arguments)

    def run(self, taken: list[int]) -> list[int]:
        """Runs a program, and makes its updates until one waits for a lock. Gives the locks that are taken then."""
        locks, scratch = np.zeros((64, 16), np.int32), -(-self._scratch.ctypes.data // 64) * 64
        locks[taken, 0] = 1
        grid = np.array([1 | 1 << 32, 1 | 3 << 32, locks.ctypes.data, 40], np.uint64).ctypes.data
        runs, stops = np.zeros(1, np.int32), np.ones(1, np.int32)
        self._updates(scratch, grid, runs.ctypes.data, 1)
        self._entry(self._block, 0, 1, grid, scratch, runs.ctypes.data)
        self._updates(scratch, grid, stops.ctypes.data, 0)
        return np.flatnonzero(locks[:, 0]).tolist()


def test_each_part_of_memory_is_updated_under_its_lock(profile: str) -> None:
    lanes, memory, parts = PROFILES[profile].subgroup_size, np.zeros(5_120, np.uint8), dict[int, list[int]]()
    begin, x = -memory.ctypes.data % 1024, np.ones(lanes, np.int32)
    for at in (0, 1024, 2048, 3072, 1020, 2047, 3001):
        out, parts[at] = memory[begin + at :][: 4 * lanes].view(np.int32), []
        thread = _Thread(profile, [INT, x, out, lanes, 0, out])
        out[:] = 0
        assert thread.run([]) == [] and (out == 3).all()
        for lock in range(64):
            out[:] = 0
            left = thread.run([lock])
            if out.any():
                assert left == [lock] and (out == 3).all()
            else:
                parts[at].append(lock)
                assert left == parts[at], "locks are taken in ascending order"
    assert len({*parts[0], *parts[1024], *parts[2048], *parts[3072]}) == 4
    assert parts[1020] == sorted(parts[0] + parts[1024]) and parts[2047] == sorted(parts[1024] + parts[2048])
    assert parts[3001] == parts[2048]
