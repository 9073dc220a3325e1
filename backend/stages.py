"""TTIR to a planned kernel: upstream's passes and this backend's rewrites, in the order in which they run.

The pipelines of upstream's passes are in passes.py, the rewrites of each stage in transforms/table.py; which of them
run for a schedule is said there. They run in this order:

    _Layouts._passed    BEFORE_LAYOUTS, CUT, upstream's encodings, ENCODED, upstream's layouts and dots, LANES,
                        upstream's passes on TTGIR
    _Layouts.laid_out   LAYOUTS_CHOSEN: Triton keeps the TTGIR that this gives
    _last               LAST, upstream's last passes
    plan_module         FRAGMENTS, PLANNING, and the plan

``choose`` lays a kernel out by one schedule after the other, the fastest first (planning/cost.py), until what is
planned fits in the device's shared memory.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, replace
from typing import Any

from triton.runtime.errors import OutOfResources

from . import passes
from .capabilities import Capabilities
from .compile_time import check
from .errors import LoweringError, UnsupportedOperation
from .matrices import MatrixConfiguration
from .options import SPIRVOptions
from .planning.cost import Candidate, KernelFacts, candidates
from .planning.kernel_plan import Planned, least_shared, plan_kernel
from .planning.matrix_unit_choice import matrix_units
from .planning.native_math import native_math
from .planning.returned_values import warn_of_returned_values
from .planning.workgroup import WARP, matrix_warps, subgroups
from .transforms import table
from .transforms.kernel_function import kernel_of
from .transforms.schedule import Options, Schedule
from .ttgir.ir import Module, Operation
from .ttgir.parser import TTGIRSyntaxError, parse_module
from .ttgir.printer import print_module

#: Kernels that fit by no schedule (``Layouts.key``) → the least bytes of shared memory of them. Autotuning asks for the
#: same ones again for other arguments.
_TOO_LARGE: dict[str, int] = {}


class OutOfSharedMemory(OutOfResources):
    """A kernel that takes more shared memory than the device has, by every schedule. Autotuning leaves it out."""

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


@dataclass(frozen=True)
class Tried:
    """A schedule by which a kernel was laid out: in words, how long it is ``expected`` to take as a multiple of the
    best one's time, and the bytes of ``shared`` memory that it takes, at least."""

    schedule: str
    expected: float
    shared: int


@dataclass(frozen=True, repr=False)
class Chosen:
    """How a kernel is laid out: the TTGIR, by which ``schedule``, and which others were ``tried`` before. ``planned``:
    None if the kernel is refused when it is emitted."""

    module: Any
    schedule: Schedule
    planned: Planned | None
    tried: tuple[Tried, ...] = ()

    def metadata(self) -> dict[str, Any]:
        """What a compiled kernel keeps of it: ``layout`` and ``tried``."""
        return {"layout": asdict(self.schedule), "tried": [asdict(one) for one in self.tried]}


