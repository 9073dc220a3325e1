"""Linear layouts and the algebra below them, against plain enumeration."""

from functools import reduce
from itertools import product
from operator import xor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from triton.backends.spirv.layouts import gf2
from triton.backends.spirv.layouts.linear import LinearLayout, flatten, unflatten

from .strategies import arbitrary_layouts

vectors = st.lists(st.integers(0, 63), max_size=6)


def span_of(basis: list[int]) -> set[int]:
    return {reduce(xor, chosen, 0) for chosen in product(*[(0, vector) for vector in basis])}


@given(vectors, st.integers(0, 63))
def test_span(basis: list[int], vector: int) -> None:
    span = gf2.Span(basis)
    assert 1 << span.rank == len(span_of(basis)) and span_of(span.basis()) == span_of(basis)
    assert (vector in span) == (vector in span_of(basis))
    solution = span.solve(vector)
    assert (solution is None) == (vector not in span)
    if solution is not None:
        assert gf2.combine(basis, solution) == vector


@given(vectors, vectors)
def test_subspaces(left: list[int], right: list[int]) -> None:
    assert span_of(gf2.intersection(left, right)) == span_of(left) & span_of(right)
    assert span_of(gf2.annihilator(left, 6)) == {f for f in range(64) if not any(gf2.parity(f & v) for v in left)}
    masks = [mask for mask in range(1 << len(left)) if gf2.combine(left, mask) == 0]
    assert span_of(gf2.kernel(left)) == set(masks)


@given(vectors)
def test_inverse_and_dual(columns: list[int]) -> None:
    if gf2.Span(columns).rank == 6:
        inverse = gf2.inverse(columns, 6)
        assert [gf2.combine(columns, inverse[bit]) for bit in range(6)] == [1 << bit for bit in range(6)]
    else:
        with pytest.raises(ValueError, match="no inverse"):
            gf2.inverse(columns, 6)
    if gf2.Span(columns).rank == len(columns):
        found = gf2.dual(columns, 6)
        assert [[gf2.parity(f & v) for f in columns] for v in found] == [
            [int(i == j) for i in range(len(columns))] for j in range(len(columns))
        ]
    else:
        with pytest.raises(ValueError, match="independent"):
            gf2.dual(columns, 6)


@given(st.integers(0, 5), st.integers(0, 2), st.integers(0, 2), st.data())
def test_points_survive_reshape_and_transpose(bits: int, lanes: int, warps: int, data: st.DataObject) -> None:
    layout = data.draw(arbitrary_layouts(bits, lanes, warps))
    shape = (1 << bits // 2, 1, 1 << bits - bits // 2)
    shaped = layout.reshape(shape)
    order = data.draw(st.permutations(range(3)))
    turned = shaped.transpose(order)
    for register, lane, warp in product(*(range(layout.input_size(name)) for name in ("register", "lane", "warp"))):
        at = {"register": register, "lane": lane, "warp": warp}
        point = shaped.apply(**at)
        assert (flatten(point, shape),) == layout.apply(**at)
        assert turned.apply(**at) == tuple(point[dim] for dim in order)
        assert shaped.drop_dim(1).apply(**at) == point[:1] + point[2:]
    assert layout.is_surjective
    for index in range(layout.size):
        place = layout.solve(index)
        assert place is not None and layout.apply_flat(**place) == index
    for place in layout.kernel():
        assert layout.apply_flat(**place) == 0
    free = layout.free_masks()
    kept = [
        at
        for at in product(*(range(layout.input_size(name)) for name in layout.inputs))
        if not any(value & mask for value, mask in zip(at, free.values(), strict=True))
    ]
    images = [layout.apply_flat(**dict(zip(layout.inputs, at, strict=True))) for at in kept]
    assert sorted(images) == list(range(layout.size))


def test_product_and_composition() -> None:
    """Two by four elements a lane, lanes over columns: then the tile read as offsets, column-major."""
    tile = LinearLayout.identity("register", 4, 1, 2) * LinearLayout.identity("register", 2, 0, 2)
    whole = tile * LinearLayout.identity("lane", 8, 1, 2) * LinearLayout.zeros("warp", 2, 2)
    assert whole.shape == (2, 32)
    assert whole.bases == {"register": ((0, 1), (0, 2), (1, 0)), "lane": ((0, 4), (0, 8), (0, 16)), "warp": ((0, 0),)}
    assert whole.apply(register=5, lane=3, warp=1) == (1, 13)
    offsets = LinearLayout({"dim0": [(1,)], "dim1": [(2 << bit,) for bit in range(5)]}, (64,))
    assert whole.compose(offsets).apply(register=5, lane=3) == (1 + 2 * 13,)
    back = offsets.invert()
    assert back.shape == (2, 32)
    assert all(offsets.apply(dim0=back.apply(dim0=n)[0], dim1=back.apply(dim0=n)[1]) == (n,) for n in range(64))
    assert whole.without_zeros("warp").bases["warp"] == ()


def test_layouts_are_values() -> None:
    one, other = (LinearLayout({"register": [(1, 0)], "lane": [(0, 1)]}, (2, 2)) for _ in range(2))
    assert one == other and hash(one) == hash(other) and one != one.transpose((1, 0))
    assert one != LinearLayout({"lane": [(0, 1)], "register": [(1, 0)]}, (2, 2))
    with pytest.raises(AttributeError, match="immutable"):
        one.shape = (4,)
    assert unflatten(5, (2, 4)) == (1, 1)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: LinearLayout({"register": [(2,)]}, (2,)), "outside of shape"),
        (lambda: LinearLayout({"register": [(1, 1)]}, (2,)), "outside of shape"),
        (lambda: LinearLayout({}, (3,)), "not a power of two"),
        (lambda: LinearLayout.from_flat({"register": [4]}, (4,)), "outside of shape"),
        (lambda: LinearLayout.identity("lane", 6), "not a power of two"),
        (lambda: LinearLayout.identity("lane", 4).apply(lane=4), "not below 4"),
        (lambda: LinearLayout.identity("lane", 4).reshape((8,)), "cannot be reshaped"),
        (lambda: LinearLayout.zeros("lane", 4).invert(), "not bijective"),
        (lambda: LinearLayout.identity("lane", 4) * LinearLayout.identity("lane", 4, 0, 2), "rank 1 and 2"),
        (lambda: LinearLayout.identity("lane", 4).compose(LinearLayout.identity("dim0", 8)), "do not fit"),
        (lambda: LinearLayout.identity("lane", 4, 0, 2).transpose((0, 0)), "not a permutation"),
    ],
)
def test_refusals(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]
