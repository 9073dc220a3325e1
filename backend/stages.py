"""TTIR to a planned kernel: upstream's passes and this backend's rewrites, in the order in which they run.

``LayoutSearch`` lays a kernel out by one schedule after the other (planning/ladder.py), until what is planned fits.
"""

from __future__ import annotations

import hashlib
from typing import Any

from triton.runtime.errors import OutOfResources

from . import passes
from .analysis.turned_tiles import LOOPS, TURNS, turns_carried_tile
from .capabilities import Capabilities
from .options import SPIRVOptions
from .patience import check
from .planning.kernel_plan import least_shared
from .planning.ladder import named_layouts, schedules, sliced
from .planning.matrix_units import MatrixUnits, matrix_units
from .planning.module_plan import Planned, plan_module
from .planning.native_math import native_math
from .planning.workgroup import WARP, matrix_warps, subgroups
from .transforms import table
from .transforms.kernel import kernel_of
from .transforms.schedule import Options, Schedule
from .ttgir.parser import parse_module
from .ttgir.printer import print_module

#: Kernels that fit in no layout (``LayoutSearch.key``) → the bytes of shared memory of the last one. Autotuning asks
#: for the same ones again for other arguments.
_TOO_LARGE: dict[str, int] = {}


class OutOfSharedMemory(OutOfResources):  # type: ignore[misc]
    """A kernel that takes more shared memory than the device has, in every layout. Autotuning leaves it out."""

    def __init__(self, kernel: str, required: int, limit: int) -> None:
        super().__init__(required, limit, "shared memory")
        self.kernel = kernel

    def __str__(self) -> str:
        """Upstream's message, with the kernel's name and without ``num_stages``, which no shared memory depends on
        here."""
        return (
            f"kernel '{self.kernel}': out of resource: {self.name}, Required: {self.required}, Hardware limit: "
            f"{self.limit}. Smaller blocks take less."
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.kernel, self.required, self.limit)


class LayoutSearch:
    """The ways to lay out the kernel of one TTIR ``module``, the best one first. Raises OutOfSharedMemory for a kernel
    of which it is known that none fits."""

    def __init__(self, module: Any, capabilities: Capabilities, options: SPIRVOptions) -> None:
        self._module, self._context, self._ttir = module, module.context, str(module)
        self._capabilities, self._options = capabilities, options
        #: The same for the same kernel, options and device.
        self.key = hashlib.sha256(f"{self._ttir}\0{options}\0{capabilities.arch()}".encode()).hexdigest()
        if self.key in _TOO_LARGE:
            raise OutOfSharedMemory(module.get_entry_func_name(), _TOO_LARGE[self.key], capabilities.shared_bytes)
        self._units = matrix_units(options.matrix_units, capabilities)
        found = passes.survey(module)
        self._names = found.names
        matrices = bool(self._units.configurations) and found.accelerable
        #: Whether upstream's pass may compute values again in other layouts (analysis/turned_tiles.py).
        self._copies = self._names.isdisjoint(TURNS) or self._names.isdisjoint(LOOPS) or not _turns_tiles(self._ttir)
        count = subgroups(
            found.largest, found.dots > 0, options.num_warps, capabilities, found.exchanges, found.elements
        )
        warps = matrix_warps(found.largest, found.dots, options.num_warps, capabilities) if matrices else 0
        self._moved = self._suits = True
        #: What was given last, and the TTGIR itself.
        self.schedule, self.given = named_layouts(options.num_stages), None
        padded = loads_matrices(capabilities, self._units)
        self._schedules = schedules(count, options.num_warps, options.num_stages, warps, padded, found.dots > 0)

    def next(self) -> Any:
        """The TTGIR of the next schedule that gives another one than those before; None where there is none."""
        for schedule in self._schedules:
            check()
            found = None
            options = planning_options(self._capabilities, self._options, schedule)
            if schedule.matrices:
                if self._suits:
                    found = self._for_matrix_units(options)
            elif schedule.moved_loads or self._moved:  # else no load was moved, so that none can stay
                found = self._for_multiply_adds(options)
            if found is not None:
                self.schedule, self.given = schedule, found
                return found
        self.given = None
        return None

    def _for_matrix_units(self, options: Options) -> Any:
        """A kernel whose dots are all for matrix units; None where one of them is not."""
        module = self._cut(passes.parse(self._ttir, self._context), options)
        if module is None:
            return None
        module = transformed(module, table.Stage.BEFORE_LAYOUTS, self._capabilities, options) or module
        layouts = passes.layouts(options.schedule.subgroups, WARP, self._options.num_ctas)
        passes.run(module, layouts, "make_layouts", self._names, self._copies)
        passes.accelerate_dots(module, self._names, self._copies)
        passes.run(module, passes.TTGIR, "make_ttgir", passes.operation_names(module), self._copies)
        module = transformed(module, table.Stage.LAYOUTS_CHOSEN, self._capabilities, options) or module
        tried = parse_module(str(module), "kernel.ttgir")
        self._suits = table.rewrite(tried, table.Stage.FRAGMENTS, self._capabilities, options)
        return module if self._suits else None

    def _for_multiply_adds(self, options: Options) -> Any:
        module, self._module = self._module, None  # the passes change it in place
        if module is None:
            module = passes.parse(self._ttir, self._context)
        module = self._cut(module, options)
        if module is None:
            return None
        layouts = passes.layouts(options.schedule.subgroups, self._options.warp_size, self._options.num_ctas)
        passes.run(module, layouts, "make_layouts", self._names, self._copies)
        passes.decompose_scaled_dots(module, self._names)
        passes.run(module, passes.TTGIR, "make_ttgir", passes.operation_names(module), self._copies)
        names = passes.operation_names(module)
        moved = transformed(module, table.Stage.LAYOUTS_CHOSEN, self._capabilities, options, names)
        self._moved = moved is not None
        if moved is not None:
            module, names = moved, passes.operation_names(moved)
        return transformed(module, table.Stage.LOADS_MOVED, self._capabilities, options, names) or module

    def _cut(self, module: Any, options: Options) -> Any:
        """``module`` with its dots cut in pieces; None where no dot can be."""
        return transformed(module, table.Stage.CUT, self._capabilities, options) if options.schedule.pieces else module


