"""What is decided of an operation before it is lowered: one class a family of operations.

``accesses``: to workgroup memory. ``scratch``: the workgroup memory that it has for itself, in the order of its use.
``reason``: why a cheaper way was not possible; empty where the cheapest was taken.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..analysis.split_products import WHOLE, Split
from ..layouts.conversion import Identity, Moves, RegisterPermutation
from ..layouts.dot_fragments import MatrixDot
from ..layouts.gather_plans import GatherByShuffles
from ..layouts.linear import LinearLayout
from ..layouts.reduction import ReductionPlan
from ..layouts.scan_plans import AcrossLanes, AcrossRegisters, AcrossWarps, ScanPlan
from ..layouts.shuffles import SubgroupShuffle
from ..layouts.through_shared import ThroughShared
from ..matrices import MatrixConfiguration
from ..ptx.constraints import Constraints
from ..ptx.program import Program
from ..ttgir.types import FloatType, IntegerType, MemDescType, Type, element_type
from .memory_pools import POOL, Scratch, SharedAccess


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


@dataclass(frozen=True)
class Plan:
    """How one operation is carried out. ``summary``: the plan in words, for people."""

    accesses: tuple[SharedAccess, ...] = ()
    scratch: tuple[Scratch, ...] = ()
    reason: str = ""

    @property
    def iterations(self) -> int:
        """How often the loops of the operation's code go round, at most, the last check of each counted; 0 without
        one."""
        return 0

    def summary(self) -> str:
        """A few words."""
        return ""

    def _where(self) -> str:
        places = [f"{one.size} bytes at {one.offset % POOL}" for one in self.scratch]
        return f" in {', '.join(places)}" if places else ""


@dataclass(frozen=True)
class Failed(Plan):
    """The operation cannot be planned: ``error`` is raised where it is lowered."""

    error: Exception | None = None

    def summary(self) -> str:
        return f"refused: {self.error}"


@dataclass(frozen=True)
class Conversion(Plan):
    """``moves``: how registers get from ``source`` to ``target``."""

    moves: Moves = Identity()
    source: LinearLayout | None = None
    target: LinearLayout | None = None

    def summary(self) -> str:
        moves = self.moves
        if isinstance(moves, Identity):
            return "nothing"
        if isinstance(moves, RegisterPermutation):
            return "registers renamed"
        if isinstance(moves, SubgroupShuffle):
            exchanges = _counted(len(moves.before) + len(moves.after), "exchange")
            return f"{_counted(len(moves.shuffles), 'shuffle')}, {exchanges}"
        assert isinstance(moves, ThroughShared)
        return f"shared memory, {_counted(len(moves.rounds), 'round')}{self._where()}"


@dataclass(frozen=True)
class Reduction(Plan):
    """``steps``: what is combined in which order, one part of the dimension after the other; ``places``: the workgroup
    memory of each, for each operand."""

    steps: tuple[ReductionPlan, ...] = ()
    places: tuple[tuple[Scratch, ...], ...] = ()

    def summary(self) -> str:
        return "; ".join(map(_combined, self.steps)) + (self._where() if self.scratch else "")


def _combined(steps: ReductionPlan) -> str:
    groups, registers = _counted(len(steps.groups), "group"), _counted(len(steps.groups[0]), "register")
    shuffles = len(steps.lane_masks) + (steps.first_lane is not None)
    text = f"{groups} of {registers}, {_counted(shuffles, 'shuffle')}"
    if steps.across_warps is None:
        return text
    across = steps.across_warps
    return f"{text}, {across.partials} subgroups in {_counted(len(across.rounds), 'round')}"


@dataclass(frozen=True)
class Vote(Plan):
    """What all invocations find out together: what each subgroup finds goes through ``scratch`` where there are
    several."""

    def summary(self) -> str:
        return f"a vote{self._where()}"


@dataclass(frozen=True)
class Rolled(Plan):
    """Long code for each of ``registers``: where more than ``unrolled`` of them differ, they are computed in a
    loop over registers, ``together`` in each round."""

    registers: int = 1
    unrolled: int = 1
    together: int = 1

    @property
    def iterations(self) -> int:
        """How often the loop over registers goes round."""
        return -(-self.registers // self.together) + 1 if self.registers > self.unrolled else 0

    def summary(self) -> str:
        if self.registers > self.unrolled:
            return f"a loop over up to {self.registers} registers, {self.together} a round"
        return f"{_counted(self.registers, 'register')} unrolled"


@dataclass(frozen=True)
class Unmade(Plan):
    """Nothing is computed where the operation is: what uses its result computes each register as it needs it."""

    def summary(self) -> str:
        return "left to its use"


@dataclass(frozen=True)
class Scan(Plan):
    """``steps``: how blocks are joined; ``places``: the workgroup memory of those steps that need some, for each
    operand. ``before`` and ``after``: conversions of each operand and result, where its layout cannot be scanned."""

    steps: ScanPlan | None = None
    places: tuple[tuple[Scratch, ...], ...] = ()
    before: tuple[Conversion, ...] = ()
    after: tuple[Conversion, ...] = ()

    def summary(self) -> str:
        assert self.steps is not None
        names = {AcrossRegisters: "registers", AcrossLanes: "lanes", AcrossWarps: "subgroups"}
        kinds = [names[type(step)] for step in self.steps.steps]
        converted = ", in another layout" if self.before else ""
        return f"across {', '.join(kinds) or 'nothing'}{converted}{self._where()}"


@dataclass(frozen=True)
class Gather(Plan):
    """``shuffles``: how elements come from other lanes; None where they go through workgroup memory, ``stored`` of the
    source at a time. ``loads``: how the code is repeated that reads them there."""

    shuffles: GatherByShuffles | None = None
    stored: int = 1
    loads: Rolled = Rolled()

    @property
    def iterations(self) -> int:
        """How often the loops go round, as in Plan."""
        return self.loads.iterations

    def summary(self) -> str:
        if self.shuffles is not None:
            return f"{_counted(len(self.shuffles.candidates), 'shuffle')} an element"
        return f"shared memory, {self.loads.summary()}{self._where()}"


@dataclass(frozen=True)
class Shared(Plan):
    """The results of an operation that all invocations receive."""

    def summary(self) -> str:
        return f"shared memory{self._where()}" if self.scratch else "nothing is exchanged"


@dataclass(frozen=True)
class Atomic(Shared):
    """An atomic operation or a histogram. ``updates``: how the code is repeated that acts on an element."""

    updates: Rolled = Rolled()
    #: Of a histogram: the counters of each bin.
    copies: int = 1

    @property
    def iterations(self) -> int:
        """How often the loops go round, as in Plan."""
        return self.updates.iterations

    def summary(self) -> str:
        return f"{self.updates.summary()}, {super().summary()}"


@dataclass(frozen=True)
class BufferAccess(Plan):
    """A tensor is written to or read from a buffer at byte ``offset``, ``width`` elements at a time. ``late``: it is
    left there until the dots that use it."""

    offset: int = 0
    width: int = 1
    late: bool = False

    def summary(self) -> str:
        return (
            f"read by its dots from byte {self.offset % POOL}"
            if self.late
            else f"{_counted(self.width, 'element')} an access"
        )


@dataclass(frozen=True)
class GlobalAccess(Plan):
    """``width`` consecutive registers go in one access."""

    width: int = 1
    bits: int = 0

    def summary(self) -> str:
        return f"{_counted(self.width, 'element')} of {self.bits} bits an access"


@dataclass(frozen=True)
class InlineAssembly(Rolled):
    """A piece of PTX, run for ``pack`` consecutive elements at a time; ``registers`` counts packs."""

    program: Program = Program((), {})
    constraints: Constraints = Constraints((), (), ())
    pack: int = 1

    def element_width(self, type_: Type) -> int:
        """Bits of an element of a scalar or tensor."""
        element = element_type(type_)
        return element.width if isinstance(element, (IntegerType, FloatType)) else 64

    def sharing(self, width: int) -> int:
        """Elements of ``width`` bits that share a register: of a pack, what fills 32 bits."""
        return max(1, min(self.pack, 32 // width)) if width < 32 else 1

    def summary(self) -> str:
        packs = f", {self.pack} elements at a time" if self.pack > 1 else ""
        rolled = f", in {super().summary()}" if self.registers > self.unrolled else ""
        return f"{_counted(len(self.program.instructions), 'instruction')} of PTX{packs}{rolled}"


#: An operand of a dot that stays in shared memory until the dot reads it.
_IN_BUFFER = "in shared memory"


def _places(operands: list[str]) -> str:
    """Where both operands of a dot are."""
    first, second = operands
    return f"both {first}" if first == second else f"{first} and {second}"


@dataclass(frozen=True)
class Operand:
    """Where a dot finds an operand. ``late``: in the buffer of a load that was left to it. ``buffer``: it is moved to
    workgroup memory at byte ``offset`` first, in accesses of ``width`` elements."""

    late: bool
    buffer: MemDescType | None = None
    offset: int = 0
    width: int = 1

    def summary(self, looped: bool) -> str:
        """A few words."""
        if self.late:
            return _IN_BUFFER
        if self.buffer is not None:
            return f"moved to byte {self.offset % POOL}"
        return "in an array" if looped else "in registers"


@dataclass(frozen=True)
class Dot(Plan):
    """On multiply-adds: ``unroll`` of all ``steps`` of K in the body of a loop, or all of them without a loop.
    ``operands``: A and B. ``parts``: the registers of the accumulator that each of such loops updates, one loop after
    the other."""

    steps: int = 0
    unroll: int = 0
    operands: tuple[Operand, ...] = ()
    parts: tuple[tuple[int, ...], ...] = ()

    @property
    def looped(self) -> bool:
        """Whether there is a loop over K."""
        return self.unroll < self.steps

    def summary(self) -> str:
        places = _places([one.summary(self.looped) for one in self.operands])
        loop = f"{self.unroll} of {self.steps} steps a loop body" if self.looped else f"{self.steps} steps unrolled"
        parts = f", {len(self.parts)} times for {len(self.parts[0])} accumulators each" if len(self.parts) > 1 else ""
        return f"multiply-adds, {loop}{parts}, operands {places}{self._where()}"


@dataclass(frozen=True)
class MatrixProducts(Plan):
    """On matrix units: ``fragments`` of ``configuration``. ``late``: of A and B, whether they are loaded from the
    buffer of a load that was left to the dot. ``split``: the parts of operands that are multiplied."""

    configuration: MatrixConfiguration | None = None
    fragments: MatrixDot | None = None
    late: tuple[bool, bool] = (False, False)
    split: Split = WHOLE

    def summary(self) -> str:
        assert self.configuration is not None and self.fragments is not None
        places = _places([_IN_BUFFER if late else "in registers" for late in self.late])
        count, one = len(self.fragments.products) * len(self.split.terms), self.configuration
        parts = f", {self.split.parts} for each f32" if self.split.parts > 1 else ""
        return f"{count} matrix products {one.shape} of {one.a}{parts}, operands {places}"
