"""What is known about each operation of TTIR and TTGIR apart from how it is written: one row per operation.

An operation without a row is the worst case: it may read and write all memory, its pointers come from anywhere and go
anywhere, it needs scratch memory, it may run its regions more than once.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, Flag, auto

from .ir import Operation, Value


class Effect(Flag):
    """What an operation may do apart from giving its results. What its regions do is theirs."""

    NOTHING = 0
    READS_GLOBAL = auto()
    WRITES_GLOBAL = auto()
    #: It reads or writes buffers in shared memory; scratch memory (``Memory.SCRATCH``) does not count.
    READS_SHARED = auto()
    #: Also: it lets others write where a buffer is.
    WRITES_SHARED = auto()
    #: It accesses device memory in a way that other invocations may take part in.
    ATOMIC = auto()
    #: It waits for other invocations.
    WAITS = auto()
    #: It writes to the report buffer.
    REPORTS = auto()


class Pointers(Enum):
    """What an operation does with pointers among its operands and results."""

    #: They go anywhere, and come from anywhere.
    UNKNOWN = auto()
    #: Results are made of the operands, in each invocation of its own.
    KEPT = auto()
    #: Results are operands, maybe operands of other invocations.
    EXCHANGED = auto()
    #: All that it accesses in device memory, it accesses through its first operand; others it stores or gives are data.
    ACCESSED = auto()
    #: Its regions pass them on.
    CARRIED = auto()
    #: They are read with the operation whose region it ends.
    ENDED = auto()
    #: No defined access goes through a result.
    POISON = auto()


class Memory(Enum):
    """The shared memory that an operation may have."""

    NONE = auto()
    #: It lives until it is freed.
    BUFFER = auto()
    #: The operation alone uses it.
    SCRATCH = auto()


class End(Enum):
    """How an operation ends a block."""

    NOT = auto()
    #: Control goes to another block of the region.
    BRANCH = auto()
    #: Control leaves the region.
    LEAVE = auto()
    #: Control goes nowhere from here.
    STOP = auto()


class Layouts(Enum):
    """How the encodings of an operation's tensors follow from each other."""

    #: They are one, or slices of one, as far as something relates them; those of a tt.broadcast may only mean the same.
    SLICES = auto()
    #: By a change of the shape, so that an operand and a result cannot have one.
    TURNED = auto()
    #: In their own way.
    OWN = auto()


ANYTHING = ~Effect.NOTHING
TOUCHES_SHARED = Effect.READS_SHARED | Effect.WRITES_SHARED


@dataclass(frozen=True, slots=True)
class Traits:
    """A row of the table.

    ``repeatable``: a second copy elsewhere gives the same results, at little cost. ``by_layout``: it takes the bytes of
    a buffer by a layout of registers, lanes and subgroups, without waiting. ``view``: it gives bytes of a buffer
    another type. ``loop``: it may run a region several times. ``ended_by``: the operations that may leave its
    regions, empty for any; ``yielded_by``: the one of them whose operands are its results. ``commutative``,
    ``associative``: results have the same bits for operands in another order, and grouped in another way.
    ``elementwise``: on tensors of one shape, each element of the results comes from the operands' elements at the same
    place. ``mask``: the number of the group of operands that says which elements are accessed, 0 where there is none.
    ``unbounded``: its code may loop as often as data, or the choices of the lowering (a dot's rectangles), say.
    ``length``: of the code of one register, roughly, in instructions (analysis/code_size.py). ``counts``: as so many
    operations an element, where it gives floating-point numbers (analysis/work.py).
    """

    effects: Effect = ANYTHING
    pointers: Pointers = Pointers.UNKNOWN
    memory: Memory = Memory.SCRATCH
    end: End = End.NOT
    loop: bool = True
    ended_by: tuple[str, ...] = ()
    yielded_by: str = ""
    repeatable: bool = False
    by_layout: bool = False
    view: bool = False
    commutative: bool = False
    associative: bool = False
    elementwise: bool = False
    mask: int = 0
    layouts: Layouts = Layouts.OWN
    unbounded: bool = True
    length: int = 1
    counts: int = 0


#: Lengths of code, in instructions: of a function, of one that is long (a loop over registers keeps it from being
#: repeated for each of them, planning/rolling.py), and of one of the longest.
SHORT, MEDIUM, LONG = 20, 100, 500

WORST = Traits()
TRAITS: dict[str, Traits] = {}


def traits(operation: Operation) -> Traits:
    """The row of an operation, the worst case where it has none."""
    return TRAITS.get(operation.name, WORST)


def masks(operation: Operation) -> list[Value]:
    """The mask of an access to device memory, if it has one."""
    group = traits(operation).mask
    return operation.operand_group(group) if group else []


def takes_shared_memory(name: str) -> bool:
    """Whether an operation of this name may have shared memory."""
    return TRAITS.get(name, WORST).memory is not Memory.NONE


def in_loop(operation: Operation) -> bool:
    """Whether an operation is in a region of its function that may run several times."""
    return any(traits(one).loop for one in operation.holders())


