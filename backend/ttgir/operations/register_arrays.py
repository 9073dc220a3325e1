"""This backend's own operations, which its rewrites make: on tensors in arrays of an invocation's own
(transforms/strip_loops.py and what goes by it in transforms/cpu/), and what transforms/gpu/halves.py asks of tensors.
"""

from __future__ import annotations

from ..ir import Operation, Value
from ..types import TensorType, strip_type
from .definition import Effect, Memory, Pointers, define
from .type_checks import shape


def _same_types(operation: Operation) -> bool:
    return operation.operands[0].type == operation.result.type


def _assigns(operation: Operation) -> bool:
    return operation["array"].type == operation["value"].type


def _takes_strip(operation: Operation) -> bool:
    return _is_strip(operation["array"], operation.result, operation)


def _puts_strip(operation: Operation) -> bool:
    return _is_strip(operation["array"], operation["value"], operation)


def _is_strip(whole: Value, part: Value, operation: Operation) -> bool:
    dim, strips = operation.attributes["dim"], operation.attributes["strips"]
    type_ = operation.attributes.get("whole", whole.type)
    return isinstance(type_, TensorType) and part.type == strip_type(type_, dim, strips)


def _multiplies(one: Operation) -> bool:
    """Arrays of a tile C, and of A and B with their dimensions in some order."""
    c, *factors = (shape(one[name]) for name in ("total", "left", "right"))
    a, b = (
        tuple(extents[dim] for dim in order) for extents, order in zip(factors, one.attributes["turned"], strict=True)
    )
    return c == (*a[:-1], b[-1]) and a[:-2] == b[:-2] and a[-1] == b[-2]


# fmt: off
define("spirv.array", attributes="dim", pointers=Pointers.KEPT)
define("spirv.spill", attributes="dim", pointers=Pointers.KEPT, types=_same_types, operands="value")
define("spirv.collect", attributes="dim", pointers=Pointers.KEPT, types=_same_types, operands="array")
define("spirv.strip", attributes="dim strips whole?", pointers=Pointers.KEPT, types=_takes_strip, operands="array at")
define("spirv.put", attributes="dim strips whole?", pointers=Pointers.KEPT, types=_puts_strip,
       operands="array value at")
define("spirv.assign spirv.copy", types=_assigns, operands="array value")
define("spirv.multiply", attributes="adds turned", types=_multiplies, operands="total left right")
define("spirv.multiply_rounds", attributes="turned neighbours", effects=Effect.READS_GLOBAL, types=_multiplies,
       operands="total left right")
define("spirv.fold", attributes="dim", ended_by=("tt.reduce.return",))
define("spirv.beyond_halves", memory=Memory.SCRATCH)
define("spirv.greatest", memory=Memory.SCRATCH, operands="src")
# fmt: on
