"""Whether ``:16`` in a signature would widen a kernel's accesses to memory, found by compiling with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..spirv import opcodes as op
from ..spirv.decode import decode
from ..spirv.opcodes import StorageClass
from .signature import HINTS, split

#: The hint that says that a value or address is a multiple.
HINT = next(hint for hint in HINTS if hint != "1")


@dataclass(frozen=True)
class Accesses:
    """The loads and stores of device memory in a module: how many, and the bits that the widest moves."""

    number: int
    widest: int

    def are_worse_than(self, other: Accesses) -> bool:
        """Whether the same elements are moved by more accesses, of fewer bits."""
        return self.widest < other.widest or (self.widest == other.widest and self.number > other.number)


def accesses(spirv: bytes) -> Accesses:
    """The accesses to memory of a module of this backend. Raises ValueError on what is none."""
    bits: dict[int, int] = {}  # of a type
    types: dict[int, int] = {}  # value → its type
    physical: set[int] = set()  # pointer types
    number = widest = 0
    for one in decode(spirv):
        if one.result and one.type_id:
            types[one.result] = one.type_id
        values = [operand.value for operand in one.operands]
        if one.opcode in (op.TypeInt, op.TypeFloat):
            bits[one.result] = int(values[0])
        elif one.opcode == op.TypeVector:
            bits[one.result] = bits.get(int(values[0]), 0) * int(values[1])
        elif one.opcode == op.TypePointer and values[0] == StorageClass.PhysicalStorageBuffer:
            physical.add(one.result)
        elif one.opcode in (op.Load, op.Store) and types.get(int(values[0])) in physical:
            moved = one.type_id if one.opcode == op.Load else types.get(int(values[1]), 0)
            number, widest = number + 1, max(widest, bits.get(moved, 0))
    return Accesses(number, widest)


def hinted(text: str, is_type: Callable[[str], bool], types: str) -> str:
    """A signature with ``:16`` at the entries whose types begin with one of ``types`` and that have no hint."""

    def entry(part: str) -> str:
        type_ = part.rpartition("=")[2].strip()
        return f"{part}:{HINT}" if type_[:1] in types and is_type(type_) else part

    return ", ".join(map(entry, split(text)))


@dataclass(frozen=True)
class Wider:
    """A signature with which a kernel makes wider accesses than with the one that it was compiled for."""

    signature: str
    now: Accesses
    then: Accesses

    def __str__(self) -> str:
        return (
            f"':{HINT}' would widen accesses: {self.then.number} loads and stores of up to {self.then.widest} bits "
            f'instead of {self.now.number} of up to {self.now.widest}, with --signature "{self.signature}". Launches '
            f"then refuse values and addresses that are not multiples of {HINT}."
        )


def wider(spirv: bytes, text: str, is_type: Callable[[str], bool], compiled: Callable[[str], bytes]) -> Wider | None:
    """The signature with hints that gives wider accesses than ``text``, whose module is ``spirv``; None if none does.

    ``compiled``: the module for another signature. Pointers alone are tried first, because sizes and strides are
    multiples less often.
    """
    best, signature = now, text = accesses(spirv), hinted(text, is_type, "")
    for types in ("*", "*iu"):
        more = hinted(text, is_type, types)
        if more != signature and best.are_worse_than(then := accesses(compiled(more))):
            best, signature = then, more
    return Wider(signature, now, best) if best != now else None
