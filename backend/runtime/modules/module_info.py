"""What a kernel's SPIR-V says of itself."""

from __future__ import annotations

from dataclasses import dataclass

from ...abi.watch_note import WatchNote, read_note
from ...spirv import opcodes as op
from ...spirv.decode import instruction_words, string
from ...spirv.opcodes import MemoryAccess

_MODULE_PROCESSED = 330
_MODEL_GLCOMPUTE = 5
_SUBGROUP_SIZE_NOTE = "subgroup_size="
_ATOMICS = frozenset(opcode for name, opcode in vars(op).items() if name.startswith("Atomic"))


@dataclass(frozen=True)
class ModuleInfo:
    """What a kernel's SPIR-V says of itself.

    ``local_size``: the workgroup's invocations along x, y, z. ``subgroup_size``: what an
    ``OpModuleProcessed "subgroup_size=<n>"`` asks for, None if there is none. ``watch``: of a kernel
    that is watched for races between programs. ``has_atomics``, ``has_volatile_loads``: whether it has such
    instructions; False of machine code, which is not asked.
    """

    entry_point: str
    local_size: tuple[int, int, int]
    subgroup_size: int | None
    watch: WatchNote | None = None
    has_atomics: bool = False
    has_volatile_loads: bool = False

    @property
    def may_wait(self) -> bool:
        """Whether programs may wait for each other."""
        return self.has_atomics or self.has_volatile_loads

    @property
    def invocations(self) -> int:
        """Invocations of a workgroup."""
        x, y, z = self.local_size
        return x * y * z


def read_module(spirv: bytes) -> ModuleInfo:
    """The entry point, workgroup size and subgroup size of a module. Raises ValueError on a damaged one."""
    entry_point, local_size, subgroup_size = "", (0, 0, 0), None
    watch: WatchNote | None = None
    last, has_atomics, has_volatile_loads = 0, False, False
    for opcode, words in instruction_words(spirv):
        last = opcode
        if opcode == op.EntryPoint and len(words) > 2 and words[0] == _MODEL_GLCOMPUTE:
            entry_point = string(words[2:])
        elif opcode == op.ExecutionMode and len(words) == 5 and words[1] == op.ExecutionMode_.LocalSize:
            local_size = (words[2], words[3], words[4])
        elif opcode in _ATOMICS:
            has_atomics = True
        elif opcode == op.Load and len(words) > 3:
            has_volatile_loads |= bool(words[3] & MemoryAccess.Volatile)
        elif opcode == _MODULE_PROCESSED:
            note = string(words)
            watch = watch or read_note(note)
            if note.startswith(_SUBGROUP_SIZE_NOTE) and note[len(_SUBGROUP_SIZE_NOTE) :].isdecimal():
                subgroup_size = int(note[len(_SUBGROUP_SIZE_NOTE) :])
    if not entry_point or not all(local_size):
        raise ValueError("the SPIR-V module has no compute entry point with a LocalSize")
    if last != op.FunctionEnd:
        raise ValueError("the SPIR-V module is cut off: it does not end with OpFunctionEnd")
    return ModuleInfo(entry_point, local_size, subgroup_size, watch, has_atomics, has_volatile_loads)
