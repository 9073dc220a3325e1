"""Operations that have no rule of their own: refused, ends of a region, or rewritten by an upstream pass.

With ``registry.RULES`` and ``transforms.kernel.REWRITTEN`` this names every operation of upstream's TritonOps.td and
TritonGPUOps.td, and of the dialects of MLIR that they are used with.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..ttgir.ir import Operation
from .errors import UnsupportedOperation


@dataclass(frozen=True)
class Refusal:
    """Why an operation is refused, and what a user does instead."""

    reason: str
    instead: str


_NEVER = Refusal(
    "neither Triton's front end nor its passes produce it for this backend",
    "write it with the operations of triton.language",
)
_ASSEMBLY = Refusal(
    "inline assembly is the machine language of one vendor's GPUs",
    "use operations of triton.language or tl.extra.libdevice",
)
_ASYNC_COPY = Refusal(
    "Vulkan has no asynchronous copies into workgroup memory",
    "load with tl.load; software pipelining is not run for this backend",
)
_WARP_SPECIALIZATION = Refusal(
    "Vulkan cannot synchronise some of a workgroup's subgroups, so they cannot be specialised",
    "leave out tl.range(warp_specialize=True)",
)
_PIPELINED = Refusal("the passes that pipeline loops are not run for this backend", "compile from Triton source")

#: Operations that are never compiled.
REFUSED: dict[str, Refusal] = {
    "ttg.inline_asm": _ASSEMBLY,
    "ttg.async_copy_global_to_local": _ASYNC_COPY,
    "ttg.async_commit_group": _ASYNC_COPY,
    "ttg.async_wait": _ASYNC_COPY,
    "ttg.mask": _PIPELINED,
    "ttg.mask.return": _PIPELINED,
    "ttg.predicate_stage": _PIPELINED,
    "ttg.warp_specialize": _WARP_SPECIALIZATION,
    "ttg.warp_specialize.partitions": _WARP_SPECIALIZATION,
    "ttg.warp_return": _WARP_SPECIALIZATION,
    "ttg.warp_yield": _WARP_SPECIALIZATION,
    "arith.convertf": _NEVER,
    "arith.flush_denormals": _NEVER,
    "arith.scaling_extf": _NEVER,
    "arith.scaling_truncf": _NEVER,
    "cf.assert": Refusal("it is MLIR's own assertion", "use tl.device_assert"),
}

#: Operations that end a region, with those whose rules read them.
REGION_ENDS = {
    "scf.condition": "scf.while",
    "scf.yield": "scf.for, scf.if, scf.while",
    "tt.map_elementwise.return": "tt.map_elementwise",
    "tt.reduce.return": "tt.reduce",
    "tt.scan.return": "tt.scan",
}

#: Operations that are the module's own structure, not lowered one by one.
STRUCTURE = {"tt.func": "the kernel is the entry point; its callees are inlined"}

#: Operations that an upstream pass (passes.py) replaces before the lowering, with the pass.
REWRITTEN_BY_PASS = {
    "tt.descriptor_gather": "add_rewrite_tensor_descriptor_to_pointer",
    "tt.descriptor_load": "add_rewrite_tensor_descriptor_to_pointer",
    "tt.descriptor_reduce": "add_rewrite_tensor_descriptor_to_pointer",
    "tt.descriptor_scatter": "add_rewrite_tensor_descriptor_to_pointer",
    "tt.descriptor_store": "add_rewrite_tensor_descriptor_to_pointer",
    "tt.dot_scaled": "add_accelerate_matmul",
    "tt.make_tensor_descriptor": "add_rewrite_tensor_descriptor_to_pointer",
    "ub.unreachable": "add_canonicalizer",
}


def refusal(operation: Operation) -> UnsupportedOperation:
    """The error for an operation that has no rule."""
    name = operation.name
    known = REFUSED.get(name)
    if known is not None:
        return UnsupportedOperation(operation, known.reason, known.instead)
    if name in REWRITTEN_BY_PASS:
        return UnsupportedOperation(
            operation,
            f"upstream's pass {REWRITTEN_BY_PASS[name]} should have replaced it",
            "compile from source or TTIR, not from TTGIR that has not been through that pass",
        )
    if name in REGION_ENDS:
        return UnsupportedOperation(
            operation, f"it can only end a region of {REGION_ENDS[name]}", "check the module that was given"
        )
    return UnsupportedOperation(
        operation,
        "it belongs to none of the dialects that this backend compiles",
        "docs/internals/operations.md lists the operations that it compiles",
    )
