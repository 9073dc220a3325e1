"""Refuses pointers among what invocations exchange, before upstream's allocation ends the process on them.

``tt.gather`` and ``tt.scan`` get scratch memory by the bits of their elements, which upstream's allocation only knows
of integers and floats.
"""

from __future__ import annotations

import re

from ..ttgir.parser import parse_module
from ..ttgir.types import PointerType, TensorType
from .errors import UnsupportedOperation

_NAMES = frozenset({"tt.gather", "tt.scan"})
#: A line that may be such an operation's, or the end of its region.
_SUSPECT = re.compile(r"^.*(tt\.gather|\}\) :).*x!tt\.ptr", re.MULTILINE)


def refuse_exchanged_pointers(text: str) -> None:
    """Raises UnsupportedOperation for a TTGIR module with such an operation."""
    if not ("tt.gather" in text or "tt.scan" in text) or not _SUSPECT.search(text):
        return
    for function in parse_module(text, "").functions.values():
        for block in function.body.blocks if function.body is not None else []:
            for inner in (inner for operation in block.operations for inner in operation.walk()):
                types = [operand.type for operand in inner.operands]
                if inner.name in _NAMES and any(
                    isinstance(type_, TensorType) and isinstance(type_.element, PointerType) for type_ in types
                ):
                    raise UnsupportedOperation(
                        inner,
                        "it exchanges pointers between invocations",
                        "convert them to integers before, x.to(tl.int64), and back after",
                    )
