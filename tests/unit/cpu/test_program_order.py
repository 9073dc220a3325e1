"""The order in which programs run: along the axis in which stores follow each other, where nothing can wait."""

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.cpu.decoded_module import KernelModule
from triton.backends.spirv.cpu.host import host_of
from triton.backends.spirv.cpu.machine import assembly
from triton.backends.spirv.cpu.module_translation import translate
from triton.backends.spirv.cpu.program_order import fastest_axis
from triton.backends.spirv.cpu.translation import Translation

from tests.unit.cpu.kernels import PROFILES_HERE, compiled, run


@triton.jit
def tiles(x, out, n, KIND: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    place = row * n + column
    if KIND == "transposed":
        value = tl.load(x + place)
        place = column * n + row
    elif KIND == "volatile":
        value = tl.load(x + place, volatile=True)
    else:
        value = tl.load(x + place)
    if KIND == "atomic":
        tl.atomic_max(out + place, value)
    elif KIND == "by index":
        tl.store(out + tl.load(x + tl.program_id(1)) + tl.arange(0, COLUMNS), 1)
    elif KIND == "grouped":
        number = tl.program_id(0) + tl.program_id(1) * tl.num_programs(0)
        first = number // 4 * ROWS + tl.arange(0, ROWS)[:, None]
        second = number % 4 * COLUMNS + tl.arange(0, COLUMNS)[None, :]
        tl.store(out + first * n + second, tl.load(x + first * n + second))
    else:
        tl.store(out + place, value)


@triton.jit
def looped(x, out, m, n, COLUMNS: tl.constexpr):
    """A pointer that a loop moves on."""
    at = tl.program_id(0) * 4 * n + tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    for _ in range(m):
        tl.store(out + at, tl.load(x + at) + 1)
        at += n


@triton.jit
def numbered(out, n, rows):
    """A program's number at its place, which the second axis goes along."""
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    tl.store(out + (z * rows + x) * n + y, 1 + x + 1000 * y + 1000000 * z)


def _axis(kernel: Any, arguments: list[Any], constants: dict[str, Any], profile: str = PROFILES_HERE[-1]) -> str:
    capabilities = PROFILES[profile]
    program = KernelModule(compiled(profile, kernel, arguments, constants).asm["spv"])
    return fastest_axis(program, Translation(program, 16, host_of(capabilities.processor)).divergence)


@pytest.mark.parametrize(
    ("kind", "axis"),
    [("", "y"), ("transposed", "x"), ("volatile", "x"), ("atomic", "x"), ("by index", "x"), ("grouped", "x")],
)
def test_the_axis_that_stores_go_along(kind: str, axis: str) -> None:
    arrays = [np.zeros(4, np.int32)] * 2
    assert _axis(tiles, [*arrays, 4], {"KIND": kind, "ROWS": 4, "COLUMNS": 32}) == axis


def test_a_pointer_that_a_loop_moves() -> None:
    arrays = [np.zeros(4, np.int32)] * 2
    assert _axis(looped, [*arrays, 4, 4], {"COLUMNS": 32}) == "y"


@pytest.mark.parametrize("profile", PROFILES_HERE)
@pytest.mark.parametrize("grid", [(1, 1, 1), (3, 5, 2), (7, 1, 3), (1, 9, 1), (63, 129, 3)])
def test_each_program_runs_once(profile: str, grid: tuple[int, int, int]) -> None:
    """On two threads, if there are many."""
    x, y, z = grid
    out = np.zeros(x * y * z + 3, np.int32)
    assert _axis(numbered, [out, y, x], {}) == "y"
    run(profile, numbered, grid, out, y, x)
    places = np.indices((z, x, y))
    expected = 1 + places[1] + 1000 * places[2] + 1000000 * places[0]
    assert np.array_equal(out[: x * y * z].reshape(z, x, y), expected) and not out[x * y * z :].any()


@pytest.mark.parametrize("profile", PROFILES_HERE)
@pytest.mark.parametrize("kind", ["", "transposed", "grouped"])
def test_tiles(profile: str, kind: str) -> None:
    n = 128
    x, out = np.arange(n * n, dtype=np.int32), np.zeros(n * n + 5, np.int32)
    run(profile, tiles, (n // 4, n // 32), x, out, n, KIND=kind, ROWS=4, COLUMNS=32)
    expected = x.reshape(n, n).T if kind == "transposed" else x.reshape(n, n)
    assert np.array_equal(out[: n * n].reshape(n, n), expected) and not out[n * n :].any()


@pytest.mark.parametrize("kind", ["", "transposed"])
def test_short_programs_are_in_the_loop_over_programs(profile: str, kind: str) -> None:
    arrays, host = [np.zeros(4, np.int32)] * 2, host_of(PROFILES[profile].processor)
    found = compiled(profile, tiles, [*arrays, 4], {"KIND": kind, "ROWS": 16, "COLUMNS": 64})
    text = assembly(translate(found.asm["spv"], host, 16).text, host)
    assert ("\nprogram:" in text) == (kind == "transposed")
