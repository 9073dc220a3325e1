"""The table of rules: how the claims about a result follow from those about the operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...ttgir.ir import Operation
from .info import AxisInfo

Rule = Callable[[Operation, Sequence[AxisInfo]], AxisInfo]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        for name in names:
            RULES[name] = function
        return function

    return register
