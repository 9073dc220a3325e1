"""Which lanes store neighbouring rows of a matrix operand, so that what is stored at a time lies in different banks.

Of a tile with rows of 64 bytes, eight lanes store two rows at a time, 16 bytes each. Rows of padded buffers
(matrix_buffers.py) are 80 bytes apart, so that two neighbours share four of 32 banks. Rows that are four apart share
none. Lanes in another order store such rows together. What a subgroup loads from device memory stays the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import combinations

from ...layouts.buffer_layouts import buffer_layout
from ...layouts.distributed import LANE, layout_of
from ...layouts.linear import unflatten
from ...layouts.vectors import contiguous_registers
from ...ttgir.encoding_changes import meant, mixes
from ...ttgir.encodings import BlockedEncoding, Encoding, PaddedSharedEncoding, ReorderedEncoding
from ...ttgir.ir import Module
from ...ttgir.types import FloatType, IntegerType, MemDescType, TensorType
from ..rewriting import encode_again

#: Bytes that a lane stores at a time, of a bank's word, and of all banks.
_VECTOR, _WORD, _BANKS = 16, 4, 128

_Store = tuple[TensorType, MemDescType]


def reorder_storing_lanes(module: Module, at_once: int) -> bool:
    """Rewrites the encodings of tiles that are stored to padded buffers with bank conflicts, if another order of lanes
    has fewer. ``at_once``: bytes that a subgroup stores at a time. Whether there were any."""
    stores: dict[BlockedEncoding, list[_Store]] = {}
    for operation in module.walk():
        if operation.name == "ttg.local_alloc" and operation.operands:
            tensor, buffer = operation["src"].tensor, operation.result.memdesc
            if isinstance(tensor.encoding, BlockedEncoding) and _is_stored_in_vectors(tensor, buffer):
                stores.setdefault(tensor.encoding, []).append((tensor, buffer))
    chosen: dict[Encoding, Encoding] = {}
    for encoding, several in stores.items():
        bits = _best(several, at_once // _VECTOR)
        if bits is not None:
            chosen[encoding] = ReorderedEncoding(encoding, bits)
    for operation in module.walk():
        for mixed in [one for one in chosen if mixes(operation, {one: one})]:
            del chosen[mixed]
    if chosen:
        encode_again(module, partial(meant, chosen))
    return bool(chosen)


def _is_stored_in_vectors(tensor: TensorType, buffer: MemDescType) -> bool:
    if not isinstance(buffer.encoding, PaddedSharedEncoding) or not isinstance(tensor.element, FloatType | IntegerType):
        return False
    dim, count = contiguous_registers(layout_of(tensor))
    return dim == buffer.encoding.order[0] and count * tensor.element.width >= 8 * _VECTOR


def _best(stores: list[_Store], together: int) -> tuple[int, ...] | None:
    """The order of a lane number's bits with the fewest conflicts; None if the present one has no more.
    ``together``: lanes that store at a time."""
    low, addresses = together.bit_length() - 1, [_addresses(*store) for store in stores]
    count = len(addresses[0]).bit_length() - 1

    def order(first: tuple[int, ...]) -> tuple[int, ...]:
        return *first, *(bit for bit in range(count) if bit not in first)

    def cost(bits: tuple[int, ...]) -> int:
        return sum(_turns([each[lane] for lane in _lanes(bits)], together) for each in addresses)

    orders = [order(first) for first in combinations(range(count), low)]
    best = min(orders, key=cost)  # the present one is the first
    return best if cost(best) < cost(orders[0]) else None


def _lanes(bits: tuple[int, ...]) -> Iterator[int]:
    """The lanes that take the place of lane 0, 1, …"""
    for lane in range(1 << len(bits)):
        yield sum((lane >> place & 1) << bit for place, bit in enumerate(bits))


def _addresses(tensor: TensorType, buffer: MemDescType) -> list[int]:
    """The byte that each lane's first vector begins at."""
    assert isinstance(tensor.element, FloatType | IntegerType)
    bases, shared, found = layout_of(tensor).inputs[LANE], buffer_layout(buffer), []
    for lane in range(1 << len(bases)):
        place = 0
        for bit, basis in enumerate(bases):
            place ^= basis if lane >> bit & 1 else 0
        found.append(shared.offset(unflatten(place, tensor.shape)) * tensor.element.width // 8)
    return found


def _turns(addresses: list[int], together: int) -> int:
    """How often banks are accessed one after the other where ``together`` lanes store vectors at a time."""
    turns = 0
    for start in range(0, len(addresses), together):
        words = {address + word for address in addresses[start : start + together] for word in range(0, _VECTOR, _WORD)}
        turns += max(Counter(word % _BANKS // _WORD for word in words).values())
    return turns
