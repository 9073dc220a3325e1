"""What loads in loops over rows ask for ahead: how far, and where nothing is asked for."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.cpu.host import host_of
from triton.backends.spirv.cpu.module_translation import translate

from tests.unit.cpu.kernels import PROFILES_HERE, compiled, run

RANDOM = np.random.default_rng(13)


@triton.jit
def columns(x, out, m, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    column = tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(0, m, ROWS):
        row = first + tl.arange(0, ROWS)
        total += tl.load(x + row[:, None] * stride + column[None, :], mask=row[:, None] < m, other=0.0)
    tl.store(out + column, tl.sum(total, 0))


@triton.jit
def moved_pointer(x, out, m, stride, COLUMNS: tl.constexpr):
    column = tl.arange(0, COLUMNS)
    total = tl.zeros((COLUMNS,), tl.float32)
    for _ in range(m):
        total += tl.load(x + column)
        x += 3 * stride
    tl.store(out + column, total)


@triton.jit
def contiguous(x, out, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, n, BLOCK):
        total += tl.load(x + first + tl.arange(0, BLOCK))
    tl.store(out + tl.arange(0, BLOCK), total)


@triton.jit
def looked_up(x, rows, out, m, COLUMNS: tl.constexpr):
    column = tl.arange(0, COLUMNS)
    total = tl.zeros((COLUMNS,), tl.float32)
    for row in range(m):
        total += tl.load(x + tl.load(rows + row) * COLUMNS + column)
    tl.store(out + column, total)


def _text(kernel: Any, arguments: list[Any], constants: dict[str, int]) -> str:
    found = compiled(PROFILES_HERE[-1], kernel, arguments, constants)
    return translate(found.asm["spv"], host_of(PROFILES[PROFILES_HERE[-1]].processor), 16).text


def _steps(text: str) -> list[int]:
    """The numbers that strides are multiplied with, of the addresses that are asked for."""
    known = dict(re.findall(r"(%v\d+) = (.*?)(?:, !dbg !\d+)?$", text, re.MULTILINE))
    found = []
    for place in re.findall(r"@llvm.prefetch.p0\(ptr (%v\d+),", text):
        address = re.fullmatch(r"inttoptr i64 (%v\d+) to ptr", known[place])
        assert address is not None
        far = re.fullmatch(r"add i64 \S+, (%v\d+)", known[address[1]])
        assert far is not None
        product = re.fullmatch(r"mul i64 %v\d+, (-?\d+)", known[far[1]])
        assert product is not None
        found.append(int(product[1]))
    return found


def test_rows_of_a_tile_are_asked_for_some_kilobytes_ahead() -> None:
    arrays = [np.zeros(4, np.float32)] * 2
    steps = _steps(_text(columns, [*arrays, 4, 4], {"ROWS": 16, "COLUMNS": 128}))
    assert steps == [8 * 4] * 8  # a round reads a row of 512 bytes: 8 rows are 4,096 bytes


def test_a_pointer_that_moves() -> None:
    arrays = [np.zeros(4, np.float32)] * 2
    steps = _steps(_text(moved_pointer, [*arrays, 4, 4], {"COLUMNS": 32}))
    assert steps and all(step == 32 * 3 * 4 or step == 32 * 4 for step in steps)


def test_what_follows_in_memory_is_not_asked_for() -> None:
    arrays = [np.zeros(4, np.float32)] * 2
    assert "prefetch" not in _text(contiguous, [*arrays, 4], {"BLOCK": 256})


def test_rows_of_many_loads_are_not_asked_for() -> None:
    assert "prefetch" not in _text(moved_pointer, [*[np.zeros(4, np.float32)] * 2, 4, 4], {"COLUMNS": 256})


def test_rows_that_are_looked_up_are_not_asked_for() -> None:
    arrays = [np.zeros(4, np.float32), np.zeros(4, np.int32), np.zeros(4, np.float32)]
    assert "prefetch" not in _text(looked_up, [*arrays, 4], {"COLUMNS": 64})


def test_requests_past_the_last_row_do_no_harm() -> None:
    x, out = RANDOM.standard_normal((37, 131)).astype(np.float32), np.full(160, 99, np.float32)
    for profile in PROFILES_HERE:
        run(profile, columns, (1,), x, out, 37, 131, ROWS=16, COLUMNS=128)
        assert np.allclose(out[:128], x[:, :128].astype(np.float64).sum(0), atol=1e-4) and (out[128:] == 99).all()
    # Rows that are a page of nobody's memory and more apart, backwards, too.
    for stride in (-(1 << 20), 1 << 20):
        run(PROFILES_HERE[-1], columns, (1,), x, out, 1, stride, ROWS=16, COLUMNS=128)
        assert np.array_equal(out[:128], x[0, :128])
