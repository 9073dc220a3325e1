"""What beginners write into a kernel that Triton's language does not have: the error says what to write instead."""

import inspect
import re
import textwrap
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

from tests.written import written

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


#: What is wrong → the lines of the kernel, and what the error says.
WRONG: dict[str, tuple[str, str]] = {
    "type text": ('x = x.to("float99")', r"a type is one of triton\.language's, such as tl\.float32"),
    "type of torch": ("x = x.to(torch.float16)", r"a type is one of triton\.language's"),
    "type of NumPy": ("x = x.to(numpy.float32)", r"a type is one of triton\.language's"),
    "zeros of torch": ("x = tl.zeros((16,), torch.float32)", r"a type is one of triton\.language's"),
    "axis": ("x = tl.sum(tile, axis=2)", r"in sum\(\): invalid axis 2\. Expected -2 <= axis < 2"),
    "axis in a helper": ("x = helper(tile)", r"in sum\(\): invalid axis 3\."),
    "argmax": (
        "x = tl.argmax(tile, axis=2)",
        r"in argmax\(\) → max\(\): list index out of range; is there such an axis",
    ),
    "topk": ("x = tl.topk(x, 3)", r"in topk\(\) → sort_impl\(\): topk: k must be a power of two"),
    "recursion": ("x = x * factorial(n)", r"factorial\(\) calls itself, .*tl\.constexpr: use a loop"),
    "size": (
        "x = tl.sum(tl.zeros((n,), tl.float32))",
        r"in zeros\(\): .*; declare the parameter that it comes from as `name: tl\.constexpr`",
    ),
    "range": ("x = tl.sum(tl.arange(0, n))", r"declare the parameter that it comes from as `name: tl\.constexpr`"),
    "twelve": ("x = tl.sum(tl.arange(0, 12))", r"power of 2; take the next one, triton\.next_power_of_2\(n\), .* mask"),
    "subscript": ("x = x_ptr[0]", r"memory is read with tl\.load\(x_ptr \+ i\)"),
    "element": ("x = x[3]", r"one element of it is tl\.sum\(tl\.where"),
    "assign element": ("x[0] = 1.0", r"tensors do not change: tl\.where"),
    "mask": ("x = tl.load(x_ptr + i, i)", r"Mask must have boolean scalar type; a mask is the result of a comparison"),
    "store mask": (
        "tl.store(y_ptr + i, x, i)",
        r"Mask must have boolean scalar type; a mask is the result of a comparison",
    ),
    "pointer count": (
        "x = tl.where(i < count_ptr, x, 0.0)",
        r"a pointer in the kernel: read it with tl\.load\(\), or pass a number",
    ),
    "number": ("x = tl.load(n + i)", r"an address is a pointer and offsets in elements: pass a tensor"),
    "constant pointer": ("x = tl.load(3)", r"an address is a pointer and offsets in elements: pass a tensor"),
    "tensor size": (
        "x = tl.sum(tl.arange(0, SIZE))",
        r"argument 'SIZE' is a tensor and declared tl\.constexpr: pass a number, as with SIZE\.item\(\)",
    ),
    "abs": ("x = abs(x)", r"Python's abs\(\) is not available in a kernel: use tl\.abs\(x\)"),
    "sum": ("x = sum(x)", r"Python's sum\(\) is not available in a kernel: use tl\.sum"),
    "sine": ("x = math.sin(x)", r"use those of triton\.language, such as tl\.sin"),
    "float": ("x = float(i)", r"x\.to\(tl\.float32\) to convert"),
    "power": ("x = x**2", r"use x \* x, or tl\.extra\.libdevice\.pow"),
    "product": ("x = tile @ tile", r"use tl\.dot\(a, b\)"),
    "exp": ("x = tl.exp(i)", r"Expected dtype .*; convert it first"),
    "print": ("tl.device_print(x)", r'the first argument is a text.*tl\.device_print\("x", x\)'),
    "for": ("for _ in x_ptr:\n    x += 1.0", r"a loop goes over range\(\)"),
    "break": ("for _ in range(n):\n    break", r"Break; a loop that ends early is `while condition:`"),
    "list": ("x = [tl.load(x_ptr + j) for j in range(3)][0]", r"use a tuple, or a loop over tl\.static_range\(\)"),
    "tanh": (
        "x = tl.tanh(x)",
        r"has no attribute 'tanh'; use libdevice\.tanh\(x\), with `from triton\.language\.extra import libdevice`",
    ),
    "arrange": ("x += tl.arrange(0, 16)", r"has no attribute 'arrange'; did you mean tl\.arange\?"),
    "block pointer": (
        "x += tl.load(tl.make_block_ptr(x_ptr, (n,), (1,), (0,), (16,), (0,)))",
        r"removed .*; write desc = tl\.make_tensor_descriptor\(x_ptr, shape, strides, block_shape\), .*"
        r"desc\.load\(",
    ),
    "advanced": (
        "x += tl.load(tl.advance(x_ptr, (16,)))",
        r"has no attribute 'advance'; write desc = tl\.make_tensor_descriptor\(",
    ),
    "one": (
        "x = x * step.to(tl.int64)",
        r"argument 'step' is 1, .*: write tl\.cast\(step, tl\.int64\), or "
        r'@triton\.jit\(do_not_specialize=\["step"\]\)',
    ),
    "type of one": ("x = x.to(step.dtype)", r"argument 'step' is 1, .*: write tl\.cast\(step, tl\.int64\)"),
    "sum of one": ("x = x * tl.sum(step)", r"argument 'step' is 1, .*: write tl\.cast\(step, tl\.int64\)"),
    "one of a helper": ("x = x * widened(step)", r"argument 'step' is 1, .*: write tl\.cast\(step, tl\.int64\)"),
    "constant": (
        "x = x * SIZE.to(tl.int64)",
        r"'int' object has no attribute 'to'; a number that is known .*: tl\.cast\(x, tl\.int64\)",
    ),
    "integer to fp8": ("x = i.to(tl.float8e5)", r"by way of float32, as with x\.to\(tl\.float32\)\.to\(tl\.float8e5\)"),
    "fp8 to integer": (
        "x = x.to(tl.float8e4nv).to(tl.int8)",
        r"by way of float32, as with x\.to\(tl\.float32\)\.to\(tl\.int8\)",
    ),
    "pointer to float": (
        "x = x_ptr.to(tl.float32)",
        r"is a pointer in the kernel: read it with tl\.load\(x_ptr \+ i\)",
    ),
    "bits": (
        "x = x.to(tl.float16, bitcast=True)",
        r"size 32 to data-type of size 16; only types of one size have the same bits: leave out bitcast=True",
    ),
    "if": (
        "if x > 0:\n    x = -x",
        r"; `if` takes one value: choose for each element with tl\.where\(condition, a, b\), or make",
    ),
    "match": ("match n:\n    case 1:\n        x = -x", r"; use `if` and `elif`"),
    "append": ("parts = []\nparts.append(x)", r"; lists do not change in a kernel: write parts = parts \+ \(x,\)"),
    "and": (
        "x = x & x",
        r"; &, \|, \^ and shifts take integers and conditions: compare first, as with \(x > 0\) & \(y > 0\)",
    ),
    "integer dot": (
        "x += tl.sum(tl.dot(tile.to(tl.int32), tile.to(tl.int32)), axis=0)",
        r"; convert the operands: a\.to\(tl\.int8\) if the values fit, or a\.to\(tl\.float32\)",
    ),
    "shapes": (
        "x = tl.sum(tl.zeros((64,), tl.float32) + tl.zeros((128,), tl.float32))",
        r"64 and 128; sizes must be equal or 1: x\[:, None\] is a column and x\[None, :\] a row",
    ),
    "formatted": ('print(f"x is {x}")', r'; values follow the text: tl\.device_print\("x is", x\)'),
    "elements": (
        "x = tl.sum(tl.zeros((2048, 1024), tl.float32))",
        r"in zeros\(\): numel \(2097152\) .*; use smaller blocks, and more programs or a loop",
    ),
    "mixed dot": (
        "x += tl.sum(tl.dot(tile, tile.to(tl.float16)), axis=0)",
        r"Got fp32 and fp16; convert one of them, as with tl\.dot\(a, b\.to\(tl\.float32\)\)",
    ),
    "carried number": (
        "total = 0\nfor _ in range(n):\n    total += x\nx = total",
        r"; start with what the loop gives it, as with total = tl\.zeros\(\[16\], tl\.float32\)(?!,)",
    ),
    "carried type": (
        "total = tl.zeros((16,), tl.float16)\nfor _ in range(n):\n    total += x\nx = total.to(tl.float32)",
        r"; start with .* total = tl\.zeros\(\[16\], tl\.float32\), or end the loop with "
        r"total = total\.to\(tl\.float16\)",
    ),
}


