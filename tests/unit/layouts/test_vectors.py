"""Widths of memory accesses."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from triton.backends.spirv.analysis.axis_info import AxisInfo
from triton.backends.spirv.layouts.distributed import distributed_layout
from triton.backends.spirv.layouts.linear import LinearLayout, unflatten
from triton.backends.spirv.layouts.vectors import access_width, contiguous_registers
from triton.backends.spirv.ttgir.encodings import BlockedEncoding, SliceEncoding

from .strategies import arbitrary_layouts, blocked_encodings, shapes
from .test_conversion import contents

LINE = distributed_layout(BlockedEncoding((8,), (32,), (4,), (0,)), (4096,))


def info(contiguity: int, divisibility: int, constancy: int = 1) -> AxisInfo:
    return AxisInfo((contiguity,), (divisibility,), (constancy,))


@pytest.mark.parametrize(
    "pointer, mask, bits, width",
    [
        (info(1024, 16), None, 32, 4),
        (info(1024, 16), None, 16, 8),
        (info(1024, 64), None, 8, 8),  # eight registers in a row
        (info(1024, 8), None, 32, 2),
        (info(1024, 2), None, 32, 1),
        (info(2, 16), None, 32, 2),
        (info(1, 16, 64), None, 32, 1),
        (info(1024, 16), info(1, 1, 2), 32, 2),
        (info(1024, 16), info(1, 1, 1), 32, 1),
        (info(1024, 1 << 62), info(1, 1, 4096), 64, 2),
    ],
)
def test_access_width(pointer: AxisInfo, mask: AxisInfo | None, bits: int, width: int) -> None:
    assert access_width(LINE, pointer, mask, bits, 128) == width


def test_the_contiguous_dimension_is_that_of_the_registers() -> None:
    columns = distributed_layout(BlockedEncoding((4, 1), (4, 8), (1, 4), (0, 1)), (64, 64))
    assert contiguous_registers(columns) == (0, 4)
    pointer = AxisInfo((64, 1), (16, 16), (1, 1))
    assert access_width(columns, pointer, None, 32, 128) == 4
    assert access_width(columns, AxisInfo((1, 64), (16, 16), (1, 1)), None, 32, 128) == 1
    rows = distributed_layout(SliceEncoding(0, BlockedEncoding((1, 4), (4, 8), (4, 1), (1, 0))), (64,))
    assert contiguous_registers(rows) == (0, 4)


def test_registers_of_the_whole_tensor() -> None:
    whole = distributed_layout(BlockedEncoding((4,), (32,), (4,), (0,)), (2,))
    assert contiguous_registers(whole) == (0, 2)
    assert contiguous_registers(distributed_layout(BlockedEncoding((1,), (32,), (4,), (0,)), (128,))) == (0, 1)


def check(layout: LinearLayout) -> None:
    dim, count = contiguous_registers(layout)
    for points in contents(layout).values():
        places = [unflatten(point, layout.shape) for point in points]
        for first in range(0, len(places), count):
            start = places[first]
            assert start[dim] % count == 0
            for part in range(count):
                assert places[first + part] == start[:dim] + (start[dim] + part,) + start[dim + 1 :]


@settings(deadline=None)
@given(st.data(), st.integers(1, 3))
def test_blocked(data: st.DataObject, rank: int) -> None:
    check(distributed_layout(data.draw(blocked_encodings(rank)), data.draw(shapes(rank, rank, 4))))


@settings(deadline=None)
@given(st.data(), st.integers(0, 6), st.integers(0, 3), st.integers(0, 2))
def test_arbitrary(data: st.DataObject, bits: int, lanes: int, warps: int) -> None:
    layout = data.draw(arbitrary_layouts(bits, lanes, warps))
    check(layout)
    check(layout.reshape((1 << bits // 2, 1 << bits - bits // 2)))
