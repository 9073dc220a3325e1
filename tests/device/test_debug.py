"""What kernels tell the host: device_print, device_assert, and loops that the driver cut short."""

import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl
from triton.backends.spirv.errors import UnsupportedOperation
from triton.backends.spirv.runtime.context import current
from triton.backends.spirv.runtime.reports.failures import KernelAssertionError, LoopLimitExceeded


@triton.jit
def print_kernel(x_ptr, scalar, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    offsets = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.device_print("value", tl.load(x_ptr + offsets))
    tl.device_print("scalar", scalar)


@pytest.mark.parametrize(
    ("dtype", "shown"),
    [
        (torch.float32, "-1.500000"),
        (torch.float16, "-1.500000"),
        (torch.bfloat16, "-1.500000"),
        (torch.float64, "-1.500000"),
        (torch.int8, "-1"),
        (torch.int64, "-1"),
        (torch.int32, "-1"),
    ],
)
def test_print_has_one_line_an_element(capfd, dtype, shown):
    x = torch.arange(2 * 16, dtype=torch.float64).reshape(2, 16).sub(1.5).to(dtype)
    print_kernel[(1,)](x, 7, ROWS=2, COLUMNS=16)
    lines = capfd.readouterr().out.splitlines()
    values = [line for line in lines if "value" in line]
    assert len(values) == 32 and len(lines) == 33
    assert f"pid (0, 0, 0) idx (0,  0) value: {shown}" in values
    assert any(line.startswith("pid (0, 0, 0) idx (1, 15) value: ") for line in values)
    assert "pid (0, 0, 0) idx () scalar: 7" in lines


@triton.jit
def print_several_kernel(x_ptr):
    offsets = tl.arange(0, 2)
    tl.device_print("pair", offsets, tl.load(x_ptr + offsets), hex=True)


def test_print_numbers_its_operands_and_knows_hexadecimal(capfd):
    print_several_kernel[(1,)](torch.tensor([255, -1], dtype=torch.int16))
    assert sorted(capfd.readouterr().out.splitlines()) == [
        "pid (0, 0, 0) idx (0) pair: (operand 0) 0x00000000",
        "pid (0, 0, 0) idx (0) pair: (operand 1) 0x00ff",
        "pid (0, 0, 0) idx (1) pair: (operand 0) 0x00000001",
        "pid (0, 0, 0) idx (1) pair: (operand 1) 0xffff",
    ]


@triton.jit
def print_floats_kernel(x_ptr, BLOCK: tl.constexpr):
    tl.device_print("x", tl.load(x_ptr + tl.arange(0, BLOCK)), hex=True)


@pytest.mark.parametrize(
    ("dtype", "smallest"),
    [
        (torch.float16, "0x1p-24"),
        (torch.bfloat16, "0x1p-133"),
        (torch.float32, "0x1p-149"),
        (torch.float64, "0x0.0000000000001p-1022"),
    ],
    ids=str,
)
def test_hexadecimal_floats_are_those_of_c(capfd, dtype, smallest):
    bits = {2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
    x = torch.tensor([1.5, -2.25, 0.0, -0.0, float("inf"), -float("inf"), float("nan"), 0.0], dtype=dtype)
    x.view(bits)[7] = 1
    print_floats_kernel[(1,)](x, BLOCK=8)
    values = [line.partition(": ")[2] for line in sorted(capfd.readouterr().out.splitlines())]
    assert values == ["0x1.8p+0", "-0x1.2p+1", "0x0p+0", "-0x0p+0", "inf", "-inf", "nan", smallest]


@triton.jit
def print_much_kernel(x_ptr, BLOCK: tl.constexpr):
    tl.device_print("", tl.load(x_ptr + tl.arange(0, BLOCK)))


def test_more_prints_than_fit_say_so(capfd):
    x = torch.zeros(1024, dtype=torch.int8)
    print_much_kernel[(33,)](x, BLOCK=1024)
    captured = capfd.readouterr()
    assert len(captured.out.splitlines()) == 1 << 15
    assert f"{33 * 1024 - (1 << 15)} printed values were lost" in captured.err


@triton.jit
def print_and_wait_kernel(x_ptr, printed_ptr, go_on_ptr):
    tl.device_print("x", tl.load(x_ptr))
    tl.atomic_xchg(printed_ptr, 1)
    waits = 1
    while waits == 1:
        waits = 1 - tl.atomic_add(go_on_ptr, 0)


@pytest.mark.only_on("CPU", "the kernel and the test see one memory while it runs")
def test_prints_come_when_the_launch_has_ended(capfd):
    x, printed, go_on = torch.tensor([5]), torch.zeros(1, dtype=torch.int32), torch.ones(1, dtype=torch.int32)
    print_and_wait_kernel[(1,)](x, printed, go_on)
    assert capfd.readouterr().out == "pid (0, 0, 0) idx () x: 5\n"
    printed.zero_(), go_on.zero_()
    thread = threading.Thread(target=lambda: print_and_wait_kernel[(1,)](x, printed, go_on))
    thread.start()
    try:
        deadline = time.monotonic() + 30
        while not printed.item() and time.monotonic() < deadline:
            time.sleep(0.001)
        assert printed.item() == 1
        assert capfd.readouterr().out == ""
    finally:
        go_on.fill_(1)
        thread.join()
    assert capfd.readouterr().out == "pid (0, 0, 0) idx () x: 5\n"


@triton.jit
def assert_kernel(x_ptr, out_ptr, limit, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.device_assert(x < limit, "a value is too big")
    tl.store(out_ptr + offsets, x)


def test_assertion_that_holds_is_silent(capfd):
    x, out = torch.arange(64), torch.zeros(64, dtype=torch.int64)
    assert_kernel[(1,)](x, out, 64, BLOCK=64, debug=True)
    assert torch.equal(x, out) and capfd.readouterr().out == ""


def test_assertion_that_fails_is_raised_with_its_place():
    x, out = torch.arange(64), torch.zeros(64, dtype=torch.int64)
    with pytest.raises(KernelAssertionError, match=r"test_debug\.py:\d+: kernel 'assert_kernel': assertion failed: "):
        assert_kernel[(1,)](x, out, 63, BLOCK=64, debug=True)
    # The next launch starts afresh.
    assert_kernel[(1,)](x, out, 64, BLOCK=64, debug=True)


@triton.jit
def assert_elements_kernel(x_ptr, n, least, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, ROWS)[:, None] * (BLOCK // ROWS) + tl.arange(0, BLOCK // ROWS)[None, :]
    x = tl.load(x_ptr + i, mask=i < n)
    tl.device_assert(x >= least, "too small", mask=i < n)


@triton.jit
def assert_number_kernel(x_ptr):
    x = tl.load(x_ptr + tl.program_id(1))
    tl.device_assert(x != 7, "a seven")
    tl.device_assert((x > 0) & (x < 9), "out of range")


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8", "int64"])
def test_assertion_says_program_element_and_value(dtype):
    x = torch.ones(1000, dtype=getattr(torch, dtype))
    x[777] = -2
    with pytest.raises(KernelAssertionError) as caught:
        assert_elements_kernel[(4,)](x, 1000, 0, BLOCK=256, ROWS=4, debug=True)
    assert str(caught.value).endswith("assertion failed: too small; program (3, 0, 0), element (0, 9), value -2")
    x[777] = 1
    assert_elements_kernel[(4,)](x, 1000, 0, BLOCK=256, ROWS=4, debug=True)


def test_assertion_of_a_number_says_its_program():
    x = torch.tensor([1, 2, 7, 3], dtype=torch.int32)
    with pytest.raises(KernelAssertionError, match=r"a seven; program \(0, 2, 0\), value 7$"):
        assert_number_kernel[(1, 4)](x, debug=True)
    x[2], x[3] = 1, -5
    with pytest.raises(KernelAssertionError, match=r"out of range; program \(0, 3, 0\)$"):
        assert_number_kernel[(1, 4)](x, debug=True)


def test_assertion_after_a_print_says_its_program(capfd):
    x = torch.full((4,), -1, dtype=torch.int32)
    with pytest.raises(KernelAssertionError, match=r"too small; program \(0, 0, 0\), element \(0, [0-3]\), value -1$"):
        print_and_assert_kernel[(1,)](x, debug=True)
    assert capfd.readouterr().out.count("idx") == 4


@triton.jit
def print_and_assert_kernel(x_ptr):
    x = tl.load(x_ptr + tl.arange(0, 4)[None, :])
    tl.device_print("x", x)
    tl.device_assert(x >= 0, "too small")


def test_assertion_is_nothing_without_debug():
    x, out = torch.arange(64), torch.zeros(64, dtype=torch.int64)
    assert_kernel[(1,)](x, out, 0, BLOCK=64)
    assert torch.equal(x, out)


@triton.jit
def nested_kernel(out_ptr, rows, columns):
    count = 0
    for _ in range(rows):
        for _ in range(columns):
            count += 1
    tl.store(out_ptr, count)


@triton.jit
def while_kernel(out_ptr, limit):
    count = 0
    while count < limit:
        count += 1
    tl.store(out_ptr, count)


def _line(text):
    """The number of the line of this file that begins so."""
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.strip().startswith(text))


@contextmanager
def _right_or_refused(rounds, *loops):
    """Where the driver may end loops that run ``rounds`` times, the launch may raise; what it does else is right. The
    error names one of the lines ``loops``."""
    try:
        yield
    except LoopLimitExceeded as error:
        assert current().capabilities.driver == "mesa_llvmpipe" and rounds >= 65535 and "65535" in str(error)
        assert str(error).startswith(tuple(f"{__file__}:{_line(loop)}: kernel '" for loop in loops)), error


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (254, 254), (30000, 0), (70000, 1), (1, 70000), (1000, 1000)])
def test_a_loop_is_right_or_refused(rows, columns):
    """Mesa's CPU driver of 2022 ends loops after 65,535 iterations of an invocation: never silently. That of 2025 does
    not."""
    out = torch.zeros(1, dtype=torch.int32)
    with _right_or_refused(rows * (columns + 1), "for _ in range(rows)", "for _ in range(columns)"):
        nested_kernel[(1,)](out, rows, columns)
        assert out.item() == rows * columns


@pytest.mark.parametrize("limit", [0, 60000, 66000])
def test_a_while_loop_is_right_or_refused(limit):
    out = torch.zeros(1, dtype=torch.int32)
    with _right_or_refused(limit, "while count < limit"):
        while_kernel[(1,)](out, limit)
        assert out.item() == limit


@triton.jit
def _counted_to_3(x):
    for _ in range(3):
        x += 1
    return x


@triton.jit
def _counted_to_4000(x):
    for _ in range(4000):
        x += 1
    return x


@triton.jit
def map_kernel(x_ptr, MANY: tl.constexpr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    x = tl.load(x_ptr + at)
    if MANY:
        tl.store(x_ptr + at, tl.map_elementwise(_counted_to_4000, x))
    else:
        tl.store(x_ptr + at, tl.map_elementwise(_counted_to_3, x))


@triton.jit
def _all_counted(a, b):
    for _ in range(0, 4000):
        b += 1
    return a + b


@triton.jit
def combine_kernel(x_ptr, SCANS: tl.constexpr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    x = tl.load(x_ptr + at)
    if SCANS:
        tl.store(x_ptr + at, tl.associative_scan(x, 0, _all_counted))
    else:
        tl.store(x_ptr + at, x + tl.reduce(x, 0, _all_counted))


@pytest.mark.parametrize("rounds", [3, 4000])
@pytest.mark.parametrize("num_warps", [1, 4])
def test_loops_for_each_element_are_right_or_refused(rounds, num_warps):
    """Their code is there once for each register, and the driver counts the iterations of all."""
    size = 512
    x = torch.zeros(size, dtype=torch.int32)
    with _right_or_refused(rounds * size, "for _ in range(4000)"):
        map_kernel[(1,)](x, MANY=rounds > 3, SIZE=size, num_warps=num_warps)
        assert (x == rounds).all()


@pytest.mark.parametrize("scans", [True, False])
def test_loops_in_combiners_are_right_or_refused(scans):
    size = 64 if scans else 256
    x = torch.zeros(size, dtype=torch.int32)
    with _right_or_refused(4000 * size, "for _ in range(0, 4000)"):
        combine_kernel[(1,)](x, SCANS=scans, SIZE=size, num_warps=1)
        assert torch.equal(x, 4000 * (torch.arange(size, dtype=torch.int32) if scans else torch.full_like(x, size - 1)))


@triton.jit
def count_kernel(x_ptr):
    offsets = tl.arange(0, 16)
    values = tl.load(x_ptr + offsets)
    tl.device_assert(values == 0)
    tl.store(x_ptr + offsets, values + 1)


def test_assertion_is_about_what_the_owner_of_an_element_loaded():
    """Several subgroups hold the 16 elements; the later ones may load what the first has stored."""
    x = torch.zeros(16, dtype=torch.int32)
    count_kernel[(1,)](x, debug=True, num_warps=4)
    assert x.tolist() == [1] * 16
    with pytest.raises(KernelAssertionError):
        count_kernel[(1,)](x, debug=True, num_warps=4)


@triton.jit
def _turns(n, step):
    count = 0
    for _ in range(0, n, step):
        count += 1
    return count


@triton.jit
def turns_kernel(out_ptr, n, step, TYPE: tl.constexpr, INNER: tl.constexpr):
    n, step = n.to(TYPE), step.to(TYPE)
    if INNER:
        count = 0
        for _ in range(2):
            count += _turns(n, step)
    else:
        count = _turns(n, step)
    tl.store(out_ptr, count)


CHECKED_STEPS = [{"debug": True}, {"check_bounds": True}]


@pytest.mark.parametrize("type_", [tl.int32, tl.int64, tl.uint32], ids=str)
@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("options", CHECKED_STEPS, ids=lambda options: next(iter(options)))
def test_a_step_of_zero_is_an_error(options, inner, type_):
    out = torch.full((1,), 77, dtype=torch.int32)
    with pytest.raises(KernelAssertionError, match=r"test_debug\.py:\d+: .*the step of a range is 0"):
        turns_kernel[(1,)](out, 10, 0, type_, inner, **options)
    turns_kernel[(1,)](out, 10, 3, type_, inner, **options)
    assert out.item() == (8 if inner else 4)


@pytest.mark.parametrize("options", CHECKED_STEPS, ids=lambda options: next(iter(options)))
def test_a_negative_step_that_is_no_constant_is_an_error(options):
    out = torch.full((1,), 77, dtype=torch.int32)
    for n in (10, -10):
        with pytest.raises(KernelAssertionError, match="negative and no tl.constexpr"):
            turns_kernel[(1,)](out, n, -1, tl.int32, False, **options)


@pytest.mark.parametrize("type_", [tl.int32, tl.int64], ids=str)
@pytest.mark.parametrize("inner", [False, True])
def test_a_step_that_is_no_constant_is_taken_for_a_positive_number(inner, type_):
    """Python has ten rounds; nothing looks at the step, but in a kernel that checks."""
    out = torch.full((1,), 77, dtype=torch.int32)
    turns_kernel[(1,)](out, -10, -1, type_, inner)
    assert out.item() == 0


@triton.jit
def constant_steps_kernel(out_ptr, STEP: tl.constexpr):
    count = 0
    for _ in range(9 if STEP < 0 else 0, 0 if STEP < 0 else 9, STEP):
        count += 1
    tl.store(out_ptr, count)


def test_constant_steps():
    out = torch.zeros(1, dtype=torch.int32)
    for step in (1, 4, -1, -4):
        constant_steps_kernel[(1,)](out, step, debug=True)
        assert out.item() == (9 if abs(step) == 1 else 3)
    with pytest.raises(UnsupportedOperation, match="'scf.for': its step is 0"):
        constant_steps_kernel[(1,)](out, 0)
