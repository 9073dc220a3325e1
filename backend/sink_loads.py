"""Moves the loads of dot operands from shared memory down to their dots.

Upstream's passes leave such a load where its buffer was filled. With other buffers filled between it and the dot,
upstream's allocation may give them the bytes of the first, which nothing reads any more: the load cannot be left until
the dot then (analysis/lazy_loads.py), and all of K is held in registers. Moved before the allocation, it keeps its
buffer, for which there must be room.

The bindings of upstream's IR cannot move an operation, so this works on its text, a line an operation.
"""

from __future__ import annotations

import re

#: A load of a dot operand from a buffer that is never written again: its type is not ``mutable``.
_LOAD = re.compile(r"^( *)(%\w+) = ttg\.local_load (%\w+) : !ttg\.memdesc<(?:(?!mutable).)*-> tensor<.*#ttg\.dot_op<")
#: What takes shared memory: upstream's allocation gives it bytes.
_TAKERS = re.compile(r"ttg\.(local_alloc|convert_layout)|tt\.(reduce|scan|histogram|gather|atomic|call)")


def sunk(text: str) -> str | None:
    """The text of a TTGIR module with the loads moved, or None where none has to be."""
    if "ttg.local_load" not in text:
        return None
    lines = text.split("\n")
    # Each load may be followed by another one that is to be moved: the last ones first.
    places = [place for place in range(len(lines) - 1, -1, -1) if _LOAD.match(lines[place])]
    moved = False
    for place in places:
        target = _target(lines, place)
        if target is not None:
            lines.insert(target - 1, lines.pop(place))
            moved = True
    return "\n".join(lines) if moved else None


def _target(lines: list[str], place: int) -> int | None:
    """The line of the dot that a load may go to: its first use, in the same block, behind what takes shared memory."""
    match = _LOAD.match(lines[place])
    assert match is not None
    indent, name, buffer = match.groups()
    used, freed = re.compile(rf"{re.escape(name)}\b"), re.compile(rf"ttg\.local_dealloc {re.escape(buffer)}\b")
    taken = False
    for number in range(place + 1, len(lines)):
        line = lines[number]
        if not line.startswith(indent) or freed.search(line):
            return None  # the block ends, or the buffer
        if used.search(line):
            is_dot = line.startswith(f"{indent}%") and " = tt.dot " in line
            return number if is_dot and taken else None
        taken = taken or _TAKERS.search(line) is not None
    return None
