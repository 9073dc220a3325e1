"""Races in shared memory (``check_races=True``): none in what is compiled; each barrier that is left out makes one."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton import knobs
from triton.backends.spirv import cli
from triton.backends.spirv.lowering.workgroup_memory import SharedMemory
from triton.backends.spirv.planning import kernel_plan
from triton.backends.spirv.runtime import OutOfBounds, SharedMemoryRace, load
from triton.runtime import driver

from tests.device.helpers import device_capabilities
from tests.device.test_barriers import LOOP, PAIRS
from tests.device.test_convert_layout import COLUMNS, ROWS, addresses

#: Why races are looked for on a Vulkan device.
ONE_SUBGROUP = "a workgroup is one subgroup on the CPU device, and has no barriers that could be left out"


class Barriers:
    """Which of a kernel's barriers is left out, and how many it has."""

    def __init__(self) -> None:
        self.left_out: int | None = None
        self.count = 0


_BUFFER = "!ttg.memdesc<8xi32, #shared, #ttg.shared_memory, mutable>"
STORED = f"ttg.local_alloc %value : (tensor<8xi32, #source>) -> {_BUFFER}"
SCATTERED = f"""ttg.local_alloc : () -> {_BUFFER}
    "ttg.local_scatter"(%m, %value, %at) <{{axis = 0 : i32}}> :
      ({_BUFFER}, tensor<8xi32, #source>, tensor<8xi32, #source>) -> ()"""

#: Eight elements go through a buffer; each subgroup holds all of them.
COPIES = """
#source = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [8], warpsPerCTA = [4], order = [0]}>
#target = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [8], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "spirv:vulkan1.3",
    "ttg.threads-per-warp" = 8 : i32} {
  tt.func public @copies(%x: !tt.ptr<i32>, %y: !tt.ptr<i32>) attributes {noinline = false} {
    %at = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32, #source>
    %xs = tt.splat %x : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>, #source>
    %px = tt.addptr %xs, %at : tensor<8x!tt.ptr<i32>, #source>, tensor<8xi32, #source>
    %value = tt.load %px : tensor<8x!tt.ptr<i32>, #source>
    %m = ttg.local_alloc %value : (tensor<8xi32, #source>) -> !ttg.memdesc<8xi32, #shared, #ttg.shared_memory, mutable>
    %l = ttg.local_load %m : !ttg.memdesc<8xi32, #shared, #ttg.shared_memory, mutable> -> tensor<8xi32, #target>
    %to = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32, #target>
    %ys = tt.splat %y : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>, #target>
    %py = tt.addptr %ys, %to : tensor<8x!tt.ptr<i32>, #target>, tensor<8xi32, #target>
    tt.store %py, %l : tensor<8x!tt.ptr<i32>, #target>
    tt.return
  }
}
"""


@pytest.fixture
def barriers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Barriers]:
    """The barriers of kernels that are compiled from here on, into their own cache."""
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    kept = Barriers()
    begin, barrier = SharedMemory.__init__, SharedMemory.barrier

    def counted_from_zero(self: SharedMemory, *arguments: Any) -> None:
        kept.count = 0
        begin(self, *arguments)

    def counted(self: SharedMemory, *arguments: Any) -> None:
        kept.count += 1
        if kept.count - 1 != kept.left_out:
            barrier(self, *arguments)

    monkeypatch.setattr(SharedMemory, "__init__", counted_from_zero)
    monkeypatch.setattr(SharedMemory, "barrier", counted)
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        yield kept


