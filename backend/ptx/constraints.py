"""The registers that a piece of PTX is given: the constraints of ``tl.inline_asm_elementwise``.

Each entry is a letter, with ``=`` for a result: ``h`` 16 bits, ``r`` and ``f`` 32, ``l`` and ``d`` 64. An argument may
be the number of a result instead, whose register it is in at first. ``~{memory}`` and the like say nothing here.
"""

from __future__ import annotations

from dataclasses import dataclass

from .program import PtxError

WIDTHS = {"h": 16, "r": 32, "f": 32, "l": 64, "d": 64}


@dataclass(frozen=True)
class Constraints:
    """``results`` and ``arguments``: bits of each register. ``names``: of the arguments, the register's name, which is
    a result's where the two share one."""

    results: tuple[int, ...]
    arguments: tuple[int, ...]
    names: tuple[str, ...]


def parse_constraints(text: str) -> Constraints:
    """Reads them. Raises PtxError."""
    results: list[int] = []
    arguments: list[int] = []
    names: list[str] = []
    for entry in (entry.strip() for entry in text.split(",")):
        if not entry or entry.startswith("~"):
            continue
        letter = entry.lstrip("=&")
        if entry.startswith("="):
            if arguments:
                raise PtxError(f"constraint '{entry}' of a result stands after constraints of arguments")
            results.append(_width(letter, entry))
        elif letter.isdigit():
            if int(letter) >= len(results):
                raise PtxError(f"constraint '{entry}' names result {letter} of {len(results)}")
            arguments.append(results[int(letter)])
            names.append(f"${letter}")
        else:
            arguments.append(_width(letter, entry))
            names.append("")
    places = [name or f"${len(results) + index}" for index, name in enumerate(names)]
    return Constraints(tuple(results), tuple(arguments), tuple(places))


def _width(letter: str, entry: str) -> int:
    if letter not in WIDTHS:
        known = ", ".join(f"'{name}'" for name in WIDTHS)
        raise PtxError(f"constraint '{entry}' is not one of PTX's {known}", "inline assembly of other GPUs is refused")
    return WIDTHS[letter]
