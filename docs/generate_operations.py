"""Writes docs/internals/operations.md: every operation of the dialects that TTGIR is made of, and what becomes of it.

``python -m docs.generate_operations`` writes the page, with ``--check`` it only says whether the page is current. The
operations come from upstream's TritonOps.td and TritonGPUOps.td, which ship in the wheel, and from the MLIR
dialects that the TTGIR reader knows (backend/ttgir/operations/).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import triton
from triton.backends.spirv.lowering import families  # noqa: F401  (fills the table of rules)
from triton.backends.spirv.lowering.refusals import REFUSED, REGION_ENDS, REWRITTEN, REWRITTEN_BY_PASS, STRUCTURE
from triton.backends.spirv.lowering.registry import RULES
from triton.backends.spirv.ttgir.operations import OPERATIONS

from docs import pages
from tests.surface import operation_kernels, operation_texts

PAGE = Path(__file__).parent / "internals" / "operations.md"
DIALECTS = Path(triton.__file__).parent / "include" / "triton" / "Dialect"

#: Dialect → (upstream's definition file, the class that its operations derive from).
DEFINITIONS = {"tt": ("Triton/IR/TritonOps.td", "TT_Op"), "ttg": ("TritonGPU/IR/TritonGPUOps.td", "TTG_Op")}

#: Dialects of MLIR; upstream's wheel does not ship their definitions.
MLIR_DIALECTS = ("arith", "math", "scf", "cf", "ub", "llvm")

_HEADER = """# Operations

This page says what the backend does with each operation of Triton's two dialects (`tt`, `ttg`) and of the MLIR dialects
that TTGIR uses. `python -m docs.generate_operations` generates it from the compiler's own tables and from the tables of
tests/surface/, whose tests compile every operation listed as lowered or rewritten. A test fails if an upstream
operation is missing from the tables, if no test produces it, or if this page is out of date.

The last column says where the tests get the operation from. A *kernel* is Python source, in
`tests/surface/operation_kernels.py`. *By a pass of* a kernel means that upstream's passes produce the operation from
it. *TTIR* and *TTGIR* are texts in `tests/surface/texts/`, for operations that upstream's compiler has but
no Triton kernel produces.

"""


def defined(dialect: str) -> set[str]:
    """The operations that upstream defines in a dialect."""
    path, base = DEFINITIONS[dialect]
    text = (DIALECTS / path).read_text(encoding="utf-8")
    return {f"{dialect}.{name}" for name in re.findall(rf'\b{base}<\s*"([^"]+)"', text)}


def operations() -> set[str]:
    """Every operation that must be accounted for."""
    names = {name for name in (*OPERATIONS, *RULES) if name.split(".")[0] in MLIR_DIALECTS}
    return names.union(*(defined(dialect) for dialect in DEFINITIONS), REWRITTEN)


def outcomes(name: str) -> Iterator[tuple[str, str]]:
    """(lowered, rewritten or refused; how) of an operation: once for each table that it is in."""
    if name in RULES:
        module = RULES[name].__module__.rpartition(".")[2]
        yield "lowered", f"`lowering/{module}.py`"
    if name in REGION_ENDS:
        yield "lowered", f"ends a region of {REGION_ENDS[name]}"
    if name in STRUCTURE:
        yield "lowered", STRUCTURE[name]
    if name in REWRITTEN:
        yield "rewritten", REWRITTEN[name]
    if name in REWRITTEN_BY_PASS:
        yield "rewritten", f"by upstream's pass `{REWRITTEN_BY_PASS[name]}`"
    if name in REFUSED:
        yield "refused", f"{REFUSED[name].reason}; {REFUSED[name].instead}"


def evidence() -> dict[str, str]:
    """What tests/surface/ makes each operation with."""
    found: dict[str, str] = {}
    for case in operation_kernels.CASES:
        found |= dict.fromkeys(case.makes.split(), f"kernel `{case.name}`")
        found |= dict.fromkeys(case.passes.split(), f"by a pass of `{case.name}`")
    found |= dict.fromkeys(operation_texts.SCALAR, "TTIR")
    for text in (*operation_texts.MODULES, *operation_texts.REFUSED):
        found |= dict.fromkeys(text.makes.split(), text.stage.upper())
    return found


def page() -> str:
    """The text of docs/internals/operations.md. Raises ValueError for an operation that is in no table, or in two."""
    rows: dict[str, list[tuple[str, str, str, str]]] = {}
    made = evidence()
    counts = {"lowered": 0, "rewritten": 0, "refused": 0}
    for name in sorted(operations()):
        found = list(outcomes(name))
        if len(found) != 1:
            raise ValueError(
                f"{name} is in {len(found)} tables, not in one: give it a lowering rule, or say in its row "
                "of backend/ttgir/operations/ what becomes of it"
            )
        outcome, how = found[0]
        counts[outcome] += 1
        if name not in made:
            raise ValueError(f"no kernel of tests/surface/operation_kernels.py makes {name}")
        rows.setdefault(name.split(".")[0], []).append((name, outcome, how, made[name]))
    lines = [
        _HEADER,
        f"{sum(counts.values())} operations: {counts['lowered']} lowered, {counts['rewritten']} "
        f"rewritten before the lowering, {counts['refused']} refused.\n",
    ]
    for dialect in (*DEFINITIONS, *MLIR_DIALECTS):
        lines.append(
            f"\n## {dialect}\n\n| operation | outcome | how, or why not and what instead | tested with |\n"
            "| --- | --- | --- | --- |\n"
        )
        lines += [f"| `{name}` | {outcome} | {how} | {test} |\n" for name, outcome, how, test in rows[dialect]]
    return "".join(lines)


if __name__ == "__main__":
    sys.exit(pages.main(PAGE, page))
