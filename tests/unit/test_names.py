"""A name in backend/ means one thing: no two classes share one, and files that do are about the same subject."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

BACKEND = Path(__file__).parents[2] / "backend"

_CPU = "what is made of an instruction for the CPU, and the same subject elsewhere"
_STEPS = "the same subject: its operations, how they are planned or analysed, and what is emitted for them"

#: Names that several files have, and why that misleads nobody.
SHARED_FILES = {
    "arith": _STEPS,
    "arithmetic": _CPU,
    "atomics": _CPU,
    "buffers": _STEPS,
    "control_flow": _STEPS,
    "devices": "the devices of a kind, and what torch's compiler asks of them",
    "dot_operands": _STEPS,
    "dots": _STEPS,
    "elementwise": "operations that work element by element, their rules, and torch's such operations",
    "errors": "each part that users can meet alone has errors of its own",
    "gather": _STEPS,
    "integers": _STEPS,
    "kernel": "a kernel to translate, and to launch",
    "kind": "Vulkan and the CPU as kinds of devices",
    "linear": _STEPS,
    "math": _STEPS,
    "matrix_dots": _STEPS,
    "matrix_units": _STEPS,
    "memory": _STEPS,
    "native_module": "the native modules: of the runtime, and of torch",
    "open_device": "an open device of Vulkan's, and of the CPU's kind",
    "parser": "the reader of TTGIR, and that of PTX",
    "program": "a program of the grid, and one of PTX",
    "reductions": "TTGIR's reductions, and torch's",
    "register_arrays": _STEPS,
    "registry": "a table of rules by operation, and the decorator that fills it",
    "scan": _STEPS,
    "shapes": "TTGIR's and torch's operations on shapes",
    "shared": _STEPS,
    "shared_memory": _STEPS,
    "strips": "what a strip of a tensor holds, and the loop over strips",
    "tile_products": _STEPS,
    "types": "element types: TTGIR's, and torch's",
}


def _classes() -> Iterator[tuple[str, str]]:
    """(name, file) of each class that is not private to its file."""
    for path in sorted(BACKEND.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node.name, str(path.relative_to(BACKEND))


def _repeated(named: Iterator[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for name, where in named:
        found[name].append(where)
    return {name: places for name, places in found.items() if len(places) > 1}


def test_no_two_classes_share_a_name() -> None:
    assert _repeated(_classes()) == {}


def test_files_of_one_name_are_about_one_subject() -> None:
    files = ((path.stem, str(path.relative_to(BACKEND))) for path in BACKEND.rglob("*.py") if path.stem != "__init__")
    repeated = _repeated(files)
    wrong = {name: sorted(places) for name, places in repeated.items() if name not in SHARED_FILES}
    assert wrong == {}, "rename one of them, or say in SHARED_FILES why they share a name"
    assert SHARED_FILES.keys() <= repeated.keys(), "a reason that is not needed any more"
