"""What differs between two releases of upstream besides the lines that the queue changes.

Operations and enumerations of the dialects, by the `.td` files that a checkout has, and a wheel from 3.9 on; functions
of the language with their parameters; and settings with their defaults. What the backend's parser knows is every name
in `backend/ttgir/operations/`.
"""

from __future__ import annotations

import ast
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from .project import Project

#: Prefix of a definition in a .td file → its dialect.
_DIALECTS = {"TT": "tt", "TTG": "ttg", "TTI": "tti", "TTNG": "ttng", "Gluon": "gluon"}
_DEFINITION = re.compile(r'def (\w+?)_\w+\s*:\s*\w+<\s*"([\w.]+)"')
_ENUMERATION = re.compile(r'def \w+\s*:\s*I\d+(?:Bit)?EnumAttr<\s*"(\w+)"')
_CASE = re.compile(r'EnumAttrCase<"\w+",\s*(\w+),\s*"(\w+)">')
_TEXT = re.compile(r'let (?:description|summary) = (?:\[\{.*?\}\]|".*?");', re.DOTALL)
_PART = re.compile(r"let (arguments|results|regions|assemblyFormat) = (.*?);", re.DOTALL)
_SETTING = re.compile(r'= env_\w+\(\s*"(\w+)"(?:,\s*(.*?))?\s*\)$', re.MULTILINE)

#: The table of operations, whose rows name what the parser knows.
TABLE = "backend/ttgir/operations"

#: Name → its parts, each as text.
Entries = dict[str, dict[str, str]]


def _texts(place: Path, end: str) -> list[str]:
    """The files of a wheel or a folder whose paths have that end."""
    if place.is_file():
        with zipfile.ZipFile(place) as archive:
            return [archive.read(name).decode() for name in sorted(archive.namelist()) if f"/{name}".endswith(end)]
    paths = sorted(place.rglob(f"*{end.rpartition('/')[2]}"))
    return [path.read_text(encoding="utf-8") for path in paths if path.as_posix().endswith(end)]


def _definitions(place: Path, end: str) -> Iterator[str]:
    for text in _texts(place, end):
        yield from re.split(r"\n(?=def |class |let )", re.sub(r"//.*", "", text))


def operations(place: Path) -> Entries:
    """Operation → its arguments, results, regions and format, of a wheel file or a folder."""
    found: Entries = {}
    for block in _definitions(place, "Ops.td"):
        if named := _DEFINITION.match(block):
            name = f"{_DIALECTS.get(named[1], named[1])}.{named[2]}"
            found[name] = {part: " ".join(value.split()) for part, value in _PART.findall(_TEXT.sub("", block))}
    return found


def enumerations(place: Path) -> Entries:
    """Enumeration of an attribute → its words with their numbers."""
    found: Entries = {}
    for block in _definitions(place, ".td"):
        if named := _ENUMERATION.match(block):
            found[named[1]] = {"words": ", ".join(f"{word} {number}" for number, word in _CASE.findall(block))}
    return found


def language(place: Path) -> Entries:
    """Function of `triton.language` → its parameters with their defaults."""
    found: Entries = {}
    for module in ("core", "math", "random", "standard"):
        for text in _texts(place, f"/triton/language/{module}.py"):
            for node in ast.parse(text).body:
                if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                    found[f"tl.{node.name}"] = {"parameters": ast.unparse(node.args)}
    return found


def settings(place: Path) -> Entries:
    """Variable of the environment → its default in Triton's knobs."""
    found = (_SETTING.findall(text) for text in _texts(place, "/triton/knobs.py"))
    return {name: {"default": default or "none"} for rows in found for name, default in rows}


#: What is compared, and how it is read.
_KINDS: dict[str, Callable[[Path], Entries]] = {
    "operations": operations,
    "enumerations": enumerations,
    "functions of the language": language,
    "settings": settings,
}


def compare(project: Project, old: Path, new: Path) -> list[str]:
    """Lines that tell what came, went or changed, and whether the parser knows an operation."""
    rows = "".join(path.read_text() for path in sorted((project.root / TABLE).rglob("*.py")))
    known = set(re.findall(r"\b[a-z]+\.[a-z][\w.]*", rows))
    lines = []
    for kind, read in _KINDS.items():
        before, after = read(old), read(new)
        if missing := [place.name for place, found in ((old, before), (new, after)) if not found]:
            lines.append(f"{kind}: not compared: there are none in {missing[0]}")
            continue
        lines.append(f"{kind}: {len(before)} in {old.name}, {len(after)} in {new.name}")
        for name, mark in _differences(before, after):
            in_table = f" ({'known to' if name in known else 'not in'} the table of operations)"
            lines.append(f"  {mark:<7} {name}{in_table if read is operations else ''}")
            for part in sorted(before[name].keys() | after[name].keys()) if mark == "changed" else []:
                was, now = before[name].get(part, "-"), after[name].get(part, "-")
                lines += [f"    {part}: {was}", f"    now: {now}"] if was != now else []
    return lines


def _differences(before: Entries, after: Entries) -> Iterator[tuple[str, str]]:
    """(name, what became of it) of those that are not the same."""
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            yield name, "new" if name not in before else "gone" if name not in after else "changed"
