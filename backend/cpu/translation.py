"""A kernel under translation: where its values are, and what rules emit with (registry.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ..spirv.opcodes import StorageClass
from .code import Code, literal, suffix, type_name
from .decoded_module import IN_SCRATCH, KernelModule, ModuleInstruction
from .delayed_updates import DelayedUpdates
from .divergence import Divergence, Key
from .errors import Untranslatable
from .host import Host
from .lane_shapes import LaneShape
from .lines import Lines
from .neighbours import Neighbours

#: Bytes that variables in scratch memory are aligned to.
SCRATCH_ALIGNMENT = 64
#: Whether no other thread has memory that programs update by atomic instructions: a parameter of module_translation.py.
ALONE = "%alone"
#: The log that updates of other threads' memory are delayed to, null for none (delayed_updates.py).
LOG = "%log"


def _aligned(total: int) -> int:
    return -(-total // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT


class Translation:
    """A program on a host: the invocations of a workgroup are ``lanes`` of vectors, ``subgroup`` neighbouring ones a
    subgroup. Of an emulated device, those of a subgroup are, and a workgroup has ``subgroups`` of them.

    The value of a scalar is LLVM's name of a vector of all lanes where it is spread, otherwise of the number of lane 0
    (lane_shapes.py); what is known has none. ``mask``: the vector of the lanes that are active, None for all.
    """

    def __init__(self, program: KernelModule, subgroup: int, host: Host) -> None:
        self.program, self.subgroup, self.host = program, subgroup, host
        self.lanes = program.local_size if program.emulation is None else subgroup
        if program.local_size % self.lanes:
            raise Untranslatable(program.name, f"a workgroup of {program.local_size} invocations")
        self.subgroups = program.local_size // self.lanes
        self.divergence = Divergence(program, subgroup, self.lanes)
        self.neighbours = Neighbours(program, self.divergence)
        #: Spread number → what makes it where it is needed.
        self.deferred: dict[Key, Callable[[], str]] = {}
        #: Root of addresses → whether its lanes are neighbours, and that of lane 0 in 64 bits.
        self.near: dict[Key, tuple[str, str]] = {}
        self.code = Code()
        self.code.block = "start"
        self.lines = Lines(program.name)
        self.values: dict[Key, str] = {}
        #: Conditions that hold in all lanes of the round that is translated (whole_rounds.py).
        self.facts: frozenset[Key] = frozenset()
        #: Whether the code is that of a round that is not within all bounds (whole_rounds.py).
        self.rare = False
        self.mask: str | None = None
        self.mask_type = self.spread("i1")
        #: Result of a load → what lanes that are not active get, in place of a 0.
        self.otherwise: dict[int, Key] = {}
        #: Variable → its place in the scratch memory: in what the workgroup shares, or in a subgroup's own.
        self.places: dict[int, int] = {}
        self.shared_bytes = self._place_shared()
        self.own_bytes = self._place_own()
        self.delayed = DelayedUpdates(program, self.lanes, self.divergence)
        #: Names of the functions that are called and defined elsewhere (tiles.py).
        self.imported: set[str] = set()
        for variable in (*self.places, *program.tables):
            self.values[variable] = f"%place{variable}"

    # -- scratch memory ------------------------------------------------------------------------------------------
    def _place_shared(self) -> int:
        """Workgroup variables that alias each other are at the same place; each of the others has its own."""
        program, total = self.program, 0
        found = [name for name, entry in program.variables.items() if entry.storage == StorageClass.Workgroup]
        aliased = [name for name in found if program.types[program.variables[name].type].kind == "struct"]
        for name in aliased:
            self.places[name] = 0
            total = max(total, program.size(program.variables[name].type))
        for name in found:
            if name not in self.places:
                total = _aligned(total)
                self.places[name] = total
                total += program.size(program.variables[name].type)
        return _aligned(total)

    def _place_own(self) -> int:
        program, total = self.program, 0
        for name, entry in program.variables.items():
            if entry.storage in IN_SCRATCH and entry.storage != StorageClass.Workgroup and name not in program.tables:
                total = _aligned(total)
                self.places[name] = total
                total += program.size(entry.type) * self.lanes
        #: Where what functions are told of many lanes lies, behind the variables.
        self.told = _aligned(total)
        return _aligned(self.told + self._most_told())

    def _most_told(self) -> int:
        """Bytes of the largest call: of an access, a place of 8 bytes and a byte for each lane; of a product, its four
        matrices."""
        program = self.program
        if program.emulation is None and not program.watched:
            return 0
        most = 9 * self.lanes
        for item in program.definitions.values():
            if item.name == "OpCooperativeMatrixMulAddKHR":
                matrices = [program.type(operand) for operand in (*item.operands[:3], item.result)]
                most = max(most, sum(one.count * program.size(one.element) * self.lanes for one in matrices))
        return most

    @property
    def scratch_bytes(self) -> int:
        """Bytes of memory that each thread has for a program."""
        return self.shared_bytes + self.own_bytes * self.subgroups + self.delayed.bytes

    # -- types ---------------------------------------------------------------------------------------------------
    def spread(self, scalar: str) -> str:
        """The type of a vector of all lanes."""
        return f"<{self.lanes} x {scalar}>"

    def keys(self, value: int) -> list[Key]:
        """The scalars of a value."""
        return self.divergence.keys(value)

    def shape(self, key: Key) -> LaneShape | None:
        """How a scalar differs between lanes."""
        return self.divergence.shape[key]

    def type_name(self, key: Key) -> str:
        """LLVM's name of a scalar's type."""
        return type_name(self.program.types[self.divergence.scalar_type(key)])

    def vector_type(self, key: Key) -> str:
        """The type of a scalar of all lanes."""
        return self.spread(self.type_name(key))

    def where(self, item: ModuleInstruction) -> str:
        """FILE:LINE of an instruction, "" where that is not known."""
        return f"{item.line[0]}:{item.line[1]}" if item.line else ""

    # -- values --------------------------------------------------------------------------------------------------
    def splat_literal(self, type_: str, scalar: str, bits: int) -> str:
        """A constant of a scalar type, or of all lanes of a vector of it."""
        text = literal(scalar, bits)
        return text if type_ == scalar else f"splat ({scalar} {text})"

    def constant_vector(self, scalar: str, values: Sequence[int]) -> str:
        """A vector of integers."""
        if len(set(values)) == 1:
            return f"splat ({scalar} {literal(scalar, values[0])})"
        return "<" + ", ".join(f"{scalar} {literal(scalar, value)}" for value in values) + ">"

    def is_shared(self, key: Key) -> bool:
        """Whether all lanes have one number."""
        shape = self.shape(key)
        return shape is not None and shape.uniform

    def scalar(self, key: Key) -> str:
        """The number of lane 0, of a scalar that is not spread."""
        shape = self.shape(key)
        assert shape is not None
        if shape.known:
            return literal(self.type_name(key), shape.offsets[0])
        known = self.program.constants.get(key) if isinstance(key, int) else None
        if known is not None:
            return literal(self.type_name(key), known.bits)
        return self.values[key]

    def vector(self, key: Key) -> str:
        """A scalar's numbers of all lanes."""
        shape = self.shape(key)
        if shape is None:
            return self._spread_value(key)
        scalar = self.type_name(key)
        if shape.known:
            return self.constant_vector(scalar, shape.offsets)
        if isinstance(key, int) and key in self.program.constants:
            return f"splat ({scalar} {self.scalar(key)})"
        found = self.code.recall(key)
        if found is None:
            found = self.splat(scalar, self.scalar(key))
            if not shape.plain:
                type_ = self.spread(scalar)
                found = self.code.emit(f"add {type_} {found}, {self.constant_vector(scalar, shape.offsets)}")
            self.code.remember(key, found)
        return found

    def _spread_value(self, key: Key) -> str:
        if key in self.values:
            return self.values[key]
        return self.code.recall(key) or self.code.remember(key, self.deferred[key]())

    def splat(self, scalar: str, value: str) -> str:
        """A number in all lanes."""
        if not value.startswith("%"):
            return f"splat ({scalar} {value})"
        found = self.code.recall((scalar, value))
        if found is None:
            type_ = self.spread(scalar)
            first = self.code.emit(f"insertelement {type_} poison, {scalar} {value}, i32 0")
            found = self.code.emit(
                f"shufflevector {type_} {first}, {type_} poison, <{self.lanes} x i32> zeroinitializer"
            )
            self.code.remember((scalar, value), found)
        return found

    def compute(self, key: Key, sources: Sequence[Key], rule: Callable[[list[str], str, str], str]) -> None:
        """Has ``rule`` make a scalar of others, given their texts, their type and the result's: of all lanes, or of
        lane 0 alone."""
        shape = self.shape(key)
        if (shape is not None and shape.known) or key in self.facts:
            return
        if shape is None:

            def make() -> str:
                values = [self.vector(source) for source in sources]
                return rule(values, self.vector_type(sources[0]), self.vector_type(key))

            if key in self.neighbours.parts:
                self.deferred[key] = make
            else:
                self.values[key] = make()
        else:
            values = [self.scalar(source) for source in sources]
            self.values[key] = rule(values, self.type_name(sources[0]), self.type_name(key))

    @contextmanager
    def version(self, facts: set[Key]) -> Iterator[None]:
        """Code of which there is another version: what is known within is forgotten at the end. ``facts``: conditions
        that hold in it."""
        before = self.facts, self.values, self.near, self.deferred, self.otherwise, self.rare
        self.facts |= facts
        self.rare = not facts
        self.values, self.near = dict(self.values), dict(self.near)
        self.deferred, self.otherwise = dict(self.deferred), dict(self.otherwise)
        for key in facts:
            self.values[key] = "splat (i1 true)" if self.shape(key) is None else "true"
        with self.code.scope():
            yield
        self.facts, self.values, self.near, self.deferred, self.otherwise, self.rare = before

    # -- lanes that are neighbours at run time ----------------------------------------------------------------------
    def compare_lanes(self, key: Key) -> None:
        """Has the program find out whether the lanes of a number that addresses are made of follow each other, and do
        not pass the end of its type."""
        if key not in self.neighbours.roots or key in self.near:
            return
        code, scalar, signed = self.code, self.type_name(key), self.neighbours.roots[key]
        type_, vector, width = self.spread(scalar), self.vector(key), int(scalar[1:])
        first = code.emit(f"extractelement {type_} {vector}, i32 0")
        following = code.emit(
            f"add {type_} {self.splat(scalar, first)}, {self.constant_vector(scalar, range(self.lanes))}"
        )
        near = self.all_of(code.emit(f"icmp eq {type_} {vector}, {following}"))
        if width < 64:
            most = ((1 << (width - 1)) if signed else (1 << width)) - self.lanes
            fits = code.emit(f"icmp {'sle' if signed else 'ule'} {scalar} {first}, {literal(scalar, most)}")
            near = code.emit(f"and i1 {near}, {fits}")
            first = code.emit(f"{'sext' if signed else 'zext'} {scalar} {first} to i64")
        self.near[key] = near, first

    def lane_0(self, key: Key) -> str:
        """The number of lane 0 of a spread part of an address."""
        if self.shape(key) is not None:
            return self.scalar(key)
        if key in self.near:
            return self.near[key][1]
        found = self.code.recall(("lane 0", key))
        if found is None:
            item = self.neighbours.definition(key)
            assert item is not None
            operands = [self.keys(operand)[0] for operand in item.operands[:2]]
            name = {"OpIAdd": "add", "OpISub": "sub", "OpIMul": "mul", "OpShiftLeftLogical": "shl"}.get(item.name)
            if name is None:  # an extension, of which the root's is known, or a pointer
                return self.lane_0(operands[0])
            values = [self.lane_0(operand) for operand in operands]
            found = self.code.remember(("lane 0", key), self.code.emit(f"{name} i64 {values[0]}, {values[1]}"))
        return found

    # -- masks ---------------------------------------------------------------------------------------------------
    def active(self) -> str:
        """The active lanes as a vector."""
        return self.mask or "splat (i1 true)"

    def known_mask(self) -> list[bool] | None:
        """The active lanes where the compiler knows them."""
        mask = self.active()
        if mask.startswith("%"):
            return None
        found = [part.split()[-1] == "true" for part in mask.strip("<>").removeprefix("splat (").rstrip(")").split(",")]
        return found * self.lanes if len(found) == 1 else found

    def any_of(self, mask: str) -> str:
        """Whether a mask has a lane."""
        bits = self.code.emit(f"bitcast {self.mask_type} {mask} to i{self.lanes}")
        return self.code.emit(f"icmp ne i{self.lanes} {bits}, 0")

    def all_of(self, mask: str) -> str:
        """Whether a mask has all lanes."""
        bits = self.code.emit(f"bitcast {self.mask_type} {mask} to i{self.lanes}")
        return self.code.emit(f"icmp eq i{self.lanes} {bits}, -1")

    def both(self, mask: str | None, condition: str) -> str:
        """The lanes of a mask for which a condition holds."""
        return condition if mask is None else self.code.emit(f"and {self.mask_type} {mask}, {condition}")

    def pointer(self, address: str) -> str:
        """A pointer to a place that is given as a number."""
        return self.code.emit(f"inttoptr i64 {address} to ptr")

    def suffix(self, scalar: str) -> str:
        """How the vector of a type is written in intrinsics' names."""
        return suffix(self.spread(scalar))
