import pytest
import triton
import triton.language as tl
from triton.compiler import ASTSource
from triton.runtime.jit import compute_cache_key


@triton.jit
def kernel(out, A: tl.constexpr, B: tl.constexpr):
    tl.store(out, 1.0)


def digest(a, b="c"):
    return ASTSource(kernel, {"out": "*fp32", "A": "constexpr", "B": "constexpr"}, {"A": a, "B": b}).hash()


@pytest.mark.parametrize("one, other", [(0.0, -0.0), (1, True), (1, 1.0)])
def test_constants_that_compare_equal_have_keys_of_their_own(one, other):
    keys = {}
    assert compute_cache_key(keys, [("constexpr", one)], []) != compute_cache_key(keys, [("constexpr", other)], [])


@pytest.mark.parametrize("one, other", [((1,), ("1",)), (("a-b", "c"), ("a", "b-c"))])
def test_constants_of_equal_text_have_digests_of_their_own(one, other):
    assert digest(*one) != digest(*other)
    assert digest(*one) == digest(*one)
