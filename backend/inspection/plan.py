"""The plan of a compiled kernel, made again from the stages and metadata that Triton keeps of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from triton._C.libtriton import ir

from .. import passes
from ..capabilities import Capabilities
from ..options import SPIRVOptions, own
from ..planning.ladder import NAMED_LAYOUTS, Attempt
from ..planning.module_plan import Planned
from ..planning.show import plan_lines, plan_text
from ..stages import LayoutSearch, plan
from ..transforms.kernel import kernel_of
from .lines import Line, frames


def planned_again(
    ttgir: str, capabilities: Capabilities, metadata: Mapping[str, Any], ttir: str | None = None
) -> Planned:
    """The rewritten module and the plan that a kernel was emitted from.

    ``metadata``: the compiler's, of which the compile options and ``layout`` count. ``ttir``: the stage before, where
    there is one: a kernel that takes too much shared memory in the layout of ``ttgir`` was laid out anew from it.
    """
    context = ir.context()
    ir.load_dialects(context)
    module = passes.parse(ttgir, context)
    options = SPIRVOptions(**own(metadata))
    attempt = Attempt(**metadata["layout"]) if metadata["layout"] is not None else NAMED_LAYOUTS
    if ttir is not None and attempt != NAMED_LAYOUTS:
        search = LayoutSearch(passes.parse(ttir, context), capabilities, options)
        search.next()  # this is ``ttgir``
        while search.attempt is not None and search.attempt.layouts != attempt.layouts:
            module = search.next()
    return plan(module, attempt, f"{metadata.get('name', 'kernel')}.ttgir", capabilities, options)


def plan_of(ttgir: str, capabilities: Capabilities, metadata: Mapping[str, Any], ttir: str | None = None) -> str:
    """The plan of ``planned_again`` as text: how the kernel is laid out, then one line an operation."""
    planned = planned_again(ttgir, capabilities, metadata, ttir)
    layout = metadata["layout"]
    heading = "" if layout is None else f"layout: {Attempt(**layout).summary()}\n"
    return heading + plan_text(kernel_of(planned.source), planned.plan)


def lines_of(planned: Planned) -> list[Line]:
    """The plan as lines with their places in the user's source."""
    lines = plan_lines(kernel_of(planned.source), planned.plan, places=False)
    return [Line(text, frames(operation.location) if operation is not None else ()) for text, operation in lines]
