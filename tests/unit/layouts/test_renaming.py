"""Registers of operands that are broadcast, expanded and transposed: the same elements, in every lane and warp."""

import itertools

import pytest
from triton.backends.spirv.layouts.linear import LinearLayout, flatten
from triton.backends.spirv.layouts.renaming import broadcast, expanded, renamed_registers, transposed

#: 8×16 elements: registers along both dimensions, one of which is a copy.
WHOLE = LinearLayout(
    {"register": [(0, 1), (4, 0), (0, 0)], "lane": [(0, 2), (1, 0), (0, 4)], "warp": [(2, 0), (0, 8)]}, (8, 16)
)


def without(layout: LinearLayout, dim: int) -> LinearLayout:
    """The operand that is broadcast along a dimension to ``layout``."""
    bases = {
        name: [tuple(0 if axis == dim else c for axis, c in enumerate(point)) for point in points]
        for name, points in layout.bases.items()
    }
    return LinearLayout(bases, [1 if axis == dim else extent for axis, extent in enumerate(layout.shape)])


def dropped(layout: LinearLayout, dim: int) -> LinearLayout:
    """The operand that a dimension of extent 1 was added to."""
    bases = {name: [(*point[:dim], *point[dim + 1 :]) for point in points] for name, points in layout.bases.items()}
    return LinearLayout(bases, (*layout.shape[:dim], *layout.shape[dim + 1 :]))


def turned(layout: LinearLayout) -> LinearLayout:
    """The transposed tensor."""
    bases = {name: [point[::-1] for point in points] for name, points in layout.bases.items()}
    return LinearLayout(bases, layout.shape[::-1])


CASES = [
    *((without(WHOLE, dim), WHOLE, broadcast(without(WHOLE, dim).shape)) for dim in (0, 1)),
    *((dropped(without(WHOLE, dim), dim), without(WHOLE, dim), expanded(1, dim)) for dim in (0, 1)),
    (WHOLE, turned(WHOLE), transposed((1, 0))),
]


def element(layout: LinearLayout, register: int, lane: int, warp: int) -> tuple[int, ...]:
    point = [0] * layout.rank
    for name, number in (("register", register), ("lane", lane), ("warp", warp)):
        for bit, basis in enumerate(layout.bases[name]):
            if number >> bit & 1:
                point = [a ^ b for a, b in zip(point, basis, strict=True)]
    return tuple(point)


@pytest.mark.parametrize(("source", "target", "dimensions"), CASES)
def test_the_register_holds_the_element_that_the_result_has(source, target, dimensions) -> None:
    registers = renamed_registers(source, target, dimensions)
    assert len(registers) == 1 << len(target.bases["register"])
    for register, lane, warp in itertools.product(range(len(registers)), range(8), range(4)):
        point = element(target, register, lane, warp)
        wanted = [0 if dim is None else point[dim] for dim in dimensions]
        found = element(source, registers[register], lane, warp)
        assert flatten(wanted, source.shape) == flatten(found, source.shape)


@pytest.mark.parametrize(
    "source",
    [
        {"register": [], "lane": [(0,)], "warp": [(2,)]},
        {"register": [(1,)], "lane": [(1,)], "warp": [(2,)]},
        {"register": [(1,), (2,)], "lane": [(0,)], "warp": [(1,)]},
    ],
    ids=["no register", "other lanes", "other warps"],
)
def test_an_element_that_is_held_elsewhere_is_an_error(source: dict[str, list[tuple[int, ...]]]) -> None:
    target = LinearLayout({"register": [(1,)], "lane": [(0,)], "warp": [(2,)]}, (4,))
    with pytest.raises(KeyError):
        renamed_registers(LinearLayout(source, (4,)), target, (0,))
