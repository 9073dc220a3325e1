"""What beginners write into a kernel that Triton's language does not have: the error says what to write instead."""

from __future__ import annotations

import math
import re
import traceback
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
import triton
import triton.language as tl
from triton import knobs
from triton.compiler.errors import CompilationError
from triton.runtime.jit import JITFunction

if not hasattr(JITFunction, "relaunch"):
    pytest.skip("this triton lacks the patch 'front-end-errors'", allow_module_level=True)


@triton.jit
def factorial(n):
    if n <= 1:
        result = 1
    else:
        result = n * factorial(n - 1)
    return result


@triton.jit
def helper(x):
    y = x * 2
    return tl.sum(y, axis=3)


@triton.jit
def widened(x):
    return x.to(tl.int64)


@triton.jit
def wrong(x_ptr, y_ptr, n, count_ptr, step, SIZE: tl.constexpr, WHAT: tl.constexpr):
    i = tl.arange(0, 16)
    x = tl.load(x_ptr + i)
    tile = x[:, None] + x[None, :]
    if WHAT == "type text":
        x = x.to("float99")
    if WHAT == "type of torch":
        x = x.to(torch.float16)
    if WHAT == "type of NumPy":
        x = x.to(numpy.float32)
    if WHAT == "zeros of torch":
        x = tl.zeros((16,), torch.float32)
    if WHAT == "axis":
        x = tl.sum(tile, axis=2)
    if WHAT == "axis in a helper":
        x = helper(tile)
    if WHAT == "argmax":
        x = tl.argmax(tile, axis=2)
    if WHAT == "topk":
        x = tl.topk(x, 3)
    if WHAT == "recursion":
        x = x * factorial(n)
    if WHAT == "size":
        x = tl.sum(tl.zeros((n,), tl.float32))
    if WHAT == "range":
        x = tl.sum(tl.arange(0, n))
    if WHAT == "twelve":
        x = tl.sum(tl.arange(0, 12))
    if WHAT == "subscript":
        x = x_ptr[0]
    if WHAT == "element":
        x = x[3]
    if WHAT == "assign element":
        x[0] = 1.0
    if WHAT == "mask":
        x = tl.load(x_ptr + i, i)
    if WHAT == "store mask":
        tl.store(y_ptr + i, x, i)
    if WHAT == "pointer count":
        x = tl.where(i < count_ptr, x, 0.0)
    if WHAT == "number":
        x = tl.load(n + i)
    if WHAT == "constant pointer":
        x = tl.load(3)
    if WHAT == "tensor size":
        x = tl.sum(tl.arange(0, SIZE))
    if WHAT == "abs":
        x = abs(x)
    if WHAT == "sum":
        x = sum(x)
    if WHAT == "sine":
        x = math.sin(x)
    if WHAT == "float":
        x = float(i)
    if WHAT == "power":
        x = x**2
    if WHAT == "product":
        x = tile @ tile
    if WHAT == "exp":
        x = tl.exp(i)
    if WHAT == "print":
        tl.device_print(x)
    if WHAT == "for":
        for _ in x_ptr:
            x += 1.0
    if WHAT == "break":
        for _ in range(n):
            break
    if WHAT == "tanh":
        x = tl.tanh(x)
    if WHAT == "arrange":
        x += tl.arrange(0, 16)
    if WHAT == "block pointer":
        x += tl.load(tl.make_block_ptr(x_ptr, (n,), (1,), (0,), (16,), (0,)))
    if WHAT == "advanced":
        x += tl.load(tl.advance(x_ptr, (16,)))
    if WHAT == "mixed dot":
        x += tl.sum(tl.dot(tile, tile.to(tl.float16)), axis=0)
    if WHAT == "carried number":
        total = 0
        for _ in range(n):
            total += x
        x = total
    if WHAT == "carried type":
        total = tl.zeros((16,), tl.float16)
        for _ in range(n):
            total += x
        x = total.to(tl.float32)
    if WHAT == "list":
        x = [tl.load(x_ptr + j) for j in range(3)][0]
    if WHAT == "one":
        x = x * step.to(tl.int64)
    if WHAT == "type of one":
        x = x.to(step.dtype)
    if WHAT == "sum of one":
        x = x * tl.sum(step)
    if WHAT == "one of a helper":
        x = x * widened(step)
    if WHAT == "constant":
        x = x * SIZE.to(tl.int64)
    if WHAT == "integer to fp8":
        x = i.to(tl.float8e5)
    if WHAT == "fp8 to integer":
        x = x.to(tl.float8e4nv).to(tl.int8)
    if WHAT == "pointer to float":
        x = x_ptr.to(tl.float32)
    if WHAT == "bits":
        x = x.to(tl.float16, bitcast=True)
    if WHAT == "if":
        if x > 0:
            x = -x
    if WHAT == "match":
        match n:
            case 1:
                x = -x
    if WHAT == "append":
        parts = []
        parts.append(x)
    if WHAT == "and":
        x = x & x
    if WHAT == "integer dot":
        x += tl.sum(tl.dot(tile.to(tl.int32), tile.to(tl.int32)), axis=0)
    if WHAT == "shapes":
        x = tl.sum(tl.zeros((64,), tl.float32) + tl.zeros((128,), tl.float32))
    if WHAT == "formatted":
        print(f"x is {x}")
    if WHAT == "elements":
        x = tl.sum(tl.zeros((2048, 1024), tl.float32))
    tl.store(y_ptr + i, x)


