"""How much code operations become where it is repeated for each register: what the budgets of driver_quirks.py count.

Lengths are instructions of SPIR-V, roughly, of the code of one register. ``ttgir/operations/`` has those of operations,
``functions/forms.py`` those of functions that are called by symbol.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..driver_quirks import Driver
from ..functions.symbols import form_of
from ..layouts.distributed import LANE, LayoutError, layout_of
from ..layouts.strip_layouts import register_count
from ..ptx.program import Program
from ..ttgir.encodings import BlockedEncoding
from ..ttgir.ir import Operation
from ..ttgir.operations import MEDIUM, SHORT, definition_of, masks
from ..ttgir.types import FloatType, TensorType, Type, element_type
from .matrix_dots import unfolded

#: Instructions that unpack a number of four or eight bits, and that round a product of bfloat16.
UNPACKED, ROUNDED = 20, 14

#: Instructions that read a gathered element.
GATHERED = 8

#: Instructions that act on an element in memory in one piece: a branch, and often a loop that compares and swaps.
UPDATED = 64

#: Instructions of SPIR-V that one of PTX becomes, its operands' bits taken apart and put together.
_PTX = 5
_LONGER_PTX = {
    **dict.fromkeys("ex2 lg2 sin cos tanh".split(), MEDIUM),
    **dict.fromkeys("div rcp sqrt rsqrt cvt rem".split(), SHORT),
}


def length(operation: Operation, driver: Driver) -> int:
    """The length of the code of one register; 1 for what is an instruction at most."""
    if masks(operation):
        return driver.each_lane
    if operation.name == "tt.extern_elementwise":
        form = form_of(operation.attribute("symbol"), [operand.type for operand in operation.operands])
        return 1 if form is None else form.length
    if operation.name == "math.fma" and fma_is_one_instruction(element_type(operation.result.type), driver):
        return 1
    return definition_of(operation).length


def fma_is_one_instruction(element: Type, driver: Driver) -> bool:
    """Whether ``math.fma`` of this type is Fma of GLSL.std.450."""
    return driver.fused and element in (FloatType("f32"), FloatType("f64"))


def unrolled(operation: Operation, driver: Driver) -> int:
    """The length of the code of all registers; 0 for a scalar's, and for what is refused where it is lowered."""
    type_ = (operation.results or operation.operands)[0].type
    try:
        if operation.name == "tt.reduce":
            return _of_reduction(operation, driver)
        return register_count(type_) * length(operation, driver) if isinstance(type_, TensorType) else 0
    except LayoutError:
        return 0


def _of_reduction(operation: Operation, driver: Driver) -> int:
    type_, result = operation.operand_group("srcs")[0].tensor, operation.results[0].type
    results = register_count(result) if isinstance(result, TensorType) else 1
    combined = register_count(type_) * (len(operation.regions[0].entry.operations) - 1)
    return combined + len(operation.operands) * results * reduced_bits(operation, LANE) * driver.each_lane


def reduced_bits(operation: Operation, unit: str) -> int:
    """How many bits of the number of a register, lane or subgroup are places along the dimension that a reduction
    combines; 1 where the layout has no meaning."""
    try:
        bases = layout_of(operation.operand_group("srcs")[0].type).bases[unit]
    except LayoutError:
        return 1
    return sum(point[operation.attribute("axis")] != 0 for point in bases)


def of_assembly(program: Program) -> int:
    """The length of inline assembly, for one pack. Sums and products that are not rounded to nearest are long."""
    return sum(
        MEDIUM
        if {"rz", "rm", "rp"} & set(instruction.modifiers) and instruction.name in ("add", "sub", "mul", "fma")
        else _LONGER_PTX.get(instruction.name, _PTX)
        for instruction in program.instructions
    )


def multiply_adds(operations: Iterable[Operation]) -> int:
    """Multiply-adds of a lane in all dots of blocked tensors among ``operations``, each counted once however often a
    loop of the kernel runs it."""
    return sum(_of_dot(operation) for operation in operations if operation.name == "tt.dot")


def _of_dot(dot: Operation) -> int:
    left, result = dot["a"].tensor, dot.result.tensor
    if not isinstance(unfolded(result.encoding), BlockedEncoding):
        return 0
    return register_count(result) * left.shape[-1]