def _turns_tiles(ttir: str) -> bool:
    return any(map(turns_carried_tile, parse_module(ttir, "kernel.ttir").functions.values()))


def plan(module: Any, schedule: Schedule, name: str, capabilities: Capabilities, options: SPIRVOptions) -> Planned:
    """TTGIR rewritten and planned. ``schedule``: how LayoutSearch laid it out. ``name``: of the TTGIR in errors."""
    planning = planning_options(capabilities, options, schedule)
    source = parse_module(_last(module, capabilities, planning), name)
    table.rewrite(source, table.Stage.FITTING, capabilities, planning)
    return plan_module(source, capabilities, planning)


def _last(module: Any, capabilities: Capabilities, options: Options) -> str:
    """The text of the module after upstream's last passes."""
    names = passes.operation_names(module)
    module = transformed(module, table.Stage.LAST, capabilities, options, names) or module
    passes.run(module, passes.LAST, "finish_ttgir", names)
    return str(module)


def plan_what_fits(
    module: Any, search: LayoutSearch | None, name: str, capabilities: Capabilities, options: SPIRVOptions
) -> Planned:
    """The plan of ``module``, or where the device has less shared memory than that takes, of what comes next in
    ``search``, whose ``schedule`` it then is. Nothing comes next for a ``module`` that ``search`` has not given: a user
    has put it in the place of that. Raises OutOfSharedMemory where nothing fits."""
    candidate, required = module, 1 << 62
    overridden = search is not None and search.given is not module
    while candidate is not None:
        chosen = search.schedule if search is not None else named_layouts(options.num_stages)
        text = _last(candidate, capabilities, planning_options(capabilities, options, chosen))
        for schedule in sliced(chosen, capabilities.traits.slices_dots):
            source = parse_module(text, name)
            planning = planning_options(capabilities, options, schedule)
            if not table.rewrite(source, table.Stage.FITTING, capabilities, planning) and schedule.share:
                continue
            # What is too large already is left before it is planned, which takes longest. Fragments of matrix units
            # come later, and may leave buffers out.
            least = 0 if search is not None and schedule.matrices else least_shared(kernel_of(source))
            if least <= capabilities.shared_bytes:
                planned = plan_module(source, capabilities, planning)
                if planned.plan.fits:
                    if search is not None:
                        search.schedule = schedule
                    return planned
                least = planned.plan.shared_bytes
            required = min(required, least)
        candidate = search.next() if search is not None and not overridden else None
    if search is not None and not overridden:
        _TOO_LARGE[search.key] = required
    raise OutOfSharedMemory(module.get_entry_func_name(), required, capabilities.shared_bytes)


def planning_options(capabilities: Capabilities, options: SPIRVOptions, schedule: Schedule) -> Options:
    """What the compile options and the device say to rewrites, planning and lowering."""
    units = matrix_units(options.matrix_units, capabilities)
    return Options(
        fuse_multiply_add=options.enable_fp_fusion,
        check_bounds=options.check_bounds,
        check_races=options.check_races,
        disorder=options.disorder,
        debug_info=options.debug_info,
        split_grid=options.split_grid,
        native_math=native_math(options.native_math, capabilities),
        matrices=units.configurations,
        emulate_matrices=units.emulated,
        matrix_loads=loads_matrices(capabilities, units),
        schedule=schedule,
    )


def loads_matrices(capabilities: Capabilities, units: MatrixUnits) -> bool:
    """Whether dots load fragments from shared memory."""
    fragments = bool(units.configurations) and not units.emulated
    return fragments and capabilities.traits.matrix_loads and capabilities.has("explicit_workgroup_layout")


def transformed(
    module: Any, stage: table.Stage, device: Capabilities, options: Options, names: frozenset[str] | None = None
) -> Any:
    """A module of upstream's after our rewrites of a stage; None where they change nothing. ``names``: of its
    operations (passes.operation_names), where they are known."""
    rows = table.due(stage, passes.operation_names(module) if names is None else names, device, options)
    if not rows:
        return None
    source = parse_module(str(module), "kernel.ttgir")
    changed = table.transform(source, rows, device, options)
    return passes.parse(print_module(source), module.context) if changed else None
