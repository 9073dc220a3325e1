"""The plan of a compiled kernel, made again from the stages and metadata that Triton keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from triton._C.libtriton import ir

from .. import passes
from ..capabilities import Capabilities
from ..errors import LoweringError, UnsupportedOperation
from ..options import SPIRVOptions, own
from ..planning.cost import named_layouts
from ..planning.kernel_plan import Planned
from ..planning.show import plan_lines, plan_text
from ..stages import plan
from ..transforms.kernel_function import kernel_of
from ..transforms.schedule import Schedule
from .kernels import CachedKernel, NotPlannable
from .stage_lines import Line, frames

_OTHER_VERSION = "it was compiled by another version of this backend: launch it again"


def planned_again(ttgir: str, capabilities: Capabilities, metadata: Mapping[str, Any]) -> Planned:
    """The rewritten module and the plan that a kernel was emitted from.

    ``metadata``: the compiler's, of which the compile options and ``layout`` count. Raises NotPlannable for metadata of
    another version.
    """
    context = ir.context()
    ir.load_dialects(context)
    module = passes.parse(ttgir, context)
    options = SPIRVOptions(**own(metadata))
    schedule = _schedule(metadata, options)
    if metadata["layout"] is not None and schedule.subgroups != module.get_int_attr("ttg.num-warps"):
        raise NotPlannable(_OTHER_VERSION)
    return plan(module, schedule, f"{metadata.get('name', 'kernel')}.ttgir", capabilities, options)


def _schedule(metadata: Mapping[str, Any], options: SPIRVOptions) -> Schedule:
    try:
        return named_layouts(options.num_stages) if metadata["layout"] is None else Schedule(**metadata["layout"])
    except (KeyError, TypeError):
        raise NotPlannable(_OTHER_VERSION) from None


def cached_plan(kernel: CachedKernel) -> Planned:
    """``planned_again`` of a kernel in the cache.

    Raises NotInCache if its TTGIR is not there, NotPlannable if it cannot be planned."""
    ttgir = kernel.text("ttgir")
    try:
        capabilities = Capabilities.parse(str(kernel.metadata["target"]["arch"]))
        return planned_again(ttgir, capabilities, kernel.metadata)
    except (UnsupportedOperation, LoweringError, RuntimeError, ValueError) as error:
        raise NotPlannable(f"kernel {kernel.name}, {kernel.key}, cannot be planned again: {error}") from error


def plan_of(kernel: CachedKernel) -> str:
    """The plan of a kernel in the cache as text: how it is laid out, then one line an operation. Raises as
    ``cached_plan``."""
    planned = cached_plan(kernel)
    heading = "".join(f"{line}\n" for line in layout_lines(kernel.metadata))
    return heading + plan_text(kernel_of(planned.source), planned.plan)


def layout_lines(metadata: Mapping[str, Any]) -> list[str]:
    """How a kernel is laid out, and by which schedules it did not fit, a line each; none where its author named its
    layouts."""
    if metadata["layout"] is None:
        return []
    tried = [
        f"  did not fit, expected time {one['expected']:g}: {one['schedule']}: {one['shared']:,} bytes of shared memory"
        for one in metadata.get("tried", ())
    ]
    return [f"layout: {Schedule(**metadata['layout']).summary()}", *tried]


def lines_of(planned: Planned) -> list[Line]:
    """The plan as lines with their places in the user's source."""
    lines = plan_lines(kernel_of(planned.source), planned.plan, places=False)
    return [Line(text, frames(operation.location) if operation is not None else ()) for text, operation in lines]
