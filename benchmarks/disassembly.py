"""What the benchmarks count in a SPIR-V module."""

from __future__ import annotations

from collections import Counter

from triton.backends.spirv.spirv import opcodes as op
from triton.backends.spirv.spirv.decode import instruction_words


def accesses(spirv: bytes) -> tuple[Counter[int], Counter[int]]:
    """The loads and stores of device memory that a module has: bits of an access → how many."""
    bits: dict[int, int] = {}
    pointers: set[int] = set()
    type_of: dict[int, int] = {}
    loads: Counter[int] = Counter()
    stores: Counter[int] = Counter()
    pointees: dict[int, int] = {}
    for opcode, operands in instruction_words(spirv):
        if opcode in (op.TypeInt, op.TypeFloat):
            bits[operands[0]] = operands[1]
        elif opcode == op.TypeVector:
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
