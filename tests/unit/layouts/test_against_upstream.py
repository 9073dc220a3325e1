"""Encodings against upstream's own conversion to linear layouts, as Gluon exposes it."""

from typing import Any

import pytest
import triton.experimental.gluon.language._layouts as gluon
from hypothesis import given
from hypothesis import strategies as st
from triton._C.libtriton import gluon_ir, ir
from triton.backends.spirv.layouts.distributed import LayoutError, distributed_layout
from triton.backends.spirv.layouts.shared_encodings import shared_layout
from triton.backends.spirv.ttgir.encodings import (
    BlockedEncoding,
    DotOperandEncoding,
    Encoding,
    LinearEncoding,
    NvidiaMmaEncoding,
    OpaqueEncoding,
    PaddedSharedEncoding,
    SharedLinearEncoding,
    SliceEncoding,
    SwizzledSharedEncoding,
)

from .strategies import blocked_encodings, shapes

_CONTEXT = ir.context()
ir.load_dialects(_CONTEXT)
_BUILDER = gluon_ir.GluonOpBuilder(_CONTEXT)


def to_gluon(encoding: Encoding, shape: tuple[int, ...]) -> Any:
    """The same encoding as Gluon's class."""
    match encoding:
        case BlockedEncoding():
            return gluon.BlockedLayout(
                list(encoding.size_per_thread),
                list(encoding.threads_per_warp),
                list(encoding.warps_per_cta),
                list(encoding.order),
            )
        case SliceEncoding():
            parent_shape = shape[: encoding.dim] + (1,) + shape[encoding.dim :]
            return gluon.SliceLayout(encoding.dim, to_gluon(encoding.parent, parent_shape))
        case DotOperandEncoding():
            return gluon.DotOperandLayout(encoding.op_idx, to_gluon(encoding.parent, shape), encoding.k_width)
        case NvidiaMmaEncoding():
            version = [encoding.version_major, encoding.version_minor]
            return gluon.NVMMADistributedLayout(version, list(encoding.warps_per_cta), list(encoding.instr_shape))
        case SwizzledSharedEncoding():
            return gluon.SwizzledSharedLayout(
                encoding.vec, encoding.per_phase, encoding.max_phase, list(encoding.order)
            )
    raise AssertionError(encoding)


def upstream_bases(encoding: Encoding, shape: tuple[int, ...]) -> dict[str, tuple[tuple[int, ...], ...]]:
    """The bases upstream gives."""
    found = _BUILDER.to_linear_layout(to_gluon(encoding, shape)._to_ir(_BUILDER), list(shape))
    assert not found.block_bases
    names = {"register": "reg_bases", "lane": "lane_bases", "warp": "warp_bases"}
    if isinstance(found, gluon.SharedLinearLayout):
        names = {"offset": "offset_bases"}
    return {name: tuple(map(tuple, getattr(found, attribute))) for name, attribute in names.items()}


def our_bases(encoding: Encoding, shape: tuple[int, ...]) -> dict[str, tuple[tuple[int, ...], ...]]:
    layout = distributed_layout(encoding, shape)
    assert layout.shape == shape
    return layout.bases


@given(shapes().flatmap(lambda shape: st.tuples(blocked_encodings(len(shape)), st.just(shape))))
def test_blocked(drawn: tuple[BlockedEncoding, tuple[int, ...]]) -> None:
    assert our_bases(*drawn) == upstream_bases(*drawn)


@given(st.data(), st.integers(2, 4))
def test_slice_and_slice_of_slice(data: st.DataObject, rank: int) -> None:
    encoding: Encoding = data.draw(blocked_encodings(rank))
    for left in range(rank, max(rank - 3, 1), -1):
        encoding = SliceEncoding(data.draw(st.integers(0, left - 1)), encoding)
        shape = data.draw(shapes(left - 1, left - 1))
        assert our_bases(encoding, shape) == upstream_bases(encoding, shape)


@given(st.data(), st.integers(2, 3), st.integers(0, 1))
def test_dot_operand_of_blocked(data: st.DataObject, rank: int, op_idx: int) -> None:
    encoding = DotOperandEncoding(op_idx, data.draw(blocked_encodings(rank)))
    shape = data.draw(shapes(rank, rank))
    assert our_bases(encoding, shape) == upstream_bases(encoding, shape)
    inner = rank - 1 if op_idx == 0 else rank - 2
    layout = distributed_layout(encoding, shape)
    assert all(point[inner] == 0 for name in ("lane", "warp") for point in layout.bases[name])


def mma_encodings(rank: int) -> st.SearchStrategy[NvidiaMmaEncoding]:
    warps = st.lists(st.sampled_from((1, 2, 4)), min_size=rank, max_size=rank).map(tuple)
    return warps.map(lambda counts: NvidiaMmaEncoding(2, 0, counts, (1, 16, 8)[3 - rank :]))


@given(st.data(), st.integers(2, 3))
def test_results_of_matrix_instructions(data: st.DataObject, rank: int) -> None:
    encoding = data.draw(mma_encodings(rank))
    shape = data.draw(shapes(rank, rank))
    assert our_bases(encoding, shape) == upstream_bases(encoding, shape)
    dim = data.draw(st.integers(0, rank - 1))
    fitted = data.draw(shapes(rank - 1, rank - 1))
    assert our_bases(SliceEncoding(dim, encoding), fitted) == upstream_bases(SliceEncoding(dim, encoding), fitted)


@given(st.data(), st.integers(2, 3), st.integers(0, 1), st.sampled_from((1, 2, 4, 8)))
def test_operands_of_matrix_instructions(data: st.DataObject, rank: int, op_idx: int, k_width: int) -> None:
    encoding = DotOperandEncoding(op_idx, data.draw(mma_encodings(rank)), k_width)
    shape = data.draw(shapes(rank, rank))
    assert our_bases(encoding, shape) == upstream_bases(encoding, shape)


