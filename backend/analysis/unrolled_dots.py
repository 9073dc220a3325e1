"""How much code the dots of a kernel would be if unrolled, which decides whether small dots also become loops."""

from __future__ import annotations

from collections.abc import Iterable

from ..layouts.strips import register_count
from ..ttgir.encodings import BlockedEncoding
from ..ttgir.ir import Operation
from ..ttgir.types import TensorType
from .matrix_dots import unfolded


def multiply_adds(operations: Iterable[Operation]) -> int:
    """Multiply-adds of a lane in all dots of blocked tensors among ``operations``, each counted once however often a
    loop of the kernel runs it."""
    return sum(_of_dot(operation) for operation in operations if operation.name == "tt.dot")


def _of_dot(dot: Operation) -> int:
    left, result = dot.operands[0].type, dot.result.type
    assert isinstance(left, TensorType) and isinstance(result, TensorType)
    if not isinstance(unfolded(result.encoding), BlockedEncoding):
        return 0
    return register_count(result) * left.shape[-1]
