"""Tokens of MLIR text.

One regular expression cuts the text. Types with parameters, dialect attributes with a body and whole locations are one
token each, so that a text which occurs often is parsed once and then found in a cache by its spelling.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

#: How deep brackets may nest inside one type, attribute body or location token: tl.topk reduces a tensor of
#: 2 × 2 × … × 2 along one dimension after the other, each of which is one more #ttg.slice.
NESTING = 20

#: What ends every token list. It matches no token that the grammar knows.
END = "\0"


def _balanced(left: str, right: str) -> str:
    """A pattern of what may stand between brackets, with those brackets nested up to NESTING deep.

    Every repetition is possessive: an unclosed bracket costs time linear in its length.
    """
    plain = rf'(?:[^{left}{right}"]++|"(?:[^"\\\n]|\\.)*+")*+'
    inner = plain
    for _ in range(NESTING):
        inner = rf"{plain}(?:{left}{inner}{right}{plain})*+"
    return inner


_ANGLES = "<" + _balanced("<", ">") + ">"
_PARENS = r"\(" + _balanced(r"\(", r"\)") + r"\)"

_MASTER = re.compile(
    r"//[^\n]*"  # comment
    r"|%[\w$.-]+(?:\#\d+)?"  # value
    rf"|loc{_PARENS}"  # location
    rf"|(?:tensor|vector|memref|tuple|complex){_ANGLES}"  # builtin type with parameters
    r"|[A-Za-z_][\w$.]*"  # keyword, operation, attribute name, plain type
    rf"|[!#][A-Za-z_][\w$.]*(?:{_ANGLES})?"  # dialect type or attribute, alias
    r"|0x[0-9A-Fa-f]+"  # bits
    r"|-?\d+(?:\.\d*(?:[eE][-+]?\d+)?)?"  # number
    r'|"(?:[^"\\\n]|\\.)*+"'  # string
    r"|->|::"
    r'|[@^](?:[A-Za-z_$.\d-][\w$.-]*|"(?:[^"\\\n]|\\.)*+")'  # symbol, block label
    r"|\S",
    re.ASCII,
)
_ESCAPE = re.compile(r'\\([0-9A-Fa-f]{2}|["\\nt])')


class TTGIRSyntaxError(ValueError):
    """Text that is not a module that this reader understands.

    ``source``, ``line`` and ``column`` (both from 1) say where, ``text`` is the offending line, ``expected`` says what
    is wrong or what should have stood there. ``unknown``: the name of an operation of which nothing is known, and where
    the user's source has it; None where something else is wrong.
    """

    unknown: tuple[str, Any] | None = None

    def __init__(self, source: str, line: int, column: int, text: str, expected: str) -> None:
        self.source, self.line, self.column, self.text, self.expected = source, line, column, text, expected
        shown, caret = text, column - 1
        if len(shown) > 160:
            start = max(0, caret - 80)
            shown, caret = text[start : start + 160], caret - start
        super().__init__(f"{source}:{line}:{column}: {expected}\n  {shown}\n  {' ' * caret}^")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.source, self.line, self.column, self.text, self.expected)


class Tokens:
    """The tokens of ``text`` and a cursor ``i`` into them. ``items`` ends with END, which nothing may step over."""

    __slots__ = ("i", "items", "parent", "source", "text")

    def __init__(self, text: str, source: str = "", parent: Tokens | None = None) -> None:
        self.text = text
        self.source = source
        self.parent = parent
        items = _MASTER.findall(text)
        if "//" in text:
            items = [item for item in items if item[:2] != "//"]
        items.append(END)
        self.items: list[str] = items
        self.i = 0

    def fail(self, expected: str, index: int | None = None) -> NoReturn:
        """Raise TTGIRSyntaxError "``expected``, found …" at token ``index`` (default: the current one)."""
        index = self.i if index is None else index
        found = self.items[index]
        shown = "the end" if found == END else repr(found if len(found) <= 60 else found[:57] + "...")
        self.error(f"{expected}, found {shown}", index)

    def error(self, message: str, index: int | None = None) -> NoReturn:
        """Raise TTGIRSyntaxError ``message`` at token ``index`` (default: the current one).

        Tokens of a part of a larger text are reported at the larger text's current token.
        """
        index = self.i if index is None else index
        if self.parent is not None:
            part = self.text if len(self.text) <= 80 else self.text[:77] + "..."
            self.parent.error(f"{message} (in '{part}')" if self.parent.parent is None else message)
        starts = [match.start() for match in _MASTER.finditer(self.text) if match.group()[:2] != "//"]
        at = starts[index] if index < len(starts) else len(self.text.rstrip())
        line = self.text.count("\n", 0, at) + 1
        begin = self.text.rfind("\n", 0, at) + 1
        end = self.text.find("\n", at)
        raise TTGIRSyntaxError(self.source, line, at - begin + 1, self.text[begin : end if end >= 0 else None], message)

    def accept(self, token: str) -> bool:
        """Step over ``token`` if it comes next; whether it did."""
        if self.items[self.i] == token:
            self.i += 1
            return True
        return False

    def expect(self, token: str) -> None:
        """Step over ``token`` or fail."""
        if self.items[self.i] != token:
            self.fail(f"expected '{token}'")
        self.i += 1

    def integer(self) -> int:
        """The next token as an integer."""
        item = self.items[self.i]
        if not item.lstrip("-").isdigit() or len(item) > 1000:
            self.fail("expected an integer")
        self.i += 1
        return int(item)

    def name(self, what: str) -> str:
        """The next token as a bare name; ``what`` names it in the error."""
        item = self.items[self.i]
        if not (item[0].isalpha() or item[0] == "_"):
            self.fail(f"expected {what}")
        self.i += 1
        return item

    def string(self) -> str:
        """The next token as a string's content."""
        item = self.items[self.i]
        if item[0] != '"' or len(item) < 2:
            self.fail("expected a string")
        self.i += 1
        return unescape(item)

    def symbol(self) -> str:
        """The next token as a symbol name, without the ``@``."""
        item = self.items[self.i]
        if item[0] != "@" or len(item) < 2:
            self.fail("expected a symbol (@name)")
        self.i += 1
        return unescape(item[1:]) if item[1] == '"' else item[1:]

    def finished(self, what: str) -> None:
        """Fail unless every token has been read."""
        if self.items[self.i] != END or self.i != len(self.items) - 1:
            self.fail(f"expected the end of {what}")


def unescape(literal: str) -> str:
    """The content of a quoted MLIR string: ``\\0A`` is a byte in hexadecimal, bytes are UTF-8."""
    body = literal[1:-1]
    if "\\" not in body:
        return body
    named = {"n": b"\n", "t": b"\t", '"': b'"', "\\": b"\\"}
    parts: list[bytes] = []
    last = 0
    for match in _ESCAPE.finditer(body):
        parts.append(body[last : match.start()].encode())
        code = match.group(1)
        parts.append(named[code] if code in named else bytes.fromhex(code))
        last = match.end()
    parts.append(body[last:].encode())
    return b"".join(parts).decode("utf-8", "replace")
