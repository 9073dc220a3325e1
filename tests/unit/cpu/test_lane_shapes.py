"""How values differ between lanes, where sums stay within their type and where they pass its end."""

import pytest
from triton.backends.spirv.cpu.lane_shapes import LaneShape, added, of_lanes, scaled, uniform

LIMITS = [(1 << 31) - 1, -(1 << 31), 0, 1, -1]


def wrapped(value: int, width: int) -> int:
    return (value + (1 << width - 1)) % (1 << width) - (1 << width - 1)


@pytest.mark.parametrize("step", [1, 1 << 20, 1 << 28, -(1 << 29)])
@pytest.mark.parametrize("first", LIMITS)
def test_sums_of_what_is_known(first: int, step: int) -> None:
    lanes = tuple(wrapped(first + step * lane, 32) for lane in range(16))
    a = of_lanes(tuple(first + step * lane for lane in range(16)), 32)
    assert a == LaneShape(False, lanes, 64)
    for other in LIMITS:
        b = of_lanes((other,) * 16, 32)
        assert added(a, b, 32).offsets == tuple(wrapped(value + other, 32) for value in lanes)
        assert added(a, b, 32, -1).offsets == tuple(wrapped(value - other, 32) for value in lanes)
    assert scaled(a, 12, 32).offsets == tuple(wrapped(12 * value, 32) for value in lanes)


@pytest.mark.parametrize("step", [1, 1 << 28, -(1 << 29)])
def test_sums_of_what_is_shared(step: int) -> None:
    a = added(uniform(16, 4), of_lanes(tuple(24 + step * lane for lane in range(16)), 32), 32)
    assert a == LaneShape(True, tuple(wrapped(step * lane, 32) for lane in range(16)), 3)


def test_numbers_of_one_bit() -> None:
    assert of_lanes((0, 1, 2, 3), 1).offsets == (0, 1, 0, 1)
