"""Columns of a matrix as rows of a panel: transposed by square blocks in vector registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .ir_text import FunctionText

#: Bytes of the parts of a vector that x86 exchanges elements within at no extra cost.
_PART = 16


@dataclass(frozen=True)
class Panel:
    """Memory of ``rows`` × ``columns`` elements of ``type``, of ``bytes`` each, row by row; vectors have ``lanes``."""

    memory: str
    rows: int
    columns: int
    lanes: int
    type: str
    bytes: int


def transpose_panel(text: FunctionText, panel: Panel, source: str, row_stride: int, column_stride: int) -> None:
    """Fills ``panel``: element (k, j) is at ``source + k * row_stride + j * column_stride`` elements."""
    side = min(panel.lanes, panel.rows) if row_stride == 1 else 1
    if side * panel.bytes < _PART:
        side = 1

    def block(k: str, j: str) -> None:
        start = text.sum(text.times(k, row_stride), text.times(j, column_stride))
        here = text.element(panel.type, source, start)
        there = text.element(panel.type, panel.memory, text.sum(text.times(k, panel.columns), j))
        type_ = f"<{side} x {panel.type}>" if side > 1 else panel.type
        vectors = []
        for number in range(side):
            pointer = text.element(panel.type, here, str(number * column_stride))
            vectors.append(text.value(f"load {type_}, ptr {pointer}, align {panel.bytes}"))
        for number, vector in enumerate(transposed(text, vectors, panel, side)):
            pointer = text.element(panel.type, there, str(number * panel.columns))
            text.do(f"store {type_} {vector}, ptr {pointer}, align {panel.bytes}")

    def rows(k: str, _: list[str]) -> None:
        text.loop(panel.columns, side, lambda j, _: block(k, j))

    text.loop(panel.rows, side, rows)


def transposed(text: FunctionText, vectors: list[str], panel: Panel, side: int) -> list[str]:
    """The columns of a square whose rows are ``vectors``: first within parts of vectors, then parts as wholes."""
    if side == 1:
        return vectors
    type_ = f"<{side} x {panel.type}>"

    def shuffle(one: str, other: str, lanes: Sequence[int]) -> str:
        mask = ", ".join(f"i32 {lane}" for lane in lanes)
        return text.value(f"shufflevector {type_} {one}, {type_} {other}, <{side} x i32> <{mask}>")

    part = min(_PART // panel.bytes, side)
    width = 1
    while width < part:
        for first in range(0, side, part):
            group = vectors[first : first + part]
            paired: list[str] = []
            for one, other in zip(group[::2], group[1::2], strict=True):
                for half in (0, part // 2):
                    lanes = []
                    for begin in range(half, side, part):
                        for at in range(begin, begin + part // 2, width):
                            lanes += [*range(at, at + width), *range(side + at, side + at + width)]
                    paired.append(shuffle(one, other, lanes))
            again = 2 * width < part  # then lower halves make pairs, and upper ones
            vectors[first : first + part] = paired[::2] + paired[1::2] if again else paired
        width *= 2
    distance = 1
    while distance * part < side:
        for number in range(side):
            if number // part & distance:
                continue
            one, other = vectors[number], vectors[number + distance * part]
            low, high = [], []
            for lane in range(side):
                inside = lane // part & distance
                low.append(side + lane - distance * part if inside else lane)
                high.append(side + lane if inside else lane + distance * part)
            vectors[number], vectors[number + distance * part] = shuffle(one, other, low), shuffle(one, other, high)
        distance *= 2
    return vectors