_KERNEL = """import math
import numpy
import torch
import triton
import triton.language as tl
from tests.device.test_front_end_errors import factorial, helper, widened


@triton.jit
def wrong(x_ptr, y_ptr, n, count_ptr, step, SIZE: tl.constexpr):
    i = tl.arange(0, 16)
    x = tl.load(x_ptr + i)
    tile = x[:, None] + x[None, :]
CODE
    tl.store(y_ptr + i, x)
"""


@pytest.fixture
def kernel(request: pytest.FixtureRequest, tmp_path: Path) -> JITFunction[Any]:
    """The kernel that is wrong in the way of the parameter, if any."""
    what = getattr(request, "param", "")
    code = textwrap.indent(WRONG[what][0] if what else "pass", "    ")
    found: JITFunction[Any] = written(tmp_path / "kernel.py", _KERNEL.replace("CODE", code)).wrong
    return found


def launch(kernel: JITFunction[Any], size: Any = 16, **options: Any) -> None:
    x, y, count = torch.ones(16), torch.zeros(16), torch.tensor([3])
    kernel[(1,)](x, y, 16, count, 1, size, **options)


def lines_of(function: JITFunction[Any]) -> range:
    """The lines of its file that a function has."""
    lines, first = inspect.getsourcelines(function.fn)
    return range(first, first + len(lines))


