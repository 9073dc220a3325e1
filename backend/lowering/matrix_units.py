"""What multiplies matrix fragments: the device's cooperative matrices (SPV_KHR_cooperative_matrix), or, so that
fragments can be tried on a device without them, shuffles and multiply-adds."""

from __future__ import annotations

from collections.abc import Sequence

from ..analysis.matrix_dots import Strided
from ..layouts.conversion import Identity, RegisterPermutation, plan_conversion
from ..layouts.distributed import LANE, REGISTER, WARP
from ..layouts.element_sizes import bits_in_memory
from ..layouts.linear import LinearLayout
from ..layouts.shuffles import SubgroupShuffle
from ..matrices import COMPONENT_BITS, ComponentMap, MatrixConfiguration, Position
from ..planning.plans import Conversion
from ..spirv import opcodes as op
from ..spirv.opcodes import Capability_, Glsl, MatrixOperands, MatrixUse, MemoryAccess, Scope
from ..ttgir.types import FloatType, IntegerType, Type
from .convert_layout import convert_registers
from .dot_operands import as_type
from .floats import F32
from .lowering import Lowering

#: Cooperative Matrix Layout (SPV_KHR_cooperative_matrix).
ROW_MAJOR, COLUMN_MAJOR = 0, 1


def component_type(name: str) -> Type:
    """The element type of TTGIR that a configuration's component type is."""
    return IntegerType(COMPONENT_BITS[name]) if name[0] in "su" else FloatType(name)


class MatrixUnit:
    """Multiplies the fragments of one configuration. A fragment is whatever ``left``, ``right`` and ``result`` make of
    the ids of its components."""

    def __init__(self, ctx: Lowering, configuration: MatrixConfiguration) -> None:
        self.ctx, self.configuration = ctx, configuration

    def fragment(self, use: int, components: Sequence[int]) -> object:
        """The fragment of operand A, B or the result (a MatrixUse) with these components."""
        raise NotImplementedError

    def multiply(self, left: object, right: object, result: object) -> object:
        """``left`` × ``right`` + ``result``."""
        raise NotImplementedError

    def components(self, result: object) -> list[int]:
        """The components of a result."""
        raise NotImplementedError


class CooperativeMatrices(MatrixUnit):
    """The device's own.

    Fragments of bfloat16 are loaded as float16 where the device holds both alike, and given their type in registers:
    NVIDIA's driver loads a fragment of float16 by four instructions (LDSM), one of bfloat16 element by element."""

    def __init__(self, ctx: Lowering, configuration: MatrixConfiguration) -> None:
        super().__init__(ctx, configuration)
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
        module = self.ctx.module
        if name == "bf16":
            module.capability(Capability_.BFloat16CooperativeMatrixKHR)
            return module.bfloat16()
        return self.ctx.type_id(component_type(name))

    def fragment(self, use: int, components: Sequence[int]) -> int:
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

    def multiply(self, left: object, right: object, result: object) -> int:
        assert isinstance(left, int) and isinstance(right, int) and isinstance(result, int)
        operands = (self._operands,) if self._operands else ()
        if self.configuration.mirrored:
            left, right = right, left
        return self.ctx.f.emit(
            op.CooperativeMatrixMulAddKHR, self.types[MatrixUse.Result], left, right, result, *operands
        )

    def components(self, result: object) -> list[int]:
        assert isinstance(result, int)
        count = 1 << len(self.configuration.maps[MatrixUse.Result].registers)
        scalar = self._scalars[MatrixUse.Result]
        return [self.ctx.f.emit(op.CompositeExtract, scalar, result, number) for number in range(count)]


class EmulatedMatrices(MatrixUnit):
    """Each lane gets the rows of A and columns of B that it needs from the others by shuffles, and multiplies and adds.
    Slow; right for every component map."""

    def __init__(self, ctx: Lowering, configuration: MatrixConfiguration) -> None:
        super().__init__(ctx, configuration)
        left, right, result = configuration.maps
        steps = [1 << bit for bit in range(configuration.k.bit_length() - 1)]
        rows, columns = ([basis[dim] for basis in result.registers] for dim in (0, 1))
        row_lanes, column_lanes = ([basis[dim] for basis in result.lanes] for dim in (0, 1))
        extents = configuration.extents
        self._held = [_layout(map_, extent) for map_, extent in zip((left, right), extents[:2], strict=True)]
        self._wanted = [
            _layout(
                ComponentMap(
                    tuple([(0, step) for step in steps] + [(row, 0) for row in rows]),
                    tuple((row, 0) for row in row_lanes),
                ),
                extents[0],
            ),
            _layout(
                ComponentMap(
                    tuple([(step, 0) for step in steps] + [(0, column) for column in columns]),
                    tuple((0, column) for column in column_lanes),
                ),
                extents[1],
            ),
        ]
        self._names = configuration.a, configuration.b

    def fragment(self, use: int, components: Sequence[int]) -> list[int]:
        if use == MatrixUse.Result:
            return list(components)
        ctx, type_ = self.ctx, component_type(self._names[use])
        held, wanted = self._held[use], self._wanted[use]
        plan = plan_conversion(held, wanted, bits_in_memory(type_) // 8)
        assert isinstance(plan, Identity | RegisterPermutation | SubgroupShuffle)
        moved = convert_registers(ctx, Conversion(moves=plan, source=held, target=wanted), list(components), type_)
        return [as_type(ctx, value, type_, F32) for value in moved]

    def multiply(self, left: object, right: object, result: object) -> list[int]:
        assert isinstance(left, list) and isinstance(right, list) and isinstance(result, list)
        f, steps = self.ctx.f, self.configuration.k
        floating = self.configuration.result == "f32"
        totals = []
        for component, total in enumerate(result):
            for step in range(steps):
                a, b = left[component * steps + step], right[component * steps + step]
                if floating:
                    total = f.glsl(Glsl.Fma, f.type_of(total), a, b, total)
                else:
                    total = f.add(f.mul(a, b), total)
            totals.append(total)
        return totals

    def components(self, result: object) -> list[int]:
        assert isinstance(result, list)
        return result


def _layout(map_: ComponentMap, extents: Position) -> LinearLayout:
    return LinearLayout({REGISTER: map_.registers, LANE: map_.lanes, WARP: ()}, extents)
