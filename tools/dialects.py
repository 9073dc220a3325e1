"""Which operations of upstream's dialects differ between two releases, by the `.td` files in their wheels or checkouts.

A wheel has them from 3.9 on. What the backend's parser knows is every name in `backend/ttgir/operations/`.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

from .project import Project

#: Prefix of a definition in a .td file → its dialect.
_DIALECTS = {"TT": "tt", "TTG": "ttg", "TTI": "tti", "TTNG": "ttng", "Gluon": "gluon"}
_DEFINITION = re.compile(r'def (\w+?)_\w+\s*:\s*\w+<\s*"([\w.]+)"')
_TEXT = re.compile(r'let (?:description|summary) = (?:\[\{.*?\}\]|".*?");', re.DOTALL)
_PART = re.compile(r"let (arguments|results|regions|assemblyFormat) = (.*?);", re.DOTALL)

#: The table of operations, whose rows name what the parser knows.
TABLE = "backend/ttgir/operations"

Operations = dict[str, dict[str, str]]


def operations(place: Path) -> Operations:
    """Operation → its arguments, results, regions and format as text, of a wheel file or a folder."""
    if place.is_file():
        with zipfile.ZipFile(place) as archive:
            texts = [archive.read(name).decode() for name in sorted(archive.namelist()) if name.endswith("Ops.td")]
    else:
        texts = [path.read_text() for path in sorted(place.rglob("*Ops.td"))]
    found: Operations = {}
    for text in texts:
        for block in re.split(r"\n(?=def |class |let )", re.sub(r"//.*", "", text)):
            if named := _DEFINITION.match(block):
                name = f"{_DIALECTS.get(named[1], named[1])}.{named[2]}"
                found[name] = {part: " ".join(value.split()) for part, value in _PART.findall(_TEXT.sub("", block))}
    return found


def compare(project: Project, old: Path, new: Path) -> list[str]:
    """Lines that tell each operation that came, went or changed, and whether the parser knows it."""
    before, after = operations(old), operations(new)
    for place, found in ((old, before), (new, after)):
        if not found:
            return [f"dialects: not compared: {place.name} has no .td files"]
    rows = "".join(path.read_text() for path in sorted((project.root / TABLE).rglob("*.py")))
    known = set(re.findall(r"\b[a-z]+\.[a-z][\w.]*", rows))
    lines = [f"dialects: {len(before)} operations, {len(after)} in {new.name}"]
    for name in sorted(before.keys() | after.keys()):
        parts = sorted(before.get(name, {}).keys() | after.get(name, {}).keys())
        changed = [part for part in parts if before.get(name, {}).get(part) != after.get(name, {}).get(part)]
        if name in before and name in after and not changed:
            continue
        mark = "new" if name not in before else "gone" if name not in after else "changed"
        lines.append(f"  {mark:<7} {name} ({'known to' if name in known else 'not in'} the table of operations)")
        for part in changed if mark == "changed" else []:
            lines += [f"    {part}: {before[name].get(part, '-')}", f"    now: {after[name].get(part, '-')}"]
    return lines
