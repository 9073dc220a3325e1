"""What is known about an operation of TTIR and TTGIR, and how a row of the table is written.

An operation without a row is the worst case: it may read and write all memory, its pointers come from anywhere and go
anywhere, it needs scratch memory, it may run its regions more than once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, Flag, auto
from typing import Any, TypeAlias

from .. import custom, custom_printers
from ..declared import GROUPS, OWN
from ..encodings import Encoding
from ..formats import Format, declared_attributes
from ..ir import Operation, Value


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

#: Lengths of code, in instructions: of a function, of one that is long (a loop over registers keeps it from being
#: repeated for each of them, planning/rolling.py), and of one of the longest.
SHORT, MEDIUM, LONG = 20, 100, 500


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an operation is refused, and what a user does instead."""

    reason: str
    instead: str


#: Operands and results, each with the encoding that follows for it from others of its operation; None: it has none.
Encodings: TypeAlias = Iterator[tuple[Value, Encoding | None]]


@dataclass(frozen=True, slots=True)
class Definition:
    """A row of the table.

    How it is written: ``syntax`` (formats.py) is None for an operation that only this backend's rewrites make, and for
    one that is written by hand in every form. ``read`` reads what follows the name, None where the generic form alone
    is read; ``write`` writes it where upstream's printer is written by hand.

    What it does: ``effects``, ``pointers``, ``memory``, ``end``. ``loop``: it may run a region several times.
    ``ended_by``: the operations that may leave its regions, empty for any; ``yielded_by``: the one of them whose
    operands are its results. ``repeatable``: a second copy elsewhere gives the same results, at little cost.
    ``by_layout``: it takes the bytes of a buffer by a layout of registers, lanes and subgroups, without waiting.
    ``view``: it gives bytes of a buffer another type. ``commutative``, ``associative``: results have the same bits for
    operands in another order, and grouped in another way. ``elementwise``: on tensors of one shape, each element of the
    results comes from the operands' elements at the same place. ``masked``: it accesses the elements that its operand
    ``mask`` says, where there is one.

    Which types it takes, beyond what the syntax says: ``types`` says whether an operation has types that go together.
    ``layouts`` says how encodings follow from each other, and ``encodings`` which of them follow; those of elementwise
    operations are one. ``by_element``: registers are found by the element that they hold, so that it does not matter
    how often one is held.

    What becomes of it: a rule of ``lowering/`` lowers it, unless it is ``refused``, or gone before: ``by_pass`` of
    upstream, or ``rewritten`` by this backend, in words.

    How much work it is: ``length`` of the code of one register, roughly, in instructions (analysis/code_size.py).
    ``unbounded``: its code may loop as often as data, or the choices of the lowering (a dot's rectangles), say.
    ``counts``: as so many operations an element, where it gives floating-point numbers (analysis/work.py), or what says
    how many those of an operation are. ``moves``: the operands and results, by the syntax, whose elements are read from
    device memory or written to it; None if that depends on data.
    """

    name: str = ""
    syntax: Format | None = None
    read: custom.Rule | None = None
    write: custom_printers.Rule | None = None
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
    masked: bool = False
    types: Callable[[Operation], bool] | None = None
    layouts: Layouts = Layouts.OWN
    encodings: Callable[[Operation], Encodings] | None = None
    by_element: bool = False
    refused: Refusal | None = None
    by_pass: str = ""
    rewritten: str = ""
    length: int = 1
    unbounded: bool = True
    counts: int | Callable[[Operation], int] = 0
    moves: tuple[str, ...] | None = ()


WORST = Definition()

#: The rows that the modules of this package have made so far, by name.
ROWS: dict[str, Definition] = {}


def define(
    names: str,
    signature: str | None = None,
    text: str = "",
    attributes: str = "",
    equations: str = "",
    stripped: dict[str, str] | None = None,
    *,
    operands: str = "",
    read: custom.Rule | None = None,
    **facts: Any,
) -> None:
    """A row for each of ``names``: its syntax (``formats.Format``), of which ``attributes`` counts where there is no
    syntax, too, and what it does; what is not said is that it does nothing. ``operands``: where there is no syntax,
    what the first ones are called, each of which is one value."""
    known: dict[str, Any] = {"effects": Effect.NOTHING, "memory": Memory.NONE, "loop": False, "layouts": Layouts.SLICES}
    known |= {"unbounded": False, **facts}
    declared = declared_attributes(attributes)
    for name in names.split():
        assert name not in ROWS, name
        syntax = None if signature is None else Format(name, signature, text, attributes, equations, stripped)
        reader = syntax.read if read is None and syntax is not None and text else read
        ROWS[name] = Definition(name, syntax, reader, **known)
        OWN[name] = declared
        GROUPS[name] = tuple(one for one, _ in syntax.operands) if syntax is not None else tuple(operands.split())
