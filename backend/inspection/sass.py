"""What NVIDIA's machine code consists of: the instructions that decide how fast a kernel is, counted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from .nvidia_code import INSTRUCTION_BYTES

#: First part of a mnemonic → what it does (CUDA Binary Utilities, "Instruction Set Reference"), in the table's order.
_COUNTED = {
    "HMMA": "products of tiles of f16, bf16 or tf32, by a warp",
    "IMMA": "products of tiles of integers, by a warp",
    "DMMA": "products of tiles of f64, by a warp",
    "QMMA": "products of tiles of f8, by a warp",
    "OMMA": "products of tiles of f4, by a warp",
    "HGMMA": "products of tiles of f16, bf16 or tf32, by four warps",
    "IGMMA": "products of tiles of integers, by four warps",
    "QGMMA": "products of tiles of f8, by four warps",
    "FFMA": "multiply-adds of f32",
    "HFMA2": "multiply-adds of two f16",
    "DFMA": "multiply-adds of f64",
    "MUFU": "functions such as the reciprocal and 2**x",
    "LDG": "loads from device memory",
    "STG": "stores to device memory",
    "LD": "loads from an address of any kind",
    "ST": "stores to an address of any kind",
    "LDGSTS": "copies from device memory to shared memory",
    "RED": "atomic operations without a result",
    "ATOM": "atomic operations on an address of any kind",
    "ATOMG": "atomic operations on device memory",
    "ATOMS": "atomic operations on shared memory",
    "LDSM": "loads of fragments from shared memory",
    "LDS": "loads from shared memory",
    "STSM": "stores of fragments to shared memory",
    "STS": "stores to shared memory",
    "SHFL": "exchanges between the lanes of a warp",
    "BAR": "barriers of the workgroup",
    "STL": "stores to memory of the invocation's own: spills, or arrays",
    "LDL": "loads from there",
}

_LINE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P[0-9T]+\s+)?([A-Z][A-Z0-9_.]*)([^;]*);", re.MULTILINE)
_TARGET = re.compile(r"0x([0-9a-f]+)\s*$")


@dataclass(frozen=True)
class MachineInstruction:
    """``address``: in bytes from the start of the code. ``target``: of a branch, where the text has it."""

    address: int
    mnemonic: str
    target: int | None = None

    @property
    def name(self) -> str:
        """The mnemonic's first part."""
        return self.mnemonic.partition(".")[0]


def instructions(text: str) -> list[MachineInstruction]:
    """What nvdisasm wrote, without the code's padding: NOPs and the branch to itself before them."""
    found = []
    for address, mnemonic, operands in _LINE.findall(text):
        target = _TARGET.search(operands) if mnemonic.startswith("BRA") else None
        found.append(MachineInstruction(int(address, 16), mnemonic, int(target[1], 16) if target else None))
    while found and (found[-1].name == "NOP" or found[-1].target == found[-1].address):
        found.pop()
    return found


def unknown(text: str, code: bytes) -> int:
    """How many instructions of ``code`` nvdisasm left out, which it does with those that it does not know."""
    return len(code) // INSTRUCTION_BYTES - len(_LINE.findall(text))


def _looped(found: Iterable[MachineInstruction]) -> set[int]:
    """The addresses between the target of a backward branch and the branch."""
    return {
        address
        for one in found
        if one.target is not None and one.target < one.address
        for address in range(one.target, one.address + INSTRUCTION_BYTES, INSTRUCTION_BYTES)
    }


def counts(found: list[MachineInstruction]) -> list[tuple[str, int, int, str]]:
    """(mnemonic, how many, how many of them in loops, what it does) of what _COUNTED has, then of all others."""
    looped = _looped(found)
    every = Counter(one.mnemonic for one in found if one.name in _COUNTED)
    in_loops = Counter(one.mnemonic for one in found if one.name in _COUNTED and one.address in looped)
    order = list(_COUNTED)
    named = sorted(every, key=lambda mnemonic: (order.index(mnemonic.partition(".")[0]), mnemonic))
    rows = [(one, every[one], in_loops[one], _COUNTED[one.partition(".")[0]]) for one in named]
    rest = [one for one in found if one.name not in _COUNTED]
    return [*rows, ("others", len(rest), sum(one.address in looped for one in rest), "")]


def commented(text: str, code: bytes) -> str:
    """What nvdisasm wrote of ``code``, below a table of counts as comments."""
    heading = f"// {'instruction':<28} {'all':>6} {'in loops':>9}"
    rows = [
        f"// {name:<28} {every:>6} {looped:>9}  {what}".rstrip()
        for name, every, looped, what in counts(instructions(text))
    ]
    missing = unknown(text, code)
    note = [f"// nvdisasm does not know {missing} instructions, and leaves them out"] if missing else []
    return "\n".join([heading, *rows, *note, "", text.strip("\n")]) + "\n"
