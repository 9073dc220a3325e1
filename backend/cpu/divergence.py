"""Which values and branches differ between lanes: every value's shape (lane_shapes.py), by an optimistic fixed point.

Values of composite types are sets of scalars: a scalar is named by its id, or by (id, number of the component).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from ..spirv.opcodes import BuiltIn, StorageClass
from . import constants, lane_shapes
from .decoded_module import COMPOSITE, IN_SCRATCH, BasicBlock, KernelModule, ModuleInstruction
from .errors import Untranslatable
from .lane_shapes import SPREAD, LaneShape

#: A scalar: a value, or a component of one.
Key = int | tuple[int, int]

#: Instructions whose results may be other values by another name.
_NAMES = frozenset(
    "OpCompositeConstruct OpCompositeExtract OpCompositeInsert OpConvertUToPtr OpConvertPtrToU OpBitcast "
    "OpCopyObject".split()
)
#: Atomic instructions and others whose results differ between lanes even where their operands do not.
_SPREAD = ("OpAtomic", "OpGroupNonUniformShuffle", "OpCooperativeMatrixLoad", "OpCooperativeMatrixMulAdd")
#: Instructions → which of their operands are values, where not all are.
_VALUES = {
    "OpExtInst": slice(2, None),
    **dict.fromkeys(("OpCompositeExtract", "OpBranchConditional", "OpLoad"), slice(1)),
    **dict.fromkeys(
        ("OpBranch", "OpReturn", "OpUnreachable", "OpControlBarrier", "OpMemoryBarrier", "OpReadClockKHR"), slice(0)
    ),
    **dict.fromkeys(("OpStore", "OpCompositeInsert", "OpCopyMemory"), slice(2)),
    "OpFunctionCall": slice(1, None),
    **dict.fromkeys(("OpCooperativeMatrixLoadKHR", "OpCooperativeMatrixMulAddKHR"), slice(3)),
    "OpCooperativeMatrixStoreKHR": slice(4),
}


@dataclass(slots=True)
class Loop:
    """A loop: its header, the blocks of it, and the values of it that are used after it."""

    header: int
    merge: int
    blocks: set[int]
    left: list[int] = field(default_factory=list)
    divergent: bool = False


class Divergence:
    """The shape of each scalar of a program whose workgroups have subgroups of so many lanes. ``lanes``: those of a
    vector, a subgroup's or all of a workgroup."""

    def __init__(self, program: KernelModule, subgroup: int, lanes: int) -> None:
        self._program, self._subgroup, self._lanes = program, subgroup, lanes
        self.shape: dict[Key, LaneShape | None] = {}
        #: Component → the scalar that it is a copy of.
        self._same: dict[Key, Key] = {}
        self.loops: dict[int, Loop] = {}
        #: Merge block → the condition of the selection that it ends, where lanes part there.
        self.parted: set[int] = set()
        self._find_loops()
        #: 64-bit integers that are used for nothing but addresses of device memory.
        self.addresses = _address_values(program)
        self._solve()

    # -- names of scalars ----------------------------------------------------------------------------------------
    def keys(self, value: int) -> list[Key]:
        """The scalars that a value consists of, those that they are copies of in their place."""
        type_ = self._program.type(value)
        if type_.kind not in COMPOSITE:
            return [self._original(value)]
        count = len(type_.members) if type_.kind == "struct" else type_.count
        return [self._original((value, index)) for index in range(count)]

    def _original(self, key: Key) -> Key:
        while key in self._same:
            key = self._same[key]
        return key

    def scalar_type(self, key: Key) -> int:
        """The id of a scalar's type."""
        if isinstance(key, int):
            return self._program.type_of[key]
        type_ = self._program.type(key[0])
        return type_.members[key[1]] if type_.kind == "struct" else type_.element

    def bits(self, key: Key) -> int:
        """The width of a scalar's type: 64 for an address."""
        return self._program.types[self.scalar_type(key)].bits

    # -- loops ---------------------------------------------------------------------------------------------------
    def _find_loops(self) -> None:
        program = self._program
        for block in program.blocks.values():
            if block.following:
                inside, pending = {block.label}, [block.label]
                while pending:
                    for target in program.blocks[pending.pop()].targets:
                        if target != block.merge and target not in inside:
                            inside.add(target)
                            pending.append(target)
                self.loops[block.label] = Loop(block.label, block.merge, inside)
        defined = {
            item.result: label
            for label, block in program.blocks.items()
            for item in (*block.phis, *block.body)
            if item.result
        }
        used: dict[int, set[int]] = {}
        for label, block in program.blocks.items():
            for item in (*block.body, *([block.end] if block.end else [])):
                for operand in operands_of(item):
                    used.setdefault(operand, set()).add(label)
            for phi in block.phis:
                for operand, source in zip(phi.operands[::2], phi.operands[1::2], strict=True):
                    used.setdefault(operand, set()).add(source)
        for loop in self.loops.values():
            for value, label in defined.items():
                if label in loop.blocks and not used.get(value, set()) <= loop.blocks:
                    loop.left.append(value)
            for value in loop.left:  # a name for others is left where they are
                item = program.definitions[value]
                if item.name in _NAMES:
                    loop.left += [
                        operand
                        for operand in operands_of(item)
                        if defined.get(operand) in loop.blocks and operand not in loop.left
                    ]

    def innermost(self, label: int) -> Loop | None:
        """The innermost loop that a block is in."""
        around = [loop for loop in self.loops.values() if label in loop.blocks]
        return min(around, key=lambda loop: len(loop.blocks), default=None)

    # -- the fixed point -----------------------------------------------------------------------------------------
    def _solve(self) -> None:
        for value, known in self._program.constants.items():
            kind = self._program.types[known.type].kind
            if kind in ("int", "bool"):
                width = self._program.types[known.type].bits
                self.shape[value] = lane_shapes.constant(known.bits, width, self._lanes)
            elif kind == "float":
                self.shape[value] = lane_shapes.uniform(self._lanes)
            elif kind in ("vector", "matrix") or (kind == "struct" and (known.parts or known.null)):
                self._constant_parts(value)
        for name, variable in self._program.variables.items():
            own = variable.storage in (StorageClass.Function, StorageClass.Private)
            scalar = self._program.types[variable.type].kind not in ("array", "struct")
            step = self._program.size(variable.type) if own and scalar else 0  # an array's elements have the lanes
            self.shape[name] = LaneShape(True, tuple(step * lane for lane in range(self._lanes)), 6)
        order: list[tuple[BasicBlock, ModuleInstruction]] = []
        users: dict[int, list[int]] = {}  # by their places in that order
        ends: dict[int, list[BasicBlock]] = {}
        for block in self._program.blocks.values():
            for item in (*block.phis, *block.body):
                if item.result and self._program.type(item.result).kind != "void":
                    for operand in _used(item):
                        users.setdefault(operand, []).append(len(order))
                    order.append((block, item))
            assert block.end is not None
            if block.end.name == "OpBranchConditional":
                ends.setdefault(block.end.operands[0], []).append(block)
        places = {item.result: place for place, (_, item) in enumerate(order)}
        waiting = set(range(len(order)))
        work = list(waiting)
        while work:
            place = heappop(work)
            waiting.remove(place)
            result = order[place][1].result
            if not self._visit(*order[place]):
                continue
            following = users.get(result, [])
            for parting in ends.get(result, ()):
                following = following + [places[value] for value in self._part(parting) if value in places]
            for user in following:
                if user not in waiting:
                    waiting.add(user)
                    heappush(work, user)

    def _constant_parts(self, value: int) -> None:
        known = self._program.constants[value]
        type_ = self._program.types[known.type]
        one = type_.kind == "matrix"  # all elements of which are alike
        for index in range(type_.count if one else len(known.parts) or type_.count):
            if known.parts:
                self._same[value, index] = known.parts[0 if one else index]
            else:
                self.shape[value, index] = lane_shapes.constant(0, 64, self._lanes)

    def _part(self, block: BasicBlock) -> list[int]:
        """Notes that lanes part at the end of a block. Gives the values that depend on that, where it is new."""
        assert block.end is not None
        shape = self.shape[self.keys(block.end.operands[0])[0]]
        if shape is not SPREAD and shape.uniform:
            return []
        if block.merge and not block.following:
            if block.merge in self.parted:
                return []
            self.parted.add(block.merge)
            return [phi.result for phi in self._program.blocks[block.merge].phis]
        loop = next(  # of the loops around, the one that a branch leaves
            loop for loop in self.loops.values() if loop.merge in block.targets and block.label in loop.blocks
        )
        if loop.divergent:
            return []
        loop.divergent = True
        return loop.left

    def _set(self, key: Key, shape: LaneShape | None) -> bool:
        if key in self.shape and self.shape[key] == shape:
            return False
        self.shape[key] = shape
        return True

    def _visit(self, block: BasicBlock, item: ModuleInstruction) -> bool:
        result, name = item.result, item.name
        if name == "OpCompositeConstruct":
            flat = [key for operand in item.operands for key in self.keys(operand)]
            if self._program.type(result).kind == "matrix":  # of one number
                flat *= self._program.type(result).count
            return self._copy([(result, index) for index in range(len(flat))], flat)
        if name == "OpCompositeExtract":
            assert len(item.operands) == 2
            return self._copy([result], [self.keys(item.operands[0])[item.operands[1]]])
        if name == "OpCompositeInsert":
            parts = self.keys(item.operands[1])
            parts[item.operands[2]] = self.keys(item.operands[0])[0]
            return self._copy([(result, index) for index in range(len(parts))], parts)
        if name == "OpCopyObject":
            found = self.keys(item.operands[0])
            composite = self._program.type(result).kind in COMPOSITE
            return self._copy([(result, index) for index in range(len(found))] if composite else [result], found)
        if name in ("OpConvertUToPtr", "OpConvertPtrToU") or (
            name == "OpBitcast" and self._same_kind(result, item.operands[0])
        ):
            return self._copy([result], self.keys(item.operands[0]))
        if name == "OpPhi" and block.label not in self.parted:
            known = [operand for operand in item.operands[::2]]
            columns = list(zip(*(self.keys(operand) for operand in known), strict=True))
            shape_of = [self._joined(column) for column in columns]
        elif name == "OpPhi":
            shape_of = [self._parted_phi(keys) for keys in zip(*map(self.keys, item.operands[::2]), strict=True)]
        else:
            shape_of = self._shapes(item)
        loops = self.loops.values()
        left = any(loop.divergent and block.label in loop.blocks and result in loop.left for loop in loops)
        changed = False
        for key, shape in zip(self.keys(result), shape_of, strict=True):
            if shape is not _UNKNOWN:
                changed |= self._set(key, SPREAD if left else shape)  # type: ignore[arg-type]
        return changed

    def _copy(self, to: Sequence[Key], sources: Sequence[Key]) -> bool:
        """Makes keys names of others. True, since it is called where those have changed: what uses the names has to
        know."""
        self._same.update(zip(to, sources, strict=True))
        return True

    def _same_kind(self, a: int, b: int) -> bool:
        one, other = self._program.type(a), self._program.type(b)
        integers = ("int", "pointer")
        return one == other or (one.kind in integers and other.kind in integers and one.bits == other.bits)

    def _joined(self, keys: Sequence[Key]) -> object:
        result: object = _UNKNOWN
        for key in keys:
            shape = self.shape.get(key, _UNKNOWN)
            if shape is not _UNKNOWN:
                result = shape if result is _UNKNOWN else lane_shapes.joined(result, shape)  # type: ignore[arg-type]
        return result

    def _parted_phi(self, keys: Sequence[Key]) -> object:
        """What is known of a phi where lanes come from several sides: each has its own value, unless all are one."""
        if len(set(keys)) == 1:
            return self.shape.get(keys[0], _UNKNOWN)
        found = [self.shape.get(key, _UNKNOWN) for key in keys]
        return _UNKNOWN if any(shape is _UNKNOWN for shape in found) else SPREAD

    def _shapes(self, item: ModuleInstruction) -> list[object]:
        """The shapes of the scalars of a result, by those of the operands."""
        name, lanes = item.name, self._lanes
        count = len(self.keys(item.result))
        if name == "OpLoad":
            return [self._loaded(item)] * count
        if name == "OpAccessChain":
            return [self._accessed(item)]
        if name == "OpGroupNonUniformAny":
            return [SPREAD if self._subgroup != self._lanes else lane_shapes.uniform(self._lanes)]
        if name == "OpGroupNonUniformBroadcast":
            return [self._broadcast(key, item) for key in self.keys(item.operands[1])]
        if name.startswith(_SPREAD):
            return [SPREAD] * count
        operands = [key for operand in operands_of(item) for key in self.keys(operand)]
        if name in ("OpBitcast", "OpSelect") and count > 1 or name in ("OpUMulExtended", "OpSMulExtended"):
            known = [self.shape.get(key, _UNKNOWN) for key in operands]
            if any(shape is _UNKNOWN for shape in known):
                return [_UNKNOWN] * count
            plain = all(shape is not SPREAD and shape.uniform for shape in known)  # type: ignore[union-attr]
            return [lane_shapes.uniform(lanes) if plain else SPREAD] * count
        found = []
        for key in operands:
            shape = self.shape.get(key, _UNKNOWN)
            if shape is _UNKNOWN:
                return [_UNKNOWN]
            found.append(shape)
        return [self._computed(item, found)]  # type: ignore[arg-type]

    def _broadcast(self, key: Key, item: ModuleInstruction) -> object:
        """One lane's number: the same in all lanes, if they are of one subgroup."""
        shape, lane = self.shape.get(key, _UNKNOWN), self.shape.get(self.keys(item.operands[2])[0], _UNKNOWN)
        if isinstance(shape, _Unknown) or isinstance(lane, _Unknown):
            return _UNKNOWN
        if self._subgroup != self._lanes:
            return SPREAD
        if shape is SPREAD or lane is SPREAD:
            return lane_shapes.uniform(self._lanes)
        offset = shape.offsets[lane.offsets[0] % self._subgroup]
        if shape.known:
            return lane_shapes.constant(offset, self.bits(key), self._lanes)
        return lane_shapes.uniform(self._lanes, min(shape.zeros, lane_shapes.trailing_zeros(offset)))

    def _loaded(self, item: ModuleInstruction) -> object:
        pointer = item.operands[0]
        storage = self._storage(pointer)
        if storage == StorageClass.Input:
            number = self._program.built_ins[self._base(pointer)]
            if number == BuiltIn.SubgroupLocalInvocationId:
                return lane_shapes.of_lanes(tuple(lane % self._subgroup for lane in range(self._lanes)), 32)
            if number == BuiltIn.SubgroupId and self._lanes != self._program.local_size:
                return lane_shapes.uniform(self._lanes)
            if number == BuiltIn.SubgroupId:
                return lane_shapes.of_lanes(tuple(lane // self._subgroup for lane in range(self._lanes)), 32)
            if number == BuiltIn.GlobalInvocationId and self._axis(pointer) == 0:
                return LaneShape(True, tuple(range(self._lanes)), lane_shapes.trailing_zeros(self._lanes))
            return lane_shapes.uniform(self._lanes)
        if storage == StorageClass.PushConstant:
            return lane_shapes.uniform(self._lanes)
        address = self.shape.get(self.keys(pointer)[0], _UNKNOWN)
        if address is _UNKNOWN:
            return _UNKNOWN
        return lane_shapes.uniform(self._lanes) if address is not SPREAD and address.uniform else SPREAD  # type: ignore[union-attr]

    def _axis(self, pointer: int) -> int | None:
        """The component of a vector that a pointer points to; None for the vector."""
        item = self._program.definitions.get(pointer)
        return None if item is None else self._program.constants[item.operands[1]].bits

    def _storage(self, pointer: int) -> int:
        return self._program.type(pointer).storage

    def _base(self, pointer: int) -> int:
        item = self._program.definitions.get(pointer)
        return self._base(item.operands[0]) if item is not None and item.name == "OpAccessChain" else pointer

    def _accessed(self, item: ModuleInstruction) -> object:
        """The address that an access chain gives."""
        program, pointer = self._program, item.operands[0]
        variable, storage = program.variables.get(pointer), program.type(pointer).storage
        if storage not in (*IN_SCRATCH, StorageClass.PhysicalStorageBuffer):
            return lane_shapes.uniform(self._lanes)
        total: object = (
            lane_shapes.uniform(self._lanes, 6) if variable else self.shape.get(self.keys(pointer)[0], _UNKNOWN)
        )
        offset, parts = self.path(item)
        if not isinstance(total, LaneShape):
            return total
        for index, stride in parts:
            shape = self.shape.get(self.keys(index)[0], _UNKNOWN)
            if not isinstance(shape, LaneShape):
                return shape
            if variable is None and not (shape.known or shape.uniform or self.bits(self.keys(index)[0]) == 64):
                return SPREAD  # the sum of its parts may pass the end of its type, and is extended
            total = lane_shapes.added(total, lane_shapes.scaled(shape, stride, 64), 64)
        if offset:
            total = lane_shapes.added(total, lane_shapes.constant(offset, 64, self._lanes), 64)
        if variable and variable.storage != StorageClass.Workgroup and pointer not in program.tables:
            size = program.size(program.type(item.result).element)
            total = lane_shapes.added(total, LaneShape(False, tuple(size * lane for lane in range(self._lanes))), 64)
        return total

    def path(self, item: ModuleInstruction) -> tuple[int, list[tuple[int, int]]]:
        """KernelModule.path() of an access chain into scratch or device memory. An array of an invocation's own has all
        lanes of an element side by side. Raises Untranslatable for a part of a part of scratch memory, or of a struct
        of several members there."""
        program, pointer = self._program, item.operands[0]
        variable = program.variables.get(pointer)
        if variable is None:
            if program.type(pointer).storage != StorageClass.PhysicalStorageBuffer:
                raise Untranslatable(program.name, "a pointer into a part of what another points to")
            return program.path(program.types[program.type_of[pointer]].element, item.operands[1:])
        shared = variable.storage == StorageClass.Workgroup or pointer in program.tables
        lanes = 1 if shared else self._lanes
        offset, parts = program.path(variable.type, item.operands[1:])
        if offset:
            raise Untranslatable(program.name, "a struct of several members in shared memory")
        return 0, [(index, stride * lanes) for index, stride in parts]

    def _computed(self, item: ModuleInstruction, operands: list[LaneShape | None]) -> LaneShape | None:
        lanes = self._lanes
        if any(shape is SPREAD for shape in operands):
            return SPREAD
        found: list[LaneShape] = [shape for shape in operands if shape is not None]
        kind = self._program.type(item.result).kind
        width = self._program.type(item.result).bits
        if found and kind in ("int", "bool", "pointer") and all(shape.known for shape in found):
            result = self._known(item, found, width)
            if result is not None:
                return result
        if kind in ("int", "pointer"):
            result = self._affine(item, found, width)
            if result is not None:
                return result
        return lane_shapes.uniform(lanes) if all(shape.uniform for shape in found) else SPREAD

    def _known(self, item: ModuleInstruction, found: list[LaneShape], width: int) -> LaneShape | None:
        name = item.name
        if name in constants.INTEGERS:
            rule = constants.INTEGERS[name]
            return lane_shapes.evaluated(lambda a, b: rule(a, b, width), found, width)
        if name in constants.COMPARISONS:
            compare, of = constants.COMPARISONS[name], self.bits(self.keys(item.operands[0])[0])
            return lane_shapes.evaluated(lambda a, b: compare(a, b, of), found, 1)
        if name in constants.CONDITIONS:
            return lane_shapes.evaluated(constants.CONDITIONS[name], found, width)
        if name in ("OpSConvert", "OpUConvert"):
            old = self.bits(self.keys(item.operands[0])[0])
            mask = (1 << old) - 1
            return lane_shapes.evaluated(lambda a: a if name == "OpSConvert" else a & mask, found, width)
        return None

    def _affine(self, item: ModuleInstruction, found: list[LaneShape], width: int) -> LaneShape | None:
        """The shape of integer arithmetic that keeps shared number and offsets apart."""
        name = item.name
        if name in ("OpIAdd", "OpISub"):
            return lane_shapes.added(found[0], found[1], width, 1 if name == "OpIAdd" else -1)
        if name == "OpIMul":
            for a, b in (found, found[::-1]):
                if b.known and b.uniform:
                    return lane_shapes.scaled(a, b.offsets[0], width)
            return lane_shapes.uniform(self._lanes, min(found[0].zeros + found[1].zeros, 64)) if _plain(found) else None
        if name == "OpShiftLeftLogical" and found[1].known and found[1].uniform:
            return lane_shapes.scaled(found[0], 1 << (found[1].offsets[0] % width), width)
        if name in ("OpBitwiseOr", "OpBitwiseXor"):
            for a, b in (found, found[::-1]):  # bits that the shared number does not have
                if a.plain and b.known and lane_shapes.fits_below(a, b.offsets):
                    return lane_shapes.united(a, b.offsets, width)
            return None
        if name in ("OpSConvert", "OpUConvert"):
            return self._converted(item, found[0], width)
        return None

    def _converted(self, item: ModuleInstruction, shape: LaneShape, width: int) -> LaneShape | None:
        old = self.bits(self.keys(item.operands[0])[0])
        if width <= old:
            return lane_shapes.added(shape, lane_shapes.constant(0, width, self._lanes), width)
        if shape.plain or lane_shapes.fits_below(shape, shape.offsets):
            return shape
        # An address in the middle of a tensor of 2^32 elements apart, no sum of 32 bits means to wrap.
        return shape if item.name == "OpSConvert" and item.result in self.addresses else None


def _plain(found: list[LaneShape]) -> bool:
    return all(shape.plain for shape in found)


class _Unknown:
    """What is known of a value that the fixed point has not reached."""


_UNKNOWN = _Unknown()


def operands_of(item: ModuleInstruction) -> Sequence[int]:
    """The operands of an instruction that are values."""
    part = _VALUES.get(item.name)
    if part is None:
        part = slice(1, None) if item.name.startswith("OpGroupNonUniform") else slice(None)
    return item.operands[part]


def _address_values(program: KernelModule) -> set[int]:
    """64-bit integers that are used for nothing but addresses of device memory."""
    found = {
        value
        for value, item in program.definitions.items()
        if program.types[item.type].kind in ("int", "pointer") and program.types[item.type].bits == 64
    }
    through = ("OpIAdd", "OpISub", "OpIMul", "OpShiftLeftLogical", "OpPhi", "OpConvertUToPtr", "OpBitcast", "OpSelect")
    numbers: list[int] = []
    for block in program.blocks.values():
        for item in (*block.phis, *block.body):
            if item.name not in through or item.result not in found:
                is_access = item.name in ("OpLoad", "OpStore") or item.name.startswith("OpAtomic")
                numbers += _used(item)[1:] if is_access else _used(item)
    while numbers:
        value = numbers.pop()
        if value in found:
            found.remove(value)
            if program.definitions[value].name in through:
                numbers += _used(program.definitions[value])
    return found


def _used(item: ModuleInstruction) -> Sequence[int]:
    return item.operands[::2] if item.name == "OpPhi" else operands_of(item)
