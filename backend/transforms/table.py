"""Every rewrite of a module, in the order in which they run. Upstream's own passes are in ``passes.py``."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum

from ..analysis.lazy_loads import lazy_loads
from ..analysis.matrix_dots import splits_floats
from ..matrices import MatrixConfiguration
from ..ttgir.ir import Module
from .buffer_operands import buffer_operands
from .dot_precision import OF_F32, share_precision
from .fragments import arrange_fragments
from .gathers import gather_without_conversions
from .invariant_operands import hoist_invariant_operands
from .kernel import kernel_of, one_block
from .matrix_buffers import pad_matrix_buffers
from .operand_buffers import place_operands
from .prefetch import prefetch_dot_operands
from .refill_buffers import refill_buffers
from .reload_operands import reload_operands
from .sink_buffers import sink_buffers
from .sink_loads import APART, sink_loads
from .slice_dots import slice_dots
from .split_dots import split_dots
from .strips import cut_in_strips
from .subgroups_along_rows import ALONG, BOUND, lay_subgroups_along_rows
from .transposed_operands import buffer_transposed_operands


class Stage(Enum):
    """When a rewrite runs. Before the last passes its result goes back to upstream as text."""

    CUT = "before anything else"
    BEFORE_LAYOUTS = "before upstream chooses layouts"
    LAYOUTS_CHOSEN = "after upstream's layouts were chosen"
    LOADS_MOVED = "after those"
    LAST = "before upstream's last passes"
    FITTING = "after upstream's passes, where shared memory does not suffice"
    FRAGMENTS = "after upstream's passes, before anything asks which lane holds an element"
    PLANNING = "after upstream's passes, before planning"


@dataclass(frozen=True)
class Settings:
    """What decides whether rewrites run, by the names of their switches.

    ``moved_loads``: loads of dot operands go down to their dots. ``reload``: each of several dots loads an operand
    anew. ``unrolled_dots``: of multiply-adds that a lane has in all dots of a kernel, past which operands are put in
    buffers, not converted; 0 for any number. ``prefetch``: the next iteration's dot operands are loaded ahead, in loops
    of more than one of the ``stages``, ``behind`` the barrier that they meet. ``shared_banks``: workgroup memory is
    banked, so that dot operands are laid out for it. ``matrix_loads``: matrix dots load fragments from buffers.
    ``pieces``: dots are cut in so many along K, and buffers are filled late; 0 where they are not. ``tight``: buffers
    are filled anew in each iteration. ``sliced``: bytes of shared memory past which the operands of a dot are stored in
    slices of K; 0 where they are not. ``strips``: of instructions that element-by-element code may have before its
    tensors are cut in strips; 0 for any number. ``rows``: subgroups should not exchange anything. ``matrices``: what
    the target's matrix units multiply, with subgroups of ``lanes``, each of which has so many ``registers``.
    """

    moved_loads: bool = True
    reload: bool = False
    unrolled_dots: int = 0
    prefetch: bool = False
    stages: int = 2
    behind: bool = False
    shared_banks: bool = False
    matrix_loads: bool = False
    pieces: int = 0
    tight: bool = False
    sliced: int = 0
    strips: int = 0
    rows: bool = False
    matrices: tuple[MatrixConfiguration, ...] = ()
    lanes: int = 0
    registers: int = 0


@dataclass(frozen=True)
class Transform:
    """One rewrite. ``run`` changes a module in place and says whether it did. It runs where the module has an operation
    of each of the sets ``operations`` and none of ``without``, and the setting ``switch`` is on."""

    name: str
    stage: Stage
    run: Callable[[Module, Settings], bool]
    operations: tuple[frozenset[str], ...] = ()
    switch: str = ""
    without: frozenset[str] = frozenset()

    def applies(self, names: Collection[str], settings: Settings) -> bool:
        """Whether it runs on a module that has operations of these names."""
        return (
            (not self.switch or getattr(settings, self.switch))
            and all(not wanted.isdisjoint(names) for wanted in self.operations)
            and self.without.isdisjoint(names)
        )


def _alone(rewrite: Callable[[Module], bool]) -> Callable[[Module, Settings], bool]:
    return lambda module, settings: rewrite(module)


def _prefetch(module: Module, settings: Settings) -> bool:
    prefetch_dot_operands(kernel_of(module), settings.stages, settings.behind)
    return True


def _place(module: Module) -> bool:
    place_operands(lazy_loads(kernel_of(module)))
    return True


def _among(*names: str) -> frozenset[str]:
    return frozenset(names)


TRANSFORMS: tuple[Transform, ...] = (
    Transform(
        "cut dots along K",
        Stage.CUT,
        lambda module, settings: split_dots(module, settings.pieces),
        (_among("tt.dot"),),
        "pieces",
    ),
    Transform(
        "give dots of f32 one precision",
        Stage.BEFORE_LAYOUTS,
        lambda module, settings: share_precision(module, splits_floats(settings.matrices)),
        (_among(OF_F32),),
        "matrices",
    ),
    Transform("fill buffers late", Stage.LAYOUTS_CHOSEN, _alone(sink_buffers), (_among("ttg.local_alloc"),), "pieces"),
    Transform(
        "fill buffers in loops", Stage.LAYOUTS_CHOSEN, _alone(refill_buffers), (_among("ttg.local_alloc"),), "tight"
    ),
    Transform(
        "put converted dot operands in buffers",
        Stage.LAYOUTS_CHOSEN,
        lambda module, settings: buffer_operands(module, settings.unrolled_dots),
        (_among("ttg.convert_layout"), _among("tt.dot")),
        "unrolled_dots",
    ),
    Transform(
        "load operands of several dots for each",
        Stage.LAYOUTS_CHOSEN,
        _alone(reload_operands),
        (_among(APART),),
        "reload",
    ),
    Transform("sink loads of dot operands", Stage.LAYOUTS_CHOSEN, _alone(sink_loads), (_among(APART),), "moved_loads"),
    Transform("lay subgroups along rows", Stage.LOADS_MOVED, _alone(lay_subgroups_along_rows), (ALONG,), "rows", BOUND),
    Transform(
        "read transposed matrix operands from buffers",
        Stage.LAST,
        _alone(buffer_transposed_operands),
        (_among("ttg.convert_layout"), _among("tt.trans"), _among("tt.dot")),
        "matrices",
    ),
    Transform(
        "load invariant matrix operands before loops",
        Stage.LAST,
        lambda module, settings: hoist_invariant_operands(module, settings.registers),
        (_among("scf.for"), _among("ttg.local_load"), _among("tt.dot")),
        "matrices",
    ),
    Transform(
        "pad buffers of matrix operands",
        Stage.LAST,
        _alone(pad_matrix_buffers),
        (_among("ttg.local_alloc"), _among("tt.dot")),
        "matrix_loads",
    ),
    Transform(
        "multiply slices of K in a loop",
        Stage.FITTING,
        lambda module, settings: slice_dots(kernel_of(module), settings.sliced),
        (),
        "sliced",
    ),
    Transform(
        "lay out matrix fragments",
        Stage.FRAGMENTS,
        lambda module, settings: arrange_fragments(module, settings.lanes, settings.matrices),
        (),
        "matrices",
    ),
    Transform("structure branches and inline calls", Stage.PLANNING, _alone(one_block)),
    Transform("prefetch dot operands", Stage.PLANNING, _prefetch, (), "prefetch"),
    Transform(
        "gather without conversions",
        Stage.PLANNING,
        lambda module, settings: gather_without_conversions(kernel_of(module)),
    ),
    Transform(
        "cut long tensors in strips",
        Stage.PLANNING,
        lambda module, settings: cut_in_strips(kernel_of(module), settings.strips),
        (),
        "strips",
    ),
    Transform("lay out buffers of dot operands", Stage.PLANNING, _alone(_place), (), "shared_banks"),
)


def due(stage: Stage, names: Collection[str], settings: Settings) -> list[Transform]:
    """The rewrites of a stage that run on a module that has operations of these names."""
    return [row for row in TRANSFORMS if row.stage is stage and row.applies(names, settings)]


def transform(module: Module, rows: Collection[Transform], settings: Settings) -> bool:
    """Runs rewrites in their order. Whether one changed the module."""
    return any([row.run(module, settings) for row in rows])
