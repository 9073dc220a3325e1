"""A SPIR-V module under construction: everything outside function bodies, each thing declared once."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from . import opcodes as op
from .encode import Instruction, encode, string_words
from .grammar import ids, ids_of_each
from .opcodes import Capability_ as Cap
from .opcodes import Decoration, StorageClass

ADDRESSING_PHYSICAL_STORAGE_BUFFER_64 = 5348
MEMORY_MODEL_VULKAN = 3
EXECUTION_MODEL_GL_COMPUTE = 5

#: Capability that a scalar type of this width needs (section 3.31); 32-bit types and bool need none.
INT_CAPABILITY = {8: Cap.Int8, 16: Cap.Int16, 64: Cap.Int64}
FLOAT_CAPABILITY = {16: Cap.Float16, 64: Cap.Float64}
#: Linkage Type of what another module defines.
LINKAGE_IMPORT = 1


@dataclass(frozen=True)
class EncodedFloat:
    """A floating-point type with an encoding of its own: its FP Encoding, the capabilities of values and of matrices of
    it, and their extension. ``kind``: what ModuleBuilder.kinds calls it."""

    kind: str
    width: int
    encoding: int
    capability: int
    matrices: int
    extension: str


#: Such types, as configurations of matrix units name them.
ENCODED_FLOATS = {
    "bf16": EncodedFloat("bfloat16", 16, 0, Cap.BFloat16TypeKHR, Cap.BFloat16CooperativeMatrixKHR, "SPV_KHR_bfloat16")
}
_FLOAT_FORMAT = {16: "<e", 32: "<f", 64: "<d"}


def float_bits(value: float, width: int) -> int:
    """The IEEE 754 bit pattern of ``value`` rounded to ``width`` bits; too large a value becomes an infinity."""
    if math.isinf(value) or math.isnan(value):
        exponent, mantissa = {16: (0x1F, 10), 32: (0xFF, 23), 64: (0x7FF, 52)}[width]
        bits = exponent << mantissa | (1 << (mantissa - 1) if math.isnan(value) else 0)
        return bits | (1 << (width - 1) if math.copysign(1, value) < 0 else 0)
    try:
        packed = struct.pack(_FLOAT_FORMAT[width], value)
    except OverflowError:
        return float_bits(math.copysign(math.inf, value), width)
    return int.from_bytes(packed, "little")


def bits_float(bits: int, width: int) -> float:
    """The value of an IEEE 754 bit pattern of ``width`` bits."""
    return float(struct.unpack(_FLOAT_FORMAT[width], bits.to_bytes(width // 8, "little"))[0])


#: The names ``int``, ``float`` and ``bool`` are types of the module inside ModuleBuilder.
Id: TypeAlias = int
Number: TypeAlias = int
Real: TypeAlias = float
Boolean: TypeAlias = bool


class ModuleBuilder:
    """Ids, types, constants, global variables, decorations and the entry point of one module.

    Integer types are declared without signedness; instructions carry it.
    """

    def __init__(self) -> None:
        self._next = 1
        self._capabilities: dict[int, None] = {}
        self._extensions: dict[str, None] = {}
        self._numbered: dict[tuple[int, ...], int] = {}
        self._integers: dict[tuple[Number, Number], Id] = {}
        self._nulls: dict[Id, Id] = {}
        self._scalars: dict[tuple[str, Number], Id] = {}
        self._globals: list[Instruction] = []
        self._decorations: list[Instruction] = []
        self._decorated: set[tuple[int, ...]] = set()
        self._names: list[Instruction] = []
        self._variable_names: list[Instruction] = []
        self._notes: list[Instruction] = []
        self._named: set[int] = set()
        self._strings: dict[str, int] = {}
        #: Extended instruction sets without a meaning for the program → their ids, and what they declare.
        self._sets: dict[str, int] = {}
        self._described: dict[tuple[int, ...], Instruction] = {}
        self._interface: list[int] = []
        #: Names of functions that others define → their ids, and their declarations.
        self._imported: dict[str, Id] = {}
        self._declared: list[Instruction] = []
        self._entry: tuple[int, str] | None = None
        self._modes: list[list[Number]] = []
        self._inputs: dict[int, int] = {}
        #: Constant id → its integer value (unsigned, of the type's width), float value, or bool.
        self.constants: dict[int, Number | Real | Boolean] = {}
        #: Type id → (kind, width): ("int", 32), ("float", 16), ("bool", 1), ("vector", n), …
        self.kinds: dict[int, tuple[str, int]] = {}
        #: Result id → type id, of everything that has one.
        self.type_of: dict[int, int] = {}
        self.glsl = self.id()
        self.capability(Cap.Shader)
        self.capability(Cap.VulkanMemoryModel)
        self.capability(Cap.PhysicalStorageBufferAddresses)
        self.void = self._declare(op.TypeVoid)
        self.bool = self._declare(op.TypeBool)
        self.kinds[self.bool] = ("bool", 1)
        self.u32 = self.int(32)

    def id(self) -> Id:
        """A fresh id."""
        self._next += 1
        return self._next - 1

    def capability(self, number: Number) -> None:
        """Declares a capability once."""
        self._capabilities[number] = None

    def extension(self, name: str) -> None:
        """Declares an extension once."""
        self._extensions[name] = None

    def _declare(self, opcode: Number, *operands: Number, type_id: Id = 0) -> Id:
        key = (opcode, type_id, *operands)
        known = self._numbered.get(key)
        if known is None:
            known = self._numbered[key] = self.id()
            self._globals.append([opcode, type_id, known, *operands])
            if type_id:
                self.type_of[known] = type_id
        return known

    # -- types ---------------------------------------------------------------------------------------------------
    def _scalar(self, kind: str, width: Number, capabilities: Mapping[Number, Number], *words: Number) -> Id:
        known = self._scalars.get((kind, width))
        if known is None:
            if width in capabilities:
                self.capability(capabilities[width])
            known = self._scalars[kind, width] = self._declare(*words)
            self.kinds[known] = (kind, width)
        return known

    def int(self, width: Number) -> Id:
        """An integer type of 8, 16, 32 or 64 bits."""
        return self._scalar("int", width, INT_CAPABILITY, op.TypeInt, width, 0)

    def float(self, width: Number) -> Id:
        """A floating-point type of 16, 32 or 64 bits."""
        return self._scalar("float", width, FLOAT_CAPABILITY, op.TypeFloat, width)

    def encoded_component(self, name: str) -> Id:
        """The type of the components of matrices of one of ENCODED_FLOATS."""
        known = ENCODED_FLOATS[name]
        self.capability(known.matrices)
        self.capability(known.capability)
        self.extension(known.extension)
        type_id = self._declare(op.TypeFloat, known.width, known.encoding)
        self.kinds[type_id] = (known.kind, known.width)
        return type_id

    def cooperative_matrix(self, component: Id, scope: Id, rows: Number, columns: Number, use: Number) -> Id:
        """A matrix whose components the invocations of ``scope`` hold."""
        return self._declare(
            op.TypeCooperativeMatrixKHR, component, scope, self.uint(rows), self.uint(columns), self.uint(use)
        )

    def vector(self, element: Id, count: Number) -> Id:
        """A vector of 2 to 4 scalars."""
        type_id = self._declare(op.TypeVector, element, count)
        self.kinds[type_id] = ("vector", count)
        return type_id

    def pointer(self, storage: Number, pointee: Id) -> Id:
        """A pointer type."""
        return self._declare(op.TypePointer, storage, pointee)

    def array(self, element: Id, count: Number, stride: Number = 0) -> Id:
        """An array; ``stride`` bytes between elements where the array has an explicit layout."""
        length = self.uint(count)
        if not stride:
            return self._declare(op.TypeArray, element, length)
        # A decorated type is a type of its own, so it is not shared with the undecorated one.
        key = (op.TypeArray, element, length, -stride)
        known = self._numbered.get(key)
        if known is None:
            known = self._numbered[key] = self.id()
            self._globals.append([op.TypeArray, 0, known, element, length])
            self.decorate(known, Decoration.ArrayStride, stride)
        return known

    def struct(self, members: Sequence[Id], offsets: Sequence[Number]) -> Id:
        """A fresh Block-decorated struct with members at the given byte offsets."""
        type_id = self.id()
        self._globals.append([op.TypeStruct, 0, type_id, *members])
        self.decorate(type_id, Decoration.Block)
        for index, offset in enumerate(offsets):
            self._decorations.append([op.MemberDecorate, 0, 0, type_id, index, Decoration.Offset, offset])
        return type_id

    def pair(self, member: Id) -> Id:
        """A plain struct of two equal members, as the extended-multiplication instructions return."""
        return self._declare(op.TypeStruct, member, member)

    def function_type(self, result: Id, parameters: Sequence[Id]) -> Id:
        """A function type."""
        return self._declare(op.TypeFunction, result, *parameters)

    # -- constants -----------------------------------------------------------------------------------------------
    def uint(self, value: Number, width: Number = 32) -> Id:
        """An integer constant; ``value`` is taken modulo 2^width."""
        value &= (1 << width) - 1
        known = self._integers.get((value, width))
        if known is not None:
            return known
        # Literals narrower than a word are sign-extended only for signed types (section 2.2.1); ours are unsigned.
        words = (value & 0xFFFFFFFF, value >> 32) if width == 64 else (value,)
        constant = self._declare(op.Constant, *words, type_id=self.int(width))
        self.constants[constant] = value
        self._integers[value, width] = constant
        return constant

    def define_uint(self, constant: Id, value: Number) -> None:
        """Declares the 32-bit constant whose id was taken before its value was known."""
        self._globals.append([op.Constant, self.u32, constant, value])

    def real(self, value: Real, width: Number) -> Id:
        """A floating-point constant, rounded to ``width`` bits."""
        return self.real_bits(float_bits(value, width), width)

    def real_bits(self, bits: Number, width: Number) -> Id:
        """A floating-point constant by its bit pattern."""
        words = (bits & 0xFFFFFFFF, bits >> 32) if width == 64 else (bits,)
        constant = self._declare(op.Constant, *words, type_id=self.float(width))
        self.constants[constant] = bits_float(bits, width)
        return constant

    def boolean(self, value: Boolean) -> Id:
        """``true`` or ``false``."""
        constant = self._declare(op.ConstantTrue if value else op.ConstantFalse, type_id=self.bool)
        self.constants[constant] = value
        return constant

    def composite(self, type_id: Id, parts: Sequence[Id]) -> Id:
        """A constant vector or array of constants."""
        return self._declare(op.ConstantComposite, *parts, type_id=type_id)

    def null(self, type_id: Id) -> Id:
        """The zero of any type."""
        known = self._nulls.get(type_id)
        if known is None:
            kind, width = self.kinds.get(type_id, ("", 0))
            if kind == "int":
                known = self.uint(0, width)
            elif kind == "float":
                known = self.real(0.0, width)
            elif kind == "bool":
                known = self.boolean(False)
            else:
                known = self._declare(op.ConstantNull, type_id=type_id)
            self._nulls[type_id] = known
        return known

    # -- globals -------------------------------------------------------------------------------------------------
    def variable(self, storage: Number, pointee: Id, name: str = "") -> Id:
        """A fresh module-scope variable, listed in the entry point's interface."""
        variable = self.id()
        self.declare_variable(variable, storage, pointee)
        if name:
            self.name(variable, name)
        return variable

    def declare_variable(self, variable: Id, storage: Number, pointee: Id) -> None:
        """Declares the module-scope variable whose id was taken before, and lists it in the interface."""
        pointer = self.pointer(storage, pointee)
        self._globals.append([op.Variable, pointer, variable, storage])
        self.type_of[variable] = pointer
        self._interface.append(variable)

    def built_in(self, number: Number, type_id: Id, name: str) -> Id:
        """The input variable of a built-in."""
        known = self._inputs.get(number)
        if known is None:
            known = self._inputs[number] = self.variable(StorageClass.Input, type_id, name)
            self.decorate(known, Decoration.BuiltIn, number)
        return known

    def decorate(self, target: Id, *words: Number) -> None:
        """Decorates an id, once."""
        key = (target, *words)
        if key not in self._decorated:
            self._decorated.add(key)
            self._decorations.append([op.Decorate, 0, 0, target, *words])

    def decorate_new(self, target: Id, word: Number) -> None:
        """Decorates an id that was made just now, in less time."""
        self._decorations.append([op.Decorate, 0, 0, target, word])

    def name(self, target: Id, text: str) -> None:
        """A debug name for an id; the first one stays."""
        if target not in self._named:
            self._named.add(target)
            self._names.append([op.Name, 0, 0, target, *string_words(text)])

    def name_variable(self, target: Id, text: str) -> None:
        """Names an id after a variable of the user's source: only a module with lines has such names."""
        if target not in self._named:
            self._named.add(target)
            self._variable_names.append([op.Name, 0, 0, target, *string_words(text)])

    def note(self, text: str) -> None:
        """Something that the module says of how it was made (OpModuleProcessed), if the text is not empty."""
        if text:
            self._notes.append([op.ModuleProcessed, 0, 0, *string_words(text)])

    def string(self, text: str) -> Id:
        """A string that debug instructions refer to."""
        known = self._strings.get(text)
        if known is None:
            known = self._strings[text] = self.id()
        return known

    def import_set(self, name: str) -> Id:
        """A non-semantic extended instruction set (SPV_KHR_non_semantic_info)."""
        known = self._sets.get(name)
        if known is None:
            self.extension("SPV_KHR_non_semantic_info")
            known = self._sets[name] = self.id()
        return known

    def describe(self, name: str, number: Number, *operands: Id, once: Boolean = True) -> Id:
        """An instruction of a non-semantic set outside functions; an equal one that is there already, if ``once``."""
        words = (self.import_set(name), number, *operands)
        key = words if once else (*words, -len(self._described))
        if key not in self._described:
            self._described[key] = [op.ExtInst, self.void, self.id(), *words]
        return self._described[key][2]

    # -- functions -----------------------------------------------------------------------------------------------
    def imported(self, name: str, parameters: Sequence[Id]) -> Id:
        """A function without a result that is defined elsewhere; ``parameters``: their types."""
        known = self._imported.get(name)
        if known is None:
            self.capability(Cap.Linkage)
            known = self._imported[name] = self.id()
            self._declared.append([op.Function, self.void, known, 0, self.function_type(self.void, parameters)])
            self._declared += [[op.FunctionParameter, type_id, self.id()] for type_id in parameters]
            self._declared.append([op.FunctionEnd, 0, 0])
            linkage = (*string_words(name), LINKAGE_IMPORT)
            self._decorations.append([op.Decorate, 0, 0, known, Decoration.LinkageAttributes, *linkage])
            self.name(known, name)
        return known

    def set_entry(self, function: Id, name: str, modes: list[list[Number]]) -> None:
        """Makes ``function`` the compute entry point, with its execution modes (mode, literals…)."""
        self._entry = (function, name)
        self._modes = modes

    def finish(self, functions: Sequence[Instruction], variables: Boolean = False) -> bytes:
        """The binary module with these functions, each from OpFunction to OpFunctionEnd, and with the names of the
        user's ``variables``. Sections are in the order of section 2.4; unused globals are left out."""
        assert self._entry is not None
        function, name = self._entry
        functions = [*self._declared, *functions]
        users = [*functions, *self._described.values()]
        used = {instruction[1] for instruction in users}
        used.update(*ids_of_each(users))
        kept: list[Instruction] = []
        for instruction in reversed(self._globals):
            if instruction[2] in used:
                kept.append(instruction)
                used.add(instruction[1])
                used.update(ids(instruction))
        kept.reverse()
        live = {instruction[2] for instruction in kept} | {instruction[2] for instruction in functions}
        interface = [variable for variable in self._interface if variable in live]
        head: list[Instruction] = [[op.Capability, 0, 0, number] for number in self._capabilities]
        head += [[op.Extension, 0, 0, *string_words(text)] for text in self._extensions]
        head.append([op.ExtInstImport, 0, self.glsl, *string_words("GLSL.std.450")])
        head += [[op.ExtInstImport, 0, number, *string_words(text)] for text, number in self._sets.items()]
        head.append([op.MemoryModel, 0, 0, ADDRESSING_PHYSICAL_STORAGE_BUFFER_64, MEMORY_MODEL_VULKAN])
        head.append([op.EntryPoint, 0, 0, EXECUTION_MODEL_GL_COMPUTE, function, *string_words(name), *interface])
        head += [[op.ExecutionMode, 0, 0, function, *mode] for mode in self._modes]
        head += [[op.String, 0, number, *string_words(text)] for text, number in self._strings.items()]
        names = [*self._names, *self._variable_names] if variables else self._names
        head += [entry for entry in names if entry[3] in live]
        head += self._notes
        head += [entry for entry in self._decorations if entry[3] in live]
        return encode(head + kept + list(self._described.values()) + functions, self._next)
