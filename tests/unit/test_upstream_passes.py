"""Each of upstream's passes has a row in docs/internals/upstream-passes.md, and each optional one does what it is there
for: a kernel shows what is missing without it."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import triton
import triton.language as tl
from triton.backends.spirv import passes
from triton.backends.spirv.reference import ITEMS
from triton.compiler import ASTSource

from tests.surface.compiling import target

PAGE = Path(__file__).parents[2] / "docs" / "internals" / "upstream-passes.md"
PIPELINES = (
    *(passes.TTIR, passes.encodings(4, 8, 1), passes.LAYOUTS, passes.DECOMPOSE_SCALED_DOTS, passes.ACCELERATE_DOTS),
    *(passes.TTGIR, passes.LAST, passes.GLUON),
)
OPTIONAL = [item.name for item in ITEMS if item.kind == "upstream's pass"]


def _rows() -> dict[str, list[str]]:
    """Pass → the other cells of its row."""
    cells = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `")
    ]
    return {row[0].strip(" `"): row[1:] for row in cells}


def test_each_pass_has_a_row_and_each_row_a_pass() -> None:
    needed = {row.item: row.needed for pipeline in PIPELINES for row in reversed(pipeline) if row.needed}
    needed |= {row.item: False for pipeline in PIPELINES for row in pipeline if not row.needed}
    found = _rows()
    assert found.keys() == needed.keys()
    for name, cells in found.items():
        assert len(cells) == 4 and all(cells), name
        assert cells[0] == ("needed" if needed[name] else "optional"), name


def test_passes_that_the_page_says_are_not_run_are_not() -> None:
    left_out = re.findall(r"^- `([\w ]+)`", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert left_out and set(left_out).isdisjoint(row.item for pipeline in PIPELINES for row in pipeline)


# -- kernels ---------------------------------------------------------------------------------------------------------
@triton.jit(noinline=True)
def _twice(a):
    return a * 2


@triton.jit
def chosen(x, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    some = n > 0
    value, other = tl.load(x + i, mask=some), tl.full((N,), -1.0, tl.float32)
    if some:
        other = value
    tl.store(out + i, other)


@triton.jit
def spread(x, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    row = tl.load(x + i)
    tl.store(out + i[:, None] * N + i[None, :], tl.abs(tl.broadcast_to(row[:, None], (N, N))))


@triton.jit
def repeated(x, out, n, N: tl.constexpr):
    tl.store(out + tl.arange(0, N), tl.load(x + tl.arange(0, N)))


@triton.jit
def invariant(x, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros((N,), tl.float32)
    for step in range(n):
        total = total * step + tl.load(x + i)
    tl.store(out + i, total)


@triton.jit
def dead(x, out, n, N: tl.constexpr):
    none = tl.full((), 0, tl.int32)
    if none > 3:
        tl.store(out, _twice(n))
    tl.store(out + tl.arange(0, N), tl.load(x + tl.arange(0, N)))


@triton.jit
def unrolled(x, out, n, N: tl.constexpr):
    total = tl.zeros((N,), tl.float32)
    for step in tl.range(n, loop_unroll_factor=3):
        total += tl.load(x + step * N + tl.arange(0, N))
    tl.store(out + tl.arange(0, N), total)


@triton.jit
def turned(x, out, n, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    tl.store(out + i * N + j, tl.load(x + j * N + i))


@triton.jit
def normalised(x, out, n, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    value = tl.load(x + i * N + j)
    tl.store(out + i * N + j, value - tl.max(value, 1)[:, None])


@triton.jit
def products(x, out, n, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    a, b = tl.load(x + i * N + j), tl.load(x + N * N + i * N + j)
    a = tl.dot(tl.maximum(a, 0.0), tl.trans(b), input_precision="ieee")
    for _ in range(n):
        a = tl.dot(tl.minimum(a, 3.0), tl.maximum(b, 1.0), a, input_precision="ieee")
    tl.store(out + i * N + j, a)


@triton.jit
def alike(x, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    first, second, total = 0, 0, tl.zeros((N,), tl.float32)
    for _ in range(n):
        total += tl.load(x + first + second + i)
        first += 3
        second += 3
    tl.store(out + i, total)


@triton.jit
def constant(x, out, n, N: tl.constexpr):
    first, total = 5, tl.zeros((N,), tl.float32)
    for _ in range(n):
        total += tl.load(x + first + tl.arange(0, N))
        first = 10 - first
    for step in tl.range(1, 8, loop_unroll_factor=3):
        total += tl.load(x + step * N + tl.arange(0, N))
    tl.store(out + tl.arange(0, N), total)


@triton.jit
def partly(x, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    carried, begin = tl.zeros((N,), tl.float32), tl.load(x + i)
    for step in range(n):
        even = step % 2 == 0
        if even:
            carried = begin
            tl.store(out + i, tl.load(x + i + step))
        begin = tl.where(even, carried, begin * 2)
    tl.store(out + i + N, begin)


@triton.jit
def exchanged(x, out, n, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    first, second = tl.load(x + i * N + j), tl.load(x + j * N + i)
    kept = second
    for _ in tl.range(0, n, loop_unroll_factor=3):
        other = ((second.to(tl.int32) // 4) ^ 1).to(tl.float32)
        first = first + tl.trans(second)
        other, first = first, other
        kept = other
    tl.store(out + i * N + j, first)
    tl.store(out + N * N + i * N + j, kept)


@triton.jit
def twice(x, out, n, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    value, other = tl.load(x + i * N + j), tl.load(x + j * N + i)
    tl.store(x + i * N + j, other)
    tl.debug_barrier()
    tl.store(out + i * N + j, value)
    half = tl.maximum(value, 0.0).to(tl.float16)
    tl.store(out + N * N + i * N + j, other)
    tl.store(out + 2 * N * N + i * N + j, tl.dot(half, half))


@dataclass(frozen=True)
class Shown:
    """What a kernel shows of a pass: how often ``pattern`` is in the text of a stage, ``fewer`` with the pass or more
    often; without a pattern, that the modules differ. ``along``: passes that do the same, and are left out, too."""

    kernel: Callable[..., Any]
    stage: str = ""
    pattern: str = ""
    fewer: bool = True
    along: tuple[str, ...] = ()


_CONVERSIONS = "remove_layout_conversions"
SHOWN = {
    "canonicalizer": Shown(chosen, "ttir", r"scf\.if|arith\.select"),
    "combine": Shown(chosen, "ttir", r"arith\.select"),
    "reorder_broadcast": Shown(spread, "ttir", r"math\.absf [^\n]*16x16x"),
    "cse": Shown(repeated, "ttir", r"tt\.make_range"),
    "triton_licm": Shown(invariant, "ttgir", r"scf\.for[\s\S]*tt\.load[\s\S]*scf\.yield"),
    "symbol_dce": Shown(dead, "ttir", r"tt\.func private"),
    "loop_unroll": Shown(unrolled, "ttir", r"tt\.load", fewer=False),
    "coalesce": Shown(turned, "ttgir", r"order = \[0, 1\]", fewer=False),
    _CONVERSIONS: Shown(
        normalised, "ttgir", r"= ttg\.convert_layout", along=(f"{_CONVERSIONS} 2", f"{_CONVERSIONS} 3")
    ),
    f"{_CONVERSIONS} 2": Shown(exchanged),
    "optimize_dot_operands": Shown(products, "ttgir", r"ttg\.memdesc_trans", fewer=False),
    "loop_aware_cse": Shown(alike, "ttgir", r"scf\.yield [^:]*,[^:]*,[^:]* :", along=("loop_aware_cse 2",)),
    f"{_CONVERSIONS} 3": Shown(exchanged),
    "reduce_data_duplication": Shown(products, "ttgir", r"ttg\.local_load", fewer=False),
    "reorder_instructions": Shown(products),
    "loop_aware_cse 2": Shown(twice),
    "sccp": Shown(constant, "ttgir", r"arith\.subi"),
    "canonicalizer 2": Shown(constant, "ttgir", r"arith\."),
    "combine_tensor_select_and_if": Shown(partly),
}


def _texts(kernel: Any, *without: str) -> dict[str, Any]:
    signature = {"x": "*fp32", "out": "*fp32", "n": "i32", "N": "constexpr"}
    source = ASTSource(
        kernel, signature, {(3,): 16}, {(0,): [["tt.divisibility", 16]], (1,): [["tt.divisibility", 16]]}
    )
    found: dict[str, Any] = triton.compile(source, target=target("nvidia-hopper"), options={"without": without}).asm
    return found


def _shown(shown: Shown, *without: str) -> int | bytes:
    made = _texts(shown.kernel, *without)
    return len(re.findall(shown.pattern, made[shown.stage])) if shown.pattern else made["spv"]


@pytest.mark.parametrize("item", OPTIONAL)
def test_what_a_pass_is_for(item: str) -> None:
    shown = SHOWN[item]
    usual, without = _shown(shown, *shown.along), _shown(shown, item, *shown.along)
    if isinstance(usual, bytes):
        assert usual != without
    else:
        assert usual < without if shown.fewer else usual > without
