"""How long a launch should take, by the work that its kernel's code does, where nothing was measured yet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..analysis.work import launch_work
from ..errors import LoweringError, UnsupportedOperation
from ..transforms.kernel_function import kernel_of, one_block
from ..ttgir.ir import Function
from ..ttgir.parser import parse_module

#: What a slow GPU does a second: operations for each compute unit, of which ggml-vulkan submits 200 * 10^9 at most at a
#: time to a GPU of 32 that has 2 s for them; and bytes, as an integrated GPU moves them with the processor at work. An
#: estimate that is too long makes the first launch more launches, and one that is too short may lose the device.
OPERATIONS_A_UNIT, BYTES = 200e9 / 2 / 32, 20e9


def function_of(kernel: Any) -> Function | None:
    """The function of a CompiledKernel, as TTGIR; None if it cannot be read."""
    try:
        source = parse_module(kernel.asm["ttgir"], kernel.name)
        one_block(source)
        return kernel_of(source)
    except (KeyError, ValueError, LoweringError, UnsupportedOperation):
        return None


def arguments_of(source: Any, values: Sequence[object]) -> list[object]:
    """The values of the arguments that the compiled function has: all but constants. ``source``: a kernel's."""
    signature = getattr(source, "signature", {})
    return [value for value, type_ in zip(values, signature.values(), strict=False) if type_ != "constexpr"]


def expected_seconds(
    function: Function | None, source: Any, values: Sequence[object], grid: Sequence[int], units: int
) -> float:
    """How long a launch should take on a GPU of so many compute units; infinity if its work is not known."""
    numbers = [value if isinstance(value, int | float) else None for value in values]
    work = launch_work(function, arguments_of(source, numbers), grid) if function is not None else None
    if work is None:
        return math.inf
    return work.operations / (units * OPERATIONS_A_UNIT) + work.moved / BYTES
