"""What a compilation may leave out, in the order in which it runs: upstream's passes, rewrites, analyses, and parts of
emission and of machine code. A kernel computes the same without any of them, so that one item that changes a value is
wrong.

The reference pipeline leaves out all of them but ``KEPT``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from . import optional, passes
from .transforms.table import TRANSFORMS, Stage, Transform


@dataclass(frozen=True)
class Item:
    """Something optional. ``kind``: what it is, in words for a message that names it. ``row``: of upstream's passes or
    of the transforms' table; None of what is no pass over a module. ``reads``: the part of
    analysis/ whose claims it goes by; empty if there is none."""

    name: str
    kind: str
    row: passes.Pass | Transform | None = None
    reads: str = ""

    def __str__(self) -> str:
        return f"{self.kind} '{self.name}'"


def _passes(pipeline: passes.Pipeline) -> tuple[Item, ...]:
    return tuple(Item(row.item, "upstream's pass", row) for row in pipeline if not row.needed)


def _rewrites(*stages: Stage) -> tuple[Item, ...]:
    return tuple(
        Item(row.name, "the rewrite", row, row.reads)
        for stage in stages
        for row in TRANSFORMS
        if row.stage is stage and not row.needed
    )


ITEMS: tuple[Item, ...] = (
    *_passes(passes.TTIR),
    *_rewrites(Stage.BEFORE_LAYOUTS, Stage.CUT, Stage.ENCODED),
    *_passes(passes.LAYOUTS),
    *_rewrites(Stage.LANES),
    *_passes(passes.TTGIR),
    *_rewrites(Stage.LAYOUTS_CHOSEN, Stage.LAST),
    *_passes(passes.LAST),
    *_rewrites(Stage.FRAGMENTS, Stage.PLANNING),
    *(Item(name, "the analysis") for name in (optional.LATE_LOADS, optional.AXIS_INFO)),
    *(
        Item(name, "the code generator's")
        for name in (
            optional.CONSTANT_FOLDING,
            optional.VALUE_NUMBERING,
            optional.SIMPLIFICATION,
            optional.CARRIED_WORDS,
        )
    ),
    *(Item(name, "the machine code's") for name in optional.OF_MACHINE_CODE),
)

NAMES = tuple(item.name for item in ITEMS)

#: What the reference pipeline keeps, because kernels would compile for longer without it, and its rules are tested on
#: all pairs of numbers of 8 bits (tests/unit/spirv/test_fold.py).
KEPT = frozenset({optional.CONSTANT_FOLDING})


def item_of(name: str) -> Item:
    """The item of a name. Raises ValueError for a name that none has."""
    if name in NAMES:
        return ITEMS[NAMES.index(name)]
    from difflib import get_close_matches

    nearest = get_close_matches(str(name), NAMES, n=1, cutoff=0)
    raise ValueError(f"{name!r} is no pass, rewrite or analysis that can be left out; did you mean {nearest[0]!r}?")


def left_out(without: Iterable[str] | str, reference: bool) -> tuple[str, ...]:
    """The option ``without``, in the order of ITEMS, of a compilation by the ``reference`` pipeline or not. Raises
    ValueError for a name that no item has."""
    asked = {item_of(name).name for name in ([without] if isinstance(without, str) else without)}
    return tuple(name for name in NAMES if name in asked or (reference and name not in KEPT))
