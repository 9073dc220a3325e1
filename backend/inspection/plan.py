"""The plan of a compiled kernel, made again from the stages and metadata that Triton keeps of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from triton._C.libtriton import ir

from .. import passes
from ..capabilities import Capabilities
from ..errors import LoweringError, UnsupportedOperation
from ..options import SPIRVOptions, own
from ..planning.ladder import named_layouts
from ..planning.module_plan import Planned
from ..planning.show import plan_lines, plan_text
from ..stages import LayoutSearch, plan
from ..transforms.kernel import kernel_of
from ..transforms.schedule import Schedule
from .kernels import CachedKernel, NotPlannable
from .lines import Line, frames

_OTHER_VERSION = "it was compiled by another version of this backend: launch it again"


def planned_again(
    ttgir: str, capabilities: Capabilities, metadata: Mapping[str, Any], ttir: str | None = None
) -> Planned:
    """The rewritten module and the plan that a kernel was emitted from.

    ``metadata``: the compiler's, of which the compile options and ``layout`` count. ``ttir``: the stage before, where
    there is one: a kernel that takes too much shared memory in the layout of ``ttgir`` was laid out anew from it.
    Raises NotPlannable for metadata of another version.
    """
    context = ir.context()
    ir.load_dialects(context)
    module = passes.parse(ttgir, context)
    options = SPIRVOptions(**own(metadata))
    schedule = _schedule(metadata, options)
    if ttir is not None and metadata["layout"] is not None:
        search = LayoutSearch(passes.parse(ttir, context), capabilities, options)
        search.next()  # this is ``ttgir``
        while search.schedule.layouts != schedule.layouts:
            module = search.next()
            if module is None:
                raise NotPlannable(_OTHER_VERSION)
    return plan(module, schedule, f"{metadata.get('name', 'kernel')}.ttgir", capabilities, options)


def _schedule(metadata: Mapping[str, Any], options: SPIRVOptions) -> Schedule:
    try:
        return named_layouts(options.num_stages) if metadata["layout"] is None else Schedule(**metadata["layout"])
    except (KeyError, TypeError):
        raise NotPlannable(_OTHER_VERSION) from None


def cached_plan(kernel: CachedKernel, **options: Any) -> Planned:
    """``planned_again`` of a kernel in the cache. ``options``: compile options to change.

    Raises NotInCache where its TTGIR is not there, NotPlannable where it cannot be planned."""
    ttgir = kernel.text("ttgir")
    ttir = kernel.text("ttir") if kernel.path("ttir").exists() else None
    try:
        capabilities = Capabilities.parse(str(kernel.metadata["target"]["arch"]))
        return planned_again(ttgir, capabilities, {**kernel.metadata, **options}, ttir)
    except (UnsupportedOperation, LoweringError, RuntimeError, ValueError) as error:
        raise NotPlannable(f"kernel {kernel.name}, {kernel.key}, cannot be planned again: {error}") from error


def plan_of(kernel: CachedKernel) -> str:
    """The plan of a kernel in the cache as text: how it is laid out, then one line an operation. Raises as
    ``cached_plan``."""
    planned = cached_plan(kernel)
    layout = kernel.metadata["layout"]
    heading = "" if layout is None else f"layout: {Schedule(**layout).summary()}\n"
    return heading + plan_text(kernel_of(planned.source), planned.plan)


def lines_of(planned: Planned) -> list[Line]:
    """The plan as lines with their places in the user's source."""
    lines = plan_lines(kernel_of(planned.source), planned.plan, places=False)
    return [Line(text, frames(operation.location) if operation is not None else ()) for text, operation in lines]
