"""Races between the programs of a launch (``check_program_races=True``): each is found, with both lines, and kernels
without one run as usual."""

import inspect
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton.backends.spirv import cli, runtime
from triton.backends.spirv.runtime import ProgramRace

from tests.device.test_tutorials import summed_under_a_lock

PROGRAMS = 16


pytestmark = pytest.mark.only_on("CPU", "emulated", "races between programs are looked for where the CPU runs them")


@pytest.fixture(autouse=True)
def _unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_SPIRV_CHECK_RACES", raising=False)


@triton.jit
def add_plainly(out, x, SIZE: tl.constexpr):
    value = tl.sum(tl.load(x + tl.program_id(0) * SIZE + tl.arange(0, SIZE)))
    tl.store(out, tl.load(out) + value)


@triton.jit
def overlap(out, x, SIZE: tl.constexpr):
    at = tl.program_id(0) * (SIZE - 1) + tl.arange(0, SIZE)
    tl.store(out + at, tl.program_id(0).to(tl.float32) + 0 * at)


@triton.jit
def shift_in_place(out, x, SIZE: tl.constexpr):
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(out + at, tl.load(out + at + 1))


@triton.jit
def zero_beside_add(out, x, SIZE: tl.constexpr):
    if tl.program_id(0) == 0:
        tl.store(out, 0.0)
    tl.atomic_add(out, 1.0, sem="relaxed")


@triton.jit
def lock_released_relaxed(out, lock, SIZE: tl.constexpr):
    while tl.atomic_cas(lock, 0, 1, sem="acquire") == 1:
        pass
    tl.store(out, tl.load(out) + 1)
    tl.atomic_xchg(lock, 0, sem="relaxed")


@triton.jit
def semaphore_relaxed(out, count, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tl.store(out + SIZE + tl.program_id(0) * SIZE + at, at.to(tl.float32))
    if tl.atomic_add(count, 1, sem="relaxed") == tl.num_programs(0) - 1:
        total = tl.zeros((SIZE,), tl.float32)
        for program in range(tl.num_programs(0)):
            total += tl.load(out + SIZE + program * SIZE + at)
        tl.store(out + at, total)


@triton.jit
def lock(out, lock, SIZE: tl.constexpr):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out, tl.load(out) + 1)
    tl.atomic_xchg(lock, 0)


