"""A kernel that returns a value runs, as upstream, and a warning names the line whose value is lost."""

import inspect
import warnings
from pathlib import Path
from typing import Any

import numpy
import pytest
import triton
import triton.language as tl
from triton import knobs
from triton.backends.spirv.planning import returned_values
from triton.backends.spirv.runtime import from_numpy

SIZE = 16


@triton.jit
def doubled(x_ptr, SIZE: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, SIZE)) * 2
    tl.store(x_ptr + tl.arange(0, SIZE), x)
    return x  # the place


@triton.jit
def ends_early(x_ptr, n, SIZE: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, SIZE))
    if n > 3:
        return tl.sum(x)  # the place
    tl.store(x_ptr + tl.arange(0, SIZE), x * 2)


@triton.jit
def twice(x):
    return x * 2


@triton.jit
def returns_nothing(x_ptr, n, SIZE: tl.constexpr):
    if n > 3:
        return None
    tl.store(x_ptr + tl.arange(0, SIZE), twice(tl.load(x_ptr + tl.arange(0, SIZE))))
    return


@pytest.fixture(autouse=True)
def compiled_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every kernel, although another test has compiled it."""
    monkeypatch.setattr(knobs.cache, "dir", str(tmp_path))
    monkeypatch.setattr(returned_values, "_WARNED", {})


def launched(function: Any, *numbers: int) -> tuple[list[Any], numpy.ndarray]:
    """The warnings of a launch, and what it left in its tensor, which was of ones."""
    function.device_caches.clear()
    function.relaunch = None
    x = from_numpy(numpy.ones(SIZE, numpy.float32))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        function[(1,)](x, *numbers, SIZE=SIZE)
    return [one for one in told if "returns a value" in str(one.message)], x.to_numpy()


@pytest.mark.parametrize(
    ("function", "numbers", "left"), [(doubled, (), 2), (ends_early, (3,), 2), (ends_early, (4,), 1)]
)
def test_the_line_is_named(function: Any, numbers: tuple[int, ...], left: float) -> None:
    (told,), x = launched(function, *numbers)
    lines, first = inspect.getsourcelines(function.fn)
    (line,) = [number for number, text in enumerate(lines, first) if "# the place" in text]
    assert (told.filename, told.lineno, told.category) == (__file__, line, UserWarning)
    name = function.__name__
    assert str(told.message) == (
        f"kernel '{name}' returns a value, which a launch discards: write it to a tensor with tl.store"
    )
    numpy.testing.assert_array_equal(x, numpy.full(SIZE, left, numpy.float32))


def test_a_return_without_a_value_and_the_values_of_functions_are_no_fault() -> None:
    told, x = launched(returns_nothing, 3)
    assert not told
    numpy.testing.assert_array_equal(x, numpy.full(SIZE, 2, numpy.float32))