@triton.jit
def columns_kernel(x_ptr, y_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    x = tl.load(x_ptr + at[:, None] * SIZE + at[None, :])
    tl.store(y_ptr + at[:, None] * SIZE + at[None, :], x - tl.cumsum(tl.sum(x, 0), 0)[None, :])


@triton.jit
def transposing_kernel(x_ptr, y_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    x = tl.load(x_ptr + at[:, None] * SIZE + at[None, :]).to(tl.float16)
    tl.store(y_ptr + at[:, None] * SIZE + at[None, :], tl.trans(x).to(tl.float32))


@triton.jit
def product_kernel(x_ptr, y_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for step in range(3):
        x = tl.load(x_ptr + at[:, None] * SIZE + at[None, :])
        total += tl.dot(x, x + step)
    tl.store(y_ptr + at[:, None] * SIZE + at[None, :], total)


@triton.jit
def counting_kernel(x_ptr, y_ptr, SIZE: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, 4 * SIZE))
    counts = tl.histogram((x * SIZE).to(tl.int32), SIZE)
    tl.store(y_ptr + tl.arange(0, SIZE), tl.gather(counts, (tl.arange(0, SIZE) * 3) % SIZE, 0).to(tl.float32))


@triton.jit
def sharing_kernel(x_ptr, y_ptr, SIZE: tl.constexpr):
    old = tl.atomic_add(y_ptr + SIZE + tl.arange(0, 16), 1.0)
    tl.store(y_ptr + tl.arange(0, 16), old)


@triton.jit
def sums_kernel(x_ptr, y_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    x = tl.load(x_ptr + at[:, None] * SIZE + at[None, :])
    x += tl.sum(x, 0)[None, :]
    for step in range(3):
        x += tl.sum(x, 0)[None, :]
        if step != 1:
            x -= tl.max(x, 0)[None, :]
        x *= 1 / tl.sum(x * x, 0)[None, :]
    tl.store(y_ptr + at[:, None] * SIZE + at[None, :], x + tl.sum(x, 0)[None, :])


def launch(kernel: Any, **options: Any) -> Any:
    """Runs the kernel in two programs."""
    kernel.device_caches.clear()
    x = torch.rand(16, 16)
    return kernel[(2,)](x, torch.zeros_like(x), SIZE=16, check_races=True, **options)


def missed_races(kernel: Any, barriers: Barriers) -> list[int]:
    """The barriers of ``kernel`` that can be left out one at a time without a race being found."""
    missed = []
    for number in range(barriers.count):
        barriers.left_out = number
        try:
            launch(kernel)
        except SharedMemoryRace as race:
            assert "with no barrier between" in str(race)
        else:
            missed.append(number)
    return missed


#: Of four subgroups of 4 invocations each has one bin, and writes where it alone has read.
OWN_BINS = [2] if device_capabilities().subgroup_size == 4 else []


#: A kernel, and the barriers that shared memory does not need, such as the barriers for device memory around the
#: atomic operation.
@pytest.mark.only_on("Vulkan", ONE_SUBGROUP)
@pytest.mark.parametrize(
    ("kernel", "spare"),
    [
        (columns_kernel, []),
        (transposing_kernel, []),
        (product_kernel, []),
        (counting_kernel, OWN_BINS),
        (sharing_kernel, [0, 1]),
    ],
    ids=lambda value: value.fn.__name__ if hasattr(value, "fn") else "",
)
def test_each_barrier_that_is_left_out_is_a_race(kernel, spare, barriers):
    launch(kernel)
    assert barriers.count
    assert missed_races(kernel, barriers) == spare


@pytest.mark.only_on("Vulkan", "the layouts are for subgroups of 8 invocations, as those of Mesa's CPU driver")
@pytest.mark.parametrize(("spare", "count"), [(256, 6), (1024, 5)])
def test_exchanges_that_lie_apart(spare, count, barriers, monkeypatch):
    """Each of five exchanges has its own barrier; one of a loop's three has another where two find room."""
    monkeypatch.setattr(kernel_plan, "spare_bytes", lambda *_: spare)
    launch(sums_kernel)
    assert barriers.count == count
    for number in range(count):
        barriers.left_out = number
        with pytest.raises(SharedMemoryRace):
            launch(sums_kernel)


@pytest.mark.only_on("Vulkan", "the layouts are for such subgroups", subgroup_size=8)
@pytest.mark.parametrize("scattered", [False, True])
def test_one_invocation_writes_of_those_with_the_same_elements(scattered, barriers, tmp_path):
    """All subgroups have the same eight elements."""
    path = tmp_path / "copies.ttgir"
    assert STORED in COPIES
    path.write_text(COPIES.replace(STORED, SCATTERED) if scattered else COPIES)
    x, y = torch.arange(8, dtype=torch.int32), torch.zeros(8, dtype=torch.int32)

    def run() -> None:
        options = {"num_warps": 4, "check_races": True}
        kernel = triton.compile(str(path), target=driver.active.get_current_target(), options=options)
        kernel[(1, 1, 1)](x, y)

    run()
    assert (x == y).all() and barriers.count == 1
    barriers.left_out = 0
    with pytest.raises(SharedMemoryRace):
        run()


@pytest.mark.skipif(
    device_capabilities().subgroup_size == 16 or device_capabilities().traits.most_shuffles is None,
    reason="a subgroup exchanges the tile by shuffles",
)
def test_race_within_a_subgroup(barriers):
    launch(transposing_kernel, num_warps=1)
    assert barriers.count
    for number in range(barriers.count):
        barriers.left_out = number
        with pytest.raises(SharedMemoryRace) as caught:
            launch(transposing_kernel, num_warps=1)
        assert max(caught.value.invocations) < device_capabilities().subgroup_size


@pytest.mark.only_on("Vulkan", "the layouts are for such subgroups", subgroup_size=8)
@pytest.mark.parametrize(("target", "count"), [(ROWS, 0), (PAIRS, 2), (COLUMNS, 2)])
def test_barriers_of_subgroups_and_of_the_workgroup(target, count, barriers, tmp_path):
    path = tmp_path / "rounds.ttgir"
    shape = (16, 16)
    source, place = addresses("%x", "s", "#source", shape, "f32"), addresses("%y", "t", "#target", shape, "f32")
    path.write_text(LOOP.format(source=ROWS, target=target, address_source=source, address_target=place))
    x, y = torch.ones(16, 16), torch.zeros(16, 16)

    def run() -> None:
        options = {"num_warps": 4, "check_races": True}
        kernel = triton.compile(str(path), target=driver.active.get_current_target(), options=options)
        kernel[(1, 1, 1)](x, y)

    run()
    assert barriers.count == count and (y == 31).all()
    for number in range(count):
        barriers.left_out = number
        with pytest.raises(SharedMemoryRace):
            run()


def line_of(kernel: Any, text: str) -> int:
    """The line of this file at which the source of ``kernel`` has ``text``."""
    lines, first = inspect.getsourcelines(kernel.fn)
    return first + next(number for number, line in enumerate(lines) if text in line)


@pytest.mark.only_on("Vulkan", ONE_SUBGROUP)
def test_what_is_reported(barriers):
    barriers.left_out = 0  # between the writes of the conversion and its reads
    with pytest.raises(SharedMemoryRace) as caught:
        launch(transposing_kernel)
    error, line = caught.value, line_of(transposing_kernel, "tl.store")
    later, earlier = error.invocations
    assert (error.kernel, error.line, error.other_line) == ("transposing_kernel", line, line)
    assert error.program in ((0, 0, 0), (1, 0, 0)) and later != earlier and error.count > 1
    assert error.file == error.other_file == __file__
    assert str(error) == (
        f"{__file__}:{line}: kernel 'transposing_kernel': race in shared memory: ttg.convert_layout reads byte "
        f"{error.byte} in invocation {later}, and ttg.convert_layout of {__file__}:{line} writes it in invocation "
        f"{earlier}, with no barrier between; program {error.program}; {error.count} such accesses in this launch"
    )


@triton.jit
def failing_kernel(x_ptr, y_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    x = tl.load(x_ptr + at[:, None] * SIZE + at[None, :])
    tl.device_assert(tl.sum(x) < 0, "positive")
    tl.store(y_ptr + at[:, None] * SIZE + at[None, :] + 8, tl.trans(x))


@pytest.mark.only_on("Vulkan", ONE_SUBGROUP)
def test_with_what_else_is_checked(barriers):
    """The race comes first, and the others are its notes."""
    with pytest.raises(OutOfBounds):
        launch(failing_kernel, debug=True, check_bounds=True)
    barriers.left_out = barriers.count - 1
    with pytest.raises(SharedMemoryRace) as caught:
        launch(failing_kernel, debug=True, check_bounds=True)
    outside, failed = caught.value.__notes__
    assert "argument 'y_ptr' at index 256" in outside and "assertion failed: positive; program (" in failed


@pytest.mark.only_on("Vulkan", ONE_SUBGROUP)
def test_more_programs_than_are_checked_and_than_an_axis_holds():
    """The grid is launched in parts, which share the memory that accesses are noted in."""
    x, y = torch.rand(16, 16), torch.zeros(16, 16)
    transposing_kernel.device_caches.clear()
    kernel = transposing_kernel[(65537,)](x, y, SIZE=16, check_races=True)
    (facts,) = (message for message in kernel.metadata.reports if message["kind"] == "races")
    assert facts["programs"] < 65537 and facts["bytes"] * facts["programs"] <= 64 << 20
    assert (y == x.half().float().T).all()


@pytest.mark.only_on("Vulkan", ONE_SUBGROUP)
def test_kernel_of_a_file(barriers, tmp_path):
    module = tmp_path / "transposing.spv"
    arguments = ["-s", "*fp32, *fp32, 16", "--check-races", "-o", str(module)]
    x, y = torch.rand(16, 16), torch.zeros(16, 16)
    assert cli.main(["compile", f"{__file__}:transposing_kernel", *arguments]) == 0
    load(module)[(2,)](x, y)
    assert (y == x.half().float().T).all()
    barriers.left_out = 0
    assert cli.main(["compile", f"{__file__}:transposing_kernel", *arguments]) == 0
    with pytest.raises(SharedMemoryRace):
        load(module)[(2,)](x, y)


@triton.jit
def plain_kernel(x_ptr, y_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tl.store(y_ptr + at, tl.load(x_ptr + at))


def test_kernel_without_shared_memory_reports_nothing():
    x = torch.rand(16)
    assert plain_kernel[(1,)](x, torch.zeros(16), SIZE=16, check_races=True).metadata.reports == []


def test_variable(monkeypatch, barriers):
    monkeypatch.setenv("TRITON_SPIRV_CHECK_RACES", "1")
    x = torch.rand(16, 16)
    counting_kernel.device_caches.clear()
    kernel = counting_kernel[(1,)](x, torch.zeros_like(x), SIZE=16)
    assert any(message["kind"] == "races" for message in kernel.metadata.reports)
