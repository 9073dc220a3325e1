"""Grids of more programs on an axis than the device takes at once (65,535 on Mesa's CPU driver)."""

from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton.backends.spirv.runtime import Graph
from triton.backends.spirv.runtime.context import current
from triton.backends.spirv.runtime.launches.launch import make_launcher
from triton.backends.spirv.runtime.reports.failures import KernelAssertionError
from triton.backends.spirv.runtime.reports.outside import OutOfBounds

LIMIT = 65_535


@pytest.fixture(autouse=True)
def limits() -> None:
    launcher = make_launcher(current(), "limits", [], indirect=False)
    if any(limit > LIMIT for limit in launcher.grid_limits):
        pytest.skip(f"the device takes {launcher.grid_limits} programs at once")


@triton.jit
def places(out, AXIS: tl.constexpr):
    """out[i] = i + 1 for the program i of the axis, in a grid of one program on each other axis."""
    alone = tl.num_programs((AXIS + 1) % 3) * tl.num_programs((AXIS + 2) % 3) == 1
    others = tl.program_id((AXIS + 1) % 3) + tl.program_id((AXIS + 2) % 3)
    here = tl.program_id(AXIS)
    tl.store(out + here, here + 1, mask=alone & (others == 0) & (here < tl.num_programs(AXIS)))


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("programs", [LIMIT - 1, LIMIT, LIMIT + 1, 2 * LIMIT, 2 * LIMIT + 1])
def test_every_program_runs_once_in_its_place(axis: int, programs: int) -> None:
    out = torch.full((programs + 8,), -7, dtype=torch.int32)
    grid = [1, 1, 1]
    grid[axis] = programs
    for _ in range(2):
        out[:programs] = 0
        places[tuple(grid)](out, AXIS=axis)
        torch.testing.assert_close(out[:programs], torch.arange(1, programs + 1, dtype=torch.int32))
        assert (out[programs:] == -7).all()


@triton.jit
def count(out, sizes):
    """Counts programs, and the sizes of the grid that each sees."""
    tl.atomic_add(out + tl.program_id(1), 1)
    tl.store(sizes + tl.arange(0, 4), tl.num_programs(0) + (tl.arange(0, 4) == 1) * tl.num_programs(1))


def test_two_axes_at_once() -> None:
    out, sizes = torch.zeros(2, dtype=torch.int32), torch.zeros(4, dtype=torch.int32)
    count[(LIMIT + 5, 2)](out, sizes)
    assert out.tolist() == [LIMIT + 5] * 2
    assert sizes.tolist() == [LIMIT + 5, LIMIT + 7, LIMIT + 5, LIMIT + 5]


def test_past_what_a_program_id_holds() -> None:
    with pytest.raises(ValueError, match="the grid size of axis 0, 2147483648, is past .* of 2147483647"):
        places[(1 << 31,)](torch.zeros(4, dtype=torch.int32), AXIS=0)


@triton.jit
def talk(x, AT: tl.constexpr):
    """Says where it is, in one program."""
    if tl.program_id(0) == AT:
        tl.device_print("here", tl.program_id(0))


def test_prints_have_their_program(capfd: pytest.CaptureFixture[str]) -> None:
    x = torch.zeros(1)
    talk[(LIMIT + 9,)](x, AT=LIMIT + 3)
    assert capfd.readouterr().out == f"pid ({LIMIT + 3}, 0, 0) idx () here: {LIMIT + 3}\n"


@triton.jit
def claim(x, n):
    """Fails in the programs past n."""
    tl.device_assert(tl.program_id(0) < n, "past n")
    tl.store(x, 1)


def test_assertions_of_any_part_are_raised() -> None:
    x = torch.zeros(1)
    claim[(LIMIT + 2,)](x, LIMIT + 2, debug=True)
    for n in (3, LIMIT + 1):
        with pytest.raises(KernelAssertionError, match="past n"):
            claim[(LIMIT + 2,)](x, n, debug=True)


def test_accesses_out_of_bounds_have_their_program() -> None:
    out = torch.zeros(LIMIT + 4, dtype=torch.int32)
    with pytest.raises(OutOfBounds, match=rf"index {LIMIT + 4}, .* program \({LIMIT + 4}, 0, 0\)"):
        places[(LIMIT + 5,)](out, AXIS=0, check_bounds=True)
    assert out[-1] == LIMIT + 4


def test_hooks_are_called_once() -> None:
    called: list[Any] = []

    def enter(metadata: Any) -> None:
        called.append(("enter", metadata.get()["name"]))

    def leave(metadata: Any) -> None:
        called.append(("leave", metadata.get()["name"]))

    triton.knobs.runtime.launch_enter_hook.add(enter)
    triton.knobs.runtime.launch_exit_hook.add(leave)
    try:
        places[(LIMIT + 1,)](torch.zeros(LIMIT + 1, dtype=torch.int32), AXIS=0)
    finally:
        triton.knobs.runtime.launch_enter_hook.remove(enter)
        triton.knobs.runtime.launch_exit_hook.remove(leave)
    assert called == [("enter", "places"), ("leave", "places")]


def test_a_graph_repeats_all_parts() -> None:
    from triton.backends.spirv.runtime import zeros

    out = zeros(LIMIT + 1, "int32")
    places[(LIMIT + 1,)](out, AXIS=0)
    graph = Graph()
    out.fill(0)
    with graph.capture():
        places[(LIMIT + 1,)](out, AXIS=0)
    graph.replay()
    assert (out.to_numpy() == torch.arange(1, LIMIT + 2).numpy()).all()


def test_parts_are_asked_for_by_the_launcher() -> None:
    """One dispatch per part; x varies fastest, and each gets its first program and the whole grid."""
    from triton.backends.spirv.launching.split_grid import PartsLauncher

    calls: list[tuple[Any, ...]] = []
    PartsLauncher(lambda *args: calls.append(args), (4, 4, 4), 1)(5, 1, 6, 0, "f", "km", "lm", "in", "out", "x")
    assert [call[:3] for call in calls] == [(4, 1, 4), (1, 1, 4), (4, 1, 2), (1, 1, 2)]
    assert [call[7:9] for call in calls] == [("in", None), (None, None), (None, None), (None, "out")]
    assert [call[9:] for call in calls] == [
        ("x", 0, 0, 0, 5, 1, 6),
        ("x", 4, 0, 0, 5, 1, 6),
        ("x", 0, 0, 4, 5, 1, 6),
        ("x", 4, 0, 4, 5, 1, 6),
    ]
