"""A whole TTGIR module to SPIR-V: the entry point, its arguments, its body."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..analysis.axis_info import AxisInfoAnalysis
from ..analysis.dot_buffers import place_operands
from ..analysis.lazy_loads import lazy_loads
from ..analysis.pointer_range import pointer_bases
from ..capabilities import Capabilities
from ..spirv.function import FunctionBuilder
from ..spirv.module import ModuleBuilder
from ..spirv.opcodes import ExecutionMode_, MemoryAccess
from ..ttgir.ir import Function, Module
from ..ttgir.prefetch import prefetch_dot_operands
from . import families  # noqa: F401  (fills the registry)
from .arguments import read_arguments
from .context import Context, Options
from .errors import LoweringError
from .float_controls import float_modes
from .functions import kernel_function
from .reports import Reports, may_report, watch_loops, watches_loops
from .shared_memory import SharedMemory

#: Drivers that make coroutines of kernels with barriers, by VkDriverId (see spirv/anchors.py).
COROUTINE_DRIVERS = frozenset({"mesa_llvmpipe"})


@dataclass(frozen=True)
class Kernel:
    """A compiled kernel.

    ``name``: of the entry point. ``workgroup_size``: invocations. ``shared_bytes``: workgroup memory taken.
    ``argument_bytes``: of the argument block. ``indirect_arguments``: the push constant is the block's address.
    ``reports``: the messages that the report buffer refers to; where there are any, its address is the last argument.
    """

    name: str
    spirv: bytes
    workgroup_size: int
    shared_bytes: int
    argument_bytes: int
    indirect_arguments: bool
    reports: list[dict[str, Any]]


def lower_module(source: Module, capabilities: Capabilities, options: Options) -> Kernel:
    """Compiles the only public function of ``source``, which is rewritten on the way.

    Raises UnsupportedOperation for what this backend refuses, LoweringError for a module it does not understand.
    """
    kernel = kernel_function(source)
    _check_shape(source, capabilities)
    module = ModuleBuilder()
    shared = SharedMemory(module, capabilities, int(source.attributes.get("ttg.shared", 0)))
    function = FunctionBuilder(module, module.void)
    assert kernel.body is not None
    if options.prefetch:
        prefetch_dot_operands(kernel)
    loads = lazy_loads(kernel)
    if options.shared_banks:
        place_operands(loads)
    ctx = Context(source, module, function, capabilities, options, shared, AxisInfoAnalysis(kernel), loads,
                  pointer_bases(kernel))
    if _communicates(kernel):
        ctx.global_access = MemoryAccess.NonPrivatePointer
    ctx.read_builtins()
    watched = watches_loops(kernel, capabilities)
    block, report_address = read_arguments(ctx, kernel, watched or may_report(kernel))
    ctx.reports = Reports(report_address)
    if watched:
        watch_loops(ctx, ctx.reports)
    for operation in kernel.body.entry.operations:
        ctx.lower(operation)
    size = ctx.num_warps * ctx.subgroup_size
    function.anchored = capabilities.driver in COROUTINE_DRIVERS
    module.add_function(function.finish())
    module.set_entry(function.id, kernel.name, [[ExecutionMode_.LocalSize, size, 1, 1],
                                                *float_modes(module, capabilities)])
    shared_bytes = shared.finish()
    return Kernel(kernel.name, module.finish(), size, shared_bytes, block.size, block.indirect,
                  ctx.reports.messages)


def _communicates(kernel: Function) -> bool:
    """Whether invocations may exchange values through device memory, so that no access may be private to one (section
    3.26, NonPrivatePointer)."""
    assert kernel.body is not None
    return any(inner.name.startswith("tt.atomic")
               or (inner.name == "ttg.barrier" and inner.attributes.get("addrSpace") != "local")
               for block in kernel.body.blocks for operation in block.operations for inner in operation.walk())


def _check_shape(source: Module, capabilities: Capabilities) -> None:
    try:
        warps, lanes = int(source.attributes["ttg.num-warps"]), int(source.attributes["ttg.threads-per-warp"])
    except KeyError as missing:
        raise LoweringError(f"the module lacks the attribute {missing}: it is not TTGIR") from None
    if int(source.attributes.get("ttg.num-ctas", 1)) != 1:
        raise LoweringError("num_ctas must be 1: Vulkan has no clusters of workgroups")
    if lanes != capabilities.subgroup_size:
        raise LoweringError(f"the module is for subgroups of {lanes} invocations, the target's have "
                            f"{capabilities.subgroup_size}: compile the kernel from its source for this target")
    if warps * lanes > capabilities.max_workgroup_invocations:
        raise LoweringError(f"num_warps={warps} needs workgroups of {warps * lanes} invocations; the target allows "
                            f"{capabilities.max_workgroup_invocations}")