class _Layouts:
    """Lays out the kernel of one TTIR ``module``. Upstream's passes run once for all schedules that they do the same
    for."""

    def __init__(self, module: Any, capabilities: Capabilities, options: SPIRVOptions) -> None:
        self._module, self._context, self._ttir = module, module.context, str(module)
        self._capabilities, self._options = capabilities, options
        #: The same for the same kernel, options and device.
        self.key = hashlib.sha256(f"{self._ttir}\0{options}\0{capabilities.arch()}".encode()).hexdigest()
        self._found = passes.survey(module)
        self._by_upstream: dict[Schedule, str | None] = {}

    def candidates(self) -> list[Candidate]:
        """The schedules that the kernel has on the device, the fastest first."""
        found, device, num_warps = self._found, self._capabilities, self._options.num_warps
        units = matrix_units(self._options.matrix_units, device)
        on_units = bool(units) and found.accelerable
        return candidates(
            KernelFacts(
                subgroups(found.largest, found.dots > 0, num_warps, device),
                num_warps,
                self._options.num_stages,
                matrix_warps(found.largest, found.dots, num_warps, device) if on_units else 0,
                loads_matrices(device, units),
                found.dots > 0,
                device.traits,
            )
        )

    def laid_out(self, schedule: Schedule) -> Any:
        """The TTGIR by a schedule, its own module; None if no dot can be cut as the schedule says."""
        options = planning_options(self._capabilities, self._options, schedule)
        key = Schedule(schedule.subgroups, matrices=schedule.matrices, pieces=schedule.pieces)
        if key not in self._by_upstream:
            module = self._passed(options)
            self._by_upstream[key] = module and str(module)
        else:
            text = self._by_upstream[key]
            module = text and passes.parse(text, self._context)
        if module is None:
            return None
        return transformed(module, table.Stage.LAYOUTS_CHOSEN, self._capabilities, options) or module

    def _passed(self, options: Options) -> Any:
        """The kernel after upstream's passes."""
        module, self._module = self._module, None  # the passes change it in place
        if module is None:
            module = passes.parse(self._ttir, self._context)
        module = transformed(module, table.Stage.BEFORE_LAYOUTS, self._capabilities, options) or module
        cut = transformed(module, table.Stage.CUT, self._capabilities, options)
        if cut is None and options.schedule.pieces:
            return None
        module = cut or module
        lanes = WARP if options.schedule.matrices else self._options.warp_size
        encodings = passes.encodings(options.schedule.subgroups, lanes, self._options.num_ctas)
        names = self._found.names
        passes.run(module, encodings, "make_encodings", names)
        module = transformed(module, table.Stage.ENCODED, self._capabilities, options, names) or module
        without = self._options.without
        passes.run(module, passes.LAYOUTS, "make_layouts", names, without)
        if options.schedule.matrices:
            passes.accelerate_dots(module, names)
        else:
            passes.decompose_scaled_dots(module, names)
        module = transformed(module, table.Stage.LANES, self._capabilities, options) or module
        passes.run(module, passes.TTGIR, "make_ttgir", passes.operation_names(module), without)
        return module


def choose(module: Any, name: str, capabilities: Capabilities, options: SPIRVOptions) -> Chosen:
    """Lays out a TTIR module by the fastest schedule by which it fits. ``name``: of its TTGIR in errors. Raises
    OutOfSharedMemory where it fits by none."""
    layouts = _Layouts(module, capabilities, options)
    kernel = module.get_entry_func_name()
    if layouts.key in _TOO_LARGE:
        raise OutOfSharedMemory(kernel, _TOO_LARGE[layouts.key], capabilities.shared_bytes)
    tried: list[Tried] = []
    seen: set[tuple[str, Schedule]] = set()
    on_units = True
    for candidate in layouts.candidates():
        check()
        schedule = candidate.schedule
        if schedule.matrices and not on_units:
            continue
        laid_out = layouts.laid_out(schedule)
        if laid_out is None:
            continue
        planning = planning_options(capabilities, options, schedule)
        text = _last(laid_out, capabilities, planning)
        alike = text, replace(schedule, subgroups=0, moved_loads=False, held=False, pieces=0)
        if alike in seen:
            continue  # what it differs in changes nothing of this kernel
        seen.add(alike)
        source = _read(text, name)
        # What is too large already is left before it is planned, which takes longest. Fragments of matrix units and
        # products of tiles come later, and may leave buffers out.
        shared = 0 if schedule.matrices or capabilities.tile_products else least_shared(kernel_of(source))
        if shared <= capabilities.shared_bytes:
            try:
                if not arrange(source, capabilities, planning) and schedule.matrices:
                    on_units = bool(schedule.pieces)  # what pieces are made by may not suit, where whole dots do
                    continue
                planned = plan_arranged(source, capabilities, planning)
            except (LoweringError, UnsupportedOperation):  # raised again where it is emitted: its TTGIR is kept
                return Chosen(laid_out, schedule, None, tuple(tried))
            if planned.plan.fits:
                return Chosen(laid_out, schedule, planned, tuple(tried))
            shared = planned.plan.shared_bytes
        tried.append(Tried(schedule.summary(), candidate.expected, shared))
    required = _TOO_LARGE[layouts.key] = min((one.shared for one in tried), default=0)
    raise OutOfSharedMemory(kernel, required, capabilities.shared_bytes)


