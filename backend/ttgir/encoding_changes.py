"""Giving a module's encodings another meaning: which operations keep that from happening, and what slices become."""

from __future__ import annotations

from collections.abc import Mapping

from .encodings import Encoding, SliceEncoding, unsliced
from .ir import Operation
from .operations import End, definition_of
from .types import TensorType

#: Operations that combine elements along their dimension ``axis``.
ALONG = frozenset({"tt.reduce", "tt.scan"})

#: Encodings → those in their place.
Chosen = Mapping[Encoding, Encoding]


def mixes(operation: Operation, chosen: Chosen) -> bool:
    """Whether an operation has tensors of a chosen encoding and of another one, which mean the same before the
    change."""
    if operation.name == "ttg.convert_layout" or definition_of(operation).end is not End.NOT:
        return False
    if operation.regions and operation.name not in ALONG:
        return False  # it passes each value on as it is
    types = [value.type for value in (*operation.operands, *operation.results)]
    found = {unsliced(type_.encoding) for type_ in types if isinstance(type_, TensorType)}
    return len(found) > 1 and not found.isdisjoint(chosen)


def meant(chosen: Chosen, encoding: Encoding) -> Encoding:
    """What an encoding becomes: the chosen one, or the slice of it."""
    if isinstance(encoding, SliceEncoding):
        return SliceEncoding(encoding.dim, meant(chosen, encoding.parent))
    return chosen.get(encoding, encoding)
