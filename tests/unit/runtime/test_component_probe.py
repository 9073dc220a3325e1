"""The kernel that measures component maps, and what is read from its results."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.matrices import ComponentMap
from triton.backends.spirv.runtime.measuring.component_probe import ROOM, probe_data, probe_module, read_map
from triton.backends.spirv.spirv.disassemble import disassemble

HOPPER = PROFILES["nvidia-hopper"].matrices
MATRICES = [
    (component, *one.extents[use], use, one.maps[use])
    for one in HOPPER
    for use, component in enumerate((one.a, one.b, one.result))
]
#: Lanes 16 to 31 hold copies, as on AMD's RDNA 3.
COPIES = ComponentMap.parse("0.1+0.2+0.4+0.8/1.0+2.0+4.0+8.0+0.0")


def results(component: str, rows: int, columns: int, map_: ComponentMap) -> Any:
    """The data as the kernel leaves it on a device with that map."""
    lanes = 1 << len(map_.lanes)
    data = probe_data(component, rows, columns, lanes)
    values = data.view(ml_dtypes.bfloat16) if component == "bf16" else data
    found = values[2 * rows * columns :].reshape(2, lanes, ROOM)
    for lane in range(lanes):
        for number in range(1 << len(map_.registers)):
            found[:, lane, number] = map_.place(number, lane)
    return data


@pytest.mark.parametrize("component, rows, columns, use, map_", [*MATRICES, ("f16", 16, 16, 0, COPIES)])
def test_a_map_is_read_from_the_results(component: str, rows: int, columns: int, use: int, map_: ComponentMap) -> None:
    data = results(component, rows, columns, map_)
    assert read_map(data, component, rows, columns, 1 << len(map_.lanes)) == map_


def test_what_is_not_linear_or_incomplete_is_no_map() -> None:
    map_ = HOPPER[0].maps[0]
    for change in ((0, 3, 5), (1, 31, 7)):  # an element elsewhere than its lane and component say
        data = results("f16", 16, 16, map_)
        found = data[2 * 16 * 16 :].reshape(2, 32, ROOM)
        found[change] += 1
        assert read_map(data, "f16", 16, 16, 32) is None
    short = results("f16", 16, 16, map_)
    short[2 * 16 * 16 :].reshape(2, 32, ROOM)[:, 4, 7] = 0x7F  # a lane with fewer components
    assert read_map(short, "f16", 16, 16, 32) is None
    assert read_map(probe_data("f16", 16, 16, 32), "f16", 16, 16, 32) is None  # nothing was written


@pytest.mark.parametrize("component, rows, columns, use, map_", MATRICES)
def test_the_kernel_loads_both_planes(component: str, rows: int, columns: int, use: int, map_: ComponentMap) -> None:
    text = disassemble(probe_module(component, rows, columns, use, 1 << len(map_.lanes)), names=False)
    assert text.count(" = OpCooperativeMatrixLoadKHR ") == 2 and text.count(" = OpCooperativeMatrixLengthKHR ") == 1
    assert ("OpCapability BFloat16TypeKHR" in text) == (component == "bf16")
    assert np.prod(probe_data(component, rows, columns, 32).shape) == 2 * rows * columns + 2 * 32 * ROOM
