"""How accesses to shared memory meet its banks: an estimate from the layouts alone.

The model: as many banks as the driver's row in driver_quirks.py says, each of which serves one word of 4 bytes a step,
to every lane that asks for that word (CUDA C++ Programming Guide, "Shared Memory" of compute capability 5.x and later).
Of 32 banks, lanes that access 8 or 16 bytes are served 16 or 8 at a time. Steps are counted for the first warp, which
stands for all. A CPU has no banks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..layouts.buffer_layouts import buffer_layout, tensor_offsets
from ..layouts.distributed import LANE, REGISTER
from ..layouts.element_sizes import bytes_in_memory
from ..layouts.linear import LinearLayout
from ..layouts.through_shared import BANK_BYTES, ThroughShared
from ..planning.kernel_plan import KernelPlan
from ..planning.plans import BufferAccess, Conversion
from ..ttgir.ir import Function, Operation
from ..ttgir.types import MemDescType, TensorType, Type, element_type
from .stage_lines import frames


def _at_once(size: int, banks: int) -> int:
    """How many lanes are served together."""
    return max(1, banks * BANK_BYTES // max(size, BANK_BYTES))


def steps(addresses: Sequence[int], size: int, banks: int) -> int:
    """Steps that one access takes: ``addresses`` in bytes, one per lane, of ``size`` bytes each."""
    at_once = _at_once(size, banks)
    total = 0
    for start in range(0, len(addresses), at_once):
        words: list[set[int]] = [set() for _ in range(banks)]
        for address in addresses[start : start + at_once]:
            for word in range(address // BANK_BYTES, (address + size - 1) // BANK_BYTES + 1):
                words[word % banks].add(word)
        total += max(len(of_bank) for of_bank in words)
    return total


def fewest(addresses: Sequence[int], size: int, banks: int) -> int:
    """Steps that the same words would take if they were spread over all banks."""
    at_once = _at_once(size, banks)
    total = 0
    for start in range(0, len(addresses), at_once):
        words = {
            word
            for address in addresses[start : start + at_once]
            for word in range(address // BANK_BYTES, (address + size - 1) // BANK_BYTES + 1)
        }
        total += -(-len(words) // banks)
    return total


def shared_accesses(kernel: Function, plan: KernelPlan, banks: int) -> list[dict[str, Any]]:
    """Each operation that moves a tensor to or from shared memory: how many accesses a lane makes, of how many bits,
    the steps that they take, and the fewest that they could."""
    found = []
    for operation in kernel.walk():
        for what, size, places in _accesses(operation, plan):
            taken = sum(steps(addresses, size, banks) for addresses in places)
            least = sum(fewest(addresses, size, banks) for addresses in places)
            found.append(
                {
                    "what": what,
                    "operation": operation.name,
                    "bits": 8 * size,
                    "accesses": len(places),
                    "steps": taken,
                    "fewest": least,
                    "places": list(frames(operation.location)[:1]),
                }
            )
    return found


Transfers = tuple[str, int, list[list[int]]]


def _accesses(operation: Operation, plan: KernelPlan) -> Iterator[Transfers]:
    """(what, bytes of each access, for each access of a lane the addresses of all lanes)."""
    planned = plan.plans.get(operation)
    if isinstance(planned, Conversion) and isinstance(planned.moves, ThroughShared):
        yield from _of_conversion(planned, planned.moves, element_type(operation["src"].type), plan)
    elif isinstance(planned, BufferAccess) and not planned.late:
        tensor, buffer, what = _operands(operation)
        if tensor is not None and buffer is not None:
            yield _of_buffer(what, tensor, buffer, planned)


def _of_conversion(planned: Conversion, moves: ThroughShared, element: Type, plan: KernelPlan) -> Iterator[Transfers]:
    size, limit, start = bytes_in_memory(element), plan.view.width_limit(element), planned.scratch[0].offset
    for what, layout, sides in (
        ("store", moves.store, [step.stores for step in moves.rounds]),
        ("load", moves.load, [step.loads for step in moves.rounds]),
    ):
        vectors = [vector for side in sides for vector in side]
        width = min(len(vectors[0]), limit)
        places = [
            [start + (offset + part) * size for offset in _offsets(layout, vector[0])]
            for vector in vectors
            for part in range(0, len(vector), width)
        ]
        yield what, width * size, places


def _of_buffer(what: str, tensor: TensorType, buffer: MemDescType, planned: BufferAccess) -> Transfers:
    layout, padding, size = tensor_offsets(tensor, buffer), buffer_layout(buffer), bytes_in_memory(tensor)
    places = {
        tuple(planned.offset + padding.pad(offset) * size for offset in _offsets(layout, register))
        for register in range(0, layout.input_size(REGISTER), planned.width)
    }
    return what, planned.width * size, [list(addresses) for addresses in sorted(places)]


def _offsets(layout: LinearLayout, register: int) -> list[int]:
    """Element offsets of a register, one per lane of the first warp."""
    first = layout.images(REGISTER)[register]
    return [first ^ lane for lane in layout.images(LANE)]


def _operands(operation: Operation) -> tuple[TensorType | None, MemDescType | None, str]:
    types = [value.type for value in (*operation.operands, *operation.results)]
    tensor = next((type_ for type_ in types if isinstance(type_, TensorType)), None)
    buffer = next((type_ for type_ in types if isinstance(type_, MemDescType)), None)
    return tensor, buffer, "load" if operation.name == "ttg.local_load" else "store"
