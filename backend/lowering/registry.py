"""The table of lowering rules, and the table of operations that are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..ttgir.ir import Operation

if TYPE_CHECKING:
    from .context import Context

Rule = Callable[["Context", Operation], None]

#: Operation name → the rule that lowers it.
RULES: dict[str, Rule] = {}


def lowers(*names: str) -> Callable[[Rule], Rule]:
    """Registers the decorated rule for each of ``names``."""

    def register(rule: Rule) -> Rule:
        for name in names:
            if name in RULES:
                raise ValueError(f"{name} has two lowering rules: {RULES[name].__name__} and {rule.__name__}")
            RULES[name] = rule
        return rule

    return register
