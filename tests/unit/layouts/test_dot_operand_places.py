"""The layout of dot operands: a bijection, rows contiguous, stores of different steps in different banks."""

from itertools import product

import pytest
from triton.backends.spirv.layouts.dot_operand_places import operand_encoding
from triton.backends.spirv.layouts.shared_encodings import shared_layout

SHAPES = [(128, 32), (32, 128), (16, 16), (64, 8), (1, 32), (32, 1), (2, 4)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("k_axis", [0, 1])
@pytest.mark.parametrize("element_bytes", [1, 2, 4, 8])
def test_every_element_has_a_place_of_its_own(shape, k_axis, element_bytes):
    layout = shared_layout(operand_encoding(shape, k_axis, element_bytes), shape)
    offsets = {layout.offset(point) for point in product(*map(range, shape))}
    assert offsets == set(range(shape[0] * shape[1]))


@pytest.mark.parametrize("shape", [(128, 32), (64, 64)])
@pytest.mark.parametrize("element_bytes", [2, 4])
def test_a_vector_of_rows_is_contiguous(shape, element_bytes):
    layout = shared_layout(operand_encoding(shape, 1, element_bytes), shape)
    width = 16 // element_bytes
    for row, k in product(range(0, shape[0], width), range(shape[1])):
        first = layout.offset((row, k))
        assert first % width == 0
        assert [layout.offset((row + lane, k)) for lane in range(width)] == [first + lane for lane in range(width)]


def test_lanes_that_loaded_along_k_store_to_different_banks():
    layout = shared_layout(operand_encoding((128, 32), 1, 4), (128, 32))
    # 32 lanes as 4 rows × 8 vectors of 4 steps: the first element of each vector.
    banks = [layout.offset((lane // 8, lane % 8 * 4)) % 32 for lane in range(32)]
    assert len(set(banks)) == 32
