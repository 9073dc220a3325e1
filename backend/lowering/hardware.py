"""What a kernel may read from its hardware: the clock, and the number of the multiprocessor."""

from __future__ import annotations

from collections.abc import Callable

from ..spirv import opcodes as op
from ..spirv.opcodes import BuiltIn, Capability_, Scope
from ..ttgir.ir import Operation
from .errors import UnsupportedOperation
from .lowering import Lowering


def _device_clock(ctx: Lowering, operation: Operation) -> None:
    """A 64-bit counter that all workgroups share, in the device's own unit (SPV_KHR_shader_clock)."""
    if not ctx.capabilities.has("device_clock"):
        raise UnsupportedOperation(
            operation,
            "tl.extra.cuda.globaltimer needs the Vulkan feature shaderDeviceClock, which the device does not have",
            "time the kernel from the host, with triton.testing.do_bench",
        )
    module = ctx.module
    module.capability(Capability_.ShaderClockKHR)
    module.extension("SPV_KHR_shader_clock")
    ctx[operation.result] = ctx.f.effect(op.ReadClockKHR, module.int(64), module.uint(Scope.Device))


def _multiprocessor(ctx: Lowering, operation: Operation) -> None:
    """The number of the multiprocessor (SPV_NV_shader_sm_builtins)."""
    if not ctx.capabilities.has("multiprocessor_built_ins"):
        raise UnsupportedOperation(
            operation,
            "tl.extra.cuda.smid needs VK_NV_shader_sm_builtins, which the device does not have",
            "use tl.program_id: which multiprocessor runs a program is not known",
        )
    module = ctx.module
    module.capability(Capability_.ShaderSMBuiltinsNV)
    module.extension("SPV_NV_shader_sm_builtins")
    variable = module.built_in(BuiltIn.SMIDNV, module.u32, "multiprocessor")
    ctx[operation.result] = ctx.f.effect(op.Load, module.u32, variable)


#: Symbol of an operation without operands → its rule.
READS: dict[str, Callable[[Lowering, Operation], None]] = {
    "__spirv_device_clock": _device_clock,
    "__spirv_multiprocessor": _multiprocessor,
}
