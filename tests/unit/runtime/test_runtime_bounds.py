"""The memory that a tensor's elements lie in, as kernels that check their accesses are told."""

from typing import Any, cast

import numpy as np
import pytest
import torch
import triton
from triton.backends.spirv.abi.launch_arguments import FIRST_ARGUMENT
from triton.backends.spirv.abi.report_buffer import places
from triton.backends.spirv.runtime import array
from triton.backends.spirv.runtime.context import Context
from triton.backends.spirv.runtime.memory.host_memory import Loan
from triton.backends.spirv.runtime.reports.outside import Extent, OutOfBounds, OutsideAccesses, extent

BYTES = torch.zeros(4, 8, dtype=torch.int8)
FIELDS = np.zeros(6, [("a", np.float32), ("b", np.float16)])["a"]


@pytest.mark.parametrize(
    ("tensor", "before", "size", "elements"),
    [
        (torch.zeros(10), 0, 40, 10),
        (torch.zeros(10)[3:5], 0, 8, 2),
        (BYTES[:, ::2], 0, 31, 16),
        (torch.zeros(4, 8).T, 0, 128, 32),
        (torch.zeros(1).expand(7, 7), 0, 4, 49),
        (torch.zeros(()), 0, 4, 1),
        (torch.zeros(3, 0), 0, 0, 0),
        (triton.reinterpret(BYTES, triton.language.float8e5), 0, 32, 32),
        (array(np.zeros((3, 5))), 0, 120, 15),
        (array(np.zeros((3, 5))[::-1]), 80, 120, 15),
        (array(np.zeros((3, 5))[::-1, ::-2]), 112, 120, 9),
        (array(FIELDS), 0, 34, 6),
        (array(FIELDS[::-1]), 30, 34, 6),
    ],
)
def test_extent(tensor: Any, before: int, size: int, elements: int) -> None:
    assert extent(tensor) == Extent(before, size, elements, tensor.element_size())


def test_what_does_not_tell_its_size_has_no_bounds() -> None:
    class Address:
        def data_ptr(self) -> int:
            return 4096

    for argument in (4096, Address(), None):
        assert extent(argument) == Extent(1 << 63, (1 << 64) - 1, 0, 1)


def test_description_tells_indices_where_they_are_not_those_of_the_elements() -> None:
    assert extent(torch.zeros(10)).describe() == "it has 10 elements"
    assert extent(torch.zeros(4, 8)[:, 2:4]).describe() == "it has 8 elements, at indices 0 to 25"
    assert extent(array(np.zeros(10)[::-1])).describe() == "it has 10 elements, at indices -9 to 0"


def test_rows_are_those_of_the_arguments_that_the_kernel_names(caplog: pytest.LogCaptureFixture) -> None:
    entries = [((0,), "x", "*fp32"), ((1,), "n", "i32"), ((2, 1), "pair[1]", "*fp16"), ((3,), "buffer", "u64")]
    messages = [
        {"kind": "bounds", "arguments": [0, 2], "unchecked": 3},
        {"kind": "access", "file": "f.py", "line": 3, "access": "load", "rows": [1], "bytes": 2, "callers": []},
    ]
    assert places(messages) == ({"bounds": 16}, 16 + 32 + 2 * 24)
    table = OutsideAccesses("k", messages, entries, 16)
    arguments = [torch.zeros(4), 7, (None, torch.zeros(6, dtype=torch.float16))]
    extents = table.launched(cast(Context, None), Loan(), [*[None] * FIRST_ARGUMENT, *arguments])
    assert extents == [Extent(0, 16, 4, 4), Extent(0, 12, 6, 2)]
    rows = np.frombuffer(table.pack(extents), np.uint64)
    assert rows.tolist() == [0] * 4 + [0, 16, 0] + [0, 12, 0]
    table.read(bytes(16) + table.pack(extents), extents)
    # The count is modulo 2³²; that there was an access outside is the word of the first one's message, 1 + its number.
    wrapped = np.frombuffer(bytes(16) + table.pack(extents), np.uint32).copy()
    wrapped[4] = 2
    with pytest.raises(OutOfBounds, match="4294967296 such accesses") as caught:
        table.read(wrapped.tobytes(), extents)
    assert (caught.value.count, caught.value.argument) == (1 << 32, "pair[1]")
    assert "kernel 'k': the bounds of 3 of its memory operations are not checked" in caplog.text