@triton.jit
def mended(x_ptr, y_ptr):
    """Some of the above as the errors say."""
    i = tl.arange(0, 16)
    x = tl.load(x_ptr + i)
    parts = ()
    parts = parts + (tl.where(x > 0, x, -x),)
    parts = parts + (x[:, None] + x[None, :],)
    total = tl.sum(tl.dot(parts[1].to(tl.int8), parts[1].to(tl.int8)), axis=0)
    if tl.max((x > 8).to(tl.int32), 0) != 0:
        tl.store(y_ptr + i, tl.where((x > -3) & (x < 3), parts[0], total.to(tl.float32)))


MESSAGES: dict[str, str] = {
    "type text": r"a type is one of triton\.language's, such as tl\.float32",
    "type of torch": r"a type is one of triton\.language's",
    "type of NumPy": r"a type is one of triton\.language's",
    "zeros of torch": r"a type is one of triton\.language's",
    "axis": r"in sum\(\): invalid axis 2\. Expected -2 <= axis < 2",
    "axis in a helper": r"in sum\(\): invalid axis 3\.",
    "argmax": r"in argmax\(\) → max\(\): list index out of range; is there such an axis",
    "topk": r"in topk\(\) → sort_impl\(\): topk: k must be a power of two",
    "recursion": r"factorial\(\) calls itself, .*tl\.constexpr: use a loop",
    "size": r"in zeros\(\): .*; declare the parameter that it comes from as `name: tl\.constexpr`",
    "range": r"declare the parameter that it comes from as `name: tl\.constexpr`",
    "twelve": r"power of 2; take the next one, triton\.next_power_of_2\(n\), .* mask",
    "subscript": r"memory is read with tl\.load\(x_ptr \+ i\)",
    "element": r"one element of it is tl\.sum\(tl\.where",
    "assign element": r"tensors do not change: tl\.where",
    "mask": r"Mask must have boolean scalar type; a mask is the result of a comparison",
    "store mask": r"Mask must have boolean scalar type; a mask is the result of a comparison",
    "pointer count": r"a pointer in the kernel: read it with tl\.load\(\), or pass a number",
    "number": r"an address is a pointer and offsets in elements: pass a tensor",
    "constant pointer": r"an address is a pointer and offsets in elements: pass a tensor",
    "tensor size": r"argument 'SIZE' is a tensor and declared tl\.constexpr: pass a number, as with SIZE\.item\(\)",
    "abs": r"Python's abs\(\) is not available in a kernel: use tl\.abs\(x\)",
    "sum": r"Python's sum\(\) is not available in a kernel: use tl\.sum",
    "sine": r"use those of triton\.language, such as tl\.sin",
    "float": r"x\.to\(tl\.float32\) to convert",
    "power": r"use x \* x, or tl\.extra\.libdevice\.pow",
    "product": r"use tl\.dot\(a, b\)",
    "exp": r"Expected dtype .*; convert it first",
    "print": r'the first argument is a text.*tl\.device_print\("x", x\)',
    "for": r"a loop goes over range\(\)",
    "break": r"Break; a loop that ends early is `while condition:`",
    "list": r"use a tuple, or a loop over tl\.static_range\(\)",
    "tanh": r"has no attribute 'tanh'; use libdevice\.tanh\(x\), with `from triton\.language\.extra import libdevice`",
    "arrange": r"has no attribute 'arrange'; did you mean tl\.arange\?",
    "block pointer": r"removed .*; write desc = tl\.make_tensor_descriptor\(x_ptr, shape, strides, block_shape\), .*"
    r"desc\.load\(",
    "advanced": r"has no attribute 'advance'; write desc = tl\.make_tensor_descriptor\(",
    "one": r"argument 'step' is 1, .*: write tl\.cast\(step, tl\.int64\), or "
    r'@triton\.jit\(do_not_specialize=\["step"\]\)',
    "type of one": r"argument 'step' is 1, .*: write tl\.cast\(step, tl\.int64\)",
    "sum of one": r"argument 'step' is 1, .*: write tl\.cast\(step, tl\.int64\)",
    "one of a helper": r"argument 'step' is 1, .*: write tl\.cast\(step, tl\.int64\)",
    "constant": r"'int' object has no attribute 'to'; a number that is known .*: tl\.cast\(x, tl\.int64\)",
    "integer to fp8": r"by way of float32, as with x\.to\(tl\.float32\)\.to\(tl\.float8e5\)",
    "fp8 to integer": r"by way of float32, as with x\.to\(tl\.float32\)\.to\(tl\.int8\)",
    "pointer to float": r"is a pointer in the kernel: read it with tl\.load\(x_ptr \+ i\)",
    "bits": r"size 32 to data-type of size 16; only types of one size have the same bits: leave out bitcast=True",
    "if": r"; `if` takes one value: choose for each element with tl\.where\(condition, a, b\), or make",
    "match": r"; use `if` and `elif`",
    "append": r"; lists do not change in a kernel: write parts = parts \+ \(x,\)",
    "and": r"; &, \|, \^ and shifts take integers and conditions: compare first, as with \(x > 0\) & \(y > 0\)",
    "integer dot": r"; convert the operands: a\.to\(tl\.int8\) if the values fit, or a\.to\(tl\.float32\)",
    "shapes": r"64 and 128; sizes must be equal or 1: x\[:, None\] is a column and x\[None, :\] a row",
    "formatted": r'; values follow the text: tl\.device_print\("x is", x\)',
    "elements": r"in zeros\(\): numel \(2097152\) .*; use smaller blocks, and more programs or a loop",
    "mixed dot": r"Got fp32 and fp16; convert one of them, as with tl\.dot\(a, b\.to\(tl\.float32\)\)",
    "carried number": r"; start with what the loop gives it, as with total = tl\.zeros\(\[16\], tl\.float32\)(?!,)",
    "carried type": r"; start with .* total = tl\.zeros\(\[16\], tl\.float32\), or end the loop with "
    r"total = total\.to\(tl\.float16\)",
}


