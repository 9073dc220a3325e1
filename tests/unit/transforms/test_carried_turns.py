"""Tiles that a loop turns and carries on go through buffers while upstream's passes run."""

import numpy as np
from triton.backends.spirv.transforms.carried_turns import buffer_turned_tiles, convert_turned_tiles
from triton.backends.spirv.transforms.rewriting import Rewriter
from triton.backends.spirv.transforms.verifier import verify
from triton.backends.spirv.ttgir.ir import Module
from triton.backends.spirv.ttgir.parser import parse_module

from tests.meaning import run

ROWS, COLUMNS = "tensor<8x8xf32, #rows>", "tensor<8x8xf32, #columns>"
KERNEL = f"""
#rows = #ttg.blocked<{{sizePerThread = [1, 1], threadsPerWarp = [1, 8], warpsPerCTA = [1, 1], order = [1, 0]}}>
#columns = #ttg.blocked<{{sizePerThread = [1, 1], threadsPerWarp = [8, 1], warpsPerCTA = [1, 1], order = [0, 1]}}>
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 8 : i32}} {{
  tt.func public @k(%a: {ROWS}, %n: i32) -> {ROWS} {{
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %r = scf.for %i = %zero to %n step %one iter_args(%x = %a) -> ({ROWS}) : i32 {{
      %t = tt.trans %x {{order = array<i32: 1, 0>}} : {ROWS} -> {COLUMNS}
      %c = ttg.convert_layout %t : {COLUMNS} -> {ROWS}
      %s = arith.addf %c, %a : {ROWS}
      scf.yield %s : {ROWS}
    }}
    tt.return %r : {ROWS}
  }}
}}
"""
TILE = np.arange(64, dtype=np.float32).reshape(8, 8)


def _names(module: Module) -> list[str]:
    return [operation.name for operation in module.walk()]


def _buffered() -> Module:
    module = parse_module(KERNEL)
    assert buffer_turned_tiles(module)
    verify(module)
    return module


def test_a_buffer_is_filled_and_read_at_the_end_of_the_loop() -> None:
    module = _buffered()
    names = _names(module)
    end = names.index("scf.yield")
    assert names[end - 2 : end] == ["ttg.local_alloc", "ttg.local_load"]
    assert names.count("ttg.local_alloc") == 1
    run(parse_module(KERNEL), TILE, 3).same(run(module, TILE, 3))


def test_nothing_is_left_of_it_where_the_layout_is_the_same() -> None:
    module = _buffered()
    assert convert_turned_tiles(module)
    assert _names(module) == _names(parse_module(KERNEL))
    assert not convert_turned_tiles(module)


def test_a_conversion_is_left_of_it_where_upstream_reads_another_layout() -> None:
    """Its canonicalizer takes the conversions before and behind the buffer into the buffer."""
    module = _buffered()
    add, alloc = (next(one for one in module.walk() if one.name == name) for name in ("arith.addf", "ttg.local_alloc"))
    (conversion,) = (one for one in module.walk() if one.name == "ttg.convert_layout")
    alloc.replace_operand(add.result, conversion.operands[0])
    convert_turned_tiles(module)
    verify(module)
    end = next(one for one in module.walk() if one.name == "scf.yield")
    assert end.operands[0].owner.name == "ttg.convert_layout"
    assert end.operands[0].owner.operands == conversion.operands


def test_a_buffer_with_another_use_stays() -> None:
    module = _buffered()
    (alloc,) = (one for one in module.walk() if one.name == "ttg.local_alloc")
    Rewriter.after(alloc).make("ttg.local_store", [alloc.operands[0], alloc.result])
    before = _names(module)
    assert not convert_turned_tiles(module)
    assert _names(module) == before
