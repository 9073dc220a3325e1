"""Parts and views of buffers in shared memory, in Gluon kernels, against NumPy."""

import functools

import numpy as np
import pytest
import torch
from triton.backends.spirv.errors import UnsupportedOperation
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from tests.device.helpers import Guarded, device_capabilities

LANES = device_capabilities().subgroup_size
RNG = np.random.default_rng(5)

#: dtype name → NumPy's type of that width, whose bits are compared.
WIDTHS = {"int8": np.int8, "float16": np.int16, "float32": np.int32, "int64": np.int64}


def bits(name: str, *shape: int) -> tuple[np.ndarray, torch.Tensor]:
    """Numbers of a dtype, as bits and as a tensor."""
    numbers = torch.from_numpy(RNG.integers(-100, 100, shape)).to(getattr(torch, name))
    return numbers.view(getattr(torch, np.dtype(WIDTHS[name]).name)).numpy(), numbers


@gluon.constexpr_function
def shared_layout(kind, rows, columns):
    if kind == "swizzled":
        return gl.SwizzledSharedLayout(4, 2, 4, [1, 0])
    if kind == "widely swizzled":  # over 32 columns
        return gl.SwizzledSharedLayout(8, 1, 4, [1, 0])
    if kind == "padded":
        return gl.PaddedSharedLayout.with_identity_for([[32, 4]], [rows, columns], [1, 0])
    return gl.SwizzledSharedLayout(1, 1, 1, [1, 0])


KINDS = ["plain", "swizzled", "padded"]


