"""Whether a driver may cut the loops of a kernel short (``Faults.loop_limit``)."""

from __future__ import annotations

from collections.abc import Mapping

from ..analysis.loop_count import most_iterations
from ..capabilities import Capabilities
from ..layouts.strip_layouts import register_count
from ..ttgir.ir import Function, Operation
from ..ttgir.operations import in_loop
from ..ttgir.types import TensorType
from .plans import Plan


def watches_loops(kernel: Function, capabilities: Capabilities, plans: Mapping[Operation, Plan], checks: bool) -> bool:
    """Whether the driver, which counts loops over registers, too, may cut one short. ``checks``: there are others that
    check accesses."""
    limit = capabilities.traits.faults.loop_limit
    if limit is None:
        return False
    if checks:
        return True

    def rounds(operation: Operation) -> int:
        return plans[operation].iterations if operation in plans and in_loop(operation) else 0

    most = most_iterations(kernel, rounds, _copies)
    return most is None or most > limit


def _copies(operation: Operation) -> int | None:
    """How often the code of an operation's region is repeated; None where that is left to its rule."""
    type_ = operation.results[0].type if operation.name == "tt.map_elementwise" else None
    if not isinstance(type_, TensorType):
        return None
    return -(-register_count(type_) // int(operation.attribute("pack")))
