"""A SPIR-V module as the translation reads it: types, constants, variables, and the entry point's blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from ..abi.watch_note import read_note
from ..optional import noted
from ..spirv.decode import instruction_words, string
from ..spirv.function import LOOP_CONTROL_DEPENDENCY_INFINITE
from ..spirv.grammar import shape
from ..spirv.opcodes import Decoration, StorageClass
from .emulation import Emulation, component_of
from .errors import Untranslatable

#: FP Encoding of bfloat16 (SPV_KHR_bfloat16).
_BFLOAT16 = 0
#: Instructions that say something about a module, and nothing about what it computes.
_SILENT = frozenset(
    "OpCapability OpExtension OpMemoryModel OpExecutionMode OpString OpName OpMemberName OpSource "
    "OpTypeVoid OpTypeFunction OpTypeBool".split()
)


class _Entry(NamedTuple):
    """An instruction as it stands in the module: the words after type and result are not looked into."""

    name: str
    type_id: int
    result: int
    words: Sequence[int]


def _entries(spirv: bytes) -> Iterator[_Entry]:
    for opcode, words in instruction_words(spirv):
        name, typed, has_result, _ = shape(opcode)
        first = typed + has_result
        yield _Entry("Op" + name, words[0] if typed else 0, words[typed] if has_result else 0, words[first:])


@dataclass(frozen=True, slots=True)
class ModuleType:
    """A type. ``bits`` of a scalar; ``element`` and ``count`` of a vector or an array, ``members`` of a struct: ids of
    types. ``storage`` and ``element`` of a pointer. ``stride``: bytes between an array's elements, 0 if not given.
    ``encoding`` of a float that is not IEEE's. ``element``, ``rows``, ``columns``, ``use`` of a cooperative matrix; its
    ``count`` are a lane's components."""

    kind: str
    bits: int = 0
    element: int = 0
    count: int = 0
    members: tuple[int, ...] = ()
    storage: int = 0
    stride: int = 0
    encoding: int | None = None
    rows: int = 0
    columns: int = 0
    use: int = 0


#: Kinds of types whose values are several scalars in each lane.
COMPOSITE = ("vector", "struct", "matrix")


@dataclass(slots=True)
class ModuleInstruction:
    """An instruction. ``operands``: ids, literals and enumerants as numbers, strings; ``line``: its place in the user's
    source as FILE, LINE, COLUMN."""

    name: str
    type: int
    result: int
    operands: tuple[int, ...]
    line: tuple[str, int, int] | None = None


@dataclass(slots=True)
class BasicBlock:
    """A basic block: its phis, what follows them, and the terminator. ``merge``: the label that a structured branch
    names, ``following``: a loop's continue target (section 2.11), ``independent``: whether no round of the loop depends
    on another one."""

    label: int
    phis: list[ModuleInstruction] = field(default_factory=list)
    body: list[ModuleInstruction] = field(default_factory=list)
    end: ModuleInstruction | None = None
    merge: int = 0
    following: int = 0
    independent: bool = False

    @property
    def targets(self) -> tuple[int, ...]:
        """The labels that the terminator may go to."""
        assert self.end is not None
        if self.end.name == "OpBranch":
            return (self.end.operands[0],)
        return tuple(self.end.operands[1:3]) if self.end.name == "OpBranchConditional" else ()


@dataclass(frozen=True, slots=True)
class ModuleConstant:
    """A constant. ``bits`` of a scalar; ``parts``: ids of a composite's constituents."""

    type: int
    bits: int = 0
    parts: tuple[int, ...] = ()
    null: bool = False


@dataclass(frozen=True, slots=True)
class ModuleVariable:
    """A variable: its storage class, and the id of the type that it holds."""

    storage: int
    type: int


