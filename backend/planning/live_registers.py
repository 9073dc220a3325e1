"""Which registers of a tensor anything reads, which are those that are emitted.

An access of several elements reads the first of their pointers and of their masks; what these are computed from is
read in those registers only, through loops and branches too. One table says of an operation what it reads of its
operands for what is read of its result; one without a row reads everything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ..errors import LoweringError
from ..layouts.distributed import layout_of
from ..layouts.linear import LinearLayout
from ..layouts.renaming import Dimensions, broadcast, expanded, renamed_registers, transposed
from ..layouts.strip_layouts import line_starts
from ..transforms.strip_loops import ROUNDS
from ..ttgir.ir import Block, Function, Operation, Value
from ..ttgir.operations import masks
from ..ttgir.types import TensorType
from .plans import GlobalAccess, Plan

#: A set of registers: bit n is register n.
Registers: TypeAlias = int
ALL: Registers = -1


@dataclass(frozen=True, repr=False)
class LiveRegisters:
    """``partial``: of the tensors of which not every register is read, those that are. ``renamed``: of operations that
    only give elements other coordinates, the register of the operand that each of the result is."""

    partial: Mapping[Value, Registers] = field(default_factory=dict)
    renamed: Mapping[Operation, tuple[int, ...]] = field(default_factory=dict)

    def of(self, value: Value) -> Registers:
        """The registers of a value that are read."""
        return self.partial.get(value, ALL)


#: Element by element: an element is read where the result's is.
_ELEMENTWISE = (
    *(f"arith.{name}" for name in ("addi", "subi", "muli", "andi", "ori", "xori", "shli", "shrsi", "shrui")),
    *(f"arith.{name}" for name in ("divsi", "divui", "remsi", "remui", "minsi", "maxsi", "minui", "maxui")),
    *(f"arith.{name}" for name in ("cmpi", "extsi", "extui", "trunci", "select")),
    "tt.addptr",
)


class _Reading:
    """The walk from the last operation to the first."""

    def __init__(self, plans: Mapping[Operation, Plan], checked: bool) -> None:
        self.plans, self.checked = plans, checked
        self.read: dict[Value, Registers] = {}
        #: What is emitted as it is read.
        self.decided: dict[Value, None] = {}
        self.renamed: dict[Operation, tuple[int, ...]] = {}

    def note(self, value: Value, registers: Registers) -> None:
        """Notes that these registers of a value are read."""
        if isinstance(value.type, TensorType):
            self.read[value] = self.read.get(value, 0) | registers

    def of(self, value: Value) -> Registers:
        return self.read.get(value, 0)

    def block(self, block: Block) -> None:
        """All operations of a block but its terminator, backwards."""
        for operation in block.operations[-2::-1]:
            row = _ROWS.get(operation.name)
            if row is not None:
                row(self, operation)
            else:
                _everything(self, operation)


def _everything(reading: _Reading, operation: Operation) -> None:
    for region in operation.regions:
        for block in region.blocks:
            for value in block.terminator.operands:
                reading.note(value, ALL)
            reading.block(block)
    for value in operation.operands:
        reading.note(value, ALL)


def _elementwise(reading: _Reading, operation: Operation) -> None:
    registers = reading.of(operation.result)
    reading.decided[operation.result] = None
    for value in operation.operands:
        reading.note(value, registers)


def _made(reading: _Reading, operation: Operation) -> None:
    reading.decided[operation.result] = None


def _rename(dimensions: Callable[[Operation], Dimensions]) -> Callable[[_Reading, Operation], None]:
    def row(reading: _Reading, operation: Operation) -> None:
        source, result = operation["src"], operation.result
        reading.decided[result] = None
        sources = reading.renamed.get(operation)
        if sources is None:
            try:
                sources = renamed_registers(_layout(source), _layout(result), dimensions(operation))
            except KeyError as missing:
                raise LoweringError(
                    f"{operation.location}: '{operation.name}': element {missing} of {source.type} is not held where "
                    "the result needs it"
                ) from missing
            reading.renamed[operation] = sources
        wanted, registers = reading.of(result), 0
        if wanted == ALL:
            registers = ALL
        elif wanted:
            for register, origin in enumerate(sources):
                if wanted >> register & 1:
                    registers |= 1 << origin
        reading.note(source, registers)

    return row


def _layout(value: Value) -> LinearLayout:
    assert isinstance(value.type, TensorType)
    return layout_of(value.type)


def _access(reading: _Reading, operation: Operation) -> None:
    """``tt.load`` and ``tt.store``: of what is accessed together the first pointer and the first of the mask."""
    plan, pointer = reading.plans.get(operation), operation["ptr"]
    if reading.checked or not isinstance(plan, GlobalAccess) or plan.width == 1:
        return _everything(reading, operation)
    count = 1 << len(_layout(pointer).bases["register"])
    firsts = ((1 << count) - 1) // ((1 << plan.width) - 1)
    once = [pointer, *masks(operation)]
    for value in operation.operands:
        reading.note(value, firsts if value in once else ALL)
    return None


def _for(reading: _Reading, operation: Operation) -> None:
    """What is carried is read where it is read in the body or behind the loop."""
    body, results = operation.regions[0].entry, operation.results
    carried = body.arguments[1:]
    reading.decided |= dict.fromkeys([*carried, *results])
    for argument, result in zip(carried, results, strict=True):
        reading.note(argument, reading.of(result))
    while True:
        before = [reading.of(argument) for argument in carried]
        for value, registers in zip(body.terminator.operands, before, strict=True):
            reading.note(value, registers)
        reading.block(body)
        if before == [reading.of(argument) for argument in carried]:
            break
    for result, initial, registers in zip(results, operation.operands[3:], before, strict=True):
        reading.note(result, registers)
        reading.note(initial, registers)


def _if(reading: _Reading, operation: Operation) -> None:
    reading.decided |= dict.fromkeys(operation.results)
    for region in operation.regions:
        for block in region.blocks:
            for value, result in zip(block.terminator.operands, operation.results, strict=True):
                reading.note(value, reading.of(result))
            reading.block(block)


def _rounds(reading: _Reading, operation: Operation) -> None:
    """Where each row of A and each column of B begins."""
    left, right = operation.attribute("turned")
    for pointers, dim in ((operation["left"], left[-1]), (operation["right"], right[-2])):
        starts = line_starts(pointers.tensor, dim)
        assert starts is not None
        reading.note(pointers, sum(1 << register for register in set(starts[0])))
    for value in operation.operands[3:]:
        reading.note(value, ALL)


#: Operation → what it notes.
_ROWS: dict[str, Callable[[_Reading, Operation], None]] = {
    **dict.fromkeys(_ELEMENTWISE, _elementwise),
    "tt.make_range": _made,
    "tt.splat": _made,
    "arith.constant": _made,
    "tt.broadcast": _rename(lambda operation: broadcast(_layout(operation["src"]).shape)),
    "tt.expand_dims": _rename(
        lambda operation: expanded(_layout(operation["src"]).rank, int(operation.attribute("axis")))
    ),
    "tt.trans": _rename(lambda operation: transposed(list(operation.attribute("order")))),
    ROUNDS: _rounds,
    "tt.load": _access,
    "tt.store": _access,
    "scf.for": _for,
    "scf.if": _if,
}


def find_live_registers(kernel: Function, plans: Mapping[Operation, Plan], checked: bool) -> LiveRegisters:
    """What is read in a kernel of one block. ``checked``: each access is, by its own pointer and mask."""
    assert kernel.body is not None
    reading = _Reading(plans, checked)
    for block in kernel.body.blocks:
        for value in block.terminator.operands:
            reading.note(value, ALL)
        reading.block(block)
    partial = {}
    for value in reading.decided:
        registers = reading.of(value)
        if registers >= 0 and isinstance(value.type, TensorType):
            every = (1 << (1 << len(_layout(value).bases["register"]))) - 1
            if registers & every != every:
                partial[value] = registers
    return LiveRegisters(partial, reading.renamed)
