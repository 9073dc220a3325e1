"""Refuses pointers among what ``tt.gather`` and ``tt.scan`` exchange between invocations: no path of the lowering is
tested for them."""

from __future__ import annotations

from ..errors import UnsupportedOperation
from ..ttgir.ir import Module
from ..ttgir.types import PointerType, TensorType

#: The operations whose operands are exchanged, and what they are called on pointers (passes.operation_names).
EXCHANGES = frozenset({"tt.gather", "tt.scan"})
ON_POINTERS = frozenset(f"{name} on pointers" for name in EXCHANGES)


def refuse_exchanged_pointers(module: Module) -> bool:
    """Raises UnsupportedOperation for a module with such an operation; changes nothing."""
    for function in module.functions.values():
        for block in function.body.blocks if function.body is not None else []:
            for inner in (inner for operation in block.operations for inner in operation.walk()):
                types = [operand.type for operand in inner.operands]
                if inner.name in EXCHANGES and any(
                    isinstance(type_, TensorType) and isinstance(type_.element, PointerType) for type_ in types
                ):
                    raise UnsupportedOperation(
                        inner,
                        "it exchanges pointers between invocations",
                        "convert them to integers before, x.to(tl.int64), and back after",
                    )
    return False