def _read(text: str, name: str) -> Module:
    """The module of a text that upstream printed. Raises UnsupportedOperation for an operation of another backend's."""
    try:
        return parse_module(text, name)
    except TTGIRSyntaxError as error:
        if error.unknown is None:
            raise
        name, location = error.unknown
        operation = Operation.make(name, (), (), {}, (), location=location)
        raise UnsupportedOperation(operation, "it is not known to this backend", "leave out what makes it") from error


def plan(module: Any, schedule: Schedule, name: str, capabilities: Capabilities, options: SPIRVOptions) -> Planned:
    """TTGIR rewritten and planned, by the ``schedule`` that laid it out. ``name``: of the TTGIR in errors. Raises
    OutOfSharedMemory where it takes more shared memory than the device has."""
    planning = planning_options(capabilities, options, schedule)
    source = _read(_last(module, capabilities, planning), name)
    planned = plan_module(source, capabilities, planning)
    if not planned.plan.fits:
        kernel = module.get_entry_func_name()
        raise OutOfSharedMemory(kernel, planned.plan.shared_bytes, capabilities.shared_bytes)
    return planned


def plan_module(source: Module, capabilities: Capabilities, options: Options) -> Planned:
    """Rewrites and plans the only public function of ``source``, which was laid out by the schedule of ``options``.
    Raises UnsupportedOperation for what this backend refuses, LoweringError for a module it does not understand."""
    arrange(source, capabilities, options)
    return plan_arranged(source, capabilities, options)


def arrange(source: Module, capabilities: Capabilities, options: Options) -> bool:
    """Gives fragments of matrix units the layout that the device has for them. False where there are none, or where
    the device has no such matrices."""
    return table.rewrite(source, table.Stage.FRAGMENTS, capabilities, options)


def plan_arranged(source: Module, capabilities: Capabilities, options: Options) -> Planned:
    """What is left of ``plan_module`` then."""
    _check_shape(source, capabilities)
    warn_of_returned_values(source)
    table.rewrite(source, table.Stage.PLANNING, capabilities, options)
    return plan_kernel(source, capabilities, options)


def _check_shape(source: Module, capabilities: Capabilities) -> None:
    try:
        warps, lanes = source.warps, source.lanes
    except AttributeError as missing:
        raise LoweringError(f"{missing}: it is not TTGIR") from None
    if int(source.attribute("ttg.num-ctas")) != 1:
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


def _last(module: Any, capabilities: Capabilities, options: Options) -> str:
    """The text of ``module`` after upstream's last passes; the module itself stays as it is."""
    text, context = str(module), module.context
    names = passes.operation_names(module)
    changed = transformed(module, table.Stage.LAST, capabilities, options, names)
    if changed is not None:
        module, text = changed, str(changed)
    without = options.asked.without
    if not passes.due(passes.LAST, names, without):
        return text
    copy = passes.parse(text, context)
    passes.run(copy, passes.LAST, "finish_ttgir", names, without)
    return str(copy)


def planning_options(capabilities: Capabilities, options: SPIRVOptions, schedule: Schedule) -> Options:
    """What the compile options and the device say to rewrites, planning and lowering."""
    units = matrix_units(options.matrix_units, capabilities)
    return Options(
        options,
        native_math=native_math(options.native_math, capabilities),
        matrices=units,
        matrix_loads=loads_matrices(capabilities, units),
        schedule=schedule,
    )


def loads_matrices(capabilities: Capabilities, units: tuple[MatrixConfiguration, ...]) -> bool:
    """Whether dots load fragments from shared memory."""
    return bool(units) and capabilities.traits.matrix_loads and capabilities.has("explicit_workgroup_layout")


def transformed(
    module: Any, stage: table.Stage, device: Capabilities, options: Options, names: frozenset[str] | None = None
) -> Any:
    """An upstream module after our rewrites of a stage; None if they change nothing. ``names``: of its
    operations (passes.operation_names), where they are known."""
    rows = table.wanted(stage, device, options)
    if not rows:
        return None
    if names is None:
        names = passes.operation_names(module)
    rows = [row for row in rows if row.suits(names)]
    if not rows:
        return None
    source = _read(str(module), "kernel.ttgir")
    changed = table.transform(source, rows, device, options)
    return passes.parse(print_module(source), module.context) if changed else None
