"""Which dots of f32 may be rounded, before upstream lays dots out for matrix units."""

from __future__ import annotations

import pytest
from triton.backends.spirv.analysis.split_products import PRECISION
from triton.backends.spirv.transforms.gpu.dot_precision import share_precision
from triton.backends.spirv.ttgir.ir import Module
from triton.backends.spirv.ttgir.parser import parse_module

MATRIX = "tensor<16x16xf32>"


def module(*precisions: str) -> Module:
    dots = "\n".join(
        f"  %{number} = tt.dot %a, %a, %a, inputPrecision = {name} : {MATRIX} * {MATRIX} -> {MATRIX}"
        for number, name in enumerate(precisions)
    )
    return parse_module(f"module {{\n tt.func public @k(%a: {MATRIX}) {{\n{dots}\n  tt.return\n }}\n}}")


def precisions(source: Module) -> list[str]:
    body = source.functions["k"].body
    assert body is not None
    return [dot.attributes["inputPrecision"] for dot in body.entry.operations if dot.name == "tt.dot"]


def test_all_that_may_be_rounded_get_the_permission_that_upstream_knows_and_the_most_precise_one_counts() -> None:
    source = module("bf16x3", "ieee", "tf32x3")
    assert share_precision(source, split=True)
    assert precisions(source) == ["tf32", "ieee", "tf32"] and source.attributes[PRECISION] == "tf32x3"


def test_permissions_go_where_products_are_not_split() -> None:
    source = module("tf32", "ieee")
    assert share_precision(source, split=False)
    assert precisions(source) == ["ieee", "ieee"] and PRECISION not in source.attributes


@pytest.mark.parametrize("split", [True, False])
def test_without_permissions_nothing_changes(split: bool) -> None:
    source = module("ieee", "ieee")
    assert not share_precision(source, split)
    assert precisions(source) == ["ieee", "ieee"] and PRECISION not in source.attributes
