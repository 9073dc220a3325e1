"""Gives the shared-memory buffers that only dots read the layout that suits multiply-adds.

Upstream places operands of a blocked dot row by row. A buffer that is written once and read by lazy loads alone (see
lazy_loads.py) can lie as layouts/dot_operand_places.py proposes instead: as many bytes, at the same offset.
"""

from __future__ import annotations

from dataclasses import replace

from ...layouts.dot_operand_places import operand_encoding
from ...ttgir.encodings import DotOperandEncoding, Encoding, SharedLinearEncoding
from ...ttgir.ir import Operation, Value
from ...ttgir.types import FloatType, IntegerType, MemDescType, TensorType


def place_operands(loads: frozenset[Operation]) -> None:
    """Rewrites the encoding of each buffer of rank 2 all of whose readers are in ``loads`` and agree."""
    for buffer in dict.fromkeys(_allocation(load["src"]) for load in loads):
        if buffer is not None:
            _place(buffer, loads)


def _allocation(buffer: Value) -> Value | None:
    """The ``ttg.local_alloc`` result that a buffer is, or is the transpose of."""
    owner = buffer.owner
    if isinstance(owner, Operation) and owner.name == "ttg.memdesc_trans":
        return _allocation(owner["src"])
    return buffer if isinstance(owner, Operation) and owner.name == "ttg.local_alloc" and owner.operands else None


def _place(buffer: Value, loads: frozenset[Operation]) -> None:
    type_ = buffer.memdesc
    if len(type_.shape) != 2 or not isinstance(type_.element, IntegerType | FloatType) or type_.element.width < 8:
        return
    views: list[tuple[Value, bool]] = []
    if not _readers(buffer, False, loads, views):
        return
    wanted = {_encoding(view, transposed) for view, transposed in views}
    if len(wanted) != 1:
        return
    encoding = wanted.pop()
    for view, transposed in [*views, (buffer, False)]:
        old = view.memdesc
        view.type = replace(old, encoding=_transposed(encoding) if transposed else encoding)


def _readers(view: Value, transposed: bool, loads: frozenset[Operation], found: list[tuple[Value, bool]]) -> bool:
    """Collects the views that ``loads`` read; False where something else uses the buffer."""
    for use in view.uses:
        if use.name == "ttg.local_load":
            if use not in loads:
                return False
            found.append((view, transposed))
        elif use.name == "ttg.memdesc_trans":
            if not _readers(use.result, not transposed, loads, found):
                return False
        elif use.name != "ttg.local_dealloc":
            return False
    return True


def _encoding(view: Value, transposed: bool) -> SharedLinearEncoding:
    """The encoding that the view's readers want, in the coordinates of the buffer."""
    (load,) = [use for use in view.uses if use.name == "ttg.local_load"][:1]
    tensor, type_ = load.result.type, view.type
    assert isinstance(tensor, TensorType) and isinstance(tensor.encoding, DotOperandEncoding)
    assert isinstance(type_, MemDescType) and isinstance(type_.element, IntegerType | FloatType)
    k_axis = 1 if tensor.encoding.op_idx == 0 else 0
    encoding = operand_encoding((type_.shape[0], type_.shape[1]), k_axis, type_.element.width // 8)
    return _transposed(encoding) if transposed else encoding


def _transposed(encoding: Encoding) -> SharedLinearEncoding:
    assert isinstance(encoding, SharedLinearEncoding)
    return SharedLinearEncoding(tuple((b, a) for a, b in encoding.offset), ())
