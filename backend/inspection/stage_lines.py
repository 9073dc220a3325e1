"""A kernel's stages as lines of text, each with the place in the user's source that it comes from."""

from __future__ import annotations

import linecache
import re
from dataclasses import dataclass

from ..spirv import opcodes as op
from ..spirv.decode import decode
from ..ttgir.ir import Location
from ..ttgir.lexer import Tokens, TTGIRSyntaxError
from ..ttgir.locations import Locations
from .placed_instructions import placed

_ALIAS = re.compile(r"^(#loc\w*) = (loc\(.*\))$")
_AT_END = re.compile(r" (loc\((?:[^()\"]|\"(?:[^\"\\]|\\.)*\"|\([^()]*\))*\))$")

#: What the other lines show already: names stand on the ids, places next to the lines.
_LEFT_OUT = frozenset({op.Name, op.String})


@dataclass(frozen=True)
class Line:
    """A line of a stage. ``places``: "file:line" of its frames, the innermost first; none where it is not known."""

    text: str
    places: tuple[str, ...] = ()


def frames(location: Location) -> tuple[str, ...]:
    """The places of a location: where it is, then where that was called from."""
    found = []
    frame: Location | None = location
    while frame is not None:
        if frame.file:
            found.append(f"{frame.file}:{frame.line}")
        frame = frame.caller
    return tuple(found)


def mlir_lines(text: str) -> list[Line]:
    """The lines of TTIR or TTGIR as upstream prints it: locations leave the text and become places."""
    aliases = {match[1]: match[2] for line in text.splitlines() if (match := _ALIAS.match(line))}
    locations = Locations(Tokens(""))
    locations.definitions = {name: (body, 0) for name, body in aliases.items()}
    lines = []
    for line in text.splitlines():
        if _ALIAS.match(line):
            continue
        found = _AT_END.search(line)
        places: tuple[str, ...] = ()
        while found:
            if not places:
                places = _resolved(locations, found[1])
            line = line[: found.start()]
            found = _AT_END.search(line)
        lines.append(Line(line, places))
    return lines


def _resolved(locations: Locations, text: str) -> tuple[str, ...]:
    try:
        return frames(locations.resolve(text, 0))
    except TTGIRSyntaxError:
        return ()  # a form that only other tools write: the line is shown without its place


def spirv_lines(spirv: bytes) -> list[Line]:
    """The disassembly of a module; its OpLine instructions become places."""
    return [
        Line("  " * one.depth + one.text, tuple(f"{file}:{number}" for file, number in one.frames))
        for one in placed(list(decode(spirv)))
        if one.entry.opcode not in _LEFT_OUT
    ]


def source_lines(stages: list[list[Line]], margin: int = 3) -> list[Line]:
    """The user's source around each line that ``stages`` name; the file of the kernel itself first.

    ``margin``: how many lines are shown before and after such a line.
    """
    numbers: dict[str, set[int]] = {}
    for places in (line.places for lines in stages for line in lines if line.places):
        for place in reversed(places):  # the outermost frame is the kernel's
            file, _, number = place.rpartition(":")
            numbers.setdefault(file, set()).add(int(number))
    shown = []
    for file, known in numbers.items():
        text = linecache.getlines(file)
        if not text:
            continue
        if len(numbers) > 1:
            shown.append(Line(f"# {file}"))
        around = {near for number in known for near in range(number - margin, number + margin + 1)}
        last = 0
        for near in sorted(around & set(range(1, len(text) + 1))):
            if last and near > last + 1:
                shown.append(Line("⋮"))
            shown.append(Line(text[near - 1].rstrip("\n"), (f"{file}:{near}",)))
            last = near
    return shown
