"""What every part of the lowering emits with: the module and function under construction, the target, the invocation.

Nothing here knows TTGIR's operations and values; ``lowering.py``, which does, is above it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..capabilities import Capabilities
from ..layouts.distributed import layout_of
from ..spirv import opcodes as op
from ..spirv.function import FunctionBuilder
from ..spirv.module import ModuleBuilder
from ..spirv.opcodes import BuiltIn, Capability_, StorageClass
from ..transforms.schedule import Options
from ..ttgir.types import TensorType, Type
from .element_types import ElementTypes

#: More than the number of a lane has.
_LANE_BITS = 16


@dataclass(frozen=True)
class Part:
    """What part of its grid a launch is: ids of its first program, and of the size of the whole grid, on each axis."""

    first: Sequence[int]
    size: Sequence[int]


class Emitter:
    """One function of a module: ``num_warps`` subgroups of ``subgroup_size`` invocations run it."""

    def __init__(
        self,
        module: ModuleBuilder,
        function: FunctionBuilder,
        capabilities: Capabilities,
        options: Options,
        num_warps: int,
        subgroup_size: int,
    ) -> None:
        self.module = module
        self.f = function
        self.capabilities = capabilities
        self.options = options
        self.num_warps = num_warps
        self.subgroup_size = subgroup_size
        #: Memory access bits of every access to device memory.
        self.global_access = 0
        self.elements = ElementTypes(module, capabilities)
        #: What part of the grid a launch is; None if it is all of it.
        self.part: Part | None = None
        self._inputs: dict[int, int] = {}

    def zero(self, width: int) -> int:
        """A 0 of so many bits, one that the driver does not know where that can be had."""
        zero = self.f.unknown_zero
        return self.f.zero_extend(zero, width) if zero else self.module.uint(0, width)

    # -- types and layouts ---------------------------------------------------------------------------------------
    layout = staticmethod(layout_of)

    def register_count(self, type_: Type) -> int:
        """Registers that hold a value of this type in one invocation; 1 for a scalar."""
        return 1 << len(self.layout(type_).bases["register"]) if isinstance(type_, TensorType) else 1

    def type_id(self, type_: Type) -> int:
        """The SPIR-V type of a scalar, or of a tensor's element."""
        return self.elements.type_id(type_)

    # -- built-ins -----------------------------------------------------------------------------------------------
    def _input(self, number: int, name: str) -> int:
        """A scalar built-in, read once at the start of the function."""
        known = self._inputs.get(number)
        if known is None:
            variable = self.module.built_in(number, self.module.u32, name)
            known = self._inputs[number] = self.f.load(self.module.u32, variable)
        return known

    def read_builtins(self) -> None:
        """Reads lane and warp in the entry block, where they dominate every use."""
        self.module.capability(Capability_.GroupNonUniform)
        self._input(BuiltIn.SubgroupLocalInvocationId, "lane")
        if self.num_warps > 1:
            warp = self._input(BuiltIn.SubgroupId, "warp")
            if self.options.asked.disorder:
                self._inputs[BuiltIn.SubgroupId] = self.f.sub(self.module.uint(self.num_warps - 1), warp)
        if self.capabilities.traits.faults.unmasked_loads:
            self.lane_zero()  # numbered here, it is the same everywhere; left out if nothing uses it

    def lane_zero(self) -> int:
        """A 64-bit 0 that drivers have to treat as another one for each lane."""
        return self.f.zero_extend(self.f.shr(self.lane, _LANE_BITS), 64)

    @property
    def lane(self) -> int:
        """The invocation's index in its subgroup."""
        return self._inputs[BuiltIn.SubgroupLocalInvocationId]

    @property
    def warp(self) -> int:
        """The subgroup's index in its workgroup."""
        return self._inputs[BuiltIn.SubgroupId] if self.num_warps > 1 else self.module.uint(0)

    def workgroup_built_in(self, number: int, name: str, axis: int) -> int:
        """Component ``axis`` of a three-component built-in: of the program in the grid for WorkgroupId, and of the grid
        for NumWorkgroups, also where a launch is a part of the grid."""
        module, part = self.module, self.part
        if part is not None and number == BuiltIn.NumWorkgroups:
            return part.size[axis]
        variable = module.built_in(number, module.vector(module.u32, 3), name)
        pointer = self.f.access(module.pointer(StorageClass.Input, module.u32), variable, module.uint(axis))
        # The value never changes, so equal reads may share one result.
        value = self.f.emit(op.Load, module.u32, pointer)
        return value if part is None else self.f.add(value, part.first[axis])

    def program_ids(self) -> list[int]:
        """The program's place in the grid: x, y, z."""
        return [self.workgroup_built_in(BuiltIn.WorkgroupId, "workgroup_id", axis) for axis in range(3)]

    # -- device memory -------------------------------------------------------------------------------------------
    def device_pointer(self, address: int, type_id: int) -> int:
        """A pointer to what lies at a 64-bit address."""
        return self.f.emit(op.ConvertUToPtr, self.module.pointer(StorageClass.PhysicalStorageBuffer, type_id), address)

    def integer_at(self, address: int, offset: int, bits: int = 32) -> int:
        """A pointer to an integer ``offset`` bytes behind a 64-bit address."""
        place = self.f.add(address, self.module.uint(offset, 64))
        return self.device_pointer(place, self.module.int(bits))
