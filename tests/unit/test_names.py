"""A name in backend/ means one thing: no two classes share one, and files that do are about the same subject."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

BACKEND = Path(__file__).parents[2] / "backend"

_STEPS = "the same subject: its row in ttgir/operations/, how it is planned or analysed, and what is emitted for it"

#: Names that several files have, and why that misleads nobody.
SHARED_FILES = {
    "arith": _STEPS,
    "control_flow": _STEPS,
    "devices": "the devices of each kind",
    "elementwise": "operations that work element by element, their rules, and torch's such operations",
    "errors": "each part that users can meet alone has errors of its own",
    "kind": "each kind of devices",
    "math": _STEPS,
    "memory": _STEPS,
    "native_module": "the native modules: of the runtime, and of torch",
    "open_device": "an open device of each kind",
    "parser": "the reader of TTGIR, and that of PTX",
    "reductions": "TTGIR's reductions, and torch's",
    "register_arrays": _STEPS,
    "registry": "a table of rules by operation or instruction, and the decorator that fills it",
    "tile_products": "the functions that modules call, and the rule that calls them",
    "types": "types of values: TTGIR's, and PTX's",
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
