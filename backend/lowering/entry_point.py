"""A whole TTGIR module to SPIR-V: the entry point, its arguments, its body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..abi.block import FIRST_PROGRAM, GLOBAL_SCRATCH, GRID_SIZE, REPORTS, hidden_arguments
from ..analysis.pointer_range import pointer_bases
from ..analysis.pointer_roots import written_arguments
from ..capabilities import Capabilities
from ..planning.kernel_plan import KernelPlan, plan_kernel
from ..planning.options import Options
from ..spirv.function import FunctionBuilder
from ..spirv.module import ModuleBuilder
from ..spirv.opcodes import ExecutionMode_, MemoryAccess
from ..transforms import table as transforms
from ..transforms.fragments import arrange_fragments
from ..transforms.kernel import kernel_of
from ..ttgir.ir import Function, Module
from ..ttgir.traits import Effect, traits
from . import families  # noqa: F401  (fills the registry)
from .arguments import read_arguments
from .bounds_check import Bounds
from .debug_info import source_lines
from .emitter import Part
from .errors import LoweringError
from .float_controls import float_modes
from .global_scratch import GlobalScratch
from .lowering import Lowering
from .registry import lower
from .reports import Reports, may_report, watch_loops, watches_loops
from .shared_memory import SharedMemory


@dataclass(frozen=True)
class LoweredKernel:
    """A compiled kernel.

    ``name``: of the entry point. ``workgroup_size``: invocations. ``shared_bytes``: workgroup memory taken.
    ``global_scratch``: where it is not empty, its address is an argument after the kernel's own.
    ``argument_bytes``: of the argument block. ``indirect_arguments``: the push constant is the block's address.
    ``written``: the numbers of the arguments that it may write through; None: any.
    ``reports``: the messages that the report buffer refers to; where there are any, its address is the last argument.
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


@dataclass(frozen=True)
class Planned:
    """A module whose only public function was rewritten and planned: ``emit`` makes a kernel of it."""

    source: Module
    plan: KernelPlan
    capabilities: Capabilities
    options: Options


def lower_module(source: Module, capabilities: Capabilities, options: Options) -> LoweredKernel:
    """Compiles the only public function of ``source``, which is rewritten on the way.

    Raises UnsupportedOperation for what this backend refuses, LoweringError for a module it does not understand.
    """
    return emit(plan_module(source, capabilities, options))


def plan_module(source: Module, capabilities: Capabilities, options: Options) -> Planned:
    """Rewrites and plans the only public function of ``source``. Raises as ``lower_module``."""
    if options.matrices:
        arrange_fragments(source, capabilities.subgroup_size, options.matrices)
    _check_shape(source, capabilities)
    settings = transforms.Settings(
        prefetch=options.prefetch, shared_banks=options.shared_banks, strips=options.unrolled_elementwise
    )
    transforms.transform(source, transforms.due(transforms.Stage.ALLOCATED, (), settings), settings)
    return Planned(source, plan_kernel(kernel_of(source), source, capabilities, options), capabilities, options)


def emit(planned: Planned) -> LoweredKernel:
    """The kernel as it was planned. Raises UnsupportedOperation for what this backend refuses."""
    source, plan, capabilities, options = planned.source, planned.plan, planned.capabilities, planned.options
    kernel = kernel_of(source)
    module = ModuleBuilder()
    shared = SharedMemory(module, plan.room, plan.view)
    function = FunctionBuilder(module, module.void)
    if options.debug_info:
        function.lines = source_lines(kernel)
    assert kernel.body is not None
    # A 32-bit offset would bring a pointer that went too far back into its tensor.
    bounds, bases = (Bounds(kernel), {}) if options.check_bounds else (None, pointer_bases(kernel))
    ctx = Lowering(source, module, function, capabilities, options, shared, plan, bases)
    if _communicates(kernel):
        ctx.global_access = MemoryAccess.NonPrivatePointer
    ctx.read_builtins()
    watched = watches_loops(kernel, capabilities)
    reporting = watched or may_report(kernel) or bounds is not None
    scratch = GlobalScratch.of(source)
    block, addresses = read_arguments(ctx, kernel, hidden_arguments(bool(scratch.size), reporting, options.split_grid))
    ctx.global_scratch = addresses.get(GLOBAL_SCRATCH, 0)
    if options.split_grid:
        ctx.part = Part([addresses[axis] for axis in FIRST_PROGRAM], [addresses[axis] for axis in GRID_SIZE])
    ctx.reports = Reports(addresses.get(REPORTS, 0), bounds.bytes if bounds else 0)
    if bounds is not None:
        ctx.bounds = bounds
        arguments = kernel.body.entry.arguments
        bounds.read(ctx, ctx.reports, {number: ctx.scalar(arguments[number]) for number in bounds.arguments})
    if watched:
        watch_loops(ctx, ctx.reports)
    for operation in kernel.body.entry.operations:
        lower(ctx, operation)
    shared_bytes = shared.finish()
    assert shared_bytes <= plan.shared_bytes, f"{shared_bytes} bytes of shared memory, {plan.shared_bytes} planned"
    size = ctx.num_warps * ctx.subgroup_size
    function.anchored = capabilities.traits.coroutines
    module.add_function(function.finish())
    module.set_entry(
        function.id, kernel.name, [[ExecutionMode_.LocalSize, size, 1, 1], *float_modes(module, capabilities)]
    )
    return LoweredKernel(
        kernel.name,
        module.finish(),
        size,
        shared_bytes,
        block.bytes,
        block.is_indirect(capabilities.push_constant_bytes),
        scratch,
        ctx.reports.messages,
        written_arguments(kernel),
    )


def _communicates(kernel: Function) -> bool:
    """Whether invocations may exchange values through device memory, so that no access may be private to one (section
    3.26, NonPrivatePointer)."""
    assert kernel.body is not None
    return any(
        Effect.ATOMIC in traits(inner).effects
        or (inner.name == "ttg.barrier" and inner.attributes.get("addrSpace") != "local")
        for block in kernel.body.blocks
        for operation in block.operations
        for inner in operation.walk()
    )


def _check_shape(source: Module, capabilities: Capabilities) -> None:
    try:
        warps, lanes = int(source.attributes["ttg.num-warps"]), int(source.attributes["ttg.threads-per-warp"])
    except KeyError as missing:
        raise LoweringError(f"the module lacks the attribute {missing}: it is not TTGIR") from None
    if int(source.attributes.get("ttg.num-ctas", 1)) != 1:
        raise LoweringError("num_ctas must be 1: Vulkan has no clusters of workgroups")
    if lanes != capabilities.subgroup_size:
        raise LoweringError(
            f"the module is for subgroups of {lanes} invocations, the target's have "
            f"{capabilities.subgroup_size}: compile the kernel from its source for this target"
        )
    if warps * lanes > capabilities.max_workgroup_invocations:
        raise LoweringError(
            f"num_warps={warps} needs workgroups of {warps * lanes} invocations; the target allows "
            f"{capabilities.max_workgroup_invocations}"
        )
