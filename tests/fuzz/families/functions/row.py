"""A row of the table of functions: what is called, and what it is held to."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.fuzz.families.functions.drawing import Dtype
from tests.fuzz.steps import Writer


@dataclass(frozen=True)
class Row:
    """``names``: those of triton.language that the row stands for, none for operators. ``types``: of the elements.
    ``definition``: what is computed, ``tolerance``: how far from it a result may be, ``domain``: for which arguments.
    ``write`` adds a call with random arguments of a type, and what it gives."""

    names: str
    types: tuple[str, ...]
    definition: str
    write: Callable[[Writer, Dtype], None]
    tolerance: str = "none"
    domain: str = "all numbers"
