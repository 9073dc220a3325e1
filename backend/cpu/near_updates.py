"""Updates of elements that lie next to one another: they are one where no other thread makes any."""

from __future__ import annotations

from .decoded_module import KernelModule, ModuleInstruction
from .divergence import Divergence

#: Neighbouring elements of these types are added to by one load, sum and store, where no other thread updates them.
_TOGETHER = {("int", 32): "i32", ("float", 32): "float"}


def near_type(program: KernelModule, divergence: Divergence, item: ModuleInstruction) -> str:
    """The type of the neighbouring elements that an instruction adds to, if what was found there is not used, else
    ""."""
    if item.name not in ("OpAtomicIAdd", "OpAtomicFAddEXT") or item.result in program.mentioned:
        return ""
    shape = divergence.shape[divergence.keys(item.operands[0])[0]]
    if program.emulation is not None or program.watched or shape is None:
        return ""
    if any(offset - shape.offsets[0] != 4 * lane for lane, offset in enumerate(shape.offsets)):
        return ""
    type_ = program.types[item.type]
    return _TOGETHER.get((type_.kind, type_.bits), "")