def _ops(
    names: str,
    effects: Effect = Effect.NOTHING,
    pointers: Pointers = Pointers.UNKNOWN,
    memory: Memory = Memory.NONE,
    *,
    dialect: str = "",
    loop: bool = False,
    layouts: Layouts = Layouts.SLICES,
    unbounded: bool = False,
    **more: object,
) -> None:
    """A row for each of ``names``: what is not said is that it does nothing."""
    for name in names.split():
        assert dialect + name not in TRAITS, name
        known = {"loop": loop, "layouts": layouts, "unbounded": unbounded, **more}
        TRAITS[dialect + name] = Traits(effects, pointers, memory, **known)  # type: ignore[arg-type]


# fmt: off
_READ, _WRITE = Effect.READS_GLOBAL, Effect.WRITES_GLOBAL
_SHARED_READ, _SHARED_WRITE = Effect.READS_SHARED, Effect.WRITES_SHARED
_TURNED, _OWN = Layouts.TURNED, Layouts.OWN

# arith, math
_ops("addi muli andi ori xori minsi maxsi minui maxui", dialect="arith.", repeatable=True, commutative=True,
     associative=True, elementwise=True)
_ops("addf mulf", dialect="arith.", repeatable=True, commutative=True, elementwise=True, counts=1)
_ops("subf divf maximumf maxnumf minimumf minnumf negf", dialect="arith.", repeatable=True, elementwise=True, counts=1)
_ops("subi shli divsi divui shrsi shrui ceildivsi ceildivui floordivsi remsi remui flush_denormals cmpi cmpf extsi "
     "sitofp fptosi fptoui bitcast index_cast extui uitofp index_castui trunci extf truncf convertf scaling_extf "
     "scaling_truncf mulsi_extended mului_extended addui_extended subui_extended", dialect="arith.", repeatable=True,
     elementwise=True)
_ops("arith.remf", repeatable=True, elementwise=True, unbounded=True, length=MEDIUM, counts=1)
_ops("arith.select", pointers=Pointers.KEPT, repeatable=True, elementwise=True)
_ops("arith.constant", repeatable=True, length=0)
_ops("absf acos asin atan ceil cosh exp exp2 expm1 floor log log10 log1p log2 round roundeven rsqrt sinh sqrt tanh "
     "trunc absi ctlz ctpop cttz isfinite isinf isnan isnormal copysign clampf sincos", dialect="math.",
     repeatable=True, elementwise=True, length=SHORT, counts=1)
_ops("acosh asinh atan2 atanh cbrt cos erf sin tan", dialect="math.", repeatable=True, elementwise=True, length=MEDIUM,
     counts=1)
_ops("math.ipowi", repeatable=True, elementwise=True, unbounded=True, length=MEDIUM, counts=1)
_ops("math.fma", repeatable=True, elementwise=True, length=MEDIUM, counts=2)
_ops("erfc fpowi powf", dialect="math.", repeatable=True, elementwise=True, length=LONG, counts=1)

# tt: elementwise, shapes, programs
_ops("tt.addptr tt.bitcast", pointers=Pointers.KEPT, repeatable=True, elementwise=True)
_ops("tt.broadcast tt.expand_dims tt.splat", pointers=Pointers.KEPT, repeatable=True, length=0)
_ops("tt.trans", pointers=Pointers.KEPT, repeatable=True, layouts=_TURNED, length=0)
_ops("tt.cat tt.join tt.split", pointers=Pointers.KEPT, layouts=_TURNED)
_ops("tt.unsplat", pointers=Pointers.KEPT)
_ops("tt.reshape", pointers=Pointers.EXCHANGED, repeatable=True, layouts=_TURNED)
_ops("tt.make_range", repeatable=True, length=0)
_ops("tt.get_program_id tt.get_num_programs", repeatable=True)
_ops("tt.int_to_ptr tt.ptr_to_int tt.fp_to_fp tt.approx_divf", elementwise=True)
_ops("tt.mulhiui", repeatable=True, elementwise=True)
_ops("tt.clampf", elementwise=True, counts=1)
_ops("tt.precise_sqrt tt.precise_divf", elementwise=True, length=MEDIUM, counts=1)
_ops("tt.dot", layouts=_OWN, unbounded=True)
_ops("tt.dot_scaled ttg.fp4_to_fp", layouts=_OWN)
_ops("tt.gather", pointers=Pointers.EXCHANGED, memory=Memory.SCRATCH, layouts=_OWN)
_ops("tt.histogram", memory=Memory.SCRATCH, layouts=_OWN)
_ops("ttg.convert_layout", pointers=Pointers.EXCHANGED, memory=Memory.SCRATCH)

