"""The places of programs in grids of one to three axes, and the sizes of these."""

import numpy as np
import pytest
import triton
import triton.language as tl

from tests.device.helpers import Guarded, assert_same


@triton.jit
def grid_kernel(out_ptr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    nx, ny, nz = tl.num_programs(0), tl.num_programs(1), tl.num_programs(2)
    at = (z * ny + y) * nx + x
    tl.store(out_ptr + at, ((x * 100 + y) * 100 + z) * 1000 + nx * 100 + ny * 10 + nz)


@pytest.mark.parametrize("grid", [(1,), (5,), (3, 2), (2, 3, 4)])
def test_program_ids(grid):
    full = (*grid, 1, 1)[:3]
    out = Guarded(full[::-1], "int32")
    grid_kernel[grid](out.tensor)
    z, y, x = np.indices(full[::-1])
    expected = ((x * 100 + y) * 100 + z) * 1000 + full[0] * 100 + full[1] * 10 + full[2]
    assert_same(out.values(), expected.astype(np.int32), "program ids")
