"""Locations: the text of ``loc(…)`` resolved to the user's file, line and column, with the callers after it."""

from __future__ import annotations

from .ir import UNKNOWN, Location
from .lexer import Tokens


class Locations:
    """Resolves location tokens. ``definitions`` maps an alias (``#loc3``) to its token and the token's index in
    ``tokens``, where errors in it are reported."""

    __slots__ = ("_known", "_open", "definitions", "tokens")

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.definitions: dict[str, tuple[str, int]] = {}
        self._known: dict[str, Location] = {"loc(unknown)": UNKNOWN}
        self._open: set[str] = set()

    def resolve(self, text: str, index: int) -> Location:
        """The location that the token ``text`` (``loc(…)``), the ``index``-th of the tokens, stands for."""
        found = self._known.get(text)
        if found is None:
            self.tokens.i = index
            body = Tokens(text[4:-1], parent=self.tokens)
            found = self._location(body)
            body.finished("the location")
            if found is not UNKNOWN:
                found = Location(found.file, found.line, found.column, found.name, found.caller, text)
            self._known[text] = found
        return found

    def _alias(self, name: str, body: Tokens) -> Location:
        key = f"loc({name})"
        found = self._known.get(key)
        if found is not None:
            return found
        if name not in self.definitions:
            body.error(f"location {name} is not defined")
        if name in self._open:
            body.error(f"location {name} refers to itself")
        self._open.add(name)
        text, index = self.definitions[name]
        found = self._known[key] = self.resolve(text, index)
        self._open.remove(name)
        return found

    def _location(self, body: Tokens) -> Location:
        item = body.items[body.i]
        if item[0] == '"':
            return self._named(body)
        body.i += 1
        if item[0] == "#":
            return self._alias(item, body)
        if item == "unknown":
            return UNKNOWN
        if item == "callsite":
            body.expect("(")
            callee = self._location(body)
            body.expect("at")
            caller = self._location(body)
            body.expect(")")
            return _called_from(callee, caller)
        if item == "fused":
            return self._fused(body)
        body.fail("expected a location", body.i - 1)

    def _named(self, body: Tokens) -> Location:
        """``"file":line:column``, a range of those (its start counts), or ``"name"`` with an inner location."""
        text = body.string()
        if body.accept("("):
            inner = self._location(body)
            body.expect(")")
            return Location(inner.file, inner.line, inner.column, text, inner.caller)
        if not body.accept(":"):
            return Location(name=text)
        line = body.integer()
        body.expect(":")
        column = body.integer()
        if body.accept("to"):
            while body.accept(":"):
                body.integer()
        return Location(text, line, column)

    def _fused(self, body: Tokens) -> Location:
        """The first location of the list that names a file; what is fused with it is left out."""
        if body.accept("<"):
            while not body.accept(">"):
                if body.i == len(body.items) - 1:
                    body.fail("expected '>'")
                body.i += 1
        body.expect("[")
        found = UNKNOWN
        while True:
            part = self._location(body)
            found = found if found.file else part
            if not body.accept(","):
                break
        body.expect("]")
        return found


def _called_from(callee: Location, caller: Location) -> Location:
    """``callee`` with ``caller`` after its last frame."""
    if not callee.file:
        return caller
    frames = [callee]
    while frames[-1].caller is not None:
        frames.append(frames[-1].caller)
    for frame in reversed(frames):
        caller = Location(frame.file, frame.line, frame.column, frame.name, caller)
    return caller
