"""Which lanes store together, and that every element is still stored by one of them."""

import pytest
from triton.backends.spirv.layouts.distributed import INPUTS, distributed_layout
from triton.backends.spirv.transforms.gpu.store_lanes import _addresses, _turns, reorder_storing_lanes
from triton.backends.spirv.ttgir.encodings import BlockedEncoding, ReorderedEncoding, SliceEncoding
from triton.backends.spirv.ttgir.ir import Module
from triton.backends.spirv.ttgir.parser import parse_module
from triton.backends.spirv.ttgir.types import MemDescType, TensorType

#: A tile of ROWS×COLUMNS that is loaded and stored with a padding of 16 bytes a row.
TEXT = """
#in = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [LANES, ACROSS], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.padded_shared<[COLUMNS:+8] {order = [1, 0], shape = [ROWS, COLUMNS]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @k(%p: !tt.ptr<bf16>) {
    %r = tt.make_range {end = ROWS : i32, start = 0 : i32} : tensor<ROWSxi32, #ttg.slice<{dim = 1, parent = #in}>>
    %e = tt.expand_dims %r {axis = 1 : i32} : tensor<ROWSxi32, #ttg.slice<{dim = 1, parent = #in}>> -> tensor<ROWSx1xi32, #in>
    %b = tt.broadcast %e : tensor<ROWSx1xi32, #in> -> tensor<ROWSxCOLUMNSxi32, #in>
    %s = tt.splat %p : !tt.ptr<bf16> -> tensor<ROWSxCOLUMNSx!tt.ptr<bf16>, #in>
    %a = tt.addptr %s, %b : tensor<ROWSxCOLUMNSx!tt.ptr<bf16>, #in>, tensor<ROWSxCOLUMNSxi32, #in>
    %x = tt.load %a : tensor<ROWSxCOLUMNSx!tt.ptr<bf16>, #in>
    MORE
    %m = ttg.local_alloc %x : (tensor<ROWSxCOLUMNSxbf16, #in>) -> !ttg.memdesc<ROWSxCOLUMNSxbf16, #shared, #smem>
    tt.return
  }
}
"""  # noqa: E501


def module(rows: int, columns: int, more: str = "") -> Module:
    across = columns // 8
    numbers = {"ROWS": rows, "COLUMNS": columns, "LANES": 32 // across, "ACROSS": across}
    text = TEXT.replace("MORE", more)
    for name, number in numbers.items():
        text = text.replace(name, str(number))
    return parse_module(text)


def stored(found: Module) -> tuple[TensorType, MemDescType]:
    (alloc,) = (one for one in found.walk() if one.name == "ttg.local_alloc")
    tensor, buffer = alloc.operands[0].type, alloc.result.type
    assert isinstance(tensor, TensorType) and isinstance(buffer, MemDescType)
    return tensor, buffer


def test_rows_of_64_bytes_are_stored_without_conflicts() -> None:
    found = module(128, 32)
    assert _turns(_addresses(*stored(found)), 8) == 8  # twice for each eight lanes
    assert reorder_storing_lanes(found, 128)
    assert _turns(_addresses(*stored(found)), 8) == 4
    tensor, _ = stored(found)
    assert isinstance(tensor.encoding, ReorderedEncoding)
    assert isinstance(tensor.encoding.inner, BlockedEncoding)


def test_every_element_has_its_place_and_slices_agree() -> None:
    found = module(128, 32)
    before = distributed_layout(stored(found)[0].encoding, (128, 32))
    assert reorder_storing_lanes(found, 128)
    after = distributed_layout(stored(found)[0].encoding, (128, 32))
    for name in INPUTS:
        assert sorted(before.inputs[name]) == sorted(after.inputs[name])
    (rows,) = (one for one in found.walk() if one.name == "tt.make_range")
    assert rows.result.type.encoding == SliceEncoding(1, stored(found)[0].encoding)


@pytest.mark.parametrize("columns", [64, 128])
def test_rows_of_all_banks_stay(columns: int) -> None:
    assert not reorder_storing_lanes(module(64, columns), 128)


def test_an_encoding_that_another_follows_from_stays() -> None:
    turned = (
        "%t = tt.trans %x {order = array<i32: 1, 0>} : tensor<ROWSxCOLUMNSxbf16, #in> -> "
        "tensor<COLUMNSxROWSxbf16, #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [4, 8], "
        "warpsPerCTA = [1, 4], order = [0, 1]}>>"
    )
    assert not reorder_storing_lanes(module(128, 32, turned), 128)
