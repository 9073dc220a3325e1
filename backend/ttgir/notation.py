"""The language of ``assemblyFormat`` in .td files: a format's text as elements, for reader and printer.

A format is a sequence of literals (`` `,` ``), ``$operand`` and ``$attribute``, ``type($x)``, ``qualified(type($x))``,
``type(operands)``, ``functional-type(operands, results)``, ``operands``, ``attr-dict``, ``custom<Offsets>($x)`` and
optional groups ``( … $anchor^ … )?``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

_WORD = re.compile(
    r"`([^`]*)`|\$(\w+)|(attr-dict|functional-type|qualified|type|operands|results|custom<\w+>)"
    r"|(\)\?|[(),^])|\s+"
)
_KINDS = ("", "literal", "variable", "directive", "mark")

#: Directives without arguments.
_ALONE = frozenset({"attr-dict", "operands"})


@dataclass(frozen=True)
class Literal:
    """Punctuation or a keyword; empty if no space is printed."""

    text: str


@dataclass(frozen=True)
class Variable:
    """An operand or attribute."""

    name: str


@dataclass(frozen=True)
class Directive:
    """``word(arguments)``: the names of operands or results, or the word ``operands`` or ``results``."""

    word: str
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Group:
    """What is there only where the operand, result or attribute ``anchor`` is."""

    elements: tuple[Element, ...]
    anchor: str


Element: TypeAlias = "Literal | Variable | Directive | Group"


def parse_format(text: str) -> tuple[Element, ...]:
    """The elements of a format."""
    words: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        match = _WORD.match(text, at)
        assert match is not None, text[at:]
        at = match.end()
        if match.lastindex is not None:
            words.append((_KINDS[match.lastindex], match[match.lastindex]))
    elements, end, _ = _sequence(words, 0)
    assert end == len(words), (text, words[end:])
    return elements


def _sequence(words: list[tuple[str, str]], at: int) -> tuple[tuple[Element, ...], int, str]:
    """The elements up to the end or to ``)?``, where they end, and the anchor among them."""
    elements: list[Element] = []
    anchor = ""
    while at < len(words) and words[at] != ("mark", ")?"):
        kind, word = words[at]
        at += 1
        if kind == "literal":
            elements.append(Literal(word.strip()))
        elif kind == "variable":
            elements.append(Variable(word))
        elif word == "(":
            inner, at, inside = _sequence(words, at)
            at += 1
            elements.append(Group(inner, inside))
        else:
            arguments: tuple[str, ...] = ()
            if word not in _ALONE:
                arguments, at = _arguments(words, at)
            elements.append(Directive(word, arguments))
        if at < len(words) and words[at] == ("mark", "^"):
            at += 1
            last = elements[-1]
            assert isinstance(last, Variable | Directive)
            anchor = last.name if isinstance(last, Variable) else last.arguments[0]
    return tuple(elements), at, anchor


def _arguments(words: list[tuple[str, str]], at: int) -> tuple[tuple[str, ...], int]:
    """The names inside ``directive( … )``, brackets and inner ``type`` dropped."""
    depth = 0
    names: list[str] = []
    while True:
        kind, word = words[at]
        at += 1
        if word == "(" and kind == "mark":
            depth += 1
        elif kind == "mark" and word == ")":
            depth -= 1
            if depth == 0:
                return tuple(names), at
        elif kind == "variable" or word in ("operands", "results"):
            names.append(word)
