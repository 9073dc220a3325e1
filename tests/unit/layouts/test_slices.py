"""Slices of tensors: which registers and invocations hold one, and where they put it."""

from __future__ import annotations

import pytest
from triton.backends.spirv.layouts.buffers import buffer_layout
from triton.backends.spirv.layouts.distributed import distributed_layout
from triton.backends.spirv.layouts.linear import unflatten
from triton.backends.spirv.layouts.slices import slice_numbers, slice_offsets, slice_width
from triton.backends.spirv.ttgir.encodings import BlockedEncoding, SwizzledSharedEncoding
from triton.backends.spirv.ttgir.types import FloatType, MemDescType, TensorType

F32 = FloatType("f32")
ROWS = BlockedEncoding((1, 4), (2, 4), (4, 1), (1, 0))
COLUMNS = BlockedEncoding((4, 1), (4, 2), (1, 4), (0, 1))


@pytest.mark.parametrize("encoding", [ROWS, COLUMNS])
@pytest.mark.parametrize(("dim", "extent"), [(1, 64), (1, 8), (1, 2), (0, 16), (0, 2)])
def test_each_slice_has_each_element_at_its_place(encoding: BlockedEncoding, dim: int, extent: int) -> None:
    whole = TensorType((32, 128), F32, encoding)
    shape = tuple(extent if axis == dim else size for axis, size in enumerate(whole.shape))
    buffer = MemDescType(shape, F32, SwizzledSharedEncoding(1, 1, 1, (1, 0)))
    layout, offsets = distributed_layout(encoding, whole.shape), slice_offsets(whole, buffer, dim)
    numbers, memory = slice_numbers(whole, buffer, dim), buffer_layout(buffer).offsets
    width = slice_width(whole, buffer, dim, 4)
    found = set()
    for warp in range(4):
        for lane in range(8):
            own = unflatten(layout.apply_flat(lane=lane, warp=warp), whole.shape)[dim] // extent
            for register, number in enumerate(numbers):
                point = unflatten(layout.apply_flat(register=register, lane=lane, warp=warp), whole.shape)
                assert point[dim] // extent == own ^ number
                within = {f"dim{axis}": c % extent if axis == dim else c for axis, c in enumerate(point)}
                offset = offsets.apply_flat(register=register, lane=lane, warp=warp)
                assert offset == memory.apply_flat(**within)
                first = register // width * width
                assert numbers[first] == number
                assert offset == offsets.apply_flat(register=first, lane=lane, warp=warp) + register - first
                found.add((own ^ number, offset))
    assert len(found) == 32 * 128


def test_runs_are_written_together() -> None:
    tensor = TensorType((32, 128), F32, ROWS)
    plain = SwizzledSharedEncoding(1, 1, 1, (1, 0))
    assert [slice_width(tensor, MemDescType((32, steps), F32, plain), 1, 4) for steps in (16, 4, 2)] == [4, 4, 2]
