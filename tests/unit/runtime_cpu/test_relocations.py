"""Relocations of both machines: each field is decoded again, from objects that are made by hand."""

import struct
from dataclasses import dataclass

import pytest
from triton.backends.spirv.runtime.native_module import native

_native = native()

BASE = 0x5555_4000_0000
MACHINES = {"x86-64": 62, "aarch64": 183}


@dataclass
class Relocation:
    number: int
    offset: int
    symbol: int
    addend: int = 0


#: Symbols of the objects below: a place in the code, one in the constants, and a function outside.
CODE, CONSTANT, OUTSIDE = 1, 2, 3
AT_CODE, AT_CONSTANT = 0x40, 0x38


def made(machine: str, code: bytes, relocations: list[Relocation]) -> bytes:
    """An object with the sections .text and .rodata, three symbols, and relocations of .text."""
    names = b"\0.text\0.rodata\0.rela.text\0.symtab\0.strtab\0"
    strings = b"\0here\0there\0fmod\0"
    symbols = struct.pack("<IBBHQQ", 0, 0, 0, 0, 0, 0)
    symbols += struct.pack("<IBBHQQ", 1, 0x12, 0, 1, AT_CODE, 0)  # a global function
    symbols += struct.pack("<IBBHQQ", 6, 0x11, 0, 2, AT_CONSTANT, 0)  # a global object
    symbols += struct.pack("<IBBHQQ", 12, 0x10, 0, 0, 0, 0)
    table = b"".join(struct.pack("<QQq", r.offset, r.symbol << 32 | r.number, r.addend) for r in relocations)
    contents = [
        (code, 1, 6, 0, 0),
        (bytes(64), 1, 2, 0, 0),
        (table, 4, 0, 4, 1),
        (symbols, 2, 0, 5, 1),
        (strings, 3, 0, 0, 0),
    ]
    file = bytearray(64)
    headers = [bytes(64)]
    for (content, kind, flags, link, info), name in zip(
        contents, (b".text", b".rodata", b".rela.text", b".symtab", b".strtab"), strict=True
    ):
        at = len(file)
        file += content + bytes(-len(content) % 16)
        headers.append(
            struct.pack("<IIQQQQIIQQ", names.index(name + b"\0"), kind, flags, 0, at, len(content), link, info, 16, 0)
        )
    at = len(file)
    file += names + bytes(-len(names) % 16)
    headers.append(struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, at, len(names), 0, 0, 1, 0))
    struct.pack_into(
        "<4sBBBxQHHIQQQIHHHHHH",
        file,
        0,
        b"\x7fELF",
        2,
        1,
        1,
        0,
        1,
        MACHINES[machine],
        1,
        0,
        0,
        len(file),
        0,
        64,
        0,
        0,
        64,
        7,
        6,
    )
    return bytes(file) + b"".join(headers)


def linked(machine: str, word: int, relocation: Relocation, width: int = 4) -> tuple[int, bytes]:
    """The field after linking, and the whole image."""
    code = bytearray(128)
    code[relocation.offset : relocation.offset + width] = word.to_bytes(width, "little")
    memory, functions = _native.link_object(made(machine, bytes(code), [relocation]), machine, BASE)
    assert functions == {"here": AT_CODE}
    return int.from_bytes(memory[relocation.offset : relocation.offset + width], "little"), memory


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


#: The constants begin on the page behind the code.
THERE = BASE + 0x1000 + AT_CONSTANT


def test_absolute_and_relative_words_of_x86() -> None:
    assert linked("x86-64", 0, Relocation(1, 8, CONSTANT, 5), 8)[0] == THERE + 5  # R_X86_64_64
    assert signed(linked("x86-64", 0, Relocation(24, 8, CODE, 5), 8)[0], 64) == AT_CODE + 5 - 8  # PC64
    for number in (2, 4):  # PC32, PLT32
        found = signed(linked("x86-64", 0xFFFF_FFFF, Relocation(number, 0x20, CONSTANT, -4))[0], 32)
        assert BASE + 0x20 + found == THERE - 4


@pytest.mark.parametrize("number", [2, 4])
def test_calls_of_functions_outside_go_through_a_stub_on_x86(number: int) -> None:
    field, memory = linked("x86-64", 0, Relocation(number, 0x20, OUTSIDE, -4))
    stub = memory[0x20 + 4 + signed(field, 32) :][:12]
    assert (stub[:2], stub[10:]) == (b"\x48\xb8", b"\xff\xe0") and int.from_bytes(stub[2:10], "little") != 0


@pytest.mark.parametrize("number", [9, 41, 42])
def test_the_table_of_addresses_of_x86(number: int) -> None:
    for symbol, address in ((CONSTANT, THERE), (CODE, BASE + AT_CODE)):
        field, memory = linked("x86-64", 0, Relocation(number, 0x20, symbol, -4))
        entry = 0x20 + 4 + signed(field, 32)
        assert entry >= 0x1000 and int.from_bytes(memory[entry : entry + 8], "little") == address


@pytest.mark.parametrize("number", [10, 11])
def test_an_address_that_does_not_fit_is_an_error(number: int) -> None:
    with pytest.raises(ValueError, match="R_X86_64_32S? of 'there' in section '.text' does not reach its target"):
        linked("x86-64", 0, Relocation(number, 0x20, CONSTANT))


