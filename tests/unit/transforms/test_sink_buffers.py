"""Which buffers are filled later."""

from __future__ import annotations

from triton.backends.spirv.transforms.sink_buffers import sink_buffers
from triton.backends.spirv.ttgir.parser import parse_module
from triton.backends.spirv.ttgir.printer import print_module

from .test_sink_loads import ALLOC_A, ALLOC_B, DOT, LOAD_A, LOAD_B, ONE, _function, printed


def sunk(*lines: str) -> str | None:
    module = parse_module(_function(*lines))
    return print_module(module) if sink_buffers(module) else None


def test_a_buffer_is_filled_at_its_first_use() -> None:
    after = _function(ONE, ALLOC_A, LOAD_A, ALLOC_B, LOAD_B, DOT)
    assert sunk(ALLOC_A, ALLOC_B, ONE, LOAD_A, LOAD_B, DOT) == printed(after)
    assert sunk(ONE, ALLOC_A, LOAD_A, ALLOC_B, LOAD_B, DOT) is None


def test_a_use_in_a_region_counts() -> None:
    region = ("scf.if %p {", f"  {LOAD_A}", "}")
    assert sunk(ALLOC_A, ONE, *region) == printed(_function(ONE, ALLOC_A, *region))


def test_others_stay() -> None:
    assert sunk(ALLOC_A, ONE) is None  # it is not used
    mutable = [line.replace("#smem>", "#smem, mutable>") for line in (ALLOC_A, LOAD_A)]
    assert sunk(mutable[0], ONE, mutable[1]) is None
