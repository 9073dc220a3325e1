"""From text to a program.

    program     = { "{" program "}" | declaration | instruction }
    declaration = ".reg" "." type name [ "<" count ">" ] { "," … } ";"
    instruction = [ "@" [ "!" ] name ] opcode [ operand { "," operand } ] ";"

``$0``, ``$1``, … are the operands of the piece, results first; other names are declared, in the braces that they are
used in or around them.
"""

from __future__ import annotations

import re

from .program import Constant, Instruction, Operand, Program, PtxError, Register, Vector
from .types import TYPES

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TOKEN = re.compile(
    r"\s*(?:(?P<bits>0[fF][0-9a-fA-F]{8}\b|0[dD][0-9a-fA-F]{16}\b)"
    r"|(?P<real>-?(?:\d+\.\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)(?![\w.]))"
    r"|(?P<integer>-?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?(?![\w.]))"
    r"|(?P<operand>\$(?:\d+|\{\d+\}))"
    r"|(?P<name>\.?[%A-Za-z_$][\w$%]*(?:\.[\w:]+)*)"
    r"|(?P<sign>[{}<>,;@!|\[\]+:()-]))"
)

_ARITHMETIC = "use operations of triton.language; of PTX, arithmetic on elements is translated"

#: What instructions need that a Vulkan device's elements have not, with their names.
_REFUSED = {
    "reads or writes memory": "ld ldu st atom red cp prefetch prefetchu multimem cvta isspacep tensormap applypriority "
    "discard createpolicy tcgen05",
    "exchanges values between threads": "shfl redux vote match activemask elect",
    "waits for other threads": "bar barrier membar fence mbarrier nanosleep griddepcontrol clusterlaunchcontrol",
    "leaves the sequence of instructions": "bra brx call ret exit trap brkpt",
    "is a matrix product of a warp": "mma wmma wgmma ldmatrix stmatrix movmatrix",
}
_REASONS = {name: reason for reason, names in _REFUSED.items() for name in names.split()}


class _Scopes:
    """The names that are declared in the braces that are open."""

    def __init__(self) -> None:
        self.widths: dict[str, int] = {}
        self._open: list[dict[str, str]] = [{}]

    def enter(self) -> None:
        self._open.append({})

    def leave(self) -> None:
        if len(self._open) == 1:
            raise PtxError("a '}' closes nothing")
        self._open.pop()

    def end(self) -> None:
        if len(self._open) > 1:
            raise PtxError("a '{' is not closed")

    def declare(self, name: str, width: int) -> None:
        if name in self._open[-1]:
            raise PtxError(f"'{name}' is declared twice")
        unique = self._open[-1][name] = f"{name}#{len(self.widths)}"
        self.widths[unique] = width

    def find(self, name: str) -> str:
        for scope in reversed(self._open):
            if name in scope:
                return scope[name]
        if name.startswith("%"):
            raise PtxError(f"'{name}' is a register of the hardware, or is not declared with .reg")
        raise PtxError(f"'{name}' is not declared with .reg")


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens = _tokens(text)
        self.place = 0
        self.scopes = _Scopes()
        self.instructions: list[Instruction] = []

    # -- tokens ------------------------------------------------------------------------------------------------
    def _peek(self) -> tuple[str, str]:
        return self.tokens[self.place] if self.place < len(self.tokens) else ("end", "the end")

    def _next(self, kind: str = "", what: str = "") -> str:
        found, text = self._peek()
        if kind and found != kind:
            raise PtxError(f"{what} was expected, not '{text}'")
        self.place += 1
        return text

    def _take(self, sign: str) -> bool:
        if self._peek() != ("sign", sign):
            return False
        self.place += 1
        return True

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            raise PtxError(f"'{sign}' was expected, not '{self._peek()[1]}'")

    # -- grammar -----------------------------------------------------------------------------------------------
    def program(self) -> Program:
        while self._peek()[0] != "end":
            if self._take("{"):
                self.scopes.enter()
            elif self._take("}"):
                self.scopes.leave()
            elif self._take(";"):
                pass
            elif self._peek()[1].split(".")[:2] == ["", "reg"]:
                self._declaration()
            else:
                self.instructions.append(self._instruction())
        self.scopes.end()
        return Program(tuple(self.instructions), self.scopes.widths)

    def _declaration(self) -> None:
        # The type may be written apart: ``.reg .b32 a``.
        words = [word for word in self._next().split(".") if word]
        while self._peek()[1].startswith("."):
            words += [word for word in self._next().split(".") if word]
        if len(words) != 2 or words[1] not in TYPES:
            raise PtxError(f"'.{' .'.join(words)}' does not declare registers of a scalar type")
        while True:
            name = self._next("name", "the name of a register")
            if self._take("<"):
                count = int(self._next("integer", "a number of registers"), 0)
                self._expect(">")
                for index in range(count):
                    self.scopes.declare(f"{name}{index}", TYPES[words[1]].bits)
            else:
                self.scopes.declare(name, TYPES[words[1]].bits)
            if not self._take(","):
                break
        self._expect(";")

    def _instruction(self) -> Instruction:
        guard = None
        if self._take("@"):
            negated = self._take("!")
            guard = Register(self._register().name, negated)
        opcode = self._next("name", "an instruction")
        name, *modifiers = opcode.replace("::", ".").split(".")
        if name in _REASONS:
            raise PtxError(f"'{opcode}' {_REASONS[name]}", _ARITHMETIC)
        operands: list[Operand] = []
        second = None
        while not self._take(";"):
            if self._peek()[0] == "end":
                raise PtxError(f"';' is missing after '{opcode}'")
            if operands:
                self._expect(",")
            operands.append(self._operand())
            if self._take("|"):
                second = self._register()
        return Instruction(name, tuple(modifiers), tuple(operands), guard, second)

    def _register(self) -> Register:
        kind, text = self._peek()
        if kind not in ("operand", "name"):
            raise PtxError(f"a register was expected, not '{text}'")
        self.place += 1
        return Register(f"${text.strip('${}')}" if kind == "operand" else self.scopes.find(text))

    def _operand(self) -> Operand:
        if self._take("!"):
            return Register(self._register().name, True)
        if self._take("{"):
            parts: list[Register | None] = []
            while True:
                if self._peek() == ("name", "_"):
                    self.place += 1
                    parts.append(None)
                else:
                    parts.append(self._register())
                if not self._take(","):
                    break
            self._expect("}")
            return Vector(tuple(parts))
        kind, text = self._peek()
        if kind in ("bits", "real", "integer"):
            self.place += 1
            return _literal(kind, text)
        if (kind, text) == ("sign", "["):
            raise PtxError("'[ ]' is a memory address", _ARITHMETIC)
        return self._register()


def _literal(kind: str, text: str) -> Constant:
    if kind == "bits":
        return Constant("f32" if text[1] in "fF" else "f64", int(text[2:], 16))
    if kind == "real":
        return Constant("real", float(text))
    digits = text.rstrip("U")
    octal = re.fullmatch(r"(-?)0([0-7]+)", digits)
    return Constant("integer", int(octal[1] + octal[2], 8) if octal else int(digits, 0))


def _tokens(text: str) -> list[tuple[str, str]]:
    text = _COMMENT.sub(" ", text).rstrip()
    tokens, place = [], 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None or match.lastgroup is None:
            raise PtxError(f"'{text[place:].split()[0]}' is not PTX")
        tokens.append((match.lastgroup, match[match.lastgroup]))
        place = match.end()
    return tokens


def parse(text: str) -> Program:
    """The program that ``text`` is. Raises PtxError."""
    return _Parser(text).program()
