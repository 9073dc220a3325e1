"""Constants that compare equal, or look alike as text, have kernels of their own, in whichever order they are used."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from tests.fuzz.keys import number


def kernel(out_ptr, C: tl.constexpr):
    tl.store(out_ptr, number(C))


ALIKE: list[tuple[Any, ...]] = [
    (0.0, -0.0, 0, False),
    (1, True, 1.0, "1", "1.0", "True"),
    ((0.0, 2), (-0.0, 2), (False, 2), (0, 2.0)),
    ((1, (True,)), (1, (1,)), (1.0, (1,)), (1, (1.0,))),
    (None, "None", (None,), ("None",)),
]


def _pairs(of: list[tuple[Any, ...]]) -> list[tuple[Any, Any]]:
    return [pair for values in of for pair in itertools.permutations(values, 2)]


@pytest.mark.parametrize(("first", "second"), _pairs(ALIKE), ids=repr)
def test_each_has_its_own_kernel(first: Any, second: Any) -> None:
    """The third launch of a kind is one that the native module repeats."""
    fresh, out = triton.jit(kernel), torch.zeros(1, dtype=torch.int32)
    for value in (first, first, first, second, second, second, first):
        fresh[(1,)](out, C=value)
        assert out.item() == number(value), value


@triton.jit
def sign_kernel(x_ptr, C: tl.constexpr):
    tl.store(x_ptr, tl.full((), C, tl.float32))


def test_zeros_of_both_signs() -> None:
    for values in ((0.0, -0.0), (-0.0, 0.0)):
        fresh, x = triton.jit(sign_kernel.fn), torch.ones(1)
        for value in values:
            fresh[(1,)](x, C=value)
            assert np.signbit(x.numpy()).item() is (math.copysign(1, value) < 0)


@triton.jit
def two_names_kernel(out_ptr, A: tl.constexpr, B: tl.constexpr):
    tl.store(out_ptr, number(A) * 1000 + number(B))


def test_texts_that_are_the_same_text_together() -> None:
    out = torch.zeros(1, dtype=torch.int32)
    for a, b in (("1-", "1"), ("1", "-1"), (1, -1), (1, "-1")):
        two_names_kernel[(1,)](out, A=a, B=b)
        assert out.item() == number(a) * 1000 + number(b)


def _twice() -> Any:
    @triton.jit
    def scaled(x):
        return x * 2

    return scaled


def _thrice() -> Any:
    @triton.jit
    def scaled(x):
        return x * 3

    return scaled


@triton.jit
def tuple_kernel(out_ptr, FUNCTIONS: tl.constexpr):
    tl.store(out_ptr, FUNCTIONS[0](tl.load(out_ptr)))


def test_functions_of_one_name_in_tuples() -> None:
    for factor, function in ((2, _twice()), (3, _thrice())):
        out = torch.ones(1, dtype=torch.int32)
        triton.jit(tuple_kernel.fn)[(1,)](out, FUNCTIONS=(function,))
        assert out.item() == factor
