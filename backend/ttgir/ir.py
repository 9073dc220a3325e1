"""Operations, blocks, regions and values of a parsed module.

Attributes are plain Python values: ``int``, ``float``, ``bool``, ``str`` (strings, symbols without ``@``, enum
keywords), ``tuple`` (arrays), ``dict``, a ``Type``, an ``Encoding``, ``None`` (unit), or one of the classes below. What
MLIR writes in more than one way is a subclass of those that compares equal to the plain value and knows how it was
written (see attribute_values.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from .declared import GROUPS, NOTHING, OF_ANY, OF_ARGUMENTS, OF_MODULES, OWN, REQUIRED, absent
from .types import FunctionType, MemDescType, TensorType, Type


@dataclass(frozen=True)
class Location:
    """Where in the user's source an operation comes from: the innermost frame first, callers after it.

    ``text`` is how the location was written, ``loc(…)``; it is empty if the location was made here.
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


@dataclass(eq=False, slots=True, repr=False)
class Value:
    """An SSA value. ``owner`` is the Operation that defines it (``index`` is the result number), or the Block whose
    argument it is (``index`` is the argument number, ``location`` its own). ``uses`` has each user once an operand;
    only the methods of this file change it. Compared by identity."""

    type: Type
    owner: Operation | Block
    index: int
    name: str = ""
    uses: list[Operation] = field(default_factory=list)
    location: Location = UNKNOWN

    def __repr__(self) -> str:
        return f"<%{self.name}: {self.type} of {self.owner}>"

    @property
    def tensor(self) -> TensorType:
        """The type of a tensor."""
        assert isinstance(self.type, TensorType), self.type
        return self.type

    @property
    def memdesc(self) -> MemDescType:
        """The type of a buffer, or of a view of one."""
        assert isinstance(self.type, MemDescType), self.type
        return self.type

    def replace_uses(self, new: Value, by: Callable[[Operation], bool] | None = None) -> None:
        """Makes the users of this value use ``new``: all of them, or those that ``by`` says yes to."""
        users = self.uses if by is None else [user for user in self.uses if by(user)]
        kept = [] if by is None else [user for user in self.uses if not by(user)]
        for user in users:
            user.operands[:] = [new if operand is self else operand for operand in user.operands]
            for successor in user.successors:
                successor.arguments[:] = [new if operand is self else operand for operand in successor.arguments]
        new.uses += users
        self.uses[:] = kept