def test_words_of_aarch64() -> None:
    assert linked("aarch64", 0, Relocation(257, 8, CONSTANT, 5), 8)[0] == THERE + 5  # ABS64
    assert signed(linked("aarch64", 0, Relocation(260, 8, CODE, 5), 8)[0], 64) == AT_CODE + 5 - 8  # PREL64
    assert signed(linked("aarch64", 0, Relocation(261, 8, CODE, 5))[0], 32) == AT_CODE + 5 - 8  # PREL32
    with pytest.raises(ValueError, match="R_AARCH64_ABS32"):
        linked("aarch64", 0, Relocation(258, 8, CONSTANT))


def test_an_address_in_two_steps_on_aarch64() -> None:
    adrp, add = 0x9000_0003, 0x9100_0063  # adrp x3; add x3, x3
    field, _ = linked("aarch64", adrp, Relocation(275, 0x24, CONSTANT))
    assert field & 0x9F00_001F == adrp
    pages = signed((field >> 5 & 0x7FFFF) << 2 | field >> 29 & 3, 21)
    assert ((BASE + 0x24) & ~0xFFF) + (pages << 12) == THERE & ~0xFFF
    field, _ = linked("aarch64", add, Relocation(277, 0x24, CONSTANT))
    assert field & ~(0xFFF << 10) == add and field >> 10 & 0xFFF == THERE & 0xFFF
    adr = 0x1000_0003
    field, _ = linked("aarch64", adr, Relocation(274, 0x24, CONSTANT, 1))
    assert BASE + 0x24 + signed((field >> 5 & 0x7FFFF) << 2 | field >> 29 & 3, 21) == THERE + 1


@pytest.mark.parametrize(("number", "shift"), [(278, 0), (284, 1), (285, 2), (286, 3), (299, 4)])
def test_loads_of_aarch64_by_width(number: int, shift: int) -> None:
    load = 0x3940_0062 | shift << 30 & 0xFFFF_FFFF
    addend = 8  # AT_CONSTANT + 8 is a multiple of 64
    field, _ = linked("aarch64", load, Relocation(number, 0x24, CONSTANT, addend))
    assert field & ~(0xFFF << 10) == load and (field >> 10 & 0xFFF) << shift == (THERE + addend) & 0xFFF
    if shift:
        with pytest.raises(ValueError, match="LDST.* does not reach its target"):
            linked("aarch64", load, Relocation(number, 0x24, CONSTANT, addend + 1))


@pytest.mark.parametrize(
    ("number", "word", "first", "bits"),
    [
        (283, 0x9400_0000, 0, 26),
        (282, 0x1400_0000, 0, 26),
        (280, 0x5400_0001, 5, 19),
        (279, 0x3600_0002, 5, 14),
        (273, 0x5800_0003, 5, 19),
    ],
)
def test_branches_of_aarch64(number: int, word: int, first: int, bits: int) -> None:
    mask = ((1 << bits) - 1) << first
    field, _ = linked("aarch64", word, Relocation(number, 0x64, CODE))
    assert field & ~mask == word and 0x64 + 4 * signed((field & mask) >> first, bits) == AT_CODE
    for addend in (2, (1 << (bits + 1)) + 0x64 - AT_CODE, -(1 << (bits + 2))):
        with pytest.raises(ValueError, match="does not reach its target"):
            linked("aarch64", word, Relocation(number, 0x64, CODE, addend))


def test_calls_of_functions_outside_go_through_a_stub_on_aarch64() -> None:
    field, memory = linked("aarch64", 0x9400_0000, Relocation(283, 0x20, OUTSIDE))
    stub = memory[0x20 + 4 * (field & 0x3FF_FFFF) :][:16]
    ldr, br, target = struct.unpack("<IIQ", stub)
    assert (ldr, br) == (0x5800_0050, 0xD61F_0200) and target != 0  # ldr x16, .+8; br x16


def test_the_table_of_addresses_of_aarch64() -> None:
    page, memory = linked("aarch64", 0x9000_0003, Relocation(311, 0x24, OUTSIDE))
    low, again = linked("aarch64", 0xF940_0063, Relocation(312, 0x24, OUTSIDE))
    at = (signed((page >> 5 & 0x7FFFF) << 2 | page >> 29 & 3, 21) << 12) + ((low >> 10 & 0xFFF) << 3)
    assert memory[at : at + 8] == again[at : at + 8] != bytes(8)


def test_addresses_by_four_moves_on_aarch64() -> None:
    found = 0
    for index, number in enumerate((264, 266, 268, 269)):  # MOVW_UABS_G0_NC, G1_NC, G2_NC, G3
        field, _ = linked("aarch64", 0xF280_0003, Relocation(number, 0x24, CONSTANT))
        assert field & ~(0xFFFF << 5) == 0xF280_0003
        found |= (field >> 5 & 0xFFFF) << (16 * index)
    assert found == THERE
    for number in (263, 265):
        with pytest.raises(ValueError, match="does not reach its target"):
            linked("aarch64", 0xF280_0003, Relocation(number, 0x24, CONSTANT))


@pytest.mark.parametrize(("machine", "number"), [("x86-64", 8), ("x86-64", 36), ("aarch64", 541), ("aarch64", 1027)])
def test_other_relocations_are_refused_by_number(machine: str, number: int) -> None:
    with pytest.raises(ValueError, match=f"relocation type {number} in section '.text' is not supported"):
        linked(machine, 0, Relocation(number, 0x20, CONSTANT))
