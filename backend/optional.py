"""The optional parts of planning, of emission and of machine code: each may be left out, and the kernel computes the
same. Upstream's passes and rewrites that are optional, too, have rows of their own; reference.py has all in order.
"""

from __future__ import annotations

from collections.abc import Iterable

AXIS_INFO = "axis info of accesses"
LATE_LOADS = "late loads"
CONSTANT_FOLDING = "constant folding"
VALUE_NUMBERING = "value numbering"
SIMPLIFICATION = "simplification"
CARRIED_WORDS = "carried words"
NEIGHBOURING_LANES = "neighbouring lanes"
WHOLE_ROUNDS = "whole rounds"
PROGRAM_ORDER = "order of programs"
DELAYED_UPDATES = "delayed updates"
LLVM_OPTIMISATION = "LLVM's optimisation"

#: What a module asks to leave out of its machine code, in order, so that whoever makes that later leaves it out, too.
OF_MACHINE_CODE = (NEIGHBOURING_LANES, WHOLE_ROUNDS, PROGRAM_ORDER, DELAYED_UPDATES, LLVM_OPTIMISATION)
_NOTE, _BETWEEN = "without=", ", "


def note(without: Iterable[str]) -> str:
    """The OpModuleProcessed of a module that was compiled ``without`` these parts; empty if its machine code has all
    that it may have."""
    left_out = set(without)
    names = [name for name in OF_MACHINE_CODE if name in left_out]
    return _NOTE + _BETWEEN.join(names) if names else ""


def noted(text: str) -> frozenset[str]:
    """What an OpModuleProcessed asks to leave out."""
    return frozenset(text[len(_NOTE) :].split(_BETWEEN)) if text.startswith(_NOTE) else frozenset()