def launch(what: str, **options: Any) -> None:
    x, y, count = torch.ones(16), torch.zeros(16), torch.tensor([3])
    wrong[(1,)](x, y, 16, count, 1, torch.tensor(16) if what == "tensor size" else 16, what, **options)


def lines_of(function: JITFunction[Any], what: str) -> range:
    """The lines of this file under ``if WHAT == what``, or of all of ``function``."""
    text = Path(__file__).read_text().splitlines()
    first = next(number for number, line in enumerate(text, 1) if line.startswith(f"def {function.__name__}("))
    if what:
        first = next(number for number, line in enumerate(text, 1) if line == f'    if WHAT == "{what}":')
    indent = len(text[first - 1]) - len(text[first - 1].lstrip())
    rest = (number for number in range(first + 1, len(text) + 1) if text[number - 1].strip())
    return range(first + 1, next(one for one in rest if not text[one - 1].startswith(" " * (indent + 1))))


@pytest.mark.parametrize("what", MESSAGES)
def test_the_error_says_where_and_what_to_write(what: str) -> None:
    """FILE:LINE and the message in its first line, the user's line, upstream's words for the place, then the calls
    that led there."""
    with pytest.raises(CompilationError, match=rf"{MESSAGES[what]}") as raised:
        launch(what)
    first, line, caret, here, *calls = str(raised.value).splitlines()
    place = re.match(rf"{re.escape(__file__)}:(\d+): ", first)
    assert place and len(re.findall(MESSAGES[what], first)) == 1 and "bound method" not in first, first
    called = {"axis in a helper": helper, "recursion": factorial, "one of a helper": widened}.get(what)
    number = int(place[1])
    assert number in (lines_of(called, "") if called else lines_of(wrong, what)), first
    assert line.strip() == Path(__file__).read_text().splitlines()[number - 1].strip()
    assert caret.strip() == "^" and bool(calls) == (called is not None)
    assert re.fullmatch(rf"at \d+:\d+: in {(called or wrong).__name__}\(\)", here)
    assert all(re.match(r"at \d+:\d+: called from ", call) for call in calls)
    cause: BaseException | None = raised.value
    while (cause := cause.__cause__) is not None:
        assert cause.__traceback__ is None, "frames of Triton's"
    frames = traceback.extract_tb(raised.value.__traceback__)
    assert sum("/triton/" in frame.filename for frame in frames) <= 3, frames


