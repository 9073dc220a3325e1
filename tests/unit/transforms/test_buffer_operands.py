"""Which converted dot operands are put in buffers."""

from __future__ import annotations

from triton.backends.spirv.transforms.buffer_operands import buffer_operands
from triton.backends.spirv.ttgir.parser import parse_module
from triton.backends.spirv.ttgir.printer import print_module

from .test_reload_operands import AGAIN, unnamed
from .test_sink_loads import _LEFT, _RIGHT, ALLOC_A, ALLOC_B, DOT, LOAD_A, LOAD_B, _function, printed

CONVERT_A = f"%a_1 = ttg.convert_layout %a : tensor<32x64xf32, #blocked> -> {_LEFT}"
CONVERT_B = f"%b_1 = ttg.convert_layout %b : tensor<64x16xf32, #blocked> -> {_RIGHT}"
#: Of a lane in one of the dots of 32×16×64: it has eight rows of a column.
MULTIPLY_ADDS = 8 * 64


def buffered(*lines: str, limit: int = 0) -> str | None:
    """The module after the rewrite, without the names of its values; None where nothing was changed."""
    module = parse_module(_function(*lines))
    return unnamed(print_module(module)) if buffer_operands(module, limit) else None


def expected(*lines: str) -> str:
    return unnamed(printed(_function(*lines)))


def test_each_dot_loads_from_the_buffer_that_was_filled_in_the_conversions_place() -> None:
    loads = [line.replace("_1", "_2") for line in (LOAD_A, LOAD_B)]
    after = expected(ALLOC_A, ALLOC_B, LOAD_A, LOAD_B, DOT, *loads, AGAIN.replace("_1", "_2"))
    assert buffered(CONVERT_A, CONVERT_B, DOT, AGAIN) == after


def test_a_buffer_that_has_the_value_is_read() -> None:
    assert buffered(ALLOC_A, ALLOC_B, CONVERT_A, LOAD_B, DOT) == expected(ALLOC_A, ALLOC_B, LOAD_B, LOAD_A, DOT)


def test_but_none_that_may_be_written_again_or_was_given_back() -> None:
    mutable = ALLOC_A.replace("%sa", "%m").replace("#smem>", "#smem, mutable>")
    assert buffered(mutable, CONVERT_A, CONVERT_B, DOT) == expected(mutable, ALLOC_A, ALLOC_B, LOAD_A, LOAD_B, DOT)
    other = ALLOC_A.replace("%sa", "%m")
    ended = "ttg.local_dealloc %m : !ttg.memdesc<32x64xf32, #shared, #smem>"
    after = expected(other, ended, ALLOC_A, ALLOC_B, LOAD_A, LOAD_B, DOT)
    assert buffered(other, ended, CONVERT_A, CONVERT_B, DOT) == after


def test_only_past_the_limit() -> None:
    assert buffered(CONVERT_A, CONVERT_B, DOT, limit=MULTIPLY_ADDS) is None
    assert buffered(CONVERT_A, CONVERT_B, DOT, limit=MULTIPLY_ADDS - 1) is not None
    assert buffered(CONVERT_A, CONVERT_B, DOT, AGAIN, limit=2 * MULTIPLY_ADDS - 1) is not None


def test_what_is_not_for_dots_alone_stays() -> None:
    elsewhere = f"%n = arith.negf %a_1 : {_LEFT}"
    after = expected(CONVERT_A, elsewhere, ALLOC_B, LOAD_B, DOT)
    assert buffered(CONVERT_A, elsewhere, CONVERT_B, DOT) == after
    assert buffered(ALLOC_A, ALLOC_B, LOAD_A, LOAD_B, DOT) is None
