"""Reshapes keep the order of elements on the CPU device, also where a kernel lets them change it.

Triton lets a reshape reorder where only sums of all elements read it, so that a GPU need not move them between lanes.
A processor moves nothing: a tile lies in an array by rows, and what follows goes on in loops over that array only if
the order is known.
"""

from __future__ import annotations

from ...ttgir.ir import Module


def keep_row_order(module: Module) -> bool:
    """Takes the leave to reorder from all reshapes. Whether there was any."""
    found = [one for one in module.walk() if one.name == "tt.reshape" and one.flag("allow_reorder")]
    for reshape in found:
        reshape.clear_flag("allow_reorder")
    return bool(found)
