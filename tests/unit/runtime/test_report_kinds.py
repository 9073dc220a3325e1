"""Kinds of reports: what writes a part of the report buffer, and what reads it, agree on where it is."""

from functools import partial

import pytest
from triton.backends.spirv.abi.report_buffer import HEADER, PARTS, RECORD, RECORDS, places
from triton.backends.spirv.runtime.errors import raise_first
from triton.backends.spirv.runtime.reports.failures import FAILURES, Failures
from triton.backends.spirv.runtime.reports.kinds import READERS

RACES = {"kind": "races", "bytes": 8, "programs": 1, "granule": 4, "pools": [0]}
BOUNDS = {"kind": "bounds", "arguments": [0], "unchecked": 0}
PRINT = {"kind": "print", "operands": []}


def test_every_part_has_a_reader() -> None:
    assert READERS.keys() == PARTS.keys()


def test_parts_follow_the_header_in_the_order_of_their_messages() -> None:
    messages = [BOUNDS, RACES, {"kind": "access"}, PRINT, {"kind": "loop"}, PRINT]
    assert places(messages) == ({"bounds": 16, "races": 16 + 56, "print": 16 + 56 + 44}, 116 + RECORDS * RECORD.size)
    assert places([{"kind": "assert"}]) == ({}, HEADER.size)


@pytest.mark.parametrize("kind", FAILURES)
def test_a_failure_names_its_kernel_and_place(kind: str) -> None:
    messages = [{"kind": "access"}, {"kind": kind, "file": "f.py", "line": 3, "text": "{a} and {0}"}]
    reader = Failures("k", messages, [], 0)
    reader.read(HEADER.pack(0, 0, 0, 0), None)
    with pytest.raises(FAILURES[kind][0], match=r"^f\.py:3: kernel 'k': ") as caught:
        reader.read(HEADER.pack(2, 0, 0, 0), None)
    assert kind != "assert" or str(caught.value).endswith("assertion failed: {a} and {0}")


def test_the_first_error_is_raised_once_all_have_read() -> None:
    def failing(number: int) -> None:
        said.append(number)
        if number:
            error = RuntimeError(f"error {number}")
            error.add_note(f"note {number}")
            raise error

    said: list[int] = []
    with pytest.raises(RuntimeError, match="error 1") as caught:
        raise_first(partial(failing, number) for number in range(3))
    assert said == [0, 1, 2] and caught.value.__notes__ == ["note 1", "error 2", "note 2"]
    raise_first([])