@gluon.jit
def double_buffered(x, out, n, KIND: gl.constexpr, LANES: gl.constexpr):
    """Each tile is read transposed while the next one is stored to the other buffer."""
    rows: gl.constexpr = gl.BlockedLayout([1, 4], [LANES // 4, 4], [4, 1], [1, 0])
    columns: gl.constexpr = gl.BlockedLayout([2, 1], [4, LANES // 4], [1, 4], [0, 1])
    i = gl.arange(0, 16, layout=gl.SliceLayout(1, rows))
    j = gl.arange(0, 16, layout=gl.SliceLayout(0, rows))
    at = i[:, None] * 16 + j[None, :]
    room = gl.allocate_shared_memory(x.dtype.element_ty, [2, 16, 16], shared_layout(KIND, 16, 16))
    room.index(0).store(gl.load(x + at))
    for step in range(n):
        if step + 1 < n:
            room.index((step + 1) % 2).store(gl.load(x + (step + 1) * 256 + at))
        turned = room.index(step % 2).permute((1, 0)).load(rows)
        again = gl.convert_layout(room.index(step % 2).load(columns), rows)
        gl.store(out + step * 512 + at, turned)
        gl.store(out + step * 512 + 256 + at, again)


@pytest.mark.parametrize("name", WIDTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_double_buffers_with_an_index_that_the_loop_computes(kind: str, name: str) -> None:
    expected, x = bits(name, 5, 16, 16)
    out = torch.zeros((5, 2, 16, 16), dtype=x.dtype)
    double_buffered[(1,)](x, out, 5, KIND=kind, LANES=LANES)
    found = out.view(getattr(torch, expected.dtype.name)).numpy()
    np.testing.assert_array_equal(found[:, 0], expected.transpose(0, 2, 1))
    np.testing.assert_array_equal(found[:, 1], expected)


@gluon.jit
def sliced(x, out, KIND: gl.constexpr, LANES: gl.constexpr):
    """The quarters of a tile change places."""
    whole: gl.constexpr = gl.BlockedLayout([1, 4], [LANES // 4, 4], [4, 1], [1, 0])
    i = gl.arange(0, 32, layout=gl.SliceLayout(1, whole))
    j = gl.arange(0, 32, layout=gl.SliceLayout(0, whole))
    room = gl.allocate_shared_memory(x.dtype.element_ty, [32, 32], shared_layout(KIND, 32, 32))
    room.store(gl.load(x + i[:, None] * 32 + j[None, :]))
    k = gl.arange(0, 16, layout=gl.SliceLayout(1, whole))
    m = gl.arange(0, 16, layout=gl.SliceLayout(0, whole))
    for row in gl.static_range(2):
        for column in gl.static_range(2):
            part = room.slice(row * 16, 16, 0).slice(column * 16, 16, 1).load(whole)
            to = ((1 - row) * 16 + k[:, None]) * 32 + (1 - column) * 16 + m[None, :]
            gl.store(out + to, part)


@pytest.mark.parametrize("name", WIDTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_slices_of_both_dimensions(kind: str, name: str) -> None:
    expected, x = bits(name, 32, 32)
    out = torch.zeros((32, 32), dtype=x.dtype)
    sliced[(1,)](x, out, KIND=kind, LANES=LANES)
    np.testing.assert_array_equal(
        out.view(getattr(torch, expected.dtype.name)).numpy(), np.roll(expected, (16, 16), (0, 1))
    )


@gluon.jit
def stored_in_slices(x, out, LANES: gl.constexpr):
    whole: gl.constexpr = gl.BlockedLayout([1, 4], [LANES // 4, 4], [4, 1], [1, 0])
    room = gl.allocate_shared_memory(x.dtype.element_ty, [16, 64], gl.SwizzledSharedLayout(4, 1, 4, [1, 0]))
    i = gl.arange(0, 16, layout=gl.SliceLayout(1, whole))
    j = gl.arange(0, 16, layout=gl.SliceLayout(0, whole))
    for part in gl.static_range(4):
        room.slice(16 * part, 16, 1).store(gl.load(x + part * 256 + i[:, None] * 16 + j[None, :]))
    m = gl.arange(0, 64, layout=gl.SliceLayout(0, whole))
    gl.store(out + i[:, None] * 64 + m[None, :], room.load(whole))


@pytest.mark.parametrize("name", WIDTHS)
def test_slices_are_written(name: str) -> None:
    expected, x = bits(name, 4, 16, 16)
    out = torch.zeros((16, 64), dtype=x.dtype)
    stored_in_slices[(1,)](x, out, LANES=LANES)
    found = out.view(getattr(torch, expected.dtype.name)).numpy()
    np.testing.assert_array_equal(found, expected.transpose(1, 0, 2).reshape(16, 64))


@gluon.jit
def reinterpreted(x, out, SECOND: gl.constexpr, LANES: gl.constexpr):
    """Memory is written as one type and read as another, each in parts."""
    layout: gl.constexpr = gl.BlockedLayout([2], [LANES], [4], [0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    FIRST: gl.constexpr = x.dtype.element_ty
    count: gl.constexpr = 512 * FIRST.primitive_bitwidth // SECOND.primitive_bitwidth
    room = gl.allocate_shared_memory(FIRST, [2, 256], shared)
    at = gl.arange(0, 256, layout=layout)
    room.index(0).store(gl.load(x + at))
    room.index(1).store(gl.load(x + 256 + at))
    other = room.reinterpret(SECOND, [count], shared)
    to = gl.arange(0, count, layout=layout)
    value = other.load(layout)
    gl.store(out + to, value)


@pytest.mark.parametrize("first", WIDTHS)
@pytest.mark.parametrize("second", WIDTHS)
def test_reinterpreted_elements(first: str, second: str) -> None:
    expected, x = bits(first, 512)
    type_ = getattr(torch, second)
    out = torch.zeros(512 * x.element_size() // type_.itemsize, dtype=type_)
    reinterpreted[(1,)](x, out, SECOND=getattr(gl, second), LANES=LANES)
    np.testing.assert_array_equal(out.view(getattr(torch, expected.dtype.name)).numpy(), expected)


@gluon.jit
def gathered(x, indices, out, AXIS: gl.constexpr, KIND: gl.constexpr, LANES: gl.constexpr):
    rows: gl.constexpr = gl.BlockedLayout([1, 4], [LANES // 4, 4], [4, 1], [1, 0])
    i = gl.arange(0, 32, layout=gl.SliceLayout(1, rows))
    j = gl.arange(0, 32, layout=gl.SliceLayout(0, rows))
    at = i[:, None] * 32 + j[None, :]
    room = gl.allocate_shared_memory(x.dtype.element_ty, [32, 32], shared_layout(KIND, 32, 32))
    room.store(gl.load(x + at))
    gl.store(out + at, room.gather(gl.load(indices + at), AXIS))


@gluon.jit
def scattered(x, indices, out, AXIS: gl.constexpr, KIND: gl.constexpr, LANES: gl.constexpr):
    rows: gl.constexpr = gl.BlockedLayout([1, 4], [LANES // 4, 4], [4, 1], [1, 0])
    i = gl.arange(0, 32, layout=gl.SliceLayout(1, rows))
    j = gl.arange(0, 32, layout=gl.SliceLayout(0, rows))
    at = i[:, None] * 32 + j[None, :]
    room = gl.allocate_shared_memory(x.dtype.element_ty, [2, 32, 32], shared_layout(KIND, 32, 32))
    room.index(1).scatter(gl.load(x + at), gl.load(indices + at), AXIS)
    gl.store(out + at, room.index(1).load(rows))


@pytest.mark.parametrize("name", WIDTHS)
@pytest.mark.parametrize(("kind", "axis"), [("plain", 0), ("swizzled", 1), ("padded", 0)])
def test_gathers_and_scatters(kind: str, axis: int, name: str) -> None:
    expected, x = bits(name, 32, 32)
    as_bits = getattr(torch, expected.dtype.name)
    order = np.argsort(RNG.random((32, 32)), axis)
    for index in (np.int32, np.int64, np.uint8):
        out = torch.zeros_like(x)
        gathered[(1,)](x, torch.from_numpy(order.astype(index)), out, AXIS=axis, KIND=kind, LANES=LANES)
        np.testing.assert_array_equal(out.view(as_bits).numpy(), np.take_along_axis(expected, order, axis))
    out, wanted = torch.zeros_like(x), np.zeros_like(expected)
    scattered[(1,)](x, torch.from_numpy(order.astype(np.int32)), out, AXIS=axis, KIND=kind, LANES=LANES)
    np.put_along_axis(wanted, order, expected, axis)
    np.testing.assert_array_equal(out.view(as_bits).numpy(), wanted)


@gluon.jit
def swapped(x, out, n, LANES: gl.constexpr):
    """Two buffers change places in each round of a loop: read one, write the other."""
    layout: gl.constexpr = gl.BlockedLayout([1], [LANES], [4], [0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    at = gl.arange(0, 256, layout=layout)
    first = gl.allocate_shared_memory(gl.int32, [256], shared)
    second = gl.allocate_shared_memory(gl.int32, [256], shared)
    first.store(gl.load(x + at))
    for _ in range(n):
        turned = first.gather((at + 1) % 256, 0)
        second.store(turned + 1)
        first, second = second, first
    gl.store(out + at, first.load(layout))


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_loops_carry_buffers(n: int) -> None:
    x = torch.arange(256, dtype=torch.int32)
    out = Guarded(256, "int32")
    swapped[(1,)](x, out.tensor, n, LANES=LANES)
    np.testing.assert_array_equal(out.values(), np.roll(x.numpy(), -n) + n)


@gluon.jit
def product(a, b, out, n, LANES: gl.constexpr):
    """A dot whose operands are read from two of four buffers."""
    layout: gl.constexpr = gl.BlockedLayout([2, 2], [LANES // 4, 4], [2, 2], [1, 0])
    left: gl.constexpr = gl.DotOperandLayout(0, layout, 0)
    right: gl.constexpr = gl.DotOperandLayout(1, layout, 0)
    i = gl.arange(0, 32, layout=gl.SliceLayout(1, layout))
    j = gl.arange(0, 32, layout=gl.SliceLayout(0, layout))
    lefts = gl.allocate_shared_memory(gl.float32, [2, 32, 32], gl.SwizzledSharedLayout(1, 1, 1, [1, 0]))
    rights = gl.allocate_shared_memory(gl.float32, [2, 32, 32], gl.SwizzledSharedLayout(4, 1, 4, [1, 0]))
    total = gl.zeros([32, 32], gl.float32, layout)
    for step in range(n):
        lefts.index(step % 2).store(gl.load(a + i[:, None] * (32 * n) + step * 32 + j[None, :]))
        rights.index(step % 2).store(gl.load(b + (step * 32 + i[:, None]) * 32 + j[None, :]))
        total = gl.dot_fma(lefts.index(step % 2).load(left), rights.index(step % 2).load(right), total)
    gl.store(out + i[:, None] * 32 + j[None, :], total)


def test_dots_of_double_buffers() -> None:
    a, b = (RNG.integers(-8, 8, shape).astype(np.float32) for shape in ((32, 96), (96, 32)))
    out = Guarded((32, 32), "float32")
    product[(1,)](torch.from_numpy(a), torch.from_numpy(b), out.tensor, 3, LANES=LANES)
    np.testing.assert_array_equal(out.values(), a @ b)


@gluon.jit
def with_a_conversion_between(x, out, numbers, n, KIND: gl.constexpr, LANES: gl.constexpr):
    """Each subgroup stores rows and loads columns; of the conversion in between, each has all elements itself."""
    rows: gl.constexpr = gl.BlockedLayout([1, 1], [1, LANES], [4, 1], [1, 0])
    columns: gl.constexpr = gl.BlockedLayout([1, 1], [LANES, 1], [1, 4], [0, 1])
    line: gl.constexpr = gl.BlockedLayout([1], [LANES], [4], [0])
    i = gl.arange(0, 16, layout=gl.SliceLayout(1, rows))
    j = gl.arange(0, 16, layout=gl.SliceLayout(0, rows))
    a = gl.arange(0, 16, layout=gl.SliceLayout(1, columns))
    b = gl.arange(0, 16, layout=gl.SliceLayout(0, columns))
    for step in range(n):
        room = gl.allocate_shared_memory(
            gl.float32, [16, 16], shared_layout(KIND, 16, 16), gl.load(x + step * 256 + i[:, None] * 16 + j[None, :])
        )
        moved = gl.convert_layout(j + step, line)
        gl.store(out + step * 256 + a[:, None] * 16 + b[None, :], room.load(columns))
        gl.store(numbers + step * 16 + gl.arange(0, 16, layout=line), moved)


@pytest.mark.parametrize("kind", KINDS)
def test_a_conversion_between_a_store_and_a_load(kind: str) -> None:
    """Upstream inserts no barrier there, because a conversion waits. Ours need not, and gets one for that reason."""
    x = torch.from_numpy(RNG.standard_normal((3, 16, 16), np.float32))
    out, numbers = torch.zeros_like(x), torch.zeros((3, 16), dtype=torch.int32)
    with_a_conversion_between[(1,)](x, out, numbers, 3, KIND=kind, LANES=LANES, num_warps=4)
    assert torch.equal(out, x)
    assert torch.equal(numbers, torch.arange(16) + torch.arange(3)[:, None])


@gluon.jit
def carried_slices(x, out, n, KIND: gl.constexpr, COLUMNS: gl.constexpr, LANES: gl.constexpr):
    """Two halves of a buffer change places in each iteration: one is read, the other one written."""
    rows: gl.constexpr = 32 if COLUMNS else 16
    columns: gl.constexpr = 16 if COLUMNS else 32
    half: gl.constexpr = gl.BlockedLayout([1, 4], [LANES // 4, 4], [4, 1], [1, 0])
    at = gl.arange(0, rows, layout=gl.SliceLayout(1, half))[:, None] * columns
    at += gl.arange(0, columns, layout=gl.SliceLayout(0, half))[None, :]
    turned: gl.constexpr = gl.BlockedLayout([2, 1], [4, LANES // 4], [1, 4], [0, 1])
    to = gl.arange(0, rows, layout=gl.SliceLayout(1, turned))[:, None] * columns
    to += gl.arange(0, columns, layout=gl.SliceLayout(0, turned))[None, :]
    room = gl.allocate_shared_memory(x.dtype.element_ty, [32, 32], shared_layout(KIND, 32, 32))
    now = room.slice(0, 16, 1 if COLUMNS else 0)
    following = room.slice(16, 16, 1 if COLUMNS else 0)
    now.store(gl.load(x + at))
    for step in range(n):
        following.store(gl.load(x + (step + 1) * 512 + at))
        gl.store(out + step * 512 + to, now.load(turned))
        now, following = following, now
    gl.store(out + n * 512 + to, now.load(turned))


@pytest.mark.parametrize("name", WIDTHS)
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("kind", [*KINDS, "widely swizzled"])
def test_slices_that_a_loop_carries(kind: str, columns: bool, name: str) -> None:
    expected, x = bits(name, 6, 512)
    out = torch.zeros((6, 512), dtype=x.dtype)
    launch = functools.partial(carried_slices[(1,)], x, out, KIND=kind, COLUMNS=columns, LANES=LANES)
    if columns and kind in ("padded", "widely swizzled"):  # the halves' columns mix, or padding lies in between
        with pytest.raises(UnsupportedOperation, match=r"carries a slice of a buffer whose elements.*slice it where"):
            launch(5)
        return
    launch(5)
    found = out.view(getattr(torch, expected.dtype.name)).numpy()
    np.testing.assert_array_equal(found, expected)


@gluon.jit
def chosen_buffer(x, out, n, LANES: gl.constexpr):
    line: gl.constexpr = gl.BlockedLayout([1], [LANES], [4], [0])
    plain: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    at = gl.arange(0, 64, layout=line)
    one = gl.allocate_shared_memory(gl.float32, [64], plain, gl.load(x + at))
    other = gl.allocate_shared_memory(gl.float32, [64], plain, gl.load(x + 64 + at))
    if n > 2:
        last = one
    else:
        last = other
    gl.store(out + at, last.load(line))


def test_a_choice_between_buffers_is_refused() -> None:
    """MLIR makes a select of such a branch."""
    with pytest.raises(UnsupportedOperation, match=r"chooses between buffers.*\.index\(\)"):
        chosen_buffer[(1,)](torch.ones(128), torch.zeros(64), 2, LANES=LANES)


@gluon.jit
def halves_of_four_buffers(x, out, n, KIND: gl.constexpr, LANES: gl.constexpr):
    """Two buffers of four are written while the other two, which are read, take their place in the next iteration."""
    rows: gl.constexpr = gl.BlockedLayout([1, 4], [LANES // 4, 4], [4, 1], [1, 0])
    i = gl.arange(0, 16, layout=gl.SliceLayout(1, rows))
    j = gl.arange(0, 16, layout=gl.SliceLayout(0, rows))
    at = i[:, None] * 16 + j[None, :]
    room = gl.allocate_shared_memory(x.dtype.element_ty, [4, 16, 16], shared_layout(KIND, 16, 16))
    now, following = room.slice(0, 2, 0), room.slice(2, 2, 0)
    for part in gl.static_range(2):
        now.index(part).store(gl.load(x + part * 256 + at))
    for step in range(n):
        for part in gl.static_range(2):
            following.index(part).store(gl.load(x + (step * 2 + 2 + part) * 256 + at))
        gl.store(out + step * 512 + at, now.index(step % 2).load(rows))
        gl.store(out + step * 512 + 256 + at, now.slice(1, 1, 0).index(0).permute((1, 0)).load(rows))
        now, following = following, now


@pytest.mark.parametrize("name", WIDTHS)
@pytest.mark.parametrize("kind", ["plain", "swizzled"])
def test_some_of_several_buffers_are_carried_and_indexed(kind: str, name: str) -> None:
    expected, x = bits(name, 8, 16, 16)
    out = torch.zeros((3, 2, 16, 16), dtype=x.dtype)
    halves_of_four_buffers[(1,)](x, out, 3, KIND=kind, LANES=LANES)
    found = out.view(getattr(torch, expected.dtype.name)).numpy()
    np.testing.assert_array_equal(found[:, 0], expected[[0, 3, 4]])
    np.testing.assert_array_equal(found[:, 1], expected[[1, 3, 5]].transpose(0, 2, 1))