class KernelModule:
    """A module with one entry point, decoded. Raises Untranslatable for modules of another kind.

    ``emulation``: of the device that it is for, None for the processor."""

    def __init__(self, spirv: bytes, emulation: Emulation | None = None) -> None:
        self.emulation = emulation
        self.name = "kernel"
        self.types: dict[int, ModuleType] = {}
        self.constants: dict[int, ModuleConstant] = {}
        self.variables: dict[int, ModuleVariable] = {}
        #: Variable that nothing is stored to → the constant that it holds.
        self.tables: dict[int, int] = {}
        #: Variable that is stored to → the constant that it holds at the start.
        self.initial: dict[int, int] = {}
        #: Variable → the number of the built-in that it is.
        self.built_ins: dict[int, int] = {}
        #: (Struct, member) → byte offset.
        self.offsets: dict[tuple[int, int], int] = {}
        self.local_size = 1
        #: Whether accesses of device memory are looked at for races between programs.
        self.watched = False
        #: The optional parts that its machine code is to do without.
        self.without: frozenset[str] = frozenset()
        #: Function → the name that it is imported by.
        self.imports: dict[int, str] = {}
        self.blocks: dict[int, BasicBlock] = {}
        #: Value → its type.
        self.type_of: dict[int, int] = {}
        #: Result → what defines it, in the entry point.
        self.definitions: dict[int, ModuleInstruction] = {}
        #: Extended instruction set → its name.
        self.sets: dict[int, str] = {}
        self.first = 0
        self._entry = 0
        self._strings: dict[int, str] = {}
        self._sources: dict[int, str] = {}
        self._strides: dict[int, int] = {}
        self._pointed: dict[int, int] = {}
        self._read(_entries(spirv))

    # -- types ---------------------------------------------------------------------------------------------------
    def type(self, value: int) -> ModuleType:
        """The type of a value."""
        return self.types[self.type_of[value]]

    def size(self, type_id: int) -> int:
        """Bytes of a type in memory, padded to nothing: bools are never there."""
        type_ = self.types[type_id]
        if type_.kind in ("vector", "array"):
            return (type_.stride or self.size(type_.element)) * type_.count
        if type_.kind == "struct":
            last = len(type_.members) - 1
            return self.offsets.get((type_id, last), 0) + self.size(type_.members[last])
        return 8 if type_.kind == "pointer" else max(type_.bits, 8) // 8

    def path(self, type_id: int, indices: Sequence[int]) -> tuple[int, list[tuple[int, int]]]:
        """Where a part of a type lies that is named by the ids of ``indices``: its bytes that are known, and
        (index, bytes that it counts in) of every other index."""
        offset, counted = 0, []
        for index in indices:
            type_ = self.types[type_id]
            if type_.kind == "struct":
                member = self.constants[index].bits
                offset += self.offsets.get((type_id, member), 0)
                type_id = type_.members[member]
                continue
            type_id = type_.element
            counted.append((index, type_.stride or self.size(type_id)))
        return offset, counted

    # -- reading -------------------------------------------------------------------------------------------------
    def _read(self, instructions: Iterator[_Entry]) -> None:
        block: BasicBlock | None = None
        function = 0
        line: tuple[str, int, int] | None = None
        for entry in instructions:
            name = entry.name
            if entry.result and entry.type_id:
                self.type_of[entry.result] = entry.type_id
            if name == "OpFunction":
                function = entry.result
                block, line = None, None
            elif not function:
                self._declare(entry)
            elif function != self._entry:
                if name == "OpFunctionEnd":
                    function = 0
            elif name == "OpFunctionEnd":
                function = 0
            elif name == "OpLabel":
                block = self.blocks[entry.result] = BasicBlock(entry.result)
                self.first = self.first or entry.result
                line = None
            elif name == "OpLine":
                file, number, column = entry.words
                line = self._strings.get(file, "?"), number, column
            elif name == "OpNoLine":
                line = None
            elif name == "OpExtInst" and self.sets[entry.words[0]] != "GLSL.std.450":
                line = self._debug(entry, line)
            else:
                assert block is not None, name
                self._add(block, entry, line)
        self._check_tables()
        if not self.blocks:
            raise Untranslatable(self.name, "a module without an entry point")

    @cached_property
    def mentioned(self) -> frozenset[int]:
        """The numbers that instructions have as operands: all values that are used for something are among them."""
        found: set[int] = set()
        for block in self.blocks.values():
            for item in (*block.phis, *block.body, *([block.end] if block.end else ())):
                found.update(item.operands)
        return frozenset(found)

    def _check_tables(self) -> None:
        for item in self.definitions.values():
            self._pointed[item.result] = item.operands[0] if item.name == "OpAccessChain" else 0
        for block in self.blocks.values():
            for item in block.body:
                if item.name in ("OpStore", "OpCopyMemory"):
                    pointer = self._pointed.get(item.operands[0]) or item.operands[0]
                    if pointer in self.tables:
                        self.initial[pointer] = self.tables.pop(pointer)

    def _debug(self, entry: _Entry, line: tuple[str, int, int] | None) -> tuple[str, int, int] | None:
        """The place after an instruction of NonSemantic.Shader.DebugInfo.100."""
        number = entry.words[1]
        if number == 103:  # DebugLine: source, first and last line, first and last column
            source, first, _, column, _ = entry.words[2:7]
            return self._sources.get(source, "?"), self.constants[first].bits, self.constants[column].bits
        return None if number == 104 else line  # DebugNoLine

    def _add(self, block: BasicBlock, entry: _Entry, line: tuple[str, int, int] | None) -> None:
        found = ModuleInstruction(entry.name, entry.type_id, entry.result, tuple(entry.words), line)
        if found.name == "OpCopyObject" and found.operands[0] in self.variables:  # another name of it
            self._rename(found)
            return
        if found.result:
            self.definitions[found.result] = found
        if found.name == "OpPhi":
            block.phis.append(found)
        elif found.name == "OpSelectionMerge":
            block.merge = found.operands[0]
        elif found.name == "OpLoopMerge":
            block.merge, block.following = found.operands[:2]
            block.independent = bool(found.operands[2] & LOOP_CONTROL_DEPENDENCY_INFINITE)
        elif found.name in ("OpBranch", "OpBranchConditional", "OpReturn", "OpUnreachable"):
            block.end = found
        elif found.name == "OpVariable":
            self.variables[found.result] = ModuleVariable(found.operands[0], self.types[found.type].element)
            if len(found.operands) > 1:
                self.tables[found.result] = found.operands[1]
        elif found.name not in ("OpName", "OpNop"):
            block.body.append(found)

    def _rename(self, item: ModuleInstruction) -> None:
        source = item.operands[0]
        if self.variables[source].storage in IN_SCRATCH:
            raise Untranslatable(self.name, "a copied pointer to a variable")
        self.variables[item.result] = self.variables[source]
        if source in self.built_ins:
            self.built_ins[item.result] = self.built_ins[source]

    def _declare(self, entry: _Entry) -> None:
        name, result, words = entry.name, entry.result, entry.words
        if name == "OpEntryPoint":
            self._entry, self.name = words[1], string(words[2:])
        elif name == "OpExecutionMode" and words[1] == 17:  # LocalSize
            self.local_size = words[2]
        elif name == "OpModuleProcessed":
            self.without |= noted(string(words))
            self.watched = self.watched or read_note(string(words)) is not None
        elif name == "OpExtInstImport":
            self.sets[result] = string(words)
        elif name == "OpString":
            self._strings[result] = string(words)
        elif name == "OpExtInst":
            if words[1] == 35:  # DebugSource
                self._sources[result] = self._strings.get(words[2], "?")
        elif name == "OpDecorate":
            self._decorate(words[0], words[1], words[2:])
        elif name == "OpMemberDecorate":
            if words[2] == Decoration.Offset:
                self.offsets[words[0], words[1]] = words[3]
        elif name == "OpVariable":
            self.variables[result] = ModuleVariable(words[0], self.types[entry.type_id].element)
        elif name.startswith("OpType"):
            self.types[result] = self._type(name, list(words), result)
        elif name.startswith("OpConstant") or name == "OpUndef":
            self.constants[result] = self._constant(entry)
        elif name not in _SILENT:
            raise Untranslatable(self.name, f"a module with {name}")

    def _decorate(self, target: int, decoration: int, words: Sequence[int]) -> None:
        if decoration == Decoration.BuiltIn:
            self.built_ins[target] = words[0]
        elif decoration == Decoration.ArrayStride:
            self._strides[target] = words[0]
        elif decoration == Decoration.LinkageAttributes:
            self.imports[target] = string(words)

    def _type(self, name: str, values: list[int], result: int) -> ModuleType:
        match name:
            case "OpTypeVoid" | "OpTypeFunction":
                return ModuleType("void")
            case "OpTypeBool":
                return ModuleType("bool", 1)
            case "OpTypeInt":
                return ModuleType("int", values[0])
            case "OpTypeFloat" if len(values) == 1:
                return ModuleType("float", values[0])
            case "OpTypeFloat" if values[1] == _BFLOAT16:
                return ModuleType("float", values[0], encoding=values[1])
            case "OpTypeCooperativeMatrixKHR" if self.emulation is not None:
                return self._matrix(values)
            case "OpTypeVector":
                return ModuleType("vector", element=values[0], count=values[1])
            case "OpTypeArray":
                count = self.constants[values[1]].bits
                return ModuleType("array", element=values[0], count=count, stride=self._strides.get(result, 0))
            case "OpTypeStruct":
                return ModuleType("struct", members=tuple(values))
            case "OpTypePointer":
                return ModuleType("pointer", 64, element=values[1], storage=values[0])
        raise Untranslatable(self.name, f"a module with {name}")

    def _matrix(self, values: list[int]) -> ModuleType:
        assert self.emulation is not None
        element = self.types[values[0]]
        rows, columns, use = (self.constants[value].bits for value in values[2:5])
        component = component_of(element.kind, element.bits, element.encoding)
        found = self.emulation.component_map(use, rows, columns, component)
        if found is None:
            raise Untranslatable(
                self.name, f"a cooperative matrix of {rows}×{columns} {component}, which its profile lacks"
            )
        count = 1 << len(found.registers)
        return ModuleType("matrix", element=values[0], count=count, rows=rows, columns=columns, use=use)

    def _constant(self, entry: _Entry) -> ModuleConstant:
        name, type_id, words = entry.name, entry.type_id, entry.words
        if name == "OpConstant":
            return ModuleConstant(type_id, sum(word << 32 * place for place, word in enumerate(words)))
        if name == "OpConstantComposite":
            return ModuleConstant(type_id, parts=tuple(words))
        return ModuleConstant(type_id, int(name == "OpConstantTrue"), null=name in ("OpConstantNull", "OpUndef"))


#: Storage classes whose variables lie in the thread's scratch memory.
IN_SCRATCH = frozenset({StorageClass.Workgroup, StorageClass.Function, StorageClass.Private})
