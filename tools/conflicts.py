"""Tell a merge conflict: which patch, file and hunk it is in, and both sides."""

from __future__ import annotations

from dataclasses import dataclass

from .queue import Patch, hunk_ranges

_MARKS = ("<<<<<<< ", "||||||| ", "=======", ">>>>>>> ")
_MOST_LINES = 12


@dataclass(frozen=True)
class Region:
    """One conflict in a file: the lines of upstream, of the text that the patch was written for, and of the patch."""

    upstream: tuple[str, ...]
    base: tuple[str, ...]
    patch: tuple[str, ...]


def regions(text: str) -> list[Region]:
    """The conflicts that git marked in a file (conflict style diff3)."""
    found: list[Region] = []
    parts: list[list[str]] = []
    inside = False
    for line in text.splitlines():
        if line.startswith(_MARKS[0]):
            inside, parts = True, [[]]
        elif inside and line.startswith(_MARKS[3]):
            upstream, base, patch = parts if len(parts) == 3 else (parts[0], [], parts[-1])
            found.append(Region(tuple(upstream), tuple(base), tuple(patch)))
            inside = False
        elif inside and (line.startswith(_MARKS[1]) or line == _MARKS[2]):
            parts.append([])
        elif inside:
            parts[-1].append(line)
    return found


def has_marks(text: str) -> bool:
    """Whether a file still holds a conflict mark."""
    return any(line.startswith((_MARKS[0], _MARKS[3])) for line in text.splitlines())


def hunk_of(region: Region, patch: Patch, path: str, patched: str) -> tuple[int, int, str] | None:
    """(number, count, `@@` line) of the hunk that a conflict is in; None if it cannot be told.

    `patched` is the file as the patch had it: what the patch's new line numbers count.
    """
    hunks = hunk_ranges(patch.diff).get(path, [])
    lines = tuple(patched.splitlines())
    size = len(region.patch)
    for start in range(len(lines) - size + 1):
        if lines[start : start + size] != region.patch:
            continue
        for number, (header, first, last) in enumerate(hunks, 1):
            if first <= start + max(size, 1) and start + 1 <= last:
                return number, len(hunks), header
    return None


def side(title: str, lines: tuple[str, ...]) -> list[str]:
    """One side, indented under a title; a long one is cut."""
    shown = [f"    | {line}" for line in lines[:_MOST_LINES]] or ["    (nothing)"]
    more = [f"    | … {len(lines) - _MOST_LINES} more lines"] if len(lines) > _MOST_LINES else []
    return [f"  {title}", *shown, *more]
