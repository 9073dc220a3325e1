"""What the pages hold for a reader to run: Python in fenced blocks, and commands.

The ``python`` blocks of a page are one program: each goes on from those before it. A block that is not run says why, in
an HTML comment in the line above: ``<!-- fragment: needs a GPU -->``. What a reader has already, and what the test
checks, stands in a comment that is run where it stands:

    <!-- python
    x = torch.ones(4)
    -->
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "CONTRIBUTING.md", *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md")))

_FENCE = re.compile(r"^( *)```(\w*)$")
_FRAGMENT = re.compile(r"^ *<!-- fragment: .+ -->$")
_HIDDEN, _HIDDEN_END = "<!-- python", "-->"


@dataclass(frozen=True)
class Block:
    """``lines`` of a page from line ``first`` (from 1) on, without the fences and their indentation. ``language`` is
    "" if the fence names none; ``fragment``: the page says why it is not run."""

    language: str
    first: int
    lines: tuple[str, ...]
    fragment: bool = False


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a page, and the hidden Python, in their order."""
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        opened = _FENCE.match(lines[number])
        hidden = lines[number] == _HIDDEN
        number += 1
        if not opened and not hidden:
            continue
        indent, language, end = ("", "python", _HIDDEN_END) if hidden else (opened[1], opened[2], f"{opened[1]}```")  # type: ignore[index]
        first = number
        while lines[number] != end:
            number += 1
        inside = tuple(line.removeprefix(indent) for line in lines[first:number])
        fragment = not hidden and first >= 2 and bool(_FRAGMENT.match(lines[first - 2]))
        yield Block(language, first + 1, inside, fragment)
        number += 1


def program(text: str) -> str:
    """The Python of a page, each line at its number in the page; "" if there is none to run."""
    placed: list[str] = []
    for block in blocks(text):
        if block.language == "python" and not block.fragment:
            placed += [""] * (block.first - 1 - len(placed))
            placed += block.lines
    return "\n".join([*placed, ""]) if placed else ""


@dataclass(frozen=True)
class Command:
    """A command that a page shows in ``line``: its words, without variables before it and comments behind it.
    ``whole``: it stands in a block, to be typed as it is; otherwise it is named in a sentence."""

    page: str
    line: int
    words: tuple[str, ...]
    whole: bool

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {' '.join(self.words)}"


#: How commands of this project begin.
_BEGINS = re.compile(r"^(?:(?:\.venv/bin/)?python3? (?:-m |setup\.py|docs/|examples/)|triton-spirv |torchrun )")
_VARIABLE = re.compile(r"^(?:export )?[A-Z_]+=(?:\"[^\"]*\"|\S*) +")
_SPAN = re.compile(r"`([^`]+)`")


def _words(text: str) -> tuple[str, ...] | None:
    text = text.strip().removeprefix("$ ")
    while matched := _VARIABLE.match(text):
        text = text[matched.end() :]
    if not _BEGINS.match(text):
        return None
    # What stands in parentheses is put in by the shell; `&&` goes on with another command.
    lexer = shlex.shlex(text.split(" && ")[0], posix=True, punctuation_chars=False)
    lexer.whitespace_split = True
    return tuple(lexer)


def commands(page: str) -> Iterator[Command]:
    """The commands of a page, from its blocks without a language and from its code spans."""
    text = (ROOT / page).read_text(encoding="utf-8")
    prose = text.splitlines()
    for block in blocks(text):
        for number in range(block.first - 1, block.first - 1 + len(block.lines)):
            prose[number] = ""
        if block.language:
            continue
        joined, start = "", block.first
        for number, line in enumerate(block.lines, block.first):
            joined, start = (joined + line, start) if joined else (line, number)
            if joined.endswith("\\"):
                joined = joined[:-1]
                continue
            words, joined = _words(joined), ""
            if words:
                yield Command(page, start, words, whole=True)
    # A code span may go on in the next line.
    flat = re.sub(r"^ *```.*$", "", "\n".join(prose), flags=re.MULTILINE)
    for found in _SPAN.finditer(flat):
        words = _words(found[1].replace("\n", " "))
        if words:
            yield Command(page, flat[: found.start()].count("\n") + 1, words, whole=False)
