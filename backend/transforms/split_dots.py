"""Cuts the dots of TTIR in pieces along K, so that less of their operands has to be in shared memory at once.

``tt.dot %a, %b, %c`` becomes a chain of dots, each of which adds the products of the next steps of K: in the same order
as before, so that results have the same bits. So does ``tt.dot_scaled``, with the scales of those steps. A half of an
operand is what ``tt.split`` gives of its elements with the upper bit of K as the last dimension. The halves are made
where the operand is: outside of the loop that the dot is in, where the operand does not change there.
"""

from __future__ import annotations

from ..ttgir.attribute_values import DenseArray
from ..ttgir.ir import Module, Operation, Value
from ..ttgir.types import TensorType
from .rewriting import Rewriter

#: Steps of K that a dot keeps at least.
LEAST_STEPS = 16


_DOTS = ("tt.dot", "tt.dot_scaled")


def split_dots(module: Module, pieces: int) -> bool:
    """Cuts every dot of two dimensions in up to ``pieces`` (a power of two). Whether any was cut."""
    changed = False
    while pieces > 1:
        halves: dict[tuple[Value, int], tuple[Value, Value]] = {}
        dots = [operation for operation in module.walk() if operation.name in _DOTS]
        cut = [dot for dot in dots if _cut(dot, halves)]
        changed = changed or bool(cut)
        pieces = pieces // 2 if cut else 1
    return changed


def _cut(dot: Operation, halves: dict[tuple[Value, int], tuple[Value, Value]]) -> bool:
    a, b, c, *scales = dot.operands
    if a.tensor.rank != 2:
        return False
    # A row of scales belongs to a row of the left operand, or to a column of the right one.
    steps = a.tensor.shape[1] * (2 if _shares_bytes(dot) else 1)
    if steps < 2 * LEAST_STEPS:
        return False
    axes = [(a, 1), (b, 0), *((scale, 1) for scale in scales)]
    (first_a, last_a), (first_b, last_b), *rest = (
        (value, value) if value.tensor.shape[axis] == 1 else _halves(value, axis, dot, halves) for value, axis in axes
    )
    first = Rewriter.before(dot).copy(dot, operands=[first_a, first_b, c, *(half for half, _ in rest)])
    dot.set_operands([last_a, last_b, first.result, *(half for _, half in rest)])
    return True


def _shares_bytes(dot: Operation) -> bool:
    """Whether two elements of the left operand, of four bits each, share a byte along K."""
    return dot.name == "tt.dot_scaled" and dot.attribute("a_elem_type") == "e2m1" and dot.attribute("lhs_k_pack")


def _halves(
    value: Value, axis: int, dot: Operation, known: dict[tuple[Value, int], tuple[Value, Value]]
) -> tuple[Value, Value]:
    """The two halves of ``value`` along ``axis``, in ascending order, made after it, or at the ``dot``."""
    found = known.get((value, axis))
    if found is not None:
        return found
    owner, type_ = value.owner, value.tensor
    rewriter = Rewriter.after(owner) if isinstance(owner, Operation) else Rewriter.before(dot)
    rows, columns = type_.shape
    shape = (rows, 2, columns // 2) if axis else (2, rows // 2, columns)
    order = (0, 2, 1) if axis else (1, 2, 0)
    parted = rewriter.make("tt.reshape", [value], [TensorType(shape, type_.element)])
    turned_type = TensorType(tuple(shape[dim] for dim in order), type_.element)
    turned = rewriter.make("tt.trans", [parted.result], [turned_type], {"order": DenseArray(order)})
    half = TensorType(turned_type.shape[:2], type_.element)
    split = rewriter.make("tt.split", [turned.result], [half, half])
    first, second = split.results
    made = first, second
    if isinstance(owner, Operation):
        known[value, axis] = made
    return made
