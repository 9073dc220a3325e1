"""TTIR to a planned kernel: upstream's passes and this backend's rewrites, in the order in which they run.

``LayoutSearch`` lays a kernel out by one attempt after the other (planning/ladder.py), until what is planned fits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import passes
from .analysis.barrier_filter import mark_inserted
from .capabilities import Capabilities
from .options import SPIRVOptions
from .planning.ladder import Attempt, attempts, first_that_fits
from .planning.matrix_units import matrix_units
from .planning.module_plan import Planned, plan_module
from .planning.native_math import native_math
from .planning.options import Options
from .planning.workgroup import WARP, subgroups
from .transforms import table
from .ttgir.parser import parse_module
from .ttgir.printer import print_module

#: Dots on multiply-adds or matrix units; scaled ones are decomposed.
_DOTS = frozenset({"tt.dot", "tt.dot_scaled"})


class LayoutSearch:
    """The ways to lay out the kernel of one TTIR ``module``, the best one first."""

    def __init__(self, module: Any, capabilities: Capabilities, options: SPIRVOptions) -> None:
        self._module, self._context, self._ttir = module, module.context, str(module)
        self._capabilities, self._options = capabilities, options
        self._units = matrix_units(options.matrix_units, capabilities)
        matrices = bool(self._units.configurations) and passes.may_accelerate(module)
        dots = not passes.operation_names(module).isdisjoint(_DOTS)
        count = subgroups(passes.largest_tensor(module), dots, options.num_warps, capabilities)
        self._moved = self._suits = True
        #: What was given last.
        self.attempt: Attempt | None = None
        self._attempts = attempts(count, options.num_warps, matrices, loads_matrices(capabilities, options))

    def next(self) -> Any:
        """The TTGIR of the next attempt that gives another one than those before; None where there is none."""
        for attempt in self._attempts:
            found = None
            if attempt.matrices:
                if self._suits:
                    found = self._for_matrix_units(attempt)
            elif attempt.moved_loads or self._moved:  # else no load was moved, so that none can stay
                found = self._for_multiply_adds(attempt)
            if found is not None:
                self.attempt = attempt
                return found
        return None

    def _for_matrix_units(self, attempt: Attempt) -> Any:
        """A kernel whose dots are all for matrix units; None where one of them is not."""
        settings = table.Settings(matrices=self._units.configurations, lanes=self._capabilities.subgroup_size)
        module = passes.parse(self._ttir, self._context)
        if attempt.pieces:
            module = transformed(module, table.Stage.BEFORE_LAYOUTS, _cut(attempt))
            if module is None:
                return None
        module = transformed(module, table.Stage.BEFORE_LAYOUTS, settings) or module
        passes.run(module, passes.layouts(self._options.num_warps, WARP, self._options.num_ctas), "make_layouts")
        passes.accelerate_dots(module)
        passes.run(module, passes.TTGIR, "make_ttgir")
        if attempt.pieces:
            module = transformed(module, table.Stage.LAYOUTS_CHOSEN, _cut(attempt)) or module
        tried = parse_module(str(module), "kernel.ttgir")
        self._suits = table.transform(tried, table.due(table.Stage.FRAGMENTS, (), settings), settings)
        return module if self._suits else None

    def _for_multiply_adds(self, attempt: Attempt) -> Any:
        module, self._module = self._module, None  # the passes change it in place
        if module is None:
            module = passes.parse(self._ttir, self._context)
        settings = _cut(attempt)
        if attempt.pieces:
            module = transformed(module, table.Stage.BEFORE_LAYOUTS, settings)
            if module is None:
                return None
        lanes, ctas = self._options.warp_size, self._options.num_ctas
        passes.run(module, passes.layouts(attempt.subgroups, lanes, ctas), "make_layouts")
        passes.decompose_scaled_dots(module)
        passes.run(module, passes.TTGIR, "make_ttgir")
        changed = transformed(module, table.Stage.LAYOUTS_CHOSEN, settings)
        self._moved = changed is not None
        return changed or module


def _cut(attempt: Attempt) -> table.Settings:
    return table.Settings(attempt.moved_loads, pieces=attempt.pieces)


def plan(module: Any, attempt: Attempt | None, name: str, capabilities: Capabilities, options: SPIRVOptions) -> Planned:
    """TTGIR with shared memory allocated and barriers inserted by upstream, rewritten and planned. ``attempt``: how
    LayoutSearch laid it out; None where the kernel names its layouts. ``name``: of the TTGIR in errors."""
    padded, units = attempt is not None and attempt.padded, matrix_units(options.matrix_units, capabilities)
    registers = capabilities.traits.lane_registers
    settings = table.Settings(matrix_loads=padded, matrices=units.configurations, registers=registers)
    module = transformed(module, table.Stage.BEFORE_ALLOCATION, settings) or module
    passes.run(module, passes.ALLOCATE, "allocate_shared_memory")
    inserted = passes.insert_barriers(module)
    source = parse_module(str(module), name)
    mark_inserted(source, inserted)
    return plan_module(source, capabilities, planning_options(capabilities, options))


def plan_what_fits(
    module: Any, search: LayoutSearch | None, name: str, capabilities: Capabilities, options: SPIRVOptions
) -> Planned:
    """The plan of ``module``, or where the device has less shared memory than that takes, of what comes next in
    ``search``, whose ``attempt`` it then is."""

    def candidates() -> Iterator[Planned]:
        candidate = module
        while candidate is not None:
            yield plan(candidate, search.attempt if search is not None else None, name, capabilities, options)
            candidate = search.next() if search is not None else None

    return first_that_fits(candidates(), lambda planned: planned.plan.fits)


def planning_options(capabilities: Capabilities, options: SPIRVOptions) -> Options:
    """What the compile options and the device say to planning and lowering."""
    units = matrix_units(options.matrix_units, capabilities)
    return Options(
        fuse_multiply_add=options.enable_fp_fusion,
        check_bounds=options.check_bounds,
        debug_info=options.debug_info,
        split_grid=options.split_grid,
        native_math=native_math(options.native_math, capabilities),
        stages=options.num_stages,
        matrices=units.configurations,
        emulate_matrices=units.emulated,
        matrix_loads=loads_matrices(capabilities, options),
    )


def loads_matrices(capabilities: Capabilities, options: SPIRVOptions) -> bool:
    """Whether dots load fragments from shared memory."""
    units = matrix_units(options.matrix_units, capabilities)
    fragments = bool(units.configurations) and not units.emulated
    return fragments and capabilities.traits.matrix_loads and capabilities.has("explicit_workgroup_layout")


def transformed(module: Any, stage: table.Stage, settings: table.Settings) -> Any:
    """A module of upstream's after our rewrites of a stage; None where they change nothing."""
    rows = table.due(stage, passes.operation_names(module), settings)
    if not rows:
        return None
    source = parse_module(str(module), "kernel.ttgir")
    return passes.parse(print_module(source), module.context) if table.transform(source, rows, settings) else None
