"""The report buffer, through which a kernel reports failures, printed values, accesses out of bounds, and races.

Little-endian. It begins with a header. After it come the parts of the kinds of reports that need more (``PARTS``).
``docs/internals/abi.md`` has the tables.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

#: Words of the header: 1 + the number of the first failure's message; how many records there were to write; how many
#: elements were out of bounds, modulo 2³².
FAILURE, CURSOR, OUTSIDE = 0, 1, 2
HEADER = struct.Struct("<4I")

#: A record: message, operand, program id x y z, row-major index of the element, its bits (low word, high word).
RECORD = struct.Struct("<8I")
#: Records that the buffer holds; what comes after them is counted but lost.
RECORDS = 1 << 15

#: Where kernels with checks of bounds have the first element outside: 1 + its message, so that this says whether there
#: was one where the count has wrapped to zero, and the program id x, y, z.
FIRST_OUTSIDE = struct.Struct("<4I")
FIRST_OUTSIDE_AT = HEADER.size
#: Bytes that loads out of bounds read, all zero, and bytes that stores out of bounds go to: of any element.
ZERO_AT = FIRST_OUTSIDE_AT + FIRST_OUTSIDE.size
SPARE_AT = ZERO_AT + 8
#: A row an argument: bytes before its address, bytes in all, and how far the first one outside was from the address.
ROWS_AT = SPARE_AT + 8
ROW = struct.Struct("<QQq")
BEFORE, SPAN, DISTANCE = 0, 8, 16


def bounds_bytes(rows: int) -> int:
    """Bytes of the part for bounds, for so many arguments."""
    return ROWS_AT - HEADER.size + rows * ROW.size


#: In kernels with checks of races: the address of the memory in which they note accesses, zero at first. Then words:
#: how many accesses raced, modulo 2³²; of the first 1 + its message, 1 + the message of the other access, the number of
#: its granule, its invocation and the other's, and the program id x, y, z.
RACES = struct.Struct("<Q9I")
#: The numbers of those words.
RACE_COUNT, RACE_ACCESS = 2, 3
#: Bytes of device memory that a launch has for noting accesses, at most, if one program needs no more.
SHADOW_BYTES = 64 << 20

#: In kernels with assertions, of the first one that failed: program id x, y, z, row-major index of the element, and the
#: bits of the value that was compared (low word, high word), if its message has a ``compared``.
ASSERTED = struct.Struct("<6I")

#: In kernels that are watched for races between programs: how many accesses raced, the kernel's handle, the address,
#: and the instructions of the later and of the earlier access; then words: what the race is (RACE_KINDS), the bytes of
#: the access, the kinds of both (ACCESSES), and the program ids x, y, z of both. After it come the tensors' addresses.
PROGRAM_RACE = struct.Struct("<5Q10I")
#: What a race is, and how an address is accessed, by their numbers (native/cpu/program_races.h).
RACE_KINDS = ("race", "beside atomic", "equal values")
ACCESSES = ("reads", "writes", "updates", "atomically reads", "atomically writes", "exchanges")

#: Kind of message → bytes of the part that the buffer has for it. Parts follow the header in the order in which the
#: first messages of their kinds are numbered; that of prints is the last.
PARTS: Mapping[str, Callable[[Mapping[str, Any]], int]] = {
    "bounds": lambda facts: bounds_bytes(len(facts["arguments"])),
    "races": lambda _: RACES.size,
    "asserted": lambda _: ASSERTED.size,
    "program_races": lambda facts: PROGRAM_RACE.size + 8 * len(facts["arguments"]),
    "print": lambda _: RECORDS * RECORD.size,
}


def places(messages: Iterable[Mapping[str, Any]]) -> tuple[dict[str, int], int]:
    """Kind → the byte at which its part begins, in a kernel with these messages; and bytes in all."""
    found: dict[str, int] = {}
    end = HEADER.size
    for message in messages:
        kind = message["kind"]
        if kind in PARTS and kind not in found:
            found[kind] = end
            end += PARTS[kind](message)
    return found, end
