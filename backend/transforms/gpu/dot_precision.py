"""Permissions to round the operands of dots, before upstream lays dots out for matrix units.

Upstream's pass knows one permission, ``tf32``. Where products of f32 are made of products of bf16
(analysis/split_products.py), every dot that may be rounded gets it, and a module attribute says what was asked for;
elsewhere permissions are taken away, so that dots of f32 are left for multiply-adds.
"""

from __future__ import annotations

from ...analysis.split_products import PRECISION, widest
from ...ttgir.ir import Module

#: What operation_names() of passes.py calls a dot whose operands are f32.
OF_F32 = "tt.dot of f32"
#: The precision of a dot that gives no permission, and the permission that upstream's pass knows.
_EXACT, _KNOWN = "ieee", "tf32"


def share_precision(module: Module, split: bool) -> bool:
    """``split``: products of f32 are made of products of bf16. Whether there was a permission."""
    rounded = [
        operation
        for operation in module.walk()
        if operation.name == "tt.dot" and operation.attribute("inputPrecision") != _EXACT
    ]
    asked = widest(dot.attribute("inputPrecision") for dot in rounded)
    for dot in rounded:
        dot.set_attribute("inputPrecision", _KNOWN if split else _EXACT)
    if split and asked is not None:
        module.set_attribute(PRECISION, asked)
    return bool(rounded)
