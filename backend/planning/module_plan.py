"""A TTGIR module rewritten and planned: all that is done before anything is emitted."""

from __future__ import annotations

from dataclasses import dataclass

from ..capabilities import Capabilities
from ..errors import LoweringError
from ..transforms import table as transforms
from ..transforms.kernel import kernel_of
from ..transforms.schedule import Options
from ..ttgir.ir import Module
from .kernel_plan import KernelPlan, plan_kernel
from .returned_values import warn_of_returned_values


@dataclass(frozen=True, repr=False)
class Planned:
    """A module whose only public function was rewritten and planned: ``lowering.entry_point.emit`` makes a
    kernel of it."""

    source: Module
    plan: KernelPlan
    capabilities: Capabilities
    options: Options


def plan_module(source: Module, capabilities: Capabilities, options: Options) -> Planned:
    """Rewrites and plans the only public function of ``source``, which was laid out by the schedule of ``options``.
    Raises UnsupportedOperation for what this backend refuses, LoweringError for a module it does not understand."""
    arrange(source, capabilities, options)
    return plan_arranged(source, capabilities, options)


def arrange(source: Module, capabilities: Capabilities, options: Options) -> bool:
    """Gives fragments of matrix units the layout that the device has for them. False where there are none, or where
    the device has no such matrices."""
    return transforms.rewrite(source, transforms.Stage.FRAGMENTS, capabilities, options)


def plan_arranged(source: Module, capabilities: Capabilities, options: Options) -> Planned:
    """What is left of ``plan_module`` then."""
    _check_shape(source, capabilities)
    warn_of_returned_values(source)
    transforms.rewrite(source, transforms.Stage.PLANNING, capabilities, options)
    return Planned(source, plan_kernel(kernel_of(source), source, capabilities, options), capabilities, options)


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
