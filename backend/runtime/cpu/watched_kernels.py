"""How a kernel is watched for races between its programs (native/cpu/program_races.h)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ...spirv import opcodes as op
from ...spirv.decode import instruction_words
from ...spirv.opcodes import StorageClass
from ..modules.module_info import ModuleInfo
from ..native_module import native

_MOST = 8  # bytes of a cell of shadow memory


def watch_of(info: ModuleInfo, spirv: bytes) -> Any:
    """The native CpuWatch of a module, None of one that is not watched: with the smallest element in device memory that
    it has a pointer to, and in both orders of its programs if it has atomic instructions."""
    if info.watch is None:
        return None
    bits: dict[int, int] = {}  # type → bits of its smallest scalar
    least = 8 * _MOST
    for opcode, words in instruction_words(spirv):
        if opcode in (op.TypeInt, op.TypeFloat):
            bits[words[0]] = words[1]
        elif opcode in (op.TypeVector, op.TypeArray) and words[1] in bits:
            bits[words[0]] = bits[words[1]]
        elif opcode == op.TypeStruct:
            bits[words[0]] = min((bits.get(member, 8 * _MOST) for member in words[1:]), default=8 * _MOST)
        elif opcode == op.TypePointer and words[1] == StorageClass.PhysicalStorageBuffer:
            least = min(least, max(8, bits.get(words[2], 8)))
    return native().CpuWatch(
        twice=info.has_atomics, shift=(least // 8).bit_length() - 1, **{k: v for k, v in asdict(info.watch).items()}
    )
