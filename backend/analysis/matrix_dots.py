"""Which dots run on the device's matrix units, and in which configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ..layouts.buffer_layouts import buffer_layout
from ..layouts.distributed import LayoutError, distributed_layout, layout_of
from ..layouts.dot_fragments import Fragment, MatrixDot, plan_matrix_dot
from ..layouts.linear import LinearLayout, unflatten
from ..matrices import ComponentMap, MatrixConfiguration
from ..ttgir.encodings import Encoding, FoldedEncoding, FragmentEncoding, NvidiaMmaEncoding
from ..ttgir.ir import Operation, Value
from ..ttgir.types import FloatType, IntegerType, MemDescType, TensorType, Type, operand_of
from .split_products import HALVES, OF_HALVES, SPLITS, WHOLE, Split

#: Bytes that the rows of a matrix in memory must be aligned to, or all of a row where that is less
#: (VUID-RuntimeSpirv-OpCooperativeMatrixLoadKHR-08986).
MATRIX_ALIGNMENT = 16

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


def split_of(operation: Operation) -> Split:
    """How the products of a tt.dot are made: of parts where its operands are f32 and may be rounded."""
    if operation.flag(OF_HALVES):
        return HALVES
    a, b = (value.type for value in operation.operands[:2])
    assert isinstance(a, TensorType) and isinstance(b, TensorType)
    if a.element == b.element == FloatType("f32"):
        return SPLITS.get(str(operation.attribute("inputPrecision")), WHOLE)
    return WHOLE


#: Component types of the products that products of f32 are made of.
_PARTS = ("bf16", "bf16", "f32", "f32")


def splits_floats(configurations: Sequence[MatrixConfiguration]) -> bool:
    """Whether ``configurations`` multiply f32 as parts."""
    return any(one.types == _PARTS and not one.saturating for one in configurations)


def suitable(operation: Operation, configurations: Sequence[MatrixConfiguration]) -> list[MatrixConfiguration]:
    """The configurations whose component types are right for a tt.dot, whatever its layouts: first those whose whole
    fragments are the fewest multiply-adds."""
    a, b, c = (value.type for value in operation.operands)
    assert isinstance(a, TensorType) and isinstance(c, TensorType)
    accumulator = _ACCUMULATORS.get(str(c.element))
    wanted = _component(a), _component(b), accumulator, accumulator
    if split_of(operation).parts > 1:
        wanted = _PARTS
    sizes = (*c.shape[-2:], a.shape[-1])

    def whole(one: MatrixConfiguration) -> int:
        return prod(-(-size // extent) * extent for size, extent in zip(sizes, (one.m, one.n, one.k), strict=True))

    return sorted((one for one in configurations if one.types == wanted and not one.saturating), key=whole)


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
    """The first configuration that does a tt.dot, and how; None if none does. ``encodings``: what to assume for A, B
    and C instead of their own."""
    layouts: list[LinearLayout] = []
    for index, value in enumerate(operation.operands):
        encoding = encodings[index] if encodings else value.tensor.encoding
        if encoding is None:
            return None
        try:
            layouts.append(distributed_layout(encoding, value.tensor.shape))
        except LayoutError:
            return None
    a, b, c = layouts
    for configuration in suitable(operation, configurations):
        plan = plan_matrix_dot(a, b, c, configuration)
        if plan is not None:
            return configuration, plan
    return None


# -- operands in shared memory -----------------------------------------------------------------------------------
@dataclass(frozen=True)
class Strided:
    """Where a buffer of rank 2 has its elements: (row, column) at ``stride`` × one of them plus the other, which is the
    column where ``row_major``. ``stride`` is in elements."""

    stride: int
    row_major: bool


def strided(buffer: Type) -> Strided | None:
    """How rows or columns of a buffer lie; None if they are not all at one distance."""
    if not isinstance(buffer, MemDescType) or len(buffer.shape) != 2 or buffer.alloc_shape not in ((), buffer.shape):
        return None
    try:
        layout = buffer_layout(buffer)
    except LayoutError:
        return None
    for row_major in (True, False):
        inner, outer = (1, 0) if row_major else (0, 1)

        def at(coordinate: int, inner: int = inner) -> int:
            return layout.offset((coordinate, 0) if inner == 1 else (0, coordinate))

        stride = at(1) if buffer.shape[outer] > 1 else buffer.shape[inner]
        if all(
            layout.offset((x, y)) == (x, y)[outer] * stride + (x, y)[inner]
            for x in _bits(buffer.shape[0])
            for y in _bits(buffer.shape[1])
        ):
            return Strided(stride, row_major)
    return None


def _bits(extent: int) -> list[int]:
    return [0, *(1 << bit for bit in range(extent.bit_length() - 1)), extent - 1]


def loads_matrices(load: Operation, configurations: Sequence[MatrixConfiguration]) -> bool:
    """Whether the dots that use a ttg.local_load can read their fragments from its buffer: rows at one distance, of
    which a fragment's are aligned, and fragments of neighbouring elements."""
    buffer, lie = load["src"].type, strided(load["src"].type)
    if (
        lie is None
        or not _placed(load["src"])
        or not isinstance(buffer, MemDescType)
        or not isinstance(buffer.element, FloatType | IntegerType)
    ):
        return False
    size = buffer.element.width // 8
    for dot in load.result.uses:
        chosen = choose(dot, configurations) if is_matrix_dot(dot) else None
        if chosen is None or load.result not in dot.operands[:2]:
            return False
        if split_of(dot).parts > 1:  # what is in the buffer is taken apart in registers
            return False
        configuration, plan = chosen
        use = dot.operands.index(load.result)
        rows, columns = configuration.extents[use]
        aligned = min(MATRIX_ALIGNMENT, (columns if lie.row_major else rows) * size)
        fragments = (plan.left, plan.right)[use]
        if lie.stride * size % aligned or not _neighbours(load.result.type, configuration.maps[use], fragments):
            return False
    return bool(load.result.uses)


def feeds_matrix_dots(value: Value) -> bool:
    """Whether it is an operand of dots of fragments, and nothing else."""
    dots = value.uses and all(use.name == "tt.dot" for use in value.uses)
    return bool(dots) and isinstance(operand_of(value.type), NvidiaMmaEncoding)


def is_taken_apart(load: Operation) -> bool:
    """Whether the dots that use a ttg.local_load multiply parts of its elements on matrix units."""
    return all(is_matrix_dot(use) and split_of(use).parts > 1 for use in load.result.uses)


def _placed(buffer: Value) -> bool:
    """Whether a buffer starts where upstream put it, or is the transpose of one that does."""
    owner = buffer.owner
    while isinstance(owner, Operation) and owner.name in ("ttg.memdesc_trans", "ttg.memdesc_reshape"):
        owner = owner["src"].owner
    return isinstance(owner, Operation) and owner.name == "ttg.local_alloc"


def _neighbours(tensor: Type, map_: ComponentMap, fragments: Sequence[Fragment]) -> bool:
    """Whether every fragment is a block of the tensor, with its elements where ``map_`` has them."""
    assert isinstance(tensor, TensorType) and tensor.encoding is not None
    layout = layout_of(tensor)
    images = layout.images("register")
    if any(basis != place for basis, place in zip(layout.bases["lane"], map_.lanes, strict=True)):
        return False
    for fragment in fragments:
        if fragment[0] is None:
            return False
        row, column = unflatten(images[fragment[0]], layout.shape)
        for component, register in enumerate(fragment):
            x, y = map_.place(component, 0)
            if register is None or unflatten(images[register], layout.shape) != (row ^ x, column ^ y):
                return False
    return True
