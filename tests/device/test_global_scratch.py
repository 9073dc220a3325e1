"""ttg.global_scratch_alloc: each program has device memory of its own, from the allocator of triton.set_allocator."""

from collections.abc import Callable
from contextvars import Context, copy_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import triton
from triton.backends.spirv.lowering.errors import UnsupportedOperation
from triton.runtime import driver

SIZE = 128
HEAD = """
#layout = #ttg.blocked<{{sizePerThread = [1], threadsPerWarp = [{lanes}], warpsPerCTA = [4], order = [0]}}>
#other = #ttg.blocked<{{sizePerThread = [4], threadsPerWarp = [{lanes}], warpsPerCTA = [4], order = [0]}}>
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "spirv:vulkan1.3",
                    "ttg.threads-per-warp" = {lanes} : i32}} {{
"""

#: Every program writes its tile of x to its scratch memory, waits, and reads it back in reverse order; a callee that
#: is called twice counts in scratch memory of its own, so that calls which shared any would show.
KERNEL = """
  tt.func private @counted(%value: i32) -> i32 attributes {{noinline = true}} {{
    %memory = ttg.global_scratch_alloc {{alignment = 4 : i32, nbytes = 12 : i32}} : !tt.ptr<i32>
    tt.store %memory, %value : !tt.ptr<i32>
    ttg.barrier all
    %back = tt.load %memory : !tt.ptr<i32>
    tt.return %back : i32
  }}
  tt.func public @k(%x: !tt.ptr<i32>, %y: !tt.ptr<i32>, %sums: !tt.ptr<i32>) attributes {{noinline = false}} {{
    %px = tt.get_program_id x : i32
    %py = tt.get_program_id y : i32
    %pz = tt.get_program_id z : i32
    %nx = tt.get_num_programs x : i32
    %ny = tt.get_num_programs y : i32
    %c128 = arith.constant 128 : i32
    %c127 = arith.constant dense<127> : tensor<128xi32, #other>
    %zy = arith.muli %pz, %ny : i32
    %row = arith.addi %zy, %py : i32
    %rowx = arith.muli %row, %nx : i32
    %program = arith.addi %rowx, %px : i32
    %start = arith.muli %program, %c128 : i32

    %memory = ttg.global_scratch_alloc {{alignment = 256 : i32, nbytes = 512 : i32}} : !tt.ptr<i32>
    %one = tt.call @counted(%program) : (i32) -> i32
    %two = tt.call @counted(%start) : (i32) -> i32

    %places = tt.make_range {{end = 128 : i32, start = 0 : i32}} : tensor<128xi32, #layout>
    %xtile = tt.addptr %x, %start : !tt.ptr<i32>, i32
    %xs = tt.splat %xtile : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>, #layout>
    %xp = tt.addptr %xs, %places : tensor<128x!tt.ptr<i32>, #layout>, tensor<128xi32, #layout>
    %v = tt.load %xp : tensor<128x!tt.ptr<i32>, #layout>
    %ms = tt.splat %memory : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>, #layout>
    %mp = tt.addptr %ms, %places : tensor<128x!tt.ptr<i32>, #layout>, tensor<128xi32, #layout>
    tt.store %mp, %v : tensor<128x!tt.ptr<i32>, #layout>
    ttg.barrier all

    %there = tt.make_range {{end = 128 : i32, start = 0 : i32}} : tensor<128xi32, #other>
    %mirror = arith.subi %c127, %there : tensor<128xi32, #other>
    %bs = tt.splat %memory : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>, #other>
    %bp = tt.addptr %bs, %mirror : tensor<128x!tt.ptr<i32>, #other>, tensor<128xi32, #other>
    %w = tt.load %bp : tensor<128x!tt.ptr<i32>, #other>
    %ytile = tt.addptr %y, %start : !tt.ptr<i32>, i32
    %ys = tt.splat %ytile : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>, #other>
    %yp = tt.addptr %ys, %there : tensor<128x!tt.ptr<i32>, #other>, tensor<128xi32, #other>
    tt.store %yp, %w : tensor<128x!tt.ptr<i32>, #other>
    %sum = arith.addi %one, %two : i32
    {last}
    %sump = tt.addptr %sums, %program : !tt.ptr<i32>, i32
    tt.store %sump, %sum : !tt.ptr<i32>
    tt.return
  }}
}}
"""


def compiled(tmp_path: Path, text: str = KERNEL, **parts: Any) -> Any:
    path = tmp_path / "k.ttgir"
    path.write_text((HEAD + text).format(lanes=driver.active.get_current_target().warp_size, **{"last": "", **parts}))
    return triton.compile(str(path))


class Recorder:
    """An allocator that notes what it was asked for; ``offset`` bytes past an aligned address."""

    def __init__(self, offset: int = 0) -> None:
        self.asked: list[tuple[int, int, Any]] = []
        self._offset = offset

    def __call__(self, size: int, alignment: int, stream: int | None) -> torch.Tensor:
        self.asked.append((size, alignment, stream))
        memory = torch.full((size + 2 * alignment,), 0x5A, dtype=torch.int8)
        start = -memory.data_ptr() % alignment + self._offset
        return memory[start : start + size]


def with_allocator(allocator: Any, call: Callable[[], Any]) -> Any:
    """``call`` where triton.set_allocator has been given ``allocator``; what was set stays set elsewhere."""

    def body() -> Any:
        triton.set_allocator(allocator)
        return call()

    return copy_context().run(body)


