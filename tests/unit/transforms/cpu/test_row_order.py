"""A reshape that may reorder keeps the order of rows on the CPU device, so that sums of tiles stay loops."""

import numpy as np
from triton.backends.spirv.transforms.cpu.row_order import keep_row_order
from triton.backends.spirv.ttgir.parser import parse_module

from tests.meaning import run

_TEXT = """
module {
  tt.func public @k(%x: tensor<4x8xf32>) -> tensor<32xf32> {
    %r = tt.reshape %x allow_reorder : tensor<4x8xf32> -> tensor<32xf32>
    tt.return %r : tensor<32xf32>
  }
}
"""


def test_the_leave_to_reorder_goes() -> None:
    module = parse_module(_TEXT)
    assert keep_row_order(module)
    assert not any(one.flag("allow_reorder") for one in module.walk() if one.name == "tt.reshape")
    assert not keep_row_order(module)
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    run(parse_module(_TEXT), x).same(run(module, x))