@given(st.data(), st.integers(2, 3), st.integers(0, 1))
def test_slice_of_dot_operand(data: st.DataObject, rank: int, op_idx: int) -> None:
    encoding = SliceEncoding(
        data.draw(st.integers(0, rank - 1)), DotOperandEncoding(op_idx, data.draw(blocked_encodings(rank)))
    )
    shape = data.draw(shapes(rank - 1, rank - 1))
    assert our_bases(encoding, shape) == upstream_bases(encoding, shape)


@given(st.data(), st.integers(1, 3))
def test_linear_of_its_own_shape_and_others(data: st.DataObject, rank: int) -> None:
    """Slicing a linear encoding makes upstream fit it to a shape that is not its own."""
    origin = data.draw(blocked_encodings(rank + 1))
    shape = data.draw(shapes(rank + 1, rank + 1))
    layout = distributed_layout(origin, shape)
    registers = tuple(dict.fromkeys(point for point in layout.bases["register"] if any(point)))
    encoding = LinearEncoding(registers, layout.bases["lane"], layout.bases["warp"], ())
    dim = data.draw(st.integers(0, rank))
    fitted = data.draw(shapes(rank, rank))
    parent = gluon.DistributedLinearLayout(
        [list(p) for p in registers],
        [list(p) for p in layout.bases["lane"]],
        [list(p) for p in layout.bases["warp"]],
        [],
        list(shape),
    )
    theirs = _BUILDER.to_linear_layout(gluon.SliceLayout(dim, parent)._to_ir(_BUILDER), list(fitted))
    ours = our_bases(SliceEncoding(dim, encoding), fitted)
    assert ours == {
        "register": tuple(map(tuple, theirs.reg_bases)),
        "lane": tuple(map(tuple, theirs.lane_bases)),
        "warp": tuple(map(tuple, theirs.warp_bases)),
    }
    assert our_bases(encoding, shape)["lane"] == layout.bases["lane"]


@given(st.data(), st.integers(1, 4), *[st.sampled_from([1, 2, 4, 8])] * 3)
def test_swizzled_shared(data: st.DataObject, rank: int, vec: int, per_phase: int, max_phase: int) -> None:
    shape = data.draw(shapes(rank, rank).filter(lambda extents: max(extents) > 1))  # Gluon refuses one element
    order = tuple(data.draw(st.permutations(range(rank))))
    encoding = SwizzledSharedEncoding(vec, per_phase, max_phase, order)
    layout = shared_layout(encoding, shape)
    assert {"offset": layout.elements.bases["offset"]} == upstream_bases(encoding, shape)
    for offset in range(0, layout.elements.size, max(1, layout.elements.size // 97)):
        assert layout.offset(layout.elements.apply(offset=offset)) == offset


def test_padded_shared_places_elements_as_documented() -> None:
    """The two pictures of Gluon's PaddedSharedLayout."""
    one = shared_layout(PaddedSharedEncoding(((2, 2),), offset=((2,), (1,))), (4,))
    assert [one.offset((x,)) for x in (0, 2, 1, 3)] == [0, 1, 4, 5]
    assert one.size == 6
    plain = shared_layout(PaddedSharedEncoding(((2, 1), (4, 2)), order=(0,), shape=(8,)), (8,))
    assert [plain.offset((x,)) for x in range(8)] == [0, 1, 3, 4, 8, 9, 11, 12]
    rows = PaddedSharedEncoding(((8, 1),), offset=((0, 1), (0, 2), (2, 0), (4, 0), (1, 0)))
    two = shared_layout(rows, (8, 4))
    assert [two.offset((row, 0)) for row in (0, 2, 4, 6, 1, 3, 5, 7)] == [0, 4, 9, 13, 18, 22, 27, 31]


def test_shared_linear() -> None:
    layout = shared_layout(SharedLinearEncoding(((0, 1), (1, 1), (2, 0)), ()), (4, 2))
    assert [layout.offset((row, column)) for row in range(4) for column in range(2)] == [0, 1, 3, 2, 4, 5, 7, 6]


@pytest.mark.parametrize(
    "encoding, shape, message",
    [
        (OpaqueEncoding("ttg.amd_mfma", ""), (4,), "no distributed layout"),
        (DotOperandEncoding(0, OpaqueEncoding("ttg.amd_mfma", "")), (4, 4), "must be a blocked or nvidia_mma"),
        (BlockedEncoding((1,), (4,), (1,), (0,)), (4, 4), "rank 1"),
        (LinearEncoding(((1,),), (), (), ((2,),)), (4,), "num_ctas=1"),
        (LinearEncoding(((1,),), (), (), ()), (4, 4), "rank 1"),
    ],
)
def test_distributed_refusals(encoding: Encoding, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        distributed_layout(encoding, shape)


@pytest.mark.parametrize(
    "encoding, shape, message",
    [
        (OpaqueEncoding("ttg.nvmma_shared", ""), (4,), "no shared-memory layout"),
        (SwizzledSharedEncoding(1, 1, 1, (0, 1)), (4,), "not a permutation"),
        (SharedLinearEncoding(((1,), (1,)), ()), (4,), "not bijective"),
        (SharedLinearEncoding(((1,),), ((2,),)), (4,), "num_ctas=1"),
        (PaddedSharedEncoding(((4, 1),), offset=((1,), (2,), (4,))), (4,), "outside of shape"),
        (SwizzledSharedEncoding(1, 1, 1, (0,)), (6,), "not a power of two"),
    ],
)
def test_shared_refusals(encoding: Encoding, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        shared_layout(encoding, shape)
