"""Which ``ttg.local_load`` can be left in shared memory until the dot that uses it.

A dot operand held in registers is the whole K extent for each of a lane's rows: for a 128 × 32 tile that is a thousand
registers. Read from shared memory inside the dot's loop over K it is a few. That is right only while the buffer does
not change between the load and the dot.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..matrices import MatrixConfiguration
from ..ttgir.encodings import BlockedEncoding
from ..ttgir.ir import Function, Operation
from ..ttgir.operations import Effect, definition_of
from ..ttgir.types import operand_of
from .matrix_dots import is_taken_apart, loads_matrices

#: Effects after which the contents of shared memory may differ: writes, and waits, which let others write.
_CLOBBERS = Effect.WRITES_SHARED | Effect.WAITS


def lazy_loads(
    function: Function, matrices: Sequence[MatrixConfiguration] = (), matrix_loads: bool = False
) -> frozenset[Operation]:
    """The loads all of whose uses are dots later in the same block with nothing between that could change shared
    memory: dots of blocked tensors, and of those on ``matrices`` the ones that load whole fragments (where
    ``matrix_loads``), or parts of which each fragment is made."""
    loads = (operation for operation in function.walk() if operation.name == "ttg.local_load")
    return frozenset(load for load in loads if _is_lazy(load, matrices, matrix_loads))


def _is_lazy(load: Operation, matrices: Sequence[MatrixConfiguration], matrix_loads: bool) -> bool:
    if not load.result.uses or load.block is None:
        return False
    blocked = isinstance(operand_of(load.result.type), BlockedEncoding)
    fragments = matrices and (is_taken_apart(load) or (matrix_loads and loads_matrices(load, matrices)))
    if not blocked and not fragments:
        return False
    waiting = set(load.result.uses)
    if any(use.name != "tt.dot" or use.block is not load.block for use in waiting):
        return False
    operations = load.block.operations
    for operation in operations[operations.index(load) + 1 :]:
        waiting.discard(operation)
        if not waiting:
            return True
        if definition_of(operation).effects & _CLOBBERS or operation.regions:
            return False
    return False
