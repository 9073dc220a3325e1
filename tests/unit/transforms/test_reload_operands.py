"""Which operands of several dots are loaded for each."""

from __future__ import annotations

import re

from triton.backends.spirv.transforms.reload_operands import reload_operands
from triton.backends.spirv.ttgir.parser import parse_module
from triton.backends.spirv.ttgir.printer import print_module

from .test_sink_loads import ALLOC_A, ALLOC_B, DOT, LOAD_A, LOAD_B, _function, printed

AGAIN = DOT.replace("%c =", "%d =").replace("%zero", "%c")


def reloaded(*lines: str) -> str | None:
    """The module after the rewrite, without the names of its values; None where nothing was changed."""
    module = parse_module(_function(*lines))
    return unnamed(print_module(module)) if reload_operands(module) else None


def unnamed(text: str) -> str:
    return re.sub(r"%\w+", "%", text)


def test_each_dot_has_its_own_loads() -> None:
    others = [line.replace("_1", "_2") for line in (LOAD_A, LOAD_B, AGAIN)]
    after = unnamed(printed(_function(ALLOC_A, ALLOC_B, LOAD_A, LOAD_B, DOT, *others)))
    assert reloaded(ALLOC_A, LOAD_A, ALLOC_B, LOAD_B, DOT, AGAIN) == after


def test_others_stay() -> None:
    assert reloaded(ALLOC_A, LOAD_A, ALLOC_B, LOAD_B, DOT) is None
    mutable = [line.replace("#smem>", "#smem, mutable>") for line in (ALLOC_A, ALLOC_B, LOAD_A, LOAD_B)]
    assert reloaded(*mutable, DOT, AGAIN) is None
    given_back = "ttg.local_dealloc %s{} : !ttg.memdesc<{}xf32, #shared, #smem>"
    ended = (given_back.format("a", "32x64"), given_back.format("b", "64x16"))
    assert reloaded(ALLOC_A, LOAD_A, ALLOC_B, LOAD_B, *ended, DOT, AGAIN) is None
