"""Moves the loads of dot operands from shared memory down to their dots.

Upstream's passes leave such a load where its buffer was filled. With other buffers filled between it and the dot, it is
not left until the dot (analysis/lazy_loads.py): all of K is held in registers, and the buffer's bytes are free. Moved
down, it keeps its buffer, for which there must be room.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..ttgir.encodings import DotOperandEncoding, OpaqueEncoding
from ..ttgir.ir import Block, Module, Operation
from ..ttgir.operations import takes_shared_memory
from ..ttgir.types import MemDescType, TensorType
from .sinking import sink

#: What a module has, besides its operations, where a load may have to move.
APART = "ttg.local_load apart from tt.dot"


def are_apart(names: Iterable[str]) -> bool:
    """Whether, of operations of these names in their order, one that takes shared memory stands between a load and a
    dot."""
    loaded = taken = False
    for name in names:
        if name == "tt.dot" and taken:
            return True
        taken = taken or (loaded and takes_shared_memory(name))
        loaded = loaded or name == "ttg.local_load"
    return False


def sink_loads(module: Module) -> bool:
    """Moves the loads of every function. Whether any was moved."""
    return sink(module, is_operand, _target)


def is_operand(operation: Operation) -> bool:
    """Whether it loads a dot operand from a buffer that is never written again: whose type is not ``mutable``."""
    if operation.name != "ttg.local_load" or len(operation.operands) != 1:
        return False
    buffer, tensor = operation["src"].type, operation.result.type
    if not isinstance(buffer, MemDescType) or buffer.mutable or not isinstance(tensor, TensorType):
        return False
    encoding = tensor.encoding
    return isinstance(encoding, DotOperandEncoding) or (
        isinstance(encoding, OpaqueEncoding) and encoding.mnemonic == "dot_op"
    )


def _target(block: Block, load: Operation, place: int) -> int | None:
    """The place of the dot that a load may go to: its first use, in the same block, after what takes shared memory;
    None where there is none."""
    buffer, taken = load["src"], False
    for number in range(place + 1, len(block.operations)):
        outer = block.operations[number]
        for operation in outer.walk():
            if load.result in operation.operands:
                return number if operation is outer and operation.name == "tt.dot" and taken else None
            if operation.name == "ttg.local_dealloc" and buffer in operation.operands:
                return None
            taken = taken or takes_shared_memory(operation.name)
    return None
