"""LLVM IR to functions of this process, as far as these tests need it: objects of x86-64 without calls of libraries."""

from __future__ import annotations

import ctypes
import mmap
import struct
from functools import cache
from pathlib import Path
from typing import Any

import triton._C.libtriton as libtriton
from triton._C.libtriton import llvm

#: Processors that have what a host of that name has (tiles.HOSTS), and a flag of /proc/cpuinfo that says so.
PROCESSORS = {"avx2": ("haswell", "avx2"), "avx512": ("skylake-avx512", "avx512f")}


@cache
def _targets() -> None:
    library = ctypes.CDLL(libtriton.__file__)
    for part in ("TargetInfo", "Target", "TargetMC", "AsmPrinter", "AsmParser"):
        getattr(library, f"LLVMInitializeX86{part}")()


def compiled(text: str, host: str) -> bytes:
    """The ELF object of an LLVM module for x86-64."""
    _targets()
    return bytes(
        llvm.translate_to_asm(text, "x86_64-unknown-linux-gnu", PROCESSORS[host][0], "", [], False, True, False)
    )


@cache
def runs(host: str) -> bool:
    """Whether this machine has the instructions of ``host``."""
    return PROCESSORS[host][1] in Path("/proc/cpuinfo").read_text(encoding="utf-8").split()


def loaded(code: bytes, name: str) -> tuple[Any, int]:
    """The object's sections in executable memory, which lives as long as the first value, and a function's address."""
    start, entry_size, count = *struct.unpack_from("<Q", code, 40), *struct.unpack_from("<HH", code, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, start + entry_size * number) for number in range(count)]
    places, end = {}, 0
    for number, section in enumerate(sections):
        if section[2] & 2:  # SHF_ALLOC
            places[number] = end = -(-end // max(section[8], 1)) * max(section[8], 1)
            end += section[5]
    memory = mmap.mmap(-1, end + 1, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for number, place in places.items():
        _, _, _, _, offset, size, *_ = sections[number]
        memory[place : place + size] = code[offset : offset + size]
    table = next(section for section in sections if section[1] == 2)  # SHT_SYMTAB
    names = sections[table[6]][4]
    symbols = [struct.unpack_from("<IBBHQQ", code, table[4] + 24 * number) for number in range(table[5] // 24)]

    def address(symbol: tuple[int, ...]) -> int:
        assert symbol[3] in places, "a call of a library"
        return base + places[symbol[3]] + symbol[4]

    for section in sections:
        if section[1] == 4 and section[7] in places:  # SHT_RELA
            for number in range(section[5] // 24):
                offset, info, addend = struct.unpack_from("<QQq", code, section[4] + 24 * number)
                place, value = places[section[7]] + offset, address(symbols[info >> 32]) + addend
                assert info & 0xFFFFFFFF in (2, 4), info  # R_X86_64_PC32, R_X86_64_PLT32
                memory[place : place + 4] = struct.pack("<i", value - base - place)
    found = next(one for one in symbols if code[names + one[0] :].startswith(name.encode() + b"\0"))
    return memory, address(found)
