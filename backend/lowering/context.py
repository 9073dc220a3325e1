"""What a lowering rule works with: the function under construction, the values so far, and the target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, TypeVar

from ..analysis.barrier_filter import Need
from ..analysis.implied_barriers import stands_for_barrier
from ..capabilities import Capabilities
from ..layouts.distributed import distributed_layout
from ..layouts.linear import LinearLayout
from ..planning.options import Options
from ..planning.plans import Failed, Plan
from ..planning.table import KernelPlan
from ..spirv import opcodes as op
from ..spirv.function import FunctionBuilder
from ..spirv.module import ModuleBuilder
from ..spirv.opcodes import BuiltIn, Capability_, Scope, StorageClass
from ..ttgir.ir import Module, Operation, Value
from ..ttgir.types import TensorType, Type
from .bounds import Bounds
from .debug_info import located, name_registers
from .elements import ElementTypes
from .errors import LoweringError, UnsupportedOperation
from .linear import unique_owner
from .refusals import refusal
from .registry import RULES, Rule
from .reports import Reports
from .shared_memory import SharedBuffer, SharedMemory, SharedOperand

#: A scalar is one id; a tensor is one id a register of its layout.
Lowered: TypeAlias = "int | list[int] | SharedBuffer | SharedOperand"

P = TypeVar("P", bound=Plan)


class Context:
    """State of the lowering of one function."""

    def __init__(
        self,
        source: Module,
        module: ModuleBuilder,
        function: FunctionBuilder,
        capabilities: Capabilities,
        options: Options,
        shared: SharedMemory,
        plan: KernelPlan,
        pointer_bases: dict[Value, Value],
    ) -> None:
        self.source = source
        self.module = module
        self.f = function
        self.capabilities = capabilities
        self.options = options
        self.shared = shared
        #: What was decided of the kernel; of one operation: ``plan_of``.
        self.plan = plan
        #: Pointer → the argument that it is held as a 32-bit byte offset from (analysis/pointer_range.py).
        self.pointer_bases = pointer_bases
        #: Those arguments → their addresses.
        self.base_addresses: dict[Value, int] = {}
        self._barriers = 0
        #: The report buffer; its address is 0 in a kernel that reports nothing.
        self.reports = Reports(0)
        #: The address of the launch's global scratch memory; 0 in a kernel that has none (lowering/global_scratch.py).
        self.global_scratch = 0
        #: What accesses are checked against; None where they are not checked.
        self.bounds: Bounds | None = None
        #: Memory access bits of every access to device memory.
        self.global_access = 0
        self.elements = ElementTypes(module, capabilities)
        self.num_warps = int(source.attributes["ttg.num-warps"])
        self.subgroup_size = int(source.attributes["ttg.threads-per-warp"])
        self._values: dict[Value, Lowered] = {}
        self._inputs: dict[int, int] = {}

    def plan_of(self, operation: Operation, kind: type[P]) -> P:
        """The plan of an operation. Raises what kept it from being planned."""
        plan = self.plan.plans[operation]
        if isinstance(plan, Failed):
            assert plan.error is not None
            raise plan.error
        assert isinstance(plan, kind), (operation.name, plan)
        return plan

    # -- values --------------------------------------------------------------------------------------------------
    def __getitem__(self, value: Value) -> Lowered:
        return self._values[value]

    def __setitem__(self, value: Value, lowered: Lowered) -> None:
        self._values[value] = lowered

    def scalar(self, value: Value) -> int:
        """The id of a scalar value."""
        lowered = self._values[value]
        if not isinstance(lowered, int):
            raise LoweringError(f"a scalar was expected, not {value.type}")
        return lowered

    def registers(self, value: Value) -> list[int]:
        """The ids of a value, one a register; a scalar has one."""
        lowered = self._values[value]
        if isinstance(lowered, int):
            return [lowered]
        if isinstance(lowered, SharedOperand):
            raise LoweringError(f"{value.type} was left in shared memory but is not used by a dot")
        if not isinstance(lowered, list):
            raise LoweringError(f"a tensor or scalar was expected, not {value.type}")
        return lowered

    def addresses(self, pointer: Value, width: int = 1) -> list[int]:
        """The 64-bit addresses that a pointer's registers hold: those of registers 0, ``width``, 2·``width``, …"""
        registers = self.registers(pointer)[::width]
        base = self.pointer_bases.get(pointer)
        if base is None:
            return registers
        f, address = self.f, self.base_addresses[base]
        return [f.add(address, f.sign_extend(offset, 64)) for offset in registers]

    def define(self, value: Value, registers: Sequence[int]) -> None:
        """Sets a result: all registers of a tensor, or the one of a scalar."""
        self._values[value] = list(registers) if isinstance(value.type, TensorType) else registers[0]

    def alias(self, value: Value, other: Value) -> None:
        """Makes ``value`` the same registers as ``other``."""
        self._values[value] = self._values[other]

    # -- types and layouts ---------------------------------------------------------------------------------------
    def layout(self, tensor: Type) -> LinearLayout:
        """The layout of a tensor type: which (register, lane, warp) holds which element."""
        assert isinstance(tensor, TensorType) and tensor.encoding is not None, str(tensor)
        return distributed_layout(tensor.encoding, tensor.shape)

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
            self._input(BuiltIn.SubgroupId, "warp")

    @property
    def lane(self) -> int:
        """The invocation's index in its subgroup."""
        return self._inputs[BuiltIn.SubgroupLocalInvocationId]

    @property
    def warp(self) -> int:
        """The subgroup's index in its workgroup."""
        return self._inputs[BuiltIn.SubgroupId] if self.num_warps > 1 else self.module.uint(0)

    def owner(self, type_: Type) -> int:
        """A boolean id, true in one invocation for each element of a tensor, or in one for a scalar: where a store is
        to happen once."""
        if isinstance(type_, TensorType):
            return unique_owner(self, self.layout(type_))
        f, zero = self.f, self.module.uint(0)
        return f.logical_and(f.compare(op.IEqual, self.lane, zero), f.compare(op.IEqual, self.warp, zero))

    def workgroup_built_in(self, number: int, name: str, axis: int) -> int:
        """Component ``axis`` of a three-component built-in (WorkgroupId, NumWorkgroups)."""
        module = self.module
        variable = module.built_in(number, module.vector(module.u32, 3), name)
        pointer = self.f.access(module.pointer(StorageClass.Input, module.u32), variable, module.uint(axis))
        # The value never changes, so equal reads may share one result.
        return self.f.emit(op.Load, module.u32, pointer)

    def barrier(self, global_memory: bool = False, scope: int = Scope.Workgroup) -> None:
        """All invocations of the workgroup wait for each other, and see each other's writes to shared memory and, with
        ``global_memory``, to device memory; with scope Device, so do other workgroups that synchronise with it."""
        self._barriers += 1
        if self.num_warps == 1 and not global_memory:
            self.subgroup_barrier()
        else:
            self.shared.barrier(self.f, global_memory, Scope.Workgroup, scope)

    def subgroup_barrier(self) -> None:
        """The invocations of each subgroup wait for each other, and see each other's writes to shared memory."""
        self.shared.barrier(self.f, False, Scope.Subgroup, Scope.Subgroup)

    # -- the driver loop -----------------------------------------------------------------------------------------
    def lower(self, operation: Operation) -> None:
        """Lowers one operation by its rule; an error without a place gets this operation's."""
        rule = RULES.get(operation.name)
        if rule is None:
            raise refusal(operation)
        barriers = self._barriers
        try:
            if self.f.lines is None:
                rule(self, operation)
            else:
                self._lower_with_places(rule, operation)
        except (UnsupportedOperation, LoweringError):
            raise
        except NotImplementedError as error:
            raise UnsupportedOperation(operation, str(error)) from error
        except Exception as error:
            raise LoweringError(
                f"{operation.location}: while lowering '{operation.name}': {type(error).__name__}: {error}"
            ) from error
        if barriers == self._barriers and stands_for_barrier(operation, self.shared.used, self.plan.needs):
            self.wait(operation)

    def _lower_with_places(self, rule: Rule, operation: Operation) -> None:
        with located(self.f, operation):
            rule(self, operation)
        for result in operation.results:
            lowered = self._values.get(result)
            if isinstance(lowered, int):
                name_registers(self.f, operation.location, [lowered])
            elif isinstance(lowered, list):
                name_registers(self.f, operation.location, lowered)

    def wait(self, operation: Operation) -> None:
        """The barrier that ``operation`` is or stands for, as strong as it has to be."""
        need = self.plan.needs.get(operation, Need.WORKGROUP)
        if need == Need.WORKGROUP:
            self.barrier(global_memory=operation.attributes.get("addrSpace", "local") != "local")
        elif need == Need.SUBGROUP:
            self.subgroup_barrier()
