"""Atomic operations on buffers in shared memory, in Gluon kernels, against NumPy."""

import numpy as np
import pytest
import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from tests.device.helpers import device_capabilities

LANES = device_capabilities().subgroup_size
RNG = np.random.default_rng(8)
SIZE, BINS = 256, 32


@gluon.jit
def scatter(bins, values, at, out, old, limit, KIND: gl.constexpr, SWIZZLED: gl.constexpr, LANES: gl.constexpr):
    """Each value goes to its place in a buffer that begins as ``bins``; those at ``limit`` and above are left out."""
    wide: gl.constexpr = gl.BlockedLayout([2], [LANES], [4], [0])
    i = gl.arange(0, 256, layout=wide)
    j = gl.arange(0, 32, layout=wide)
    layout: gl.constexpr = gl.SwizzledSharedLayout(4 if SWIZZLED else 1, 1, 1, [0])
    room = gl.allocate_shared_memory(bins.dtype.element_ty, [32], layout, gl.load(bins + j))
    value, place = gl.load(values + i), gl.load(at + i)
    if KIND == "add":
        before = room.atomic_scatter_add(value, place, 0, mask=i < limit)
    elif KIND == "max":
        before = room.atomic_scatter_max(value, place, 0, mask=i < limit)
    elif KIND == "min":
        before = room.atomic_scatter_min(value, place, 0, mask=i < limit)
    elif KIND == "and":
        before = room.atomic_scatter_and(value, place, 0, mask=i < limit)
    elif KIND == "or":
        before = room.atomic_scatter_or(value, place, 0, mask=i < limit)
    elif KIND == "xor":
        before = room.atomic_scatter_xor(value, place, 0, mask=i < limit)
    else:
        before = room.atomic_scatter_xchg(value, place, 0, mask=i < limit)
    gl.store(old + i, before, mask=i < limit)
    gl.store(out + j, room.load(wide))


NUMPY = {
    "add": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@pytest.mark.parametrize(
    ("kind", "name"), [*((kind, "int32") for kind in NUMPY), ("max", "uint32"), ("min", "uint32"), ("add", "float32")]
)
def test_many_lanes_update_the_same_elements(kind: str, name: str) -> None:
    limit = SIZE - 5
    bins, values = (RNG.integers(0 if name == "uint32" else -999, 3_000_000_000 if name == "uint32" else 999, size)
                    .astype(name) for size in (BINS, SIZE))  # fmt: skip
    places = RNG.integers(0, BINS, SIZE).astype(np.int32)
    out, old = (torch.zeros(size, dtype=getattr(torch, name)) for size in (BINS, SIZE))
    given = [torch.from_numpy(array) for array in (bins, values, places)]
    scatter[(1,)](*given, out, old, limit, KIND=kind, SWIZZLED=False, LANES=LANES)
    expected = bins.copy()
    NUMPY[kind].at(expected, places[:limit], values[:limit])
    np.testing.assert_array_equal(out.numpy(), expected)
    assert not old[limit:].numpy().any()
    if kind == "add":  # in some order each value was added to what was there before it
        for place in range(BINS):
            (mine,) = np.nonzero(places[:limit] == place)
            after = np.append(old.numpy()[mine], out.numpy()[place])
            steps = np.append(old.numpy()[mine] + values[mine], bins[place])
            np.testing.assert_array_equal(np.sort(after), np.sort(steps))


@pytest.mark.parametrize("name", ["int32", "float32"])
def test_an_exchange_gives_what_was_there(name: str) -> None:
    bins, values = (RNG.integers(-999, 999, size).astype(name) for size in (BINS, SIZE))
    places = RNG.integers(0, BINS, SIZE).astype(np.int32)
    out, old = (torch.zeros(size, dtype=getattr(torch, name)) for size in (BINS, SIZE))
    given = [torch.from_numpy(array) for array in (bins, values, places)]
    scatter[(1,)](*given, out, old, SIZE, KIND="xchg", SWIZZLED=True, LANES=LANES)
    for place in range(BINS):
        mine = places == place
        seen = np.append(old.numpy()[mine], out.numpy()[place])
        np.testing.assert_array_equal(np.sort(seen), np.sort(np.append(values[mine], bins[place])))


@gluon.jit
def rows(values, at, out, old, LANES: gl.constexpr):
    """A count for each row and column of a matrix, by a layout whose lanes hold copies."""
    tile: gl.constexpr = gl.BlockedLayout([1, 1], [LANES, 1], [4, 1], [0, 1])
    i = gl.arange(0, 16, layout=gl.SliceLayout(1, tile))[:, None]
    j = gl.arange(0, 4, layout=gl.SliceLayout(0, tile))[None, :]
    room = gl.allocate_shared_memory(gl.int32, [16, 8], gl.SwizzledSharedLayout(1, 1, 1, [1, 0]))
    k = gl.arange(0, 8, layout=gl.SliceLayout(0, tile))[None, :]
    room.store(gl.full([16, 8], 0, gl.int32, layout=tile))
    before = room.atomic_scatter_add(gl.load(values + i * 4 + j), gl.load(at + i * 4 + j), 1)
    again = room.atomic_scatter_add(before * 0 + 1, gl.load(at + i * 4 + j), 1)
    gl.store(old + i * 4 + j, again)
    gl.store(out + i * 8 + k, room.load(tile))


def test_rows_of_a_matrix_with_copies_in_other_lanes() -> None:
    values, at = RNG.integers(-50, 50, (16, 4)).astype(np.int32), np.argsort(RNG.random((16, 8)), 1)[:, :4]
    out, old = torch.zeros((16, 8), dtype=torch.int32), torch.zeros((16, 4), dtype=torch.int32)
    rows[(1,)](torch.from_numpy(values), torch.from_numpy(at.astype(np.int32)), out, old, LANES=LANES)
    expected = np.zeros((16, 8), np.int32)
    np.put_along_axis(expected, at, values + 1, 1)
    np.testing.assert_array_equal(out.numpy(), expected)
    np.testing.assert_array_equal(old.numpy(), values)


@gluon.jit
def narrow(out, LANES: gl.constexpr):
    wide: gl.constexpr = gl.BlockedLayout([1], [LANES], [4], [0])
    i = gl.arange(0, 32, layout=wide)
    room = gl.allocate_shared_memory(gl.int16, [32], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    room.atomic_scatter_add(i.to(gl.int16), i, 0)
    gl.store(out + i, room.load(wide))


def test_narrow_elements_are_refused_by_name() -> None:
    with pytest.raises(Exception, match="local_atomic_scatter_rmw.*i16.*32-bit elements"):
        narrow[(1,)](torch.zeros(32, dtype=torch.int16), LANES=LANES)
