"""What multiplies matrix fragments: the device's cooperative matrices (SPV_KHR_cooperative_matrix)."""

from __future__ import annotations

from collections.abc import Sequence

from ..analysis.matrix_dots import Strided
from ..matrices import COMPONENTS, MatrixConfiguration
from ..spirv import opcodes as op
from ..spirv.module import ENCODED_FLOATS
from ..spirv.opcodes import Capability_, MatrixOperands, MatrixUse, MemoryAccess, Scope
from ..ttgir.types import FloatType, IntegerType, Type
from .lowering import Lowering

#: Cooperative Matrix Layout (SPV_KHR_cooperative_matrix).
ROW_MAJOR, COLUMN_MAJOR = 0, 1


def component_type(name: str) -> Type:
    """The element type of TTGIR that a configuration's component type is."""
    return IntegerType(COMPONENTS[name].bits) if name[0] in "su" else FloatType(name)


class MatrixUnit:
    """Multiplies the fragments of one configuration. A fragment is the id of a cooperative matrix.

    Fragments of bfloat16 are loaded as float16 where the device holds both alike, and given their type in registers:
    NVIDIA's driver loads a fragment of float16 by four instructions (LDSM), one of bfloat16 element by element."""

    def __init__(self, ctx: Lowering, configuration: MatrixConfiguration) -> None:
        self.ctx, self.configuration = ctx, configuration
        module = ctx.module
        module.capability(Capability_.CooperativeMatrixKHR)
        module.extension("SPV_KHR_cooperative_matrix")
        scope = module.uint(Scope.Subgroup)
        names = configuration.a, configuration.b, configuration.result
        self._scalars = [self._scalar(name) for name in names]
        self.types = [self._matrix(scalar, scope, use) for use, scalar in enumerate(self._scalars)]
        halves = module.float(16) if self._alike() else None
        self._loaded = [self._matrix(halves, scope, use) for use in range(2)] if halves else self.types
        signed = (
            (configuration.a, MatrixOperands.SignedA),
            (configuration.b, MatrixOperands.SignedB),
            (configuration.c, MatrixOperands.SignedC),
            (configuration.result, MatrixOperands.SignedResult),
        )
        self._operands = sum(bit for name, bit in signed if name.startswith("s"))

    def _matrix(self, scalar: int, scope: int, use: int) -> int:
        rows, columns = self.configuration.extents[use]
        if self.configuration.mirrored:  # the unit's A is the transpose of B
            rows, columns = columns, rows
            use = (MatrixUse.B, MatrixUse.A, MatrixUse.Result)[use]
        return self.ctx.module.cooperative_matrix(scalar, scope, rows, columns, use)

    def _alike(self) -> bool:
        """Whether operands are of bfloat16, and fragments of float16 have the same elements in the same components."""
        own = self.configuration
        return own.a == own.b == "bf16" and any(
            one.a == one.b == "f16" and (one.extents, one.maps[:2]) == (own.extents, own.maps[:2])
            for one in self.ctx.options.matrices
        )

    def loaded_as(self, element: Type) -> Type:
        """The type of the elements that ``load`` reads, for operands of ``element``."""
        return element if self._loaded is self.types else FloatType("f16")

    def _scalar(self, name: str) -> int:
        if name in ENCODED_FLOATS:
            return self.ctx.module.encoded_component(name)
        return self.ctx.type_id(component_type(name))

    def fragment(self, use: int, components: Sequence[int]) -> int:
        """The fragment of operand A, B or the result (a MatrixUse) with these components."""
        f, scalar, type_id = self.ctx.f, self._scalars[use], self.types[use]
        values = [f.bitcast(component, scalar) for component in components]
        if len(set(values)) == 1:
            return f.emit(op.CompositeConstruct, type_id, values[0])
        fragment = self.ctx.module.null(type_id)
        for number, value in enumerate(values):
            fragment = f.emit(op.CompositeInsert, type_id, value, fragment, number)
        return fragment

    def load(self, use: int, pointer: int, lie: Strided) -> int:
        """The fragment of operand A or B whose first element is at ``pointer``, in workgroup memory."""
        module = self.ctx.module
        order = module.uint(ROW_MAJOR if lie.row_major != self.configuration.mirrored else COLUMN_MAJOR)
        f, loaded = self.ctx.f, self._loaded[use]
        words = pointer, order, module.uint(lie.stride), MemoryAccess.NonPrivatePointer
        fragment = f.effect(op.CooperativeMatrixLoadKHR, loaded, *words)
        if loaded == self.types[use]:
            return fragment
        count = 1 << len(self.configuration.maps[use].registers)
        return self.fragment(
            use, [f.emit(op.CompositeExtract, module.float(16), fragment, number) for number in range(count)]
        )

    def multiply(self, left: int, right: int, result: int) -> int:
        """``left`` × ``right`` + ``result``."""
        operands = (self._operands,) if self._operands else ()
        if self.configuration.mirrored:
            left, right = right, left
        return self.ctx.f.emit(
            op.CooperativeMatrixMulAddKHR, self.types[MatrixUse.Result], left, right, result, *operands
        )

    def components(self, result: int) -> list[int]:
        """The components of a result."""
        count = 1 << len(self.configuration.maps[MatrixUse.Result].registers)
        scalar = self._scalars[MatrixUse.Result]
        return [self.ctx.f.emit(op.CompositeExtract, scalar, result, number) for number in range(count)]