@dataclass(eq=False, slots=True, repr=False)
class Operation:
    """One operation. ``name`` is the full name, ``dialect.mnemonic``. ``block`` is the block that holds it.

    Optional operands are told apart by ``segments``: the length of each operand group in the order of the op's
    ``arguments`` in its .td file, so ``tt.load %p, %m`` has segments (1, 1, 0). Without them each group has one.
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

    def __repr__(self) -> str:
        return f"<{self.name} at {self.location}>"

    @classmethod
    def make(
        cls,
        name: str,
        operands: Sequence[Value],
        types: Sequence[Type],
        attributes: dict[str, Any],
        segments: tuple[int, ...],
        regions: Iterable[Region] = (),
        successors: Iterable[Successor] = (),
        location: Location = UNKNOWN,
    ) -> Operation:
        """A new operation, known to its operands and regions, but in no block yet; ``types`` are its results'."""
        made = cls(name, list(operands), [], attributes, list(regions), list(successors), segments, location)
        if types:
            made.results = [Value(type_, made, index) for index, type_ in enumerate(types)]
        for value in operands:
            value.uses.append(made)
        for region in made.regions:
            region.parent = made
        return made

    @property
    def result(self) -> Value:
        """The only result."""
        assert len(self.results) == 1, self.name
        return self.results[0]

    @property
    def holder(self) -> Operation | None:
        """The operation in whose region it is; None in a function's."""
        return None if self.block is None else self.block.holder

    def holders(self) -> Iterator[Operation]:
        """The operations that it is inside, from the innermost out."""
        holder = self.holder
        while holder is not None:
            yield holder
            holder = holder.holder

    def operand_group(self, name: str) -> list[Value]:
        """The operands that the row of such operations calls ``name``: one, of an optional one none or one, or any
        number. Raises AttributeError for a name that the row does not have."""
        names = GROUPS.get(self.name, ())
        if name not in names:
            raise AttributeError(f"'{self.name}' has no operand '{name}'")
        index = names.index(name)
        segments = self.segments or (1,) * len(names)
        start = sum(segments[:index])
        return self.operands[start : start + segments[index]]

    def __getitem__(self, name: str) -> Value:
        """The operand of that name, which is one."""
        (value,) = self.operand_group(name)
        return value

    def optional(self, name: str) -> Value | None:
        """The operand of that name; None where it is absent."""
        return next(iter(self.operand_group(name)), None)

    def flag(self, name: str) -> bool:
        """Whether it has a unit attribute. Raises AttributeError for a name that is no flag of such operations."""
        if name not in OWN.get(self.name, NOTHING).flags and name not in OF_ANY.flags:
            raise AttributeError(f"'{self.name}' declares no flag '{name}'")
        return name in self.attributes

    def attribute(self, name: str) -> Any:
        """An attribute other than a flag; where it is absent, its default, else None. Raises AttributeError for one
        that has to be there, and for a name that such operations do not declare."""
        declared = OF_ANY.values if "." in name else OWN.get(self.name, NOTHING).values
        if name in declared and name in self.attributes:
            return self.attributes[name]
        return absent(f"'{self.name}'", name, declared)

    def missing_attributes(self) -> list[str]:
        """The names of attributes that have to be there and are not."""
        declared = OWN.get(self.name, NOTHING).values
        return [name for name, value in declared.items() if value is REQUIRED and name not in self.attributes]

    def set_flag(self, name: str) -> None:
        """Gives it a unit attribute."""
        if not self.flag(name):
            self.attributes[name] = None

    def clear_flag(self, name: str) -> None:
        """Takes a unit attribute away, where it has it. Raises AttributeError as ``flag`` does."""
        if self.flag(name):
            del self.attributes[name]

    def set_attribute(self, name: str, value: Any) -> None:
        """Gives an attribute that such operations declare, and that is no flag, another value."""
        declared = OF_ANY.values if "." in name else OWN.get(self.name, NOTHING).values
        if name not in declared:
            absent(f"'{self.name}'", name, declared)
        self.attributes[name] = value

    def set_operands(self, operands: Sequence[Value]) -> None:
        """Gives it other operands, as many."""
        assert len(operands) == len(self.operands), self.name
        for value in self.operands:
            value.uses.remove(self)
        for value in operands:
            value.uses.append(self)
        self.operands[:] = operands

    def replace_operand(self, old: Value, new: Value) -> None:
        """Makes it use ``new`` where it uses ``old``."""
        old.replace_uses(new, by=lambda user: user is self)

    def add_operand(self, value: Value) -> None:
        """Adds an operand to the last of its ``segments``."""
        self.operands.append(value)
        value.uses.append(self)
        self.segments = (*self.segments[:-1], self.segments[-1] + 1)

    def drop_operands(self, numbers: Collection[int]) -> None:
        """Takes operands of the last of its ``segments`` out, by their numbers among all."""
        for number in numbers:
            self.operands[number].uses.remove(self)
        self.operands[:] = [value for number, value in enumerate(self.operands) if number not in numbers]
        self.segments = (*self.segments[:-1], self.segments[-1] - len(numbers))

    def drop_uses(self) -> None:
        """Forgets that this operation and all inside it, which go away, use their operands."""
        for operation in self.walk():
            for value in operation.operands:
                value.uses.remove(operation)

    def erase(self) -> None:
        """Takes an operation whose results nothing uses out of its block."""
        assert self.block is not None and not any(result.uses for result in self.results), self.name
        self.drop_uses()
        self.block.operations.remove(self)

    def walk(self) -> Iterator[Operation]:
        """This operation and all inside it, in program order."""
        yield self
        for region in self.regions:
            yield from region.walk()


