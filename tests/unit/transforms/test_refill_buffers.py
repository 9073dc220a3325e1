"""Which buffers are filled in the loops that use them."""

from __future__ import annotations

import re

from triton.backends.spirv.transforms.refill_buffers import refill_buffers
from triton.backends.spirv.ttgir.parser import parse_module
from triton.backends.spirv.ttgir.printer import print_module

from .test_sink_loads import ALLOC_A, LOAD_A, ONE, _function, printed


def refilled(*lines: str) -> str | None:
    module = parse_module(_function(*lines))
    return print_module(module) if refill_buffers(module) else None


def unnamed(text: str | None) -> str:
    """The text of a module without the names of its values."""
    assert text is not None
    return re.sub(r"%\w+", "%", text)


def region(*lines: str) -> tuple[str, ...]:
    return ("scf.if %p {", *(f"  {line}" for line in lines), "}")


def test_a_buffer_is_filled_in_each_block_that_uses_it() -> None:
    one, other = region(ONE, LOAD_A), region(LOAD_A)
    filled = (*region(ONE, ALLOC_A, LOAD_A), *region(ALLOC_A, LOAD_A))
    assert unnamed(refilled(ALLOC_A, *one, *other)) == unnamed(printed(_function(*filled)))


def test_others_stay() -> None:
    assert refilled(ALLOC_A, LOAD_A, *region(ONE)) is None  # it is used where it is filled
    assert refilled(ALLOC_A, ONE) is None
    mutable = [line.replace("#smem>", "#smem, mutable>") for line in (ALLOC_A, LOAD_A)]
    assert refilled(mutable[0], *region(mutable[1])) is None