def test_what_the_errors_say_runs() -> None:
    x, y = torch.arange(-5.0, 11.0), torch.zeros(16)
    mended[(1,)](x, y)
    tile = (x[:, None] + x[None, :]).double()
    expected = torch.where((x > -3) & (x < 3), x.abs().double(), (tile @ tile).sum(0))
    assert (y.double() == expected).all()


def test_causes_and_places_are_upstreams() -> None:
    """Programs read upstream's own words for a place, and its own errors as the causes."""

    @triton.jit
    def kernel():
        tl.arange(2, 7)

    with pytest.raises(CompilationError) as raised:
        triton.compile(triton.compiler.ASTSource(fn=kernel, signature={}, constexprs={}))
    assert str(raised.value.__cause__) == "arange's range must be a power of 2"
    assert "at 2:4:" in str(raised.value)
    assert raised.value.__cause__ is not None and raised.value.__cause__.__traceback__ is not None
    with pytest.raises(CompilationError) as raised:
        launch("axis in a helper")
    inner = raised.value.__cause__
    assert isinstance(inner, CompilationError) and re.search(r"^at 3:11:$", str(inner), re.MULTILINE), inner
    line = next(n for n, text in enumerate((wrong.src or "").splitlines(), 1) if "helper(tile)" in text)
    assert f"at {line}:12: called from wrong()" in str(raised.value)
    assert "at 3:11: in helper()" in str(raised.value)


def test_debugging_the_front_end_keeps_all_frames() -> None:
    with knobs.compilation.scope(), pytest.raises(Exception) as raised:
        knobs.compilation.front_end_debugging = True
        launch("axis")
    assert len(traceback.extract_tb(raised.value.__traceback__)) > 8


def test_names_that_are_no_function_of_python_get_no_advice() -> None:
    @triton.jit
    def kernel(x_ptr):
        tl.store(x_ptr, nothing)  # noqa: F821

    with pytest.raises(CompilationError, match=r": nothing is not defined\n    tl\.store\(x_ptr, nothing\)"):
        kernel[(1,)](torch.ones(1))


def test_unknown_options_are_named_with_what_was_meant() -> None:
    for kind in (TypeError, KeyError):
        with pytest.raises(kind, match=r"^kernel 'wrong': Keyword argument nun_warps .*did you mean num_warps\?$"):
            launch("", nun_warps=4)
    with pytest.raises(TypeError, match=r"its parameters are x_ptr, y_ptr, n, count_ptr, step, SIZE, WHAT$"):
        launch("", blocksize=4)


def test_calls_without_a_grid_say_how_to_launch() -> None:
    with pytest.raises(RuntimeError, match=r"launch it with a grid, wrong\[\(programs,\)\]"):
        wrong(torch.ones(1))


def test_functions_that_are_not_tritons_are_named_with_the_kernel() -> None:
    @triton.jit
    def kernel(x_ptr):
        tl.store(x_ptr, numpy.sin(tl.load(x_ptr)))

    with pytest.raises(RuntimeError, match=r"Unsupported function referenced: <ufunc 'sin'>: '.*kernel' can call"):
        kernel[(1,)](torch.ones(1))
