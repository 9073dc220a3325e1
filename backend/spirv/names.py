"""Names for the ids of a module that say what they are, as SPIRV-Tools gives them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from . import opcodes as op
from .decode import DecodedInstruction, DecodedOperand
from .grammar import enumerants, opcodes

_INTEGERS = {8: "char", 16: "short", 32: "int", 64: "long"}
_FLOATS = {16: "half", 32: "float", 64: "double"}
_ENCODINGS = {"BFloat16KHR": "bfloat16", "Float8E4M3EXT": "fp8e4m3", "Float8E5M2EXT": "fp8e5m2"}
#: Built-ins whose names in GLSL are others than in SPIR-V, and those without a prefix.
_BUILT_INS = {
    "NumWorkgroups": "gl_NumWorkGroups",
    "WorkgroupSize": "gl_WorkGroupSize",
    "WorkgroupId": "gl_WorkGroupID",
    "LocalInvocationId": "gl_LocalInvocationID",
    "GlobalInvocationId": "gl_GlobalInvocationID",
    "SubgroupSize": "SubgroupSize",
    "NumSubgroups": "NumSubgroups",
    "SubgroupId": "SubgroupId",
    "SubgroupLocalInvocationId": "SubgroupLocalInvocationId",
}

#: The text of a constant's number, of the floating-point type's width where it has one.
NumberText = Callable[[DecodedOperand, int], str]


class _Names:
    def __init__(self, text: NumberText) -> None:
        self.known: dict[int, str] = {}
        self._text = text
        self._taken: set[str] = set()
        self._float_widths: dict[int, int] = {}

    def save(self, target: int, name: str) -> None:
        """Names an id that has no name yet; what is not a letter or digit becomes ``_``, and names are made unique."""
        if target in self.known:
            return
        plain = chosen = re.sub(r"[^A-Za-z0-9_]", "_", name) or "_"
        count = 0
        while chosen in self._taken:
            chosen, count = f"{plain}_{count}", count + 1
        self._taken.add(chosen)
        self.known[target] = chosen

    def of(self, target: int) -> str:
        """The name of an id."""
        return self.known.get(target, str(target))

    def describe(self, instruction: DecodedInstruction) -> str | None:
        """What the result of an instruction is called if nothing else names it; None where it keeps its number."""
        values = [operand.value for operand in instruction.operands]
        first = values[0] if values and isinstance(values[0], int) else 0
        match instruction.opcode:
            case op.TypeVoid:
                return "void"
            case op.TypeBool:
                return "bool"
            case op.TypeInt:
                name = _INTEGERS.get(first)
                return ("" if values[1] else "u") + name if name else f"{'i' if values[1] else 'u'}{first}"
            case op.TypeFloat:
                if len(values) > 1:
                    encoding = enumerants("FPEncoding")[int(values[1])].name
                    return _ENCODINGS.get(encoding, encoding)
                self._float_widths[instruction.result] = first
                return _FLOATS.get(first, f"fp{first}")
            case op.TypeVector:
                return f"v{values[1]}{self.of(first)}"
            case op.TypeArray:
                return f"_arr_{self.of(first)}_{self.of(int(values[1]))}"
            case op.TypePointer:
                return f"_ptr_{enumerants('StorageClass')[first].name}_{self.of(int(values[1]))}"
            case op.TypeStruct:
                return f"_struct_{instruction.result}"
            case op.ConstantTrue:
                return "true"
            case op.ConstantFalse:
                return "false"
            case op.Constant:
                text = self._text(instruction.operands[0], self._float_widths.get(instruction.type_id, 32))
                return f"{self.of(instruction.type_id)}_{text.replace('-', 'n')}"
        if instruction.opcode == opcodes()["TypeRuntimeArray"]:
            return f"_runtimearr_{self.of(first)}"
        return None


def names_of(instructions: Sequence[DecodedInstruction], text: NumberText) -> dict[int, str]:
    """Id → name. OpName comes first, then the built-in that a variable is, then what a type or constant is; other ids
    have their numbers. ``text`` writes the numbers of constants."""
    names = _Names(text)
    for instruction in instructions:
        operands = instruction.operands
        if instruction.opcode == op.Name:
            names.save(int(operands[0].value), str(operands[1].value))
        elif instruction.opcode == op.Decorate and operands[1].value == op.Decoration.BuiltIn:
            built_in = enumerants("BuiltIn")[int(operands[2].value)].name
            names.save(int(operands[0].value), _BUILT_INS.get(built_in, f"gl_{built_in}"))
        elif instruction.result:
            names.save(instruction.result, names.describe(instruction) or str(instruction.result))
    return names.known
