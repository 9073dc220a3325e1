"""Which buffers of a loop are filled at one place."""

from __future__ import annotations

import pytest
from triton.backends.spirv.transforms.gpu.fill_together import fill_together
from triton.backends.spirv.ttgir.parser import parse_module

from ..test_meaning import APART

#: Bytes of the loop's two buffers of 16×32 float32, and of the one that it reads alone.
BOTH = 3 * 16 * 32 * 4


def order(text: str, stages: int = 2, most: int = BOTH) -> list[str] | None:
    """Buffers and dots of the loop in their order; None if nothing was moved."""
    module = parse_module(text)
    function = module.functions["k"]
    if not fill_together(function, stages, most):
        return None
    (loop,) = (operation for operation in function.walk() if operation.name == "scf.for")
    return [one.name for one in loop.regions[0].entry.operations if one.name in ("ttg.local_alloc", "tt.dot")]


def test_both_buffers_are_filled_before_the_first_dot() -> None:
    assert order(APART) == ["ttg.local_alloc", "ttg.local_alloc", "tt.dot", "tt.dot"]


@pytest.mark.parametrize("most, stages", [(BOTH - 1, 2), (BOTH, 1)], ids=["no room", "no loads ahead"])
def test_only_with_room_and_loads_ahead(most: int, stages: int) -> None:
    assert order(APART, stages, most) is None


def test_what_follows_from_the_first_dot_stays() -> None:
    computed = """%c = ttg.convert_layout %d : tensor<16x16xf32, #acc> -> tensor<16x16xf32, #in>
      %x2 = tt.load %a : tensor<16x32x!tt.ptr<f32>, #in>
      %m3 = ttg.local_alloc %c : (tensor<16x16xf32, #in>) -> !ttg.memdesc<16x16xf32, #shared, #smem>
"""
    text = APART.replace("%x2 = tt.load %a : tensor<16x32x!tt.ptr<f32>, #in>\n", computed)
    # The buffer of what the dot gave is in between, and stays there with the one behind it.
    assert order(text, most=1 << 20) is None


def test_a_volatile_load_stays() -> None:
    assert order(APART.replace("%x2 = tt.load %a :", "%x2 = tt.load %a {isVolatile = true} :")) is None
