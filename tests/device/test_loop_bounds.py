"""Loops that begin or end near the ends of their counters' types: as many rounds as Python's range has, of the same
numbers. A dot in the loop has rewrites of its own, which load a round ahead."""

from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

SIZE = tl.constexpr(16)
#: More rounds than any of the loops has.
MOST = 12


@triton.jit(do_not_specialize=["first", "past", "by"])
def rounds(counters_ptr, numbers_ptr, first, past, by, TYPE: tl.constexpr, STEP: tl.constexpr):
    """Stores the counter of each round; ``STEP`` 0: the step is ``by``."""
    start, end = first.to(TYPE), past.to(TYPE)
    number = 0
    for i in tl.range(start, end, by.to(TYPE) if STEP == 0 else STEP):
        tl.store(counters_ptr + number, i.to(tl.int64))
        number += 1
    tl.store(numbers_ptr, number)


@triton.jit(do_not_specialize=["first", "past", "by"])
def products(a_ptr, c_ptr, numbers_ptr, first, past, by, TYPE: tl.constexpr, STEP: tl.constexpr):
    """The sum of the squares of the matrices of all rounds, each found by the counter's distance from the first."""
    start, end = first.to(TYPE), past.to(TYPE)
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    total, number = tl.zeros((SIZE, SIZE), tl.float32), 0
    for i in tl.range(start, end, by.to(TYPE) if STEP == 0 else STEP, num_stages=2):
        distance = (start - i if STEP < 0 else i - start).to(tl.int32)
        a = tl.load(a_ptr + distance * SIZE * SIZE + at)
        total = tl.dot(a, a, total)
        number += 1
    tl.store(c_ptr + at, total)
    tl.store(numbers_ptr, number)


def _ranges(bits: int, signed: bool) -> list[tuple[int, int]]:
    """First number and end of loops at both ends of a type, over the middle of its bits, and without a round."""
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    middle = (least + most + 1) // 2 if signed else 1 << bits - 1
    return [
        (least, least + 7),
        (most - 7, most),
        (middle - 3, middle + 5),
        (most, most),
        (most, least),
        (most - 1, most - 5),
    ]


TYPES = [(f"{sign}int{bits}", bits, not sign) for bits in (8, 16, 32, 64) for sign in ("", "u")]
LOOPS = pytest.mark.parametrize(
    ("name", "first", "past"),
    [
        pytest.param(name, *pair, id=f"{name} {at}")
        for name, bits, signed in TYPES
        for at, pair in enumerate(_ranges(bits, signed))
    ],
)
STEPS = pytest.mark.parametrize(
    ("step", "run_time"),
    [(1, False), (3, False), (1, True), (5, True), (-1, False), (-2, False)],
    ids=lambda one: {True: "at run time", False: "constant"}[one] if isinstance(one, bool) else str(one),
)


def _arguments(first: int, past: int, step: int, run_time: bool) -> tuple[int, int, int, int]:
    """A loop downwards begins where the one upwards ends."""
    start, end = (past, first) if step < 0 else (first, past)
    return start, end, step if run_time else 1, 0 if run_time else step


def _expected(name: str, start: int, end: int, step: int) -> list[int]:
    counters = np.array(list(range(start, end, step)), dtype=object).astype(name)
    return counters.astype(np.int64).tolist()


@STEPS
@LOOPS
def test_rounds(name: str, first: int, past: int, step: int, run_time: bool) -> None:
    start, end, by, constant = _arguments(first, past, step, run_time)
    expected = _expected(name, start, end, step)
    counters, number = torch.full((MOST,), -7, dtype=torch.int64), torch.zeros(1, dtype=torch.int32)
    rounds[(1,)](counters, number, start, end, by, getattr(tl, name), constant)
    assert counters.tolist() == expected + [-7] * (MOST - len(expected)) and number.item() == len(expected)


@STEPS
@LOOPS
def test_rounds_of_a_dot(name: str, first: int, past: int, step: int, run_time: bool) -> None:
    """Of the matrices that lie beyond the last round's nothing is read: they are not numbers."""
    start, end, by, constant = _arguments(first, past, step, run_time)
    numbers = len(range(start, end, step))
    a = torch.full((MOST * 2, SIZE.value, SIZE.value), float("nan"))
    used = a[:: abs(step)][:numbers]
    used[:] = torch.randint(-4, 5, used.shape)
    c, number = torch.full((SIZE.value, SIZE.value), 7.0), torch.zeros(1, dtype=torch.int32)
    kernel: Any = products[(1,)]
    kernel(a, c, number, start, end, by, getattr(tl, name), constant)
    assert number.item() == numbers and torch.equal(c, (used @ used).sum(0))


@pytest.mark.parametrize("name", ["int32", "uint32", "int64"])
def test_nothing_is_loaded_for_a_round_that_would_be_past_the_end_of_the_type(name: str) -> None:
    """What a step past the last counter gives is below the end again."""
    most = int(np.iinfo(name).max)
    a = torch.randint(-4, 5, (1, SIZE.value, SIZE.value)).float()
    c, number = torch.zeros((SIZE.value, SIZE.value)), torch.zeros(1, dtype=torch.int32)
    products[(1,)](a, c, number, most - 2, most, 5, getattr(tl, name), 0, check_bounds=True)
    assert number.item() == 1 and torch.equal(c, a[0] @ a[0])


@triton.jit(do_not_specialize=["first", "past"])
def carried_products(
    a_ptr, b_ptr, c_ptr, first, past, TYPE: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr
):
    """A product in blocks of K, of pointers that each round moves; masks go by how far the counter is from the end."""
    start, end = first.to(TYPE), past.to(TYPE)
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    length = (end - start).to(tl.int32)
    a, b = a_ptr + m[:, None] * length + k[None, :], b_ptr + k[:, None] * N + n[None, :]
    total = tl.zeros((M, N), tl.float32)
    for i in range(start, end, K):
        left = (end - i).to(tl.int32)
        total = tl.dot(
            tl.load(a, mask=k[None, :] < left, other=0.0), tl.load(b, mask=k[:, None] < left, other=0.0), total
        )
        a += K
        b += K * N
    tl.store(c_ptr + m[:, None] * N + n[None, :], total)


@LOOPS
def test_pointers_that_are_carried(name: str, first: int, past: int) -> None:
    length = max(past - first, 0)
    a, b = torch.randint(-4, 5, (32, length)).float(), torch.randint(-4, 5, (length, 64)).float()
    c = torch.full((32, 64), 7.0)
    carried_products[(1,)](a, b, c, first, past, getattr(tl, name), 32, 64, 16)
    assert torch.equal(c, a @ b)
