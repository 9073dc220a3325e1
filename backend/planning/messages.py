"""Whether a kernel tells the host something, and so takes a report buffer (docs/abi.md)."""

from __future__ import annotations

from ..analysis.loop_count import most_iterations
from ..capabilities import Capabilities
from ..ttgir.ir import Function
from ..ttgir.traits import Effect, traits
from .rolling import most_rounds


def may_report(kernel: Function) -> bool:
    """Whether the kernel itself has something to say."""
    assert kernel.body is not None
    return any(
        Effect.REPORTS in traits(inner).effects
        for operation in kernel.body.entry.operations
        for inner in operation.walk()
    )


def watches_loops(kernel: Function, capabilities: Capabilities) -> bool:
    """Whether a loop might be cut short by the driver."""
    driver = capabilities.traits
    limit = driver.loop_limit
    if limit is None:
        return False
    most = most_iterations(kernel, lambda operation: most_rounds(operation, driver))
    return most is None or most > limit
