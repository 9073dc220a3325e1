"""Control flow on the device, against the same kernels as Python."""

import numpy
import pytest
import torch
import triton
import triton.language as tl

from tests.fuzz.reference import run_as_python

BLOCK = 64
INT_MAX = 2**31 - 1


def check(kernel: triton.JITFunction, *scalars: object, programs: int = 1, tolerance: float = 0.0) -> None:
    """``kernel(x, *scalars)`` makes of x[i] = i, one row per program, what it does as Python."""
    x, expected = (torch.arange(programs * BLOCK, dtype=torch.float32) for _ in range(2))
    kernel[(programs,)](x, *scalars, BLOCK=BLOCK)
    run_as_python(kernel, (programs,), expected, *scalars, BLOCK=BLOCK)
    torch.testing.assert_close(x, expected, rtol=tolerance, atol=0.0)


# -- early returns -----------------------------------------------------------------------------------------------
@triton.jit
def one_return(x, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    if pid >= n:
        return
    at = x + pid * BLOCK + tl.arange(0, BLOCK)
    tl.store(at, tl.load(at) + 1)


@pytest.mark.parametrize("n", [0, 2, 9])
def test_return_before_the_rest(n: int) -> None:
    check(one_return, n, programs=4)


@triton.jit
def nested_returns(x, n, m, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = x + pid * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(at)
    if pid >= n:
        a = a * 2
        if n > m:
            tl.store(at, a)
            return
        else:
            a += 5
    elif n == 7:
        return
    tl.store(at, a + 1)


@pytest.mark.parametrize("n", [0, 2, 7])
@pytest.mark.parametrize("m", [1, 8])
def test_returns_inside_nested_branches(n: int, m: int) -> None:
    check(nested_returns, n, m, programs=8)


@triton.jit
def shared_tail(x, n, m, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = x + pid * BLOCK + tl.arange(0, BLOCK)
    if pid == 0:
        return
    a = tl.load(at)
    b = a
    if n > m:
        tl.store(at, a)
        return
    for i in range(n):
        a += i
        if i > 2:
            b += a
        else:
            b -= 1
    if m == 3:
        a = a + 1
    if n == 3:
        tl.store(at, a)
        return
    else:
        tl.store(at, a * 7 + b)
        return


@pytest.mark.parametrize(("n", "m"), [(4, 3), (3, 3), (2, 3), (3, 5), (6, 9), (0, 0)])
def test_returns_that_share_a_block_and_follow_a_loop(n: int, m: int) -> None:
    check(shared_tail, n, m, programs=3)


@triton.jit
def return_after_loop_in_branch(x, n, m, BLOCK: tl.constexpr):
    at = x + tl.arange(0, BLOCK)
    a = tl.load(at)
    count = 0
    if n > 3:
        for i in range(n):
            a += i
            count += 2
        if m > 3:
            tl.store(at, a * 3 + count)
            return
        if m == 2:
            a -= 9
            if n == 5:
                return
    tl.store(at, a + count)


@pytest.mark.parametrize("n", [3, 4, 5])
@pytest.mark.parametrize("m", [1, 2, 4])
def test_values_of_a_loop_after_several_returns(n: int, m: int) -> None:
    check(return_after_loop_in_branch, n, m)


@triton.jit
def barriers_after_return(x, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, 8)
    at = x + pid * BLOCK + i[:, None] * 8 + i[None, :]
    a = tl.load(at)
    if pid == n:
        a = tl.dot(a, a)
        if n == 1:
            tl.store(at, tl.trans(a))
            return
    elif pid == 0:
        return
    a = tl.dot(tl.trans(a), a)
    tl.store(at, a)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_barriers_and_shared_memory_under_a_branch(n: int) -> None:
    check(barriers_after_return, n, programs=4, tolerance=1e-5)


# -- loops -------------------------------------------------------------------------------------------------------
@triton.jit
def count_up_by(out, start, stop, step, BLOCK: tl.constexpr):
    rounds = start * 0
    last = start * 0
    for i in range(start, stop, step):
        rounds += 1
        last = i
    tl.store(out, rounds.to(tl.int64))
    tl.store(out + 1, last.to(tl.int64))


@triton.jit
def count_up(out, start, stop, STEP: tl.constexpr, BLOCK: tl.constexpr):
    count_up_by(out, start, stop, STEP, BLOCK)


LIMITS = [
    (0, 0),
    (5, 5),
    (9, 5),
    (-7, 6),
    (0, 10),
    (3, 17),
    (INT_MAX - 7, INT_MAX),
    (INT_MAX, INT_MAX),
    (-INT_MAX - 1, -INT_MAX + 9),
    (2**40, 2**40 + 11),
    (-(2**40), -(2**40) + 3),
    (2**63 - 9, 2**63 - 1),
    (-(2**63), -(2**63) + 5),
]


def counted(start: int, stop: int, step: int) -> list[int]:
    values = range(start, stop, step)
    return [len(values), values[-1] if values else 0]


@pytest.mark.parametrize("step", [1, 2, 3, 8, -1, -3])
@pytest.mark.parametrize(("start", "stop"), LIMITS)
def test_range_with_a_constant_step(start: int, stop: int, step: int) -> None:
    if step < 0:
        start, stop = stop, start
    out = torch.zeros(2, dtype=torch.int64)
    count_up[(1,)](out, start, stop, step, BLOCK)
    assert out.tolist() == counted(start, stop, step)


@pytest.mark.parametrize("step", [1, 2, 3, 8])
@pytest.mark.parametrize(("start", "stop"), LIMITS)
def test_range_with_a_step_known_at_run_time(start: int, stop: int, step: int) -> None:
    out = torch.zeros(2, dtype=torch.int64)
    count_up_by[(1,)](out, start, stop, step, BLOCK)
    assert out.tolist() == counted(start, stop, step)


def test_a_range_over_the_whole_of_int32_in_large_steps() -> None:
    out = torch.zeros(2, dtype=torch.int64)
    count_up_by[(1,)](out, -(2**31), INT_MAX, 2**30, BLOCK)
    assert out.tolist() == counted(-(2**31), INT_MAX, 2**30)


@triton.jit
def carried_values(x, n, m, BLOCK: tl.constexpr):
    at = x + tl.arange(0, BLOCK)
    a = tl.load(at)
    b = a + 1
    k = n
    for i in range(n):
        a, b = b, a + k
        for j in range(i, m):
            k += j
            while k > 40:
                k -= 13
                if i % 2 == 0:
                    b += 1
                elif j == 2:
                    a, b = b, a
        if k % 3 == 0:
            for _ in range(m - 4):
                a -= 2
    tl.store(at, a + 2 * b + k)


@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("m", [0, 3, 7])
def test_nested_loops_that_carry_tensors_and_scalars(n: int, m: int) -> None:
    check(carried_values, n, m)


@triton.jit
def loop_options(x, n, m, BLOCK: tl.constexpr):
    at = x + tl.arange(0, BLOCK)
    a = tl.load(at)
    for i in tl.range(0, n, num_stages=3):
        a += tl.load(at) * i
    for i in tl.range(0, n, 2, loop_unroll_factor=4):
        a = a * 2 - i
    for i in tl.range(n, flatten=True):
        for j in tl.range(m, disallow_acc_multi_buffer=True, disable_licm=True):
            a += i * j
    for i in tl.static_range(3, 9, 2):
        a += i * n
    for i in tl.range(m, warp_specialize=False):
        a -= i
    tl.store(at, a)


@pytest.mark.parametrize(("n", "m"), [(0, 3), (1, 1), (5, 4), (8, 0)])
def test_options_of_range_change_no_result(n: int, m: int) -> None:
    check(loop_options, n, m)


@triton.jit
def complex_while(x, n, m, BLOCK: tl.constexpr):
    at = x + tl.arange(0, BLOCK)
    a = tl.load(at)
    steps = 0
    while (n < 10 and m > 3) or n == 12:
        n += 1
        steps += 1
        a += n
        while not (m < n):
            m -= 2
            a -= 1
    tl.store(at, a * 2 + steps)


@pytest.mark.parametrize("n", [-4, 9, 11, 12])
@pytest.mark.parametrize("m", [3, 4, 20])
def test_while_with_a_compound_condition(n: int, m: int) -> None:
    check(complex_while, n, m)


@triton.jit
def data_dependent_while(x, out, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    steps = 0
    value = tl.load(x + pid).to(tl.int64)
    while value != 1:
        value = value // 2 if value % 2 == 0 else 3 * value + 1
        steps += 1
    tl.store(out + pid * BLOCK + tl.arange(0, BLOCK), steps)


def test_while_that_depends_on_loaded_data() -> None:
    x, out = torch.arange(1, 30, dtype=torch.int32), torch.zeros(29, BLOCK, dtype=torch.int32)
    expected = torch.zeros_like(out)
    data_dependent_while[(29,)](x, out, BLOCK=BLOCK)
    run_as_python(data_dependent_while, (29,), x, expected, BLOCK=BLOCK)
    assert torch.equal(out, expected)


@triton.jit
def pointer_carried(x, n, BLOCK: tl.constexpr):
    at = x + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for _ in range(n):
        total += tl.load(at)
        at += BLOCK
    if n % 2 == 1:
        at -= BLOCK
    tl.store(at, total)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_pointers_carried_around_a_loop(n: int) -> None:
    x, expected = (torch.arange(4 * BLOCK, dtype=torch.float32) for _ in range(2))
    pointer_carried[(1,)](x, n, BLOCK=BLOCK)
    run_as_python(pointer_carried, (1,), expected, n, BLOCK=BLOCK)
    assert torch.equal(x, expected)


@triton.jit
def booleans_carried(x, n, BLOCK: tl.constexpr):
    at = x + tl.arange(0, BLOCK)
    a = tl.load(at)
    flag = n > 2
    mask = a > 10
    for i in range(n):
        if flag:
            a += 1
        flag = (i % 2 == 0) == flag
        mask = mask & (a < 60 - i)
    tl.store(at, a + 100, mask=mask)


@pytest.mark.parametrize("n", [0, 2, 5])
def test_booleans_and_masks_carried_around_a_loop(n: int) -> None:
    check(booleans_carried, n)


@triton.jit
def branch_results(x, n, BLOCK: tl.constexpr):
    at = x + tl.arange(0, BLOCK)
    a = tl.load(at)
    if n > 4:
        b, c, d = a * 2, n + 1, n > 6
    elif n > 2:
        b, c, d = a - 1, n * n, n == 3
    else:
        b, c, d = a, n, n < 0
    if d:
        b = -b
    tl.store(at, b + c)


@pytest.mark.parametrize("n", [-1, 0, 3, 4, 5, 7])
def test_branches_with_several_results(n: int) -> None:
    check(branch_results, n)


# -- loops that turn a tile around, with which upstream's compiler did not come to an end ------------------------
@triton.jit
def turned(x, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    at = x + tl.arange(0, ROWS)[:, None] * (BLOCK // ROWS) + tl.arange(0, BLOCK // ROWS)[None, :]
    a = tl.load(at)
    b = tl.full([ROWS, BLOCK // ROWS], 1.0, tl.float32)
    for i in range(n):
        a = tl.reshape(tl.trans(a), [ROWS, BLOCK // ROWS]) + i
        b = tl.reshape(tl.trans(b + tl.arange(0, ROWS)[:, None]), [ROWS, BLOCK // ROWS])
    tl.store(at, a + b)


@pytest.mark.parametrize(("size", "side", "warps"), [(64, 8, 1), (64, 4, 1), (16, 4, 4), (4, 2, 1)])
def test_a_tile_that_each_iteration_turns(size: int, side: int, warps: int) -> None:
    x, expected = (torch.arange(size, dtype=torch.float32) for _ in range(2))
    turned[(1,)](x, 3, side, BLOCK=size, num_warps=warps)
    run_as_python(turned, (1,), expected, 3, side, BLOCK=size)
    assert torch.equal(x, expected)


@triton.jit
def turned_in_two_ways(x, n, BLOCK: tl.constexpr):
    a = tl.load(x + tl.arange(0, BLOCK))
    kept = a > 7
    for i in range(n):
        a = tl.reshape(tl.permute(tl.reshape(a, [BLOCK // 2, 2]), (1, 0)), [BLOCK])
        if i != 1:
            a = tl.reshape(tl.permute(tl.reshape(a, [BLOCK // 4, 2, 2]), (0, 2, 1)), [BLOCK]) + i
            kept = tl.reshape(tl.permute(tl.reshape(kept, [2, BLOCK // 2]), (1, 0)), [BLOCK])
    tl.store(x + tl.arange(0, BLOCK), tl.where(kept, a, -a))


@pytest.mark.parametrize(("size", "warps"), [(64, 1), (256, 4)])
def test_a_tile_that_each_iteration_turns_in_two_ways(size: int, warps: int) -> None:
    """Together they make every order of the bits of a place, 40,320 of 256 elements."""
    x, expected = (torch.arange(size, dtype=torch.float32) for _ in range(2))
    turned_in_two_ways[(1,)](x, 4, BLOCK=size, num_warps=warps)
    run_as_python(turned_in_two_ways, (1,), expected, 4, BLOCK=size)
    assert torch.equal(x, expected)


@triton.jit
def turned_places(x, y, n, ROWS: tl.constexpr):
    places = tl.arange(0, ROWS)[:, None] * ROWS + tl.arange(0, ROWS)[None, :]
    at = x + places
    total = tl.zeros([ROWS, ROWS], tl.float32)
    i = 0
    while i < n:
        for _ in range(2):
            at = tl.trans(at)
            total += tl.load(at)
        at = tl.reshape(tl.permute(tl.reshape(at, [ROWS, ROWS // 2, 2]), (2, 0, 1)), [ROWS, ROWS])
        i += 1
    tl.store(y + places, total)


def test_pointers_that_each_iteration_turns() -> None:
    x, y = torch.arange(64, dtype=torch.float32), torch.zeros(64)
    turned_places[(1,)](x, y, 3, ROWS=8, num_warps=1)
    at, total = numpy.arange(64).reshape(8, 8), numpy.zeros((8, 8))
    for _ in range(3):
        total += at + at.T
        at = at.reshape(8, 4, 2).transpose(2, 0, 1).reshape(8, 8)
    numpy.testing.assert_array_equal(y.numpy().reshape(8, 8), total)


@triton.jit
def exchanged_in_loops(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    start = tl.load(x + i)
    a, b, last, now = start, start, start, start
    for _ in range(n):
        a, b = b, a + 1
        first = last
        turns = 0
        while turns < n:
            last = now
            now = first + now
            turns += 1
    tl.store(y + i, a)
    tl.store(y + BLOCK + i, b)
    tl.store(y + 2 * BLOCK + i, last)
    tl.store(y + 3 * BLOCK + i, now)


@pytest.mark.parametrize("n", [0, 1, 4])
def test_names_that_start_loops_with_one_value(n: int) -> None:
    """Each gets what another one had: no value stays because it was the loop's first."""
    x, y, expected = torch.arange(64, dtype=torch.int32), *torch.zeros(2, 4 * 64, dtype=torch.int32)
    exchanged_in_loops[(1,)](x, y, n, BLOCK=64)
    run_as_python(exchanged_in_loops, (1,), x, expected, n, BLOCK=64)
    assert torch.equal(y, expected)