@triton.jit
def last_one_sums(out, count, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tl.store(out + SIZE + tl.program_id(0) * SIZE + at, at.to(tl.float32))
    if tl.atomic_add(count, 1) == tl.num_programs(0) - 1:
        total = tl.zeros((SIZE,), tl.float32)
        for program in range(tl.num_programs(0)):
            total += tl.load(out + SIZE + program * SIZE + at)
        tl.store(out + at, total)


@triton.jit
def atomics_alone(out, x, SIZE: tl.constexpr):
    tl.atomic_add(out + tl.arange(0, SIZE), 1.0)


@triton.jit
def disjoint(out, x, SIZE: tl.constexpr):
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(out + at, tl.load(x + at) + tl.load(x))


@triton.jit
def neighbouring_bytes(out, x, SIZE: tl.constexpr):
    tl.store(out.to(tl.pointer_type(tl.int8)) + tl.program_id(0), tl.program_id(0).to(tl.int8))


@triton.jit
def same_value(out, x, SIZE: tl.constexpr):
    tl.store(out + tl.arange(0, SIZE), 3.0)


@triton.jit
def flag_unseen(out, flag, SIZE: tl.constexpr):
    if tl.program_id(0) == 0:
        tl.store(out, 5.0)
        tl.atomic_xchg(flag, 1)
    elif tl.atomic_add(flag, 0) == 1:
        tl.store(out + tl.program_id(0), tl.load(out))
    else:
        tl.store(out + tl.program_id(0), tl.load(out) + 1)


@triton.jit
def wait_for_the_one_before(out, flags, SIZE: tl.constexpr):
    number = tl.program_id(0)
    if number > 0:
        while tl.atomic_add(flags + number - 1, 0) == 0:
            pass
        tl.store(out + number, tl.load(out + number - 1) + 1)
    tl.atomic_xchg(flags + number, 1)


@triton.jit
def wait_for_the_one_behind(out, flags, SIZE: tl.constexpr):
    number = tl.program_id(0)
    if number + 1 < tl.num_programs(0):
        while tl.atomic_add(flags + number + 1, 0) == 0:
            pass
    tl.atomic_xchg(flags + number, 1)


@triton.jit
def count_passes(count, seen, SIZE: tl.constexpr):
    tl.store(seen + tl.program_id(0), tl.atomic_add(count, 1))


RACES: list[tuple[Any, str, tuple[str, str, str]]] = [
    # kernel, kind, (later line, earlier line, what)
    (add_plainly, "race", ("tl.store", "tl.store", "reads out[0], which program (0, 0, 0) writes")),
    (overlap, "race", ("tl.store", "tl.store", "program (1, 0, 0) writes out[31], which program (0, 0, 0) writes")),
    (shift_in_place, "race", ("tl.store", "tl.store", "writes out[32], which program (0, 0, 0) reads")),
    (zero_beside_add, "beside atomic", ("atomic_add", "tl.store", "updates out[0], which program (0, 0, 0) writes")),
    (lock_released_relaxed, "race", ("tl.store", "tl.store", "reads out[0], which program (0, 0, 0) writes")),
    (semaphore_relaxed, "race", ("total +=", "at.to", "program (15, 0, 0) reads out[32], which program (0, 0, 0)")),
    (flag_unseen, "race", ("tl.store(out, 5.0)", "+ 1)", "writes out[0], which program (1, 0, 0) reads")),
]
NONE = [lock, last_one_sums, atomics_alone, disjoint, neighbouring_bytes, same_value, wait_for_the_one_before]


def _launch(kernel: Any, dtype: torch.dtype = torch.float32, **options: Any) -> torch.Tensor:
    out = torch.zeros(40 * PROGRAMS, dtype=dtype)
    second = torch.zeros(40 * PROGRAMS, dtype=dtype if "x" in kernel.arg_names else torch.int32)
    kernel[(PROGRAMS,)](out, second, SIZE=32, **options)
    return out


def _line(kernel: Any, text: str) -> int:
    lines, first = inspect.getsourcelines(kernel.fn)
    (found,) = (number for number, line in enumerate(lines, first) if text in line)
    return found


@pytest.mark.parametrize(("kernel", "kind", "said"), RACES, ids=lambda value: getattr(value, "__name__", ""))
def test_a_race_is_told_with_both_lines(kernel: Any, kind: str, said: tuple[str, str, str]) -> None:
    later, earlier, what = said
    with pytest.raises(ProgramRace, match=re.escape(what)) as caught:
        _launch(kernel, check_program_races=True)
    error = caught.value
    assert (error.kind, error.argument, error.kernel) == (kind, "out", kernel.__name__)
    assert (error.line, error.other_line) == (_line(kernel, later), _line(kernel, earlier))
    assert error.program != error.other_program and error.file == error.other_file == "test_program_races.py"


@pytest.mark.parametrize("kernel", NONE, ids=lambda kernel: kernel.__name__)
def test_none_is_told_where_there_is_none(kernel: Any) -> None:
    assert torch.equal(_launch(kernel, check_program_races=True), _launch(kernel))


def test_equal_values_are_told_where_that_is_asked_for() -> None:
    with pytest.raises(ProgramRace, match="both write the same value") as caught:
        _launch(same_value, check_program_races="equal")
    assert caught.value.kind == "equal values" and caught.value.count == 32 * (PROGRAMS - 1)


def test_the_setting_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for word in ("programs", "all", "equal"):
        monkeypatch.setenv("TRITON_SPIRV_CHECK_RACES", word)
        overlap.device_caches.clear()
        with pytest.raises(ProgramRace):
            _launch(overlap)
    monkeypatch.setenv("TRITON_SPIRV_CHECK_RACES", "1")
    overlap.device_caches.clear()
    _launch(overlap)


def test_the_run_in_the_other_order_leaves_nothing_behind() -> None:
    count, seen = torch.zeros(1, dtype=torch.int32), torch.full((PROGRAMS + 1,), -1, dtype=torch.int32)
    count_passes[(PROGRAMS,)](count, seen, SIZE=1, check_program_races=True)
    assert count.item() == PROGRAMS
    assert seen.tolist() == [*range(PROGRAMS), -1]


def test_many_programs_on_one_counter_take_less_than_half_a_second() -> None:
    count, seen = torch.zeros(1, dtype=torch.int32), torch.zeros(4096, dtype=torch.int32)

    def launch() -> None:
        count_passes[(4096,)](count, seen, SIZE=1, check_program_races=True)

    launch()
    begin = time.process_time()
    launch()
    assert time.process_time() - begin < 0.5
    assert count.item() == 2 * 4096


@pytest.mark.parametrize("plain", ["", "acquire", "release"])
def test_a_lock_with_one_atomic_made_plain(plain: str) -> None:
    out, locks = torch.full((4, 100), 9.0), torch.zeros(8, dtype=torch.int32)
    arguments = {"PLAIN": plain, "GROUPS": 4, "BLOCK": 128, "check_program_races": True}
    if plain:
        with pytest.raises(ProgramRace):
            summed_under_a_lock[(33,)](out, locks, 100, **arguments)
    else:
        summed_under_a_lock[(33,)](out, locks, 100, **arguments)
        assert out.sum(0).tolist() == [33.0] * 100


@triton.jit
def product_in_parts(a, b, out, K: tl.constexpr, SIZE: tl.constexpr, PLAIN: tl.constexpr):
    i, k = tl.arange(0, SIZE), tl.program_id(0) * K + tl.arange(0, K)
    depth = K * tl.num_programs(0)
    left, right = tl.load(a + i[:, None] * depth + k[None, :]), tl.load(b + k[:, None] * SIZE + i[None, :])
    at = out + i[:, None] * SIZE + i[None, :]
    if PLAIN:
        tl.store(at, tl.load(at) + tl.dot(left, right))
    else:
        tl.atomic_add(at, tl.dot(left, right))


@pytest.mark.parametrize("plain", [False, True])
def test_a_product_in_parts_with_its_atomic_made_plain(plain: bool) -> None:
    a, b, out = torch.randn(16, 64), torch.randn(64, 16), torch.zeros(16, 16)
    options = {"K": 16, "SIZE": 16, "PLAIN": plain, "check_program_races": True}
    if plain:
        with pytest.raises(ProgramRace, match=r"reads out\[0\]") as caught:
            product_in_parts[(4,)](a, b, out, **options)
        assert caught.value.count == 2 * 3 * 16 * 16
    else:
        product_in_parts[(4,)](a, b, out, **options)
        torch.testing.assert_close(out, a @ b)


@triton.jit
def small_elements(out, SAME: tl.constexpr):
    pair = tl.program_id(0) // 2 * 2
    if tl.program_id(0) % 2 == 0:
        tl.atomic_add(out + pair, 1.0)
    else:
        tl.store(out + pair + 1 - SAME, 2.0)


def test_an_element_that_is_smaller_than_a_word_has_its_own_races() -> None:
    out = torch.zeros(17, dtype=torch.float16)
    small_elements[(16,)](out, SAME=0, check_program_races=True)
    assert out.tolist() == [1.0, 2.0] * 8 + [0.0]
    with pytest.raises(ProgramRace, match="only one of the two is atomic"):
        small_elements[(16,)](out, SAME=1, check_program_races=True)


@triton.jit
def beside_each_other(a, b, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(a + i, mask=i < n) + tl.load(b + i, mask=i < n).to(tl.float32), mask=i < n)


def test_an_output_that_is_an_input_does_not_race_with_itself() -> None:
    a, b = torch.randn(1001), torch.randint(0, 9, (1001,), dtype=torch.int8)
    expected = a + b
    beside_each_other[(8,)](a, b, a, 1001, BLOCK=128, check_program_races=True, check_bounds=True)
    assert torch.equal(a, expected)


def test_a_program_that_waits_for_a_later_one_is_ended_with_words_that_say_so() -> None:
    code = (
        "import torch; from tests.device.test_program_races import wait_for_the_one_behind as kernel\n"
        "flags = torch.zeros(4, dtype=torch.int32)\n"
        "kernel[(4,)](flags, flags, SIZE=1)\n"
    )
    settings = {"TRITON_SPIRV_TIMEOUT": "2", "TRITON_SPIRV_CHECK_RACES": "programs"}
    run = subprocess.run([sys.executable, "-c", code], env=os.environ | settings, capture_output=True, text=True)
    assert run.returncode != 0
    assert "a program of it waited for another one to write" in run.stderr, run.stderr


def test_a_graph_is_checked_at_each_replay() -> None:
    out, graph = runtime.zeros(1000, "float32"), runtime.Graph()
    with graph.capture():
        overlap[(PROGRAMS,)](out, out, SIZE=32, check_program_races=True)
    for _ in range(2):
        with pytest.raises(ProgramRace, match=r"writes out\[31\]"):
            graph.replay()


@pytest.mark.only_on("CPU", "machine code of an emulated device is written to no file")
def test_a_kernel_of_a_file_is_checked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRITON_SPIRV_CHECK_RACES", "programs")
    module = tmp_path / "overlap.spv"
    arguments = ["-s", "*fp32, *fp32, 32", "-o", str(module)]
    assert cli.main(["compile", f"{__file__}:overlap", *arguments]) == 0
    with pytest.raises(ProgramRace, match=r"writes out\[31\]"):
        runtime.load(module)[(PROGRAMS,)](torch.zeros(600), torch.zeros(1))
