"""LLVM IR as text: the body of one function under construction, with what it declares."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

from .decoded_module import ModuleType

_FLOATS = {16: "half", 32: "float", 64: "double"}
_SUFFIXES = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64", "ptr": "p0"}


def type_name(type_: ModuleType) -> str:
    """LLVM's name of a scalar type; an address is a number."""
    if type_.kind == "float":
        return _FLOATS[type_.bits] if type_.encoding is None else "bfloat"
    return f"i{type_.bits}"


def literal(name: str, bits: int) -> str:
    """A constant of a scalar type by its bits, as LLVM writes it."""
    if name == "half":
        return f"0xH{bits & 0xFFFF:04X}"
    if name == "bfloat":
        return f"0xR{bits & 0xFFFF:04X}"
    if name in ("float", "double"):
        return f"0x{_as_double(bits) if name == 'float' else bits:016X}"
    width = int(name[1:])
    if width == 1:
        return "true" if bits & 1 else "false"
    bits &= (1 << width) - 1
    return str(bits - (1 << width) if bits >> (width - 1) else bits)


def _as_double(bits: int) -> int:
    """The bits of the float64 that equals a float32, as LLVM writes floats; those of a NaN are kept."""
    bits &= 0xFFFFFFFF
    if bits >> 23 & 0xFF == 0xFF:
        return (bits >> 31) << 63 | 0x7FF << 52 | (bits & 0x7FFFFF) << 29
    value = struct.unpack("<f", struct.pack("<I", bits))[0]
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


@cache
def suffix(name: str) -> str:
    """How a type is written in an intrinsic's name: ``v16f32``."""
    if name.startswith("<"):
        count, _, element = name[1:-1].split(" ")
        return f"v{count}{suffix(element)}"
    return _SUFFIXES.get(name, name)


class Code:
    """Lines of LLVM IR. ``block``: the label of the block that is being filled."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.declarations: set[str] = set()
        #: Functions that this one calls, by name.
        self.helpers: dict[str, str] = {}
        self.block = "entry"
        #: How many lines there were when it was begun.
        self._begun = 0
        #: What is known of the current place: texts that were made where they dominate it.
        self._known: list[dict[object, str]] = [{}]
        self._next = 0
        #: Line number of a phi → its type, and its (value, block) pairs.
        self._phis: dict[int, tuple[str, str, list[tuple[str, str]]]] = {}
        #: ``, !dbg !7``, or nothing: where the instructions that are emitted next come from.
        self.place = ""

    def name(self, kind: str = "v") -> str:
        """A name that is not used yet, without its ``%``."""
        self._next += 1
        return f"{kind}{self._next}"

    def emit(self, text: str) -> str:
        """An instruction with a result; gives its name."""
        self._next = number = self._next + 1
        self.lines.append(f"  %v{number} = {text}{self.place}")
        return f"%v{number}"

    def do(self, text: str) -> None:
        """An instruction without a result."""
        self.lines.append(f"  {text}{self.place}")

    def label(self, name: str) -> None:
        """Starts a block."""
        self.lines.append(f"{name}:")
        self.block, self._begun = name, len(self.lines)

    def jump(self, target: str) -> None:
        """Ends the block by a branch."""
        self.do(f"br label %{target}")

    def branch(self, condition: str, true: str, false: str) -> None:
        """Ends the block by a conditional branch."""
        self.do(f"br i1 {condition}, label %{true}, label %{false}")

    def cut(self, longest: int, never: str, elsewhere: str) -> None:
        """Begins another block if this one has so many lines. It is left for ``elsewhere`` if ``never`` holds, so that
        LLVM does not make one block of both again."""
        if len(self.lines) - self._begun >= longest:
            following = self.name("on")
            self.branch(never, elsewhere, following)
            self.label(following)

    def phi(self, type_: str, incoming: Sequence[tuple[str, str]] = ()) -> str:
        """A phi, whose (value, block) pairs may be added to until the end."""
        name = "%" + self.name()
        self._phis[len(self.lines)] = name, type_, list(incoming)
        self.lines.append("")
        return name

    def add_incoming(self, phi: str, value: str, block: str) -> None:
        """One more pair of a phi."""
        next(entry for entry in self._phis.values() if entry[0] == phi)[2].append((value, block))

    def call(self, name: str, result: str, arguments: Sequence[tuple[str, str]], declared: bool = False) -> str:
        """A call of an intrinsic or a helper with (type, value) pairs; gives the result's name, "" for void."""
        if not declared:
            types = ", ".join(type_ for type_, _ in arguments)
            self.declarations.add(f"declare {result} @{name}({types})")
        text = f"call {result} @{name}({', '.join(f'{type_} {value}' for type_, value in arguments)})"
        if result != "void":
            return self.emit(text)
        self.do(text)
        return ""

    def intrinsic(self, name: str, type_: str, *values: str) -> str:
        """An intrinsic that is overloaded for one type, which all operands and the result have."""
        return self.call(f"llvm.{name}.{suffix(type_)}", type_, [(type_, value) for value in values])

    # -- what is known -------------------------------------------------------------------------------------------
    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is remembered within is forgotten at the end."""
        self._known.append({})
        yield
        self._known.pop()

    def recall(self, key: object) -> str | None:
        """What was remembered by this key at a place that dominates this one."""
        return next((known[key] for known in reversed(self._known) if key in known), None)

    def remember(self, key: object, text: str) -> str:
        """Has ``text`` be recalled."""
        self._known[-1][key] = text
        return text

    def text(self) -> str:
        """All lines."""
        for number, (name, type_, incoming) in self._phis.items():
            pairs = ", ".join(f"[{value}, %{block}]" for value, block in incoming)
            self.lines[number] = f"  {name} = phi {type_} {pairs}"
        return "\n".join(self.lines)
