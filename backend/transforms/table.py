"""Every rewrite of a module, in the order in which they run. Upstream's own passes are in ``passes.py``."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum

from ..analysis.lazy_loads import lazy_loads
from ..analysis.matrix_dots import splits_floats
from ..analysis.turned_tiles import LOOPS, TURNS
from ..capabilities import Capabilities
from ..settings import VERIFY
from ..ttgir.ir import Function, Module
from .assembly_barriers import ASSEMBLY, put_barriers
from .buffer_operands import buffer_operands
from .carried_turns import buffer_turned_tiles, convert_turned_tiles
from .cpu.alike_lanes import mark_alike
from .cpu.carried_arrays import carry_arrays
from .cpu.carried_pointers import carry_offsets
from .cpu.hypercubes import join_dimensions
from .cpu.inner_rounds import put_rounds_inside
from .cpu.merged_arrays import merge_arrays
from .cpu.neighbouring_lanes import neighbouring_lanes
from .cpu.promises import leave_promises_out
from .cpu.row_order import keep_row_order
from .cpu.tile_dots import multiply_tiles
from .cpu.whole_loops import multiply_rounds
from .gathers import gather_without_conversions
from .gpu.converted_operands import convert_operands
from .gpu.dot_precision import OF_F32, share_precision
from .gpu.fill_together import fill_together
from .gpu.fragments import arrange_fragments
from .gpu.halves import multiply_halves
from .gpu.invariant_operands import Capacity, hoist_invariant_operands
from .gpu.matrix_buffers import pad_matrix_buffers
from .gpu.operand_buffers import place_operands
from .gpu.prefetch import prefetch_dot_operands
from .gpu.row_buffers import buffer_rows
from .gpu.store_lanes import reorder_storing_lanes
from .gpu.transposed_operands import buffer_transposed_operands
from .gpu.turn_dots import turn_dots
from .kernel_function import kernel_of, one_block
from .refill_buffers import refill_buffers
from .reload_operands import reload_operands
from .schedule import Options
from .sink_buffers import sink_buffers
from .sink_loads import APART, sink_loads
from .split_dots import split_dots
from .steps import check_steps
from .strips import cut_in_strips
from .verifier import verify


class Stage(Enum):
    """When a rewrite runs, in the order of stages.py. Before the last passes its result goes back to upstream as
    text."""

    BEFORE_LAYOUTS = "before anything else"
    CUT = "before upstream chooses layouts"
    ENCODED = "after tensors were given encodings, before upstream changes them"
    LANES = "before upstream makes do with fewer layout conversions"
    LAYOUTS_CHOSEN = "after upstream's layouts were chosen"
    LAST = "before upstream's last passes"
    FRAGMENTS = "after upstream's passes, before anything asks which lane holds an element"
    PLANNING = "after upstream's passes, before planning"


def _always(device: Capabilities, options: Options) -> bool:
    return True


def _on_units(device: Capabilities, options: Options) -> object:
    return options.units


def _in_tiles(device: Capabilities, options: Options) -> object:
    """On the CPU device, and what emulates it."""
    return device.tile_products


def _in_tiles_alone(device: Capabilities, options: Options) -> object:
    return device.tile_products and not options.units


def _beside_others(device: Capabilities, options: Options) -> object:
    """Where loads may run ahead, and it is known how much memory leaves room for another workgroup."""
    return device.traits.prefetch and device.traits.resident_shared


@dataclass(frozen=True)
class Transform:
    """One rewrite. ``run`` changes a module in place and says whether it did. It runs where the module has an operation
    of each of the sets ``operations`` and none of ``without``, and ``when`` gives something that is not zero or
    empty. ``needed``: nothing can be emitted without it, or a kernel asks for it; any other one a compilation may leave
    out, by its name. ``reads``: the part of analysis/ whose claims it goes by, where there is one."""

    name: str
    stage: Stage
    run: Callable[[Module, Capabilities, Options], bool]
    operations: tuple[frozenset[str], ...] = ()
    when: Callable[[Capabilities, Options], object] = _always
    without: frozenset[str] = frozenset()
    needed: bool = False
    reads: str = ""

    def suits(self, names: Collection[str]) -> bool:
        """Whether it runs on a module that has operations of these names."""
        return all(not wanted.isdisjoint(names) for wanted in self.operations) and self.without.isdisjoint(names)


def _alone(rewrite: Callable[[Module], bool]) -> Callable[[Module, Capabilities, Options], bool]:
    return lambda module, device, options: rewrite(module)


def _of_kernel(rewrite: Callable[[Function], bool]) -> Callable[[Module, Capabilities, Options], bool]:
    return lambda module, device, options: rewrite(kernel_of(module))


def _prefetch(module: Module, device: Capabilities, options: Options) -> bool:
    return prefetch_dot_operands(kernel_of(module), options.schedule.stages, device.traits.prefetch_behind_barrier)


def _most_shared(module: Module, device: Capabilities) -> int:
    """What leaves room for another workgroup, if the registers do, in bytes; all that there is where that is not
    known."""
    traits, lanes = device.traits, module.warps * device.subgroup_size
    if traits.resident_shared is None or traits.unit_registers is None:
        return device.shared_bytes
    alone = 2 * lanes * traits.lane_registers > traits.unit_registers
    return device.shared_bytes if alone else min(traits.resident_shared, device.shared_bytes)


def _fill_together(module: Module, device: Capabilities, options: Options) -> bool:
    return fill_together(kernel_of(module), options.schedule.stages, _most_shared(module, device))


def _buffer_rows(module: Module, device: Capabilities, options: Options) -> bool:
    lanes, warps, most = device.subgroup_size, module.warps, _most_shared(module, device)
    return buffer_rows(kernel_of(module), options.schedule.stages, lanes, warps, most)


def _hoist_operands(module: Module, device: Capabilities, options: Options) -> bool:
    room = Capacity(device.traits.lane_registers, _most_shared(module, device), options.schedule.held)
    return hoist_invariant_operands(module, room)


def _arrange_fragments(module: Module, device: Capabilities, options: Options) -> bool:
    return arrange_fragments(module, device.subgroup_size, options.units)


def _multiply_tiles(module: Module, device: Capabilities, options: Options) -> bool:
    """Not of a kernel that names its layouts, of several subgroups."""
    return module.warps == 1 and multiply_tiles(kernel_of(module), device.tile_products, device.subgroup_size)


def _multiply_rounds(module: Module, device: Capabilities, options: Options) -> bool:
    return module.warps == 1 and multiply_rounds(kernel_of(module), device.subgroup_size)


def _cut_in_strips(module: Module, device: Capabilities, options: Options) -> bool:
    rows = bool(device.tile_products)
    return cut_in_strips(kernel_of(module), device.traits, rows, rows and module.warps == 1)


def _place(module: Module) -> bool:
    place_operands(lazy_loads(kernel_of(module)))
    return True


def _among(*names: str) -> frozenset[str]:
    return frozenset(names)


TRANSFORMS: tuple[Transform, ...] = (
    Transform(
        "wait where assembly waits", Stage.BEFORE_LAYOUTS, _alone(put_barriers), (_among(ASSEMBLY),), needed=True
    ),
    Transform(
        "give dots of f32 one precision",
        Stage.BEFORE_LAYOUTS,
        lambda module, device, options: share_precision(module, splits_floats(options.units)),
        (_among(OF_F32),),
        _on_units,
    ),
    Transform(
        "compute transposed what is used transposed",
        Stage.BEFORE_LAYOUTS,
        _alone(turn_dots),
        (_among("tt.trans"), _among("tt.dot")),
        _on_units,
    ),
    Transform(
        "keep the order of rows", Stage.BEFORE_LAYOUTS, _alone(keep_row_order), (_among("tt.reshape"),), _in_tiles
    ),
    Transform(
        "cut dots along K",
        Stage.CUT,
        lambda module, device, options: split_dots(module, options.schedule.pieces),
        (_among("tt.dot", "tt.dot_scaled"),),
        lambda device, options: options.schedule.pieces,
    ),
    Transform(
        "send turned tiles of loops through buffers",
        Stage.ENCODED,
        _alone(buffer_turned_tiles),
        (TURNS, LOOPS),
        reads="turned_tiles",
    ),
    Transform(
        "give neighbouring lanes neighbouring elements", Stage.LANES, _alone(neighbouring_lanes), when=_in_tiles_alone
    ),
    Transform("leave promises of runs out", Stage.LANES, _alone(leave_promises_out), when=_in_tiles),
    Transform(
        "convert turned tiles of loops",
        Stage.LAYOUTS_CHOSEN,
        _alone(convert_turned_tiles),
        (TURNS, LOOPS, _among("ttg.local_alloc")),
        reads="turned_tiles",
    ),
    Transform(
        "fill buffers late",
        Stage.LAYOUTS_CHOSEN,
        _alone(sink_buffers),
        (_among("ttg.local_alloc"),),
        lambda device, options: options.schedule.pieces,
    ),
    Transform(
        "fill buffers in loops",
        Stage.LAYOUTS_CHOSEN,
        _alone(refill_buffers),
        (_among("ttg.local_alloc"),),
        lambda device, options: options.schedule.in_rounds,
    ),
    Transform(
        "put converted dot operands in buffers",
        Stage.LAYOUTS_CHOSEN,
        lambda module, device, options: buffer_operands(module, device.traits.dots_unroll),
        (_among("ttg.convert_layout"), _among("tt.dot")),
        lambda device, options: options.schedule.moved_loads and device.traits.dots_unroll,
    ),
    Transform(
        "load operands of several dots for each",
        Stage.LAYOUTS_CHOSEN,
        _alone(reload_operands),
        (_among(APART),),
        lambda device, options: options.schedule.moved_loads and device.traits.dots_unroll,
    ),
    Transform(
        "sink loads of dot operands",
        Stage.LAYOUTS_CHOSEN,
        _alone(sink_loads),
        (_among(APART),),
        lambda device, options: options.schedule.moved_loads,
    ),
    Transform(
        "read transposed matrix operands from buffers",
        Stage.LAST,
        _alone(buffer_transposed_operands),
        (_among("ttg.convert_layout"), _among("tt.trans"), _among("tt.dot")),
        _on_units,
    ),
    Transform(
        "convert matrix operands before they are stored",
        Stage.LAST,
        _alone(convert_operands),
        (_among("ttg.local_alloc"), _among("ttg.local_load"), _among("tt.dot")),
        _on_units,
    ),
    Transform(
        "pad buffers of matrix operands",
        Stage.LAST,
        _alone(pad_matrix_buffers),
        (_among("ttg.local_alloc"), _among("tt.dot")),
        lambda device, options: options.schedule.padded,
    ),
    Transform(
        "load invariant matrix operands before loops",
        Stage.LAST,
        _hoist_operands,
        (_among("scf.for"), _among("ttg.local_load"), _among("tt.dot")),
        _on_units,
    ),
    Transform(  # while the names of fragments are upstream's
        "multiply tf32 as f16",
        Stage.FRAGMENTS,
        lambda module, device, options: multiply_halves(module, options.units, options.schedule.padded),
        when=lambda device, options: device.traits.multiplies_halves and options.units,
    ),
    Transform("lay out matrix fragments", Stage.FRAGMENTS, _arrange_fragments, when=_on_units, needed=True),
    Transform(
        "store matrix operands without bank conflicts",
        Stage.PLANNING,
        lambda module, device, options: reorder_storing_lanes(module, device.traits.stored_bytes),
        when=lambda device, options: options.schedule.padded and device.traits.stored_bytes,
    ),
    Transform(
        "check steps of loops",
        Stage.PLANNING,
        _alone(check_steps),
        when=lambda device, options: options.asked.debug or "bounds" in options.asked.checks,
        needed=True,
    ),
    Transform("structure branches and inline calls", Stage.PLANNING, _alone(one_block), needed=True),
    Transform("load rows of loops by way of shared memory", Stage.PLANNING, _buffer_rows, when=_beside_others),
    Transform("fill buffers of several dots together", Stage.PLANNING, _fill_together, when=_beside_others),
    Transform(
        "prefetch dot operands",
        Stage.PLANNING,
        _prefetch,
        when=lambda device, options: device.traits.prefetch,
        reads="overwriting",
    ),
    Transform("gather without conversions", Stage.PLANNING, _of_kernel(gather_without_conversions)),
    Transform("carry offsets of pointers", Stage.PLANNING, _of_kernel(carry_offsets), when=_in_tiles, reads="places"),
    Transform(
        "multiply whole tiles",
        Stage.PLANNING,
        _multiply_tiles,
        when=lambda device, options: device.tile_products and "program_races" not in options.asked.checks,
        reads="places",
    ),
    Transform(
        "multiply the tiles of loops at once",
        Stage.PLANNING,
        _multiply_rounds,
        when=lambda device, options: device.tile_products and not (options.asked.checks or options.asked.disorder),
        reads="places",
    ),
    Transform("carry tensors in arrays", Stage.PLANNING, _of_kernel(carry_arrays), when=_in_tiles_alone),
    Transform(
        "join dimensions of two elements",
        Stage.PLANNING,
        _of_kernel(join_dimensions),
        (_among("tt.reduce"),),
        _in_tiles_alone,
    ),
    Transform(
        "cut long tensors in strips",
        Stage.PLANNING,
        _cut_in_strips,
        when=lambda device, options: device.traits.unrolled_elementwise,
        reads="places",
    ),
    Transform("merge arrays", Stage.PLANNING, _of_kernel(merge_arrays), when=_in_tiles),
    Transform(
        "put rounds into loops over strips",
        Stage.PLANNING,
        _of_kernel(put_rounds_inside),
        (_among("spirv.put"),),
        _in_tiles,
    ),
    Transform("divide once for all lanes", Stage.PLANNING, _of_kernel(mark_alike), when=_in_tiles, reads="axis_info"),
    Transform(
        "lay out buffers of dot operands",
        Stage.PLANNING,
        _alone(_place),
        when=lambda device, options: device.traits.shared_banks,
        reads="lazy_loads",
    ),
)


def wanted(stage: Stage, device: Capabilities, options: Options) -> list[Transform]:
    """The rewrites of a stage that run for a device and options, if a module has their operations."""
    asked = options.asked
    return [
        row
        for row in TRANSFORMS
        if row.stage is stage and (row.needed or asked.has(row.name)) and row.when(device, options)
    ]


def rewrite(module: Module, stage: Stage, device: Capabilities, options: Options) -> bool:
    """Runs the rewrites of a stage that does not ask which operations there are. Whether one changed the module."""
    return transform(module, wanted(stage, device, options), device, options)


def transform(module: Module, rows: Collection[Transform], device: Capabilities, options: Options) -> bool:
    """Runs rewrites in their order. Whether one changed the module. Raises InvalidTTGIR where TRITON_SPIRV_VERIFY is
    set and one has left the module in pieces: behind each that says that it changed something, and at the end of the
    last stage. Of the other stages a module that was not changed is left, and upstream's goes on."""
    rows, changed, verifies = [*rows], False, VERIFY.get()
    for row in rows:
        changes = row.run(module, device, options)
        changed = changes or changed
        if verifies and (changes or (row is rows[-1] and row.stage is Stage.PLANNING)):
            verify(module, row.name)
    return changed