@pytest.mark.parametrize("grid", [(1, 1, 1), (7, 1, 1), (3, 4, 5), (1, 9, 2)])
@pytest.mark.parametrize("last", ["", 'tt.print "sum: " {hex = false, isSigned = array<i32: 1>} : %sum : i32'])
def test_programs_do_not_share(
    tmp_path: Path, grid: tuple[int, int, int], last: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also in a kernel that takes a report buffer after its scratch memory."""
    kernel = compiled(tmp_path, last=last)
    programs = int(np.prod(grid))
    assert (kernel.metadata.global_scratch_size, kernel.metadata.global_scratch_align) == (768, 256)
    x = torch.arange(programs * SIZE, dtype=torch.int32) * 3 - 7
    y, sums = torch.zeros_like(x), torch.zeros(programs, dtype=torch.int32)
    allocator = Recorder()
    with_allocator(allocator, lambda: kernel[grid](x, y, sums))
    assert allocator.asked == [(programs * 768, 256, 0)]
    np.testing.assert_array_equal(y.numpy().reshape(programs, SIZE), x.numpy().reshape(programs, SIZE)[:, ::-1])
    np.testing.assert_array_equal(sums.numpy(), np.arange(programs) * (SIZE + 1))
    if last:
        printed = capfd.readouterr().out
        assert sorted(int(line.split()[-1]) for line in printed.splitlines()) == sums.tolist()


def test_memory_of_the_device(tmp_path: Path) -> None:
    """Buffers of the runtime's own, given back before the kernels have run, may be the next launch's memory."""
    from triton.backends.spirv import runtime

    kernel = compiled(tmp_path)
    values = np.arange(64 * SIZE, dtype=np.int32)
    x, results = runtime.from_numpy(values), []

    def launches() -> None:
        for _ in range(5):
            y, sums = runtime.zeros(values.size, "int32"), runtime.zeros(64, "int32")
            kernel[(64, 1, 1)](x, y, sums)
            results.append((y, sums))

    with_allocator(lambda size, alignment, stream: runtime.empty(size, "uint8"), launches)
    for y, sums in results:
        np.testing.assert_array_equal(y.to_numpy().reshape(64, SIZE), values.reshape(64, SIZE)[:, ::-1])
        np.testing.assert_array_equal(sums.to_numpy(), np.arange(64) * (SIZE + 1))


def test_without_an_allocator_the_error_is_upstreams(tmp_path: Path) -> None:
    kernel = compiled(tmp_path)
    tensors = [torch.zeros(SIZE, dtype=torch.int32) for _ in range(3)]
    unset = Context()  # the allocator is a context variable, and torch.compile sets it
    with pytest.raises(RuntimeError, match=r"no allocator was set.*triton\.set_allocator"):
        unset.run(kernel[(1, 1, 1)], *tensors)
    unset.run(kernel[(0, 1, 1)], *tensors)  # no program, no memory


def test_memory_that_is_not_aligned_is_refused(tmp_path: Path) -> None:
    kernel = compiled(tmp_path)
    tensors = [torch.zeros(SIZE, dtype=torch.int32) for _ in range(3)]
    with pytest.raises(ValueError, match=r"kernel 'k'.*not a multiple of the requested 256 bytes"):
        with_allocator(Recorder(offset=16), lambda: kernel[(1, 1, 1)](*tensors))


def test_memory_of_third_parties_is_refused(tmp_path: Path) -> None:
    text = """
  tt.func public @k(%x: !tt.ptr<i32>) attributes {{noinline = false}} {{
    %memory = ttg.global_scratch_alloc {{alignment = 4 : i32, nbytes = 12 : i32, third_party_allocation}} : !tt.ptr<i32>
    %value = tt.load %memory : !tt.ptr<i32>
    tt.store %x, %value : !tt.ptr<i32>
    tt.return
  }}
}}
"""
    with pytest.raises(UnsupportedOperation, match=r"k\.ttgir:8.*ttg\.global_scratch_alloc.*profilers"):
        compiled(tmp_path, text)


#: Every program writes its number to its scratch memory, waits, and reads it back.
NUMBERS = """
  tt.func public @k(%out: !tt.ptr<i32>) attributes {{noinline = false}} {{
    %program = tt.get_program_id x : i32
    %memory = ttg.global_scratch_alloc {{alignment = 4 : i32, nbytes = 4 : i32}} : !tt.ptr<i32>
    tt.store %memory, %program : !tt.ptr<i32>
    ttg.barrier all
    %back = tt.load %memory : !tt.ptr<i32>
    %place = tt.addptr %out, %program : !tt.ptr<i32>, i32
    tt.store %place, %back : !tt.ptr<i32>
    tt.return
  }}
}}
"""


def test_grids_past_the_devices_limit(tmp_path: Path) -> None:
    kernel, programs = compiled(tmp_path, NUMBERS), 65_535 + 3
    out = torch.full((programs,), -1, dtype=torch.int32)
    memory: list[torch.Tensor] = []

    def allocate(size: int, alignment: int, stream: Any) -> torch.Tensor:
        memory.append(torch.full((size,), -1, dtype=torch.int8))
        return memory[-1]

    def launch() -> None:
        triton.set_allocator(allocate)
        kernel[(programs, 1, 1)](out)

    copy_context().run(launch)
    numbers = torch.arange(programs, dtype=torch.int32)
    torch.testing.assert_close(out, numbers)
    torch.testing.assert_close(memory[0].view(torch.int32), numbers)
