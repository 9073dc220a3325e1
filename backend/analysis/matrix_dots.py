"""Which dots run on the device's matrix units, and by which of their configurations."""

from __future__ import annotations

from collections.abc import Sequence

from ..layouts.distributed import LayoutError, distributed_layout
from ..layouts.linear import LinearLayout
from ..layouts.matrix_dots import MatrixDot, plan_matrix_dot
from ..matrices import MatrixConfiguration
from ..ttgir.encodings import Encoding, FoldedEncoding, FragmentEncoding, NvidiaMmaEncoding
from ..ttgir.ir import Operation
from ..ttgir.types import FloatType, IntegerType, TensorType, Type

#: Element type of a dot's result → the component type that products are added in: never a narrower one.
_ACCUMULATORS = {"f32": "f32", "f16": "f32", "bf16": "f32", "i32": "s32"}


def is_matrix_dot(operation: Operation) -> bool:
    """Whether an operation is a dot onto matrix fragments."""
    if operation.name != "tt.dot" or not isinstance(operation.result.type, TensorType):
        return False
    return isinstance(unfolded(operation.result.type.encoding), NvidiaMmaEncoding | FragmentEncoding)


def unfolded(encoding: Encoding | None) -> Encoding | None:
    """What ``encoding`` is in the warps that upstream laid out."""
    return encoding.inner if isinstance(encoding, FoldedEncoding) else encoding


def suitable(operation: Operation, configurations: Sequence[MatrixConfiguration]) -> list[MatrixConfiguration]:
    """The configurations whose component types are right for a tt.dot, whatever its layouts."""
    a, b, c = (value.type for value in operation.operands)
    assert isinstance(c, TensorType)
    accumulator = _ACCUMULATORS.get(str(c.element))
    wanted = _component(a), _component(b), accumulator, accumulator
    return [one for one in configurations if one.types == wanted and not one.saturating]


def _component(type_: Type) -> str | None:
    assert isinstance(type_, TensorType)
    if type_.element == IntegerType(8):
        return "s8"  # TTGIR's dots of 8-bit integers are signed
    return type_.element.name if isinstance(type_.element, FloatType) else None


def choose(
    operation: Operation,
    configurations: Sequence[MatrixConfiguration],
    encodings: Sequence[Encoding | None] | None = None,
) -> tuple[MatrixConfiguration, MatrixDot] | None:
    """The first configuration that does a tt.dot, and how; None where none does. ``encodings``: those to assume for A,
    B and C in place of their own."""
    layouts: list[LinearLayout] = []
    for index, value in enumerate(operation.operands):
        assert isinstance(value.type, TensorType)
        encoding = encodings[index] if encodings else value.type.encoding
        if encoding is None:
            return None
        try:
            layouts.append(distributed_layout(encoding, value.type.shape))
        except LayoutError:
            return None
    a, b, c = layouts
    for configuration in suitable(operation, configurations):
        plan = plan_matrix_dot(a, b, c, configuration)
        if plan is not None:
            return configuration, plan
    return None
