"""What a lowering rule works with: the function under construction, the values so far, and the target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from ..analysis.barriers import Need
from ..capabilities import Capabilities
from ..layouts.element_sizes import bytes_in_memory
from ..planning.buffers import BufferView
from ..planning.kernel_plan import KernelPlan
from ..planning.memory_pools import first_element
from ..planning.plans import Failed, Plan
from ..spirv.function import FunctionBuilder
from ..spirv.module import ModuleBuilder
from ..spirv.opcodes import Scope
from ..transforms.schedule import Options
from ..ttgir.ir import Module, Operation, Value
from ..ttgir.types import MemDescType, TensorType
from .bounds_check import Bounds
from .disorder import Disorder
from .emitter import Emitter
from .errors import LoweringError, UnsupportedOperation
from .reports import Reports
from .workgroup_memory import SharedBuffer, SharedMemory, SharedOperand


@dataclass(frozen=True)
class RegisterArray:
    """A variable with an element of type ``type_id`` for each register of a tensor; ``places``: where each is, as
    layouts/strips.array_places says for ``dim``."""

    variable: int
    type_id: int
    places: tuple[int, ...]
    dim: int


@dataclass(frozen=True)
class UnmadeRegisters:
    """A tensor that its use computes (planning/plans.Unmade): a register is ``emit(*row)`` of its row of ``rows``."""

    rows: Sequence[tuple[int, ...]]
    emit: Callable[..., int]


#: A scalar is one id; a tensor is one id a register of its layout.
Lowered: TypeAlias = "int | list[int] | SharedBuffer | SharedOperand | RegisterArray | UnmadeRegisters"

P = TypeVar("P", bound=Plan)

#: Stands for the id of a register that nothing reads (planning/live_registers.py). It is no id: what takes it after all
#: has no type, or cannot be encoded, so that no module comes of it.
UNREAD = -1


class Lowering(Emitter):
    """The lowering of one function: an emitter with the values so far, and what is planned."""

    def __init__(
        self,
        source: Module,
        module: ModuleBuilder,
        function: FunctionBuilder,
        capabilities: Capabilities,
        options: Options,
        shared: SharedMemory,
        plan: KernelPlan,
    ) -> None:
        warps, lanes = source.warps, source.lanes
        super().__init__(module, function, capabilities, options, warps, lanes)
        self.source = source
        self.shared = shared
        self.disorder = Disorder()
        #: What was decided of the kernel; of one operation: ``plan_of``.
        self.plan = plan
        #: Pointer → the argument that it is held as a 32-bit byte offset from (planning/pointers.py).
        self.pointer_bases = plan.pointers.bases
        #: The arguments that pointers are held as offsets from → their addresses.
        self.base_addresses: dict[Value, int] = {}
        #: The report buffer; its address is 0 in a kernel that reports nothing.
        self.reports = Reports(0)
        #: The address of the launch's global scratch memory; 0 in a kernel that has none (lowering/global_scratch.py).
        self.global_scratch = 0
        #: What accesses are checked against; None if they are not checked.
        self.bounds: Bounds | None = None
        #: What is being lowered.
        self.operation: Operation | None = None
        self._values: dict[Value, Lowered] = {}

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
        """The ids of a value, one per register; a scalar has one."""
        lowered = self._values[value]
        if isinstance(lowered, int):
            return [lowered]
        if isinstance(lowered, SharedOperand):
            raise LoweringError(f"{value.type} was left in shared memory but is not used by a dot")
        if not isinstance(lowered, list):
            raise LoweringError(f"a tensor or scalar was expected, not {value.type}")
        return lowered

    def addresses(self, pointer: Value, width: int = 1) -> list[int]:
        """The 64-bit addresses that a pointer's registers 0, ``width``, 2·``width``, … hold."""
        registers = self.registers(pointer)[::width]
        base = self.pointer_bases.get(pointer)
        if base is None:
            return registers
        f, address = self.f, self.base_addresses[base]
        return [f.add(address, f.sign_extend(offset, 64)) for offset in registers]

    def address(self, pointer: Value, register: int) -> int:
        """The 64-bit address that one register of a tensor of pointers holds."""
        offset, base = self.registers(pointer)[register], self.pointer_bases.get(pointer)
        return offset if base is None else self.f.add(self.base_addresses[base], self.f.sign_extend(offset, 64))

    def define(self, value: Value, registers: Sequence[int]) -> None:
        """Sets a result: all registers of a tensor, or the one of a scalar or buffer (see ``carried``)."""
        if isinstance(value.type, MemDescType):
            self._values[value] = SharedBuffer(self.plan.buffers[value], registers[0])
        else:
            self._values[value] = list(registers) if isinstance(value.type, TensorType) else registers[0]

    def ids(self, value: Value) -> list[int]:
        """The ids that a value has so far; none for what is in shared memory."""
        lowered = self._values.get(value)
        return [lowered] if isinstance(lowered, int) else lowered if isinstance(lowered, list) else []

    def alias(self, value: Value, other: Value) -> None:
        """Makes ``value`` the same registers as ``other``."""
        self._values[value] = self._values[other]

    # -- buffers in shared memory --------------------------------------------------------------------------------
    def view_of(self, operation: Operation) -> BufferView:
        """Where the buffer that an operation gives lies. Raises what kept that from being planned."""
        if operation.result not in self.plan.buffers:
            self.plan_of(operation, Plan)
        return self.plan.buffers[operation.result]

    def carried(self, value: Value) -> list[int]:
        """The ids that a branch or loop carries for a value; of a buffer, or a slice of one, the number of its first
        element."""
        lowered = self._values[value]
        if not isinstance(lowered, SharedBuffer):
            return self.registers(value)
        view = lowered.view
        start = view.start_of_slice()
        if start is None:
            assert isinstance(value.owner, Operation)
            raise UnsupportedOperation(
                value.owner,
                "a loop or branch carries a slice of a buffer whose elements are arranged differently in other slices",
                "carry the buffer, and slice it where it is used",
            )
        first = self.module.uint(first_element(view.first, bytes_in_memory(view.type.element)) + start)
        return [first if lowered.moved is None else self.f.add(lowered.moved, first)]

    # -- barriers and workgroup memory ---------------------------------------------------------------------------
    def barrier(self, global_memory: bool = False, scope: int = Scope.Workgroup) -> None:
        """All invocations of the workgroup wait for each other, and see each other's writes to shared memory and, with
        ``global_memory``, to device memory; with scope Device, so do other workgroups that synchronise with it."""
        if self.num_warps == 1 and not global_memory:
            self.shared.barrier(self.f, self.plan.reads_first.barriers, Scope.Subgroup, Scope.Subgroup)
        else:
            self.shared.barrier(self.f, global_memory or self.plan.reads_first.barriers, Scope.Workgroup, scope)
            self.disorder.delay(self)

    def subgroup_barrier(self) -> None:
        """The invocations of each subgroup wait for each other, and see each other's writes to shared memory."""
        self.shared.barrier(self.f, False, Scope.Subgroup, Scope.Subgroup)

    def wait_for_reads(self) -> None:
        """All invocations have read from device memory what they had to before one writes there."""
        scope = Scope.Subgroup if self.num_warps == 1 else Scope.Workgroup
        self.shared.barrier(self.f, True, scope, scope)
        self.disorder.delay(self)

    def wait(self, need: Need) -> None:
        """A planned barrier, as strong as it has to be."""
        if need == Need.WORKGROUP:
            self.barrier()
        elif need == Need.SUBGROUP:
            self.subgroup_barrier()