@dataclass(eq=False, slots=True, repr=False)
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

    @property
    def holder(self) -> Operation | None:
        """The operation in whose region it is; None in a function's."""
        return None if self.parent is None else self.parent.parent

    def holds(self, operation: Operation) -> bool:
        """Whether ``operation`` is in it, or in a region inside."""
        return any(one.block is self for one in (operation, *operation.holders()))

    def append(self, operation: Operation) -> None:
        """Puts an operation that is in no block at the end."""
        operation.block = self
        self.operations.append(operation)


@dataclass(eq=False, slots=True, repr=False)
class Successor:
    """A branch target with the values passed to its block arguments."""

    block: Block
    arguments: list[Value]


@dataclass(eq=False, slots=True, repr=False)
class Region:
    """A list of blocks; ``parent`` is the operation that owns it."""

    blocks: list[Block] = field(default_factory=list)
    parent: Operation | None = None

    @property
    def entry(self) -> Block:
        """The first block."""
        return self.blocks[0]

    def walk(self) -> Iterator[Operation]:
        """All operations inside it, in program order."""
        for block in self.blocks:
            for operation in block.operations:
                yield from operation.walk()

    def values(self) -> Iterator[Value]:
        """The arguments of all blocks inside it, and the results of all operations."""
        for block in self.blocks:
            yield from block.arguments
            for operation in block.operations:
                yield from operation.results
                for region in operation.regions:
                    yield from region.values()


@dataclass(eq=False, slots=True, repr=False)
class Function:
    """A ``tt.func``. ``argument_attributes`` holds one dict an argument (``tt.divisibility`` and the like);
    ``visibility`` is ``public``, ``private``, ``nested``, or empty if it is not written; ``body`` is None for a
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

    def argument_attribute(self, index: int, name: str) -> Any:
        """An attribute of argument ``index``; None where it is absent."""
        absent("an argument", name, OF_ARGUMENTS.values)
        return self.argument_attributes[index].get(name)

    def walk(self) -> Iterator[Operation]:
        """All operations of the body, in program order."""
        if self.body is not None:
            yield from self.body.walk()


@dataclass(eq=False, slots=True, repr=False)
class Module:
    """A ``module``: its attributes (``ttg.num-warps``, ``ttg.shared``, …) and its functions in order.

    ``aliases`` are the names that its text gives to attributes and types (``#blocked``). ``location_aliases`` maps the
    names of locations to their text (``#loc3`` → ``loc("kernel.py":7:4)``).
    """

    attributes: dict[str, Any]
    functions: dict[str, Function]
    name: str = ""
    location: Location = UNKNOWN
    aliases: dict[str, Any] = field(default_factory=dict)
    location_aliases: dict[str, str] = field(default_factory=dict)

    def attribute(self, name: str) -> Any:
        """An attribute; where it is absent, its default. Raises AttributeError as ``Operation.attribute`` does."""
        if name in OF_MODULES.values and name in self.attributes:
            return self.attributes[name]
        return absent("the module", name, OF_MODULES.values)

    def set_attribute(self, name: str, value: Any) -> None:
        """Gives an attribute that modules have another value."""
        if name not in OF_MODULES.values:
            absent("the module", name, OF_MODULES.values)
        self.attributes[name] = value

    @property
    def warps(self) -> int:
        """Subgroups of a workgroup, Triton's ``num_warps``."""
        return self._number("ttg.num-warps")

    @property
    def lanes(self) -> int:
        """Invocations of a subgroup."""
        return self._number("ttg.threads-per-warp")

    def _number(self, name: str) -> int:
        if self.attribute(name) is None:
            raise AttributeError(f"the module lacks the attribute '{name}'")
        return int(self.attribute(name))

    def walk(self) -> Iterator[Operation]:
        """All operations of all functions, in program order."""
        for function in self.functions.values():
            yield from function.walk()

    def values(self) -> Iterator[Value]:
        """All values of all functions."""
        for function in self.functions.values():
            if function.body is not None:
                yield from function.body.values()