# tt: memory
_ops("tt.load", _READ, Pointers.ACCESSED, mask=1, length=8)
_ops("tt.store", _WRITE, Pointers.ACCESSED, mask=2, length=8)
_ops("tt.atomic_load", _READ | Effect.ATOMIC, Pointers.ACCESSED, Memory.SCRATCH)
_ops("tt.atomic_poll", _READ | Effect.ATOMIC, Pointers.ACCESSED, Memory.SCRATCH, unbounded=True)
_ops("tt.atomic_store", _WRITE | Effect.ATOMIC, Pointers.ACCESSED)
_ops("tt.atomic_rmw tt.atomic_cas", _READ | _WRITE | Effect.ATOMIC, Pointers.ACCESSED, Memory.SCRATCH, unbounded=True)
_ops("tt.grid_dependency_wait tt.grid_dependency_launch_dependents")  # launches of a stream run one after the other
_ops("ttg.global_scratch_alloc")

# tt: tensor descriptors; upstream's passes make pointers of them
_ops("tt.make_tensor_descriptor")
_ops("tt.descriptor_load tt.descriptor_gather", _READ)
_ops("tt.descriptor_store tt.descriptor_scatter", _WRITE)
_ops("tt.descriptor_reduce", _READ | _WRITE | Effect.ATOMIC)

# tt: regions, calls, debugging; functions by name only compute or read a register of the hardware
_ops("tt.reduce", memory=Memory.SCRATCH, ended_by=("tt.reduce.return",))
_ops("tt.scan", memory=Memory.SCRATCH, ended_by=("tt.scan.return",))
_ops("tt.map_elementwise", ended_by=("tt.map_elementwise.return",), layouts=_OWN)
_ops("tt.reduce.return tt.scan.return tt.map_elementwise.return tt.return", end=End.LEAVE)
_ops("tt.extern_elementwise", elementwise=True, unbounded=True, length=MEDIUM, counts=1)
_ops("llvm.intr.assume")
_ops("tt.elementwise_inline_asm")  # only arithmetic is compiled (backend/ptx/)
_ops("ttg.inline_asm", ANYTHING, memory=Memory.SCRATCH)
_ops("tt.call", ANYTHING, memory=Memory.SCRATCH, layouts=_OWN)  # its types are written twice
_ops("tt.print tt.assert cf.assert", Effect.REPORTS)

# ttg: shared memory
_ops("ttg.local_alloc", _SHARED_WRITE, memory=Memory.BUFFER, by_layout=True, layouts=_OWN)
_ops("ttg.local_load", _SHARED_READ, by_layout=True, layouts=_OWN)
_ops("ttg.local_store", _SHARED_WRITE, by_layout=True, layouts=_OWN)
_ops("ttg.local_dealloc ttg.local_scatter", _SHARED_WRITE)
_ops("ttg.local_gather", _SHARED_READ)
_ops("ttg.local_atomic_scatter_rmw", _SHARED_READ | _SHARED_WRITE, memory=Memory.SCRATCH)
_ops("ttg.memdesc_trans ttg.memdesc_reshape ttg.memdesc_index ttg.memdesc_subslice ttg.memdesc_reinterpret", view=True)
_ops("ttg.async_copy_global_to_local", _READ | _SHARED_WRITE, Pointers.ACCESSED)
_ops("ttg.async_commit_group ttg.async_wait", _SHARED_WRITE)
_ops("ttg.barrier", Effect.WAITS)

# ttg: pipelines and warp specialization
_ops("ttg.warp_id ttg.predicate_stage")
_ops("ttg.mask", ended_by=("ttg.mask.return",), yielded_by="ttg.mask.return")
_ops("ttg.warp_specialize", ANYTHING, memory=Memory.SCRATCH, yielded_by="ttg.warp_yield")
_ops("ttg.warp_specialize.partitions", ANYTHING, end=End.STOP, ended_by=("ttg.warp_return",))
_ops("ttg.mask.return ttg.warp_yield ttg.warp_return", end=End.LEAVE)

# tensors in arrays of an invocation's own (transforms/strip_loops.py)
_ops("spirv.array spirv.spill spirv.strip spirv.put spirv.collect", pointers=Pointers.KEPT)
_ops("spirv.assign spirv.copy spirv.multiply")  # transforms/carried_arrays.py, merged_arrays.py, tile_dots.py
_ops("spirv.multiply_rounds", _READ)  # transforms/whole_loops.py
_ops("spirv.store_slice", _SHARED_WRITE)  # transforms/slice_dots.py
_ops("spirv.fold", ended_by=("tt.reduce.return",))

# scf, cf, ub
_ops("scf.for", pointers=Pointers.CARRIED, loop=True, ended_by=("scf.yield",), yielded_by="scf.yield")
_ops("scf.while", pointers=Pointers.CARRIED, loop=True, ended_by=("scf.yield", "scf.condition"), unbounded=True)
_ops("scf.if", pointers=Pointers.CARRIED, ended_by=("scf.yield",), yielded_by="scf.yield")
_ops("scf.yield scf.condition", pointers=Pointers.ENDED, end=End.LEAVE)
_ops("cf.br cf.cond_br cf.switch", end=End.BRANCH)
_ops("ub.unreachable", end=End.STOP)
_ops("ub.poison", pointers=Pointers.POISON)
# fmt: on
