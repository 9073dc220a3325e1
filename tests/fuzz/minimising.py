"""Makes a failing program small: statements go, and parts of what is stored, as long as it fails in the same way."""

import itertools
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic

from tests.fuzz.running import G, Outcome

#: What may stand in for the result of a statement that goes: one value of each kind.
_STAND_INS = ("x", "y", "b", "w", "f", "i", "h", "q", "e", "g")


#: Runs programs and says what became of each one that is well formed.
Comparing = Callable[[Sequence[G], Path], list[Outcome[G]]]


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


def _without_runs(body: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The body without a half, a quarter and so on of its outermost statements."""
    outermost = min((_indent(line) for line in body), default=0)
    starts = [
        place for place, line in enumerate(body) if _indent(line) == outermost and not line.lstrip().startswith("else")
    ]
    ends = [*starts[1:], len(body)]
    size = len(starts) // 2
    while size > 1:
        for first in range(0, len(starts), size):
            last = min(first + size, len(starts)) - 1
            yield (*body[: starts[first]], *body[ends[last] :])
        size //= 2


def _unwrapped(body: Sequence[str], start: int) -> tuple[str, ...]:
    """The body with what is in the branch or loop at ``start`` in its place."""
    end = start + 1
    while end < len(body) and _indent(body[end]) > _indent(body[start]):
        end += 1
    depth = _indent(body[start + 1]) - _indent(body[start]) if end > start + 1 else 0
    inner = tuple(line[depth:] for line in body[start + 1 : end])
    return (*body[:start], *inner, *_removed(body, start)[start:])


def _without_idle(body: Sequence[str], stores: Sequence[str]) -> tuple[str, ...]:
    """The body without assignments to what nothing reads, and without the branches and loops that become empty."""
    lines = list(body)
    while True:
        for place, line in enumerate(lines):
            assigned = re.match(r"\s*(v\d+) = ", line)
            following = lines[place + 1] if place + 1 < len(lines) else ""
            if assigned is not None:
                name, target = re.compile(rf"\b{assigned[1]}\b"), f"{assigned[1]} = "
                read = (other.lstrip().removeprefix(target) for other in (*lines, *stores))
                idle = not any(map(name.search, read))
            else:
                idle = line.endswith(":") and _indent(following) <= _indent(line)
                idle = idle and not following.lstrip().startswith("else")
            if idle:
                del lines[place]
                break
        else:
            return tuple(lines)


def _candidates(program: G) -> Iterator[G]:
    """Smaller programs, the smallest ones first. Most are not well formed: the reference leaves them out."""
    for place in range(len(program.stores)):
        if len(program.stores) > 1:
            stores = (*program.stores[:place], *program.stores[place + 1 :])
            body = _without_idle(program.body, stores)
            yield replace(program, body=body, stores=stores)
    body = _without_idle(program.body, program.stores)
    if len(body) < len(program.body):
        yield replace(program, body=body)
    for body in _without_runs(program.body):
        yield replace(program, body=body)
    for start, line in enumerate(program.body):
        body = _removed(program.body, start)
        yield replace(program, body=body)
        if line.endswith(":") and not line.lstrip().startswith("else"):
            yield replace(program, body=_unwrapped(program.body, start))
        assigned = re.match(r"\s*(v\d+) = ", line)
        for other in _STAND_INS if assigned else ():
            name = rf"\b{assigned[1]}\b" if assigned else ""
            renamed = tuple(re.sub(name, other, rest) for rest in body)
            stores = tuple(re.sub(name, other, rest) for rest in program.stores)
            yield replace(program, body=renamed, stores=stores)


@dataclass(frozen=True)
class Small(Generic[G]):
    """The smallest failing program that was found. ``ended``: nothing more could be taken away from it; otherwise the
    time was up."""

    outcome: Outcome[G]
    ended: bool


def _smaller(outcome: Outcome[G], comparing: Comparing[G], batch: int, deadline: float) -> Outcome[G] | None:
    """The first candidate that fails as ``outcome`` does, of those that there is time for."""
    candidates = _candidates(outcome.program)
    first = 0
    while time.monotonic() < deadline and (some := tuple(itertools.islice(candidates, batch))):
        numbers = (outcome.program.number + 1000003 * (first + place + 1) for place in range(len(some)))
        numbered = [replace(one, number=number) for one, number in zip(some, numbers, strict=True)]
        first += len(some)
        with tempfile.TemporaryDirectory() as folder:
            found = comparing(numbered, Path(folder))
        failing = [other for other in found if other.fault and other.refused == outcome.refused]
        if failing:
            best = min(failing, key=lambda other: len(other.program.body) + len(other.program.stores))
            program = replace(best.program, number=outcome.program.number)
            return Outcome(program, best.fault, best.refused, best.seconds)
    return None


def minimised(outcome: Outcome[G], comparing: Comparing[G], seconds: float = float("inf"), batch: int = 1) -> Small[G]:
    """The smallest failing program that taking away statements leads to in so many seconds; a kernel that compiles
    then is not stopped. ``batch``: how many are compared in one call."""
    deadline = time.monotonic() + seconds
    while (smaller := _smaller(outcome, comparing, batch, deadline)) is not None:
        outcome = smaller
    return Small(outcome, time.monotonic() < deadline)
