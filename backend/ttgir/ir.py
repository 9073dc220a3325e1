"""Operations, blocks, regions and values of a parsed module.

Attributes are plain Python values: ``int``, ``float``, ``bool``, ``str`` (strings, symbols without ``@``, enum
keywords), ``tuple`` (arrays), ``dict``, a ``Type``, an ``Encoding``, ``None`` (unit), or one of the classes below. What
MLIR writes in more than one way is a subclass of those that compares equal to the plain value and knows how it was
written (see attribute_values.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .types import FunctionType, Type


@dataclass(frozen=True)
class Location:
    """Where in the user's source an operation comes from: the innermost frame first, callers after it.

    ``text`` is how the location was written, ``loc(…)``; it is empty where the location was made here.
    """

    file: str = ""
    line: int = 0
    column: int = 0
    name: str = ""
    caller: Location | None = None
    text: str = field(default="", compare=False, repr=False)

    def __str__(self) -> str:
        here = f"{self.file}:{self.line}:{self.column}" if self.file else "unknown location"
        return f"{here} (called from {self.caller})" if self.caller else here


UNKNOWN = Location()


@dataclass(frozen=True)
class DenseAttr:
    """``dense<…>``: ``values`` in row-major order, or a single value when ``splat``.

    Values are ``int``, ``bool`` or ``float``. A float printed as hexadecimal keeps its bits in ``bits``-typed form:
    the reader converts it by the element type, so that NaN payloads and infinities survive (see FloatBits).
    """

    type: Type
    values: tuple[Any, ...]
    splat: bool


@dataclass(frozen=True)
class FloatBits:
    """A float constant whose bit pattern was printed (``0x7FC00000``): infinities, NaNs and non-decimal values."""

    bits: int
    width: int


@dataclass(eq=False, slots=True)
class Value:
    """An SSA value. ``owner`` is the Operation that defines it (``index`` is the result number), or the Block whose
    argument it is (``index`` is the argument number, ``location`` its own). Compared by identity."""

    type: Type
    owner: Operation | Block
    index: int
    name: str = ""
    uses: list[Operation] = field(default_factory=list, repr=False)
    location: Location = UNKNOWN

    def __hash__(self) -> int:
        return id(self)


@dataclass(eq=False, slots=True)
class Operation:
    """One operation. ``name`` is the full name, ``dialect.mnemonic``. ``block`` is the block that holds it.

    Optional operands are told apart by ``segments``: the length of each operand group in the order of the op's
    ``arguments`` in its .td file, so ``tt.load %p, %m`` has segments (1, 1, 0).
    """

    name: str
    operands: list[Value]
    results: list[Value]
    attributes: dict[str, Any]
    regions: list[Region] = field(default_factory=list)
    successors: list[Successor] = field(default_factory=list)
    segments: tuple[int, ...] = ()
    location: Location = UNKNOWN
    block: Block | None = None

    @property
    def result(self) -> Value:
        """The only result."""
        assert len(self.results) == 1, self.name
        return self.results[0]

    def operand_group(self, index: int) -> list[Value]:
        """The operands of group ``index`` of ``segments``."""
        start = sum(self.segments[:index])
        return self.operands[start : start + self.segments[index]]

    def walk(self) -> Iterator[Operation]:
        """This operation and all inside it, in program order."""
        yield self
        for region in self.regions:
            for block in region.blocks:
                for op in block.operations:
                    yield from op.walk()


@dataclass(eq=False, slots=True)
class Block:
    """A basic block. ``parent`` is the region that holds it."""

    label: str = ""
    arguments: list[Value] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    parent: Region | None = None

    @property
    def terminator(self) -> Operation:
        """The last operation."""
        return self.operations[-1]


@dataclass(eq=False, slots=True)
class Successor:
    """A branch target with the values passed to its block arguments."""

    block: Block
    arguments: list[Value]


@dataclass(eq=False, slots=True)
class Region:
    """A list of blocks; ``parent`` is the operation that owns it."""

    blocks: list[Block] = field(default_factory=list)
    parent: Operation | None = None

    @property
    def entry(self) -> Block:
        """The first block."""
        return self.blocks[0]


@dataclass(eq=False, slots=True)
class Function:
    """A ``tt.func``. ``argument_attributes`` holds one dict an argument (``tt.divisibility`` and the like);
    ``visibility`` is ``public``, ``private``, ``nested``, or empty where it is not written; ``body`` is None for a
    declaration."""

    name: str
    type: FunctionType
    argument_attributes: list[dict[str, Any]]
    attributes: dict[str, Any]
    visibility: str
    body: Region | None
    location: Location = UNKNOWN

    @property
    def public(self) -> bool:
        """Whether it can be called from outside of its module."""
        return self.visibility in ("", "public")


@dataclass(eq=False, slots=True)
class Module:
    """A ``module``: its attributes (``ttg.num-warps``, ``ttg.shared``, …) and its functions in order.

    ``aliases`` are the names that its text gives to attributes and types (``#blocked``), ``location_aliases`` those of
    locations with their text (``#loc3`` → ``loc("kernel.py":7:4)``).
    """

    attributes: dict[str, Any]
    functions: dict[str, Function]
    name: str = ""
    location: Location = UNKNOWN
    aliases: dict[str, Any] = field(default_factory=dict)
    location_aliases: dict[str, str] = field(default_factory=dict)
