"""Makes a failing program small: statements go, and parts of what is stored, as long as it fails in the same way."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import cast

from tests.fuzz.running import G, Outcome

#: What may stand in for the result of a statement that goes: one value of each kind.
_STAND_INS = ("x", "y", "b", "w", "f", "i", "h", "q", "e", "g")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _removed(body: Sequence[str], start: int) -> tuple[str, ...]:
    """The body without the statement at ``start`` and what is nested in it, with ``else`` branches."""
    end = start + 1
    while end < len(body) and (
        _indent(body[end]) > _indent(body[start])
        or (_indent(body[end]) == _indent(body[start]) and body[end].lstrip().startswith("else"))
    ):
        end += 1
    return (*body[:start], *body[end:])


def _candidates(program: G, number: int) -> Iterator[G]:
    """Smaller programs; most of them are not well formed, and are left out by the interpreter."""
    for start, line in enumerate(program.body):
        body = _removed(program.body, start)
        yield cast(G, program.with_body(number, body, program.stores))
        assigned = re.match(r"\s*(v\d+) = ", line)
        for other in _STAND_INS if assigned else ():
            name = rf"\b{assigned[1]}\b" if assigned else ""
            renamed = tuple(re.sub(name, other, rest) for rest in body)
            stores = tuple(re.sub(name, other, rest) for rest in program.stores)
            yield cast(G, program.with_body(number, renamed, stores))
    for place in range(len(program.stores)):
        if len(program.stores) > 1:
            stores = (*program.stores[:place], *program.stores[place + 1 :])
            yield cast(G, program.with_body(number, program.body, stores))


def minimised(outcome: Outcome[G], comparing: Callable[[Sequence[G], Path], list[Outcome[G]]]) -> Outcome[G]:
    """The smallest failing program that taking away one statement at a time leads to."""
    while True:
        candidates = [
            cast(G, program.with_body(outcome.program.number + 1000003 * (index + 1), program.body, program.stores))
            for index, program in enumerate(_candidates(outcome.program, outcome.program.number))
        ]
        with tempfile.TemporaryDirectory() as folder:
            found = comparing(candidates, Path(folder))
        failing = [other for other in found if other.fault and other.refused == outcome.refused]
        if not failing:
            return outcome
        best = min(failing, key=lambda other: len(other.program.body) + len(other.program.stores))
        program = cast(G, best.program.with_body(outcome.program.number, best.program.body, best.program.stores))
        outcome = Outcome(program, best.fault, best.refused, best.seconds)