@pytest.mark.parametrize(("kernel", "what"), [(what, what) for what in WRONG], ids=WRONG, indirect=["kernel"])
def test_the_error_says_where_and_what_to_write(kernel: JITFunction[Any], what: str) -> None:
    """FILE:LINE and the message in its first line, the user's line, upstream's words for the place, then the calls
    that led there."""
    code, message = WRONG[what]
    with pytest.raises(CompilationError, match=message) as raised:
        launch(kernel, torch.tensor(16) if what == "tensor size" else 16)
    first, line, caret, here, *calls = str(raised.value).splitlines()
    place = re.match(r"(.+?):(\d+): ", first)
    assert place and len(re.findall(message, first)) == 1 and "bound method" not in first, first
    called = {"axis in a helper": helper, "recursion": factorial, "one of a helper": widened}.get(what)
    file, number = Path(place[1]), int(place[2])
    assert file == Path(inspect.getsourcefile((called or kernel).fn) or "") and number in lines_of(called or kernel)
    assert line.strip() == file.read_text().splitlines()[number - 1].strip()
    assert called or line.strip() in map(str.strip, code.splitlines())
    assert caret.strip() == "^" and bool(calls) == (called is not None)
    assert re.fullmatch(rf"at \d+:\d+: in {(called or kernel).__name__}\(\)", here)
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


@pytest.mark.parametrize("kernel", ["axis in a helper"], indirect=True)
def test_causes_and_places_are_upstreams(kernel: JITFunction[Any]) -> None:
    """Programs read upstream's own words for a place, and its own errors as the causes."""

    @triton.jit
    def short():
        tl.arange(2, 7)

    with pytest.raises(CompilationError) as raised:
        triton.compile(triton.compiler.ASTSource(fn=short, signature={}, constexprs={}))
    assert str(raised.value.__cause__) == "arange's range must be a power of 2"
    assert "at 2:4:" in str(raised.value)
    assert raised.value.__cause__ is not None and raised.value.__cause__.__traceback__ is not None
    with pytest.raises(CompilationError) as raised:
        launch(kernel)
    inner = raised.value.__cause__
    assert isinstance(inner, CompilationError) and re.search(r"^at 3:11:$", str(inner), re.MULTILINE), inner
    line = next(n for n, text in enumerate((kernel.src or "").splitlines(), 1) if "helper(tile)" in text)
    assert f"at {line}:8: called from wrong()" in str(raised.value)
    assert "at 3:11: in helper()" in str(raised.value)


@pytest.mark.parametrize("kernel", ["axis"], indirect=True)
def test_debugging_the_front_end_keeps_all_frames(kernel: JITFunction[Any]) -> None:
    with knobs.compilation.scope(), pytest.raises(Exception) as raised:
        knobs.compilation.front_end_debugging = True
        launch(kernel)
    assert len(traceback.extract_tb(raised.value.__traceback__)) > 8


def test_names_that_are_no_function_of_python_get_no_advice() -> None:
    @triton.jit
    def kernel(x_ptr):
        tl.store(x_ptr, nothing)  # noqa: F821

    with pytest.raises(CompilationError, match=r": nothing is not defined\n    tl\.store\(x_ptr, nothing\)"):
        kernel[(1,)](torch.ones(1))


def test_unknown_options_are_named_with_what_was_meant(kernel: JITFunction[Any]) -> None:
    for kind in (TypeError, KeyError):
        with pytest.raises(kind, match=r"^kernel 'wrong': Keyword argument nun_warps .*did you mean num_warps\?$"):
            launch(kernel, nun_warps=4)
    with pytest.raises(TypeError, match=r"its parameters are x_ptr, y_ptr, n, count_ptr, step, SIZE$"):
        launch(kernel, blocksize=4)


def test_calls_without_a_grid_say_how_to_launch(kernel: JITFunction[Any]) -> None:
    with pytest.raises(RuntimeError, match=r"launch it with a grid, wrong\[\(programs,\)\]"):
        kernel(torch.ones(1))


def test_functions_that_are_not_tritons_are_named_with_the_kernel() -> None:
    @triton.jit
    def kernel(x_ptr):
        tl.store(x_ptr, numpy.sin(tl.load(x_ptr)))

    with pytest.raises(RuntimeError, match=r"Unsupported function referenced: <ufunc 'sin'>: '.*kernel' can call"):
        kernel[(1,)](torch.ones(1))
