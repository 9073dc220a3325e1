"""Reading a SPIR-V module word by word, for what the benchmarks count."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator

from triton.backends.spirv.spirv import opcodes as op

_HEADER_WORDS = 5
_TYPE_INT, _TYPE_FLOAT, _TYPE_VECTOR = 21, 22, 23


def instructions(spirv: bytes) -> Iterator[tuple[int, ...]]:
    """(opcode, operand, …) of each instruction of a module."""
    words = struct.unpack(f"<{len(spirv) // 4}I", spirv)
    at = _HEADER_WORDS
    while at < len(words):
        length = words[at] >> 16
        yield words[at] & 0xFFFF, *words[at + 1 : at + length]
        at += length


def accesses(spirv: bytes) -> tuple[Counter[int], Counter[int]]:
    """The loads and stores of device memory that a module has: bits of an access → how many."""
    bits: dict[int, int] = {}
    pointers: set[int] = set()
    type_of: dict[int, int] = {}
    loads: Counter[int] = Counter()
    stores: Counter[int] = Counter()
    pointees: dict[int, int] = {}
    for opcode, *operands in instructions(spirv):
        if opcode in (_TYPE_INT, _TYPE_FLOAT):
            bits[operands[0]] = operands[1]
        elif opcode == _TYPE_VECTOR:
            bits[operands[0]] = bits[operands[1]] * operands[2]
        elif opcode == op.TypePointer:
            pointees[operands[0]] = operands[2]
        elif opcode == op.ConvertUToPtr:
            pointers.add(operands[1])
            type_of[operands[1]] = pointees[operands[0]]
        elif opcode == op.Load and operands[2] in pointers:
            loads[bits[operands[0]]] += 1
        elif opcode == op.Store and operands[0] in pointers:
            stores[bits[type_of[operands[0]]]] += 1
    return loads, stores
