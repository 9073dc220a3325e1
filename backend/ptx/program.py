"""A piece of PTX: its instructions in order, with names resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias


class PtxError(Exception):
    """The text cannot be compiled: ``reason`` names the part of it, ``instead`` says what to write."""

    def __init__(self, reason: str, instead: str = "") -> None:
        super().__init__(reason)
        self.reason, self.instead = reason, instead


@dataclass(frozen=True)
class Register:
    """A register by name. ``negated``: the opposite of a predicate is read (``!p``)."""

    name: str
    negated: bool = False


@dataclass(frozen=True)
class Constant:
    """A constant. ``kind``: "integer"; "f32" or "f64" for the bits of such a number (``0f3F800000``); "real" for a
    decimal number, whose type is that of the instruction."""

    kind: str
    value: int | float


@dataclass(frozen=True)
class Vector:
    """``{a, b}``: parts of one value, the lowest bits first. None is ``_``, a part that nothing takes."""

    parts: tuple[Register | None, ...]


Operand: TypeAlias = "Register | Constant | Vector"


@dataclass(frozen=True)
class Instruction:
    """``@guard name.modifiers operands;``. The last modifier is the type. ``second``: the other result of ``p|q``."""

    name: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Register | None = None
    second: Register | None = None

    def __str__(self) -> str:
        return ".".join((self.name, *self.modifiers))


@dataclass(frozen=True)
class Program:
    """``widths``: bits of every register that the text declares; predicates have one."""

    instructions: tuple[Instruction, ...]
    widths: Mapping[str, int]
