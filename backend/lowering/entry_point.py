"""A whole TTGIR module to SPIR-V: the entry point, its arguments, its body."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..abi.block import FIRST_PROGRAM, GLOBAL_SCRATCH, GRID_SIZE, REPORTS, ArgumentBlock, hidden_arguments
from ..optional import CARRIED_WORDS, CONSTANT_FOLDING, SIMPLIFICATION, VALUE_NUMBERING, note
from ..planning.kernel_plan import Planned
from ..spirv.float_modes import float_modes
from ..spirv.function import FunctionBuilder
from ..spirv.module import ModuleBuilder
from ..spirv.opcodes import ExecutionMode_, MemoryAccess
from ..transforms.kernel_function import kernel_of
from ..ttgir.ir import UNKNOWN, Function
from . import families  # noqa: F401  (fills the registry)
from .arguments import read_arguments
from .debug_info import source_lines
from .emitter import Part
from .global_scratch import GlobalScratch
from .lowering import Lowering
from .race_check import RaceCheck
from .registry import lower
from .report_kinds import KINDS, PROGRAM_RACES, RACES, ReportKind
from .reports import Reports
from .shared_watch import SharedSurvey, Watch
from .watched_programs import note_watch
from .workgroup_memory import SharedMemory


@dataclass(frozen=True)
class LoweredKernel:
    """A compiled kernel.

    ``name``: of the entry point. ``workgroup_size``: invocations. ``shared_bytes``: workgroup memory taken.
    ``global_scratch``: where it is not empty, its address is an argument after the kernel's own.
    ``argument_bytes``: of the argument block. ``indirect_arguments``: the push constant is the block's address.
    ``written``: the numbers of the arguments that it may write through; None: any.
    ``reports``: the messages that the report buffer refers to; where there are any, its address is the last argument.
    ``with_lines``: the module with the lines of its source, where they were asked for; ``spirv`` has its instructions.
    """

    name: str
    spirv: bytes
    workgroup_size: int
    shared_bytes: int
    argument_bytes: int
    indirect_arguments: bool
    global_scratch: GlobalScratch
    reports: list[dict[str, Any]]
    written: list[int] | None
    with_lines: bytes | None = None


def emit(planned: Planned, lines: bool = False) -> LoweredKernel:
    """The kernel as it was planned; with ``lines``, also the module with those of its source. Raises
    UnsupportedOperation for what this backend refuses."""
    kinds = [kind for kind in KINDS if kind.wanted(planned)]
    if RACES not in kinds:
        return _emit(planned, kinds, None, lines)
    survey = SharedSurvey()
    _emit(planned, kinds, survey, False)
    return _emit(planned, kinds, RaceCheck(survey), lines)


def _emit(planned: Planned, kinds: Sequence[ReportKind], watch: Watch | None, lines: bool) -> LoweredKernel:
    source, plan, capabilities, options = planned.source, planned.plan, planned.capabilities, planned.options
    kernel = kernel_of(source)
    module = ModuleBuilder()
    shared = SharedMemory(module, plan.view, watch)
    module.note(note(options.asked.without))
    function = FunctionBuilder(module, module.void, faults=capabilities.traits.faults)
    has = options.asked.has
    function.folds, function.numbers = has(CONSTANT_FOLDING), has(VALUE_NUMBERING)
    function.simplifies, function.carries_words = has(SIMPLIFICATION), has(CARRIED_WORDS)
    function.carries_matrices = capabilities.traits.carries_matrices
    if options.asked.debug_info or lines:
        function.lines = source_lines(kernel)
    assert kernel.body is not None
    ctx = Lowering(source, module, function, capabilities, options, shared, plan)
    scratch = GlobalScratch.of(source)
    block = _enter(ctx, kernel, kinds, bool(scratch.size))
    for operation in kernel.body.entry.operations:
        lower(ctx, operation)
    if kinds and not ctx.reports.messages:  # no loop that is watched was emitted, and the buffer is an argument
        ctx.reports.message("loop", UNKNOWN)
    if PROGRAM_RACES in kinds:
        note_watch(ctx, kernel, block, bool(scratch.size))
    shared_bytes = shared.finish()
    assert shared_bytes <= plan.shared_bytes, f"{shared_bytes} bytes of shared memory, {plan.shared_bytes} planned"
    size = ctx.num_warps * ctx.subgroup_size
    body = function.finish()
    modes = float_modes(module, capabilities.has)
    module.set_entry(function.id, kernel.name, [[ExecutionMode_.LocalSize, size, 1, 1], *modes])
    spirv = module.finish(body)
    located = None if function.lines is None else module.finish(function.lines.inserted(module, body), variables=True)
    return LoweredKernel(
        kernel.name,
        located if located is not None and options.asked.debug_info else spirv,
        size,
        shared_bytes,
        block.bytes,
        block.is_indirect(capabilities.push_constant_bytes),
        scratch,
        ctx.reports.messages,
        plan.pointers.written,
        located,
    )


def _enter(ctx: Lowering, kernel: Function, kinds: Sequence[ReportKind], scratch: bool) -> ArgumentBlock:
    """Reads, at the start of the kernel, all that rules may use anywhere: built-ins, arguments, and through those what
    ``kinds`` of reports need. Gives the layout of the arguments. ``scratch``: the kernel takes global scratch
    memory."""
    if ctx.plan.pointers.communicates:
        ctx.global_access = MemoryAccess.NonPrivatePointer
    ctx.read_builtins()
    block, addresses = read_arguments(ctx, kernel, hidden_arguments(scratch, bool(kinds), ctx.options.asked.split_grid))
    ctx.global_scratch = addresses.get(GLOBAL_SCRATCH, 0)
    if ctx.options.asked.split_grid:
        ctx.part = Part([addresses[axis] for axis in FIRST_PROGRAM], [addresses[axis] for axis in GRID_SIZE])
    ctx.reports = Reports(addresses.get(REPORTS, 0))
    for kind in kinds:
        kind.begin(ctx, kernel)
    ctx.disorder.delay(ctx)
    return block
