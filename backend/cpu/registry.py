"""Which rule translates which instruction."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .decoded_module import ModuleInstruction

if TYPE_CHECKING:
    from .translation import Translation

Rule = Callable[["Translation", ModuleInstruction], None]

RULES: dict[str, Rule] = {}


def translates(*names: str) -> Callable[[Rule], Rule]:
    """Makes a function the rule of instructions."""

    def enter(rule: Rule) -> Rule:
        for name in names:
            assert name not in RULES, name
            RULES[name] = rule
        return rule

    return enter
