"""Imports of the backend go one way: from a package to those below it, and in no circle of modules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "backend"

#: The packages and modules of backend/, the ground floor first: each may import those before it.
ORDER = (
    *("drivers", "matrices", "settings", "abi", "capabilities"),
    *("ttgir", "errors", "layouts", "analysis", "transforms", "planning"),
    *("spirv", "lowering", "libdevice", "cuda_extras", "gluon"),
    *("passes", "autoload", "runtime", "options", "launching", "ahead_of_time", "inspection", "compiler"),
    *("torch_ops", "driver", "torch_compile", "cli"),
)


#: What recurses by nature, each with the others: reading, and printing, operations that have operations inside.
RECURSIVE = (
    frozenset(f"ttgir.{name}" for name in ("custom", "formats", "parser", "readers", "verify")),
    frozenset({"ttgir.custom_printers", "ttgir.printer"}),
)


def modules() -> dict[str, Path]:
    """Every module by its name below ``backend``, a package by that of its folder."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


@cache
def imported(name: str) -> frozenset[str]:
    """The modules that one imports, wherever it does: at its top, in functions, for type checkers alone."""
    return frozenset(_imported(name, MODULES[name]))


def _imported(name: str, path: Path) -> Iterator[str]:
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        base = package[: len(package) - node.level + 1] + (node.module.split(".") if node.module else [])
        for alias in node.names:
            inner = ".".join([*base, alias.name])
            target = inner if inner in MODULES else ".".join(base)
            if target in MODULES and target != name:
                yield target


def place(name: str) -> str:
    return name.partition(".")[0]


def test_every_package_has_its_place() -> None:
    there = {place(name) for name in MODULES if name}
    assert there == set(ORDER), "give a package its place in ORDER, and take one that is gone out of it"


@pytest.mark.parametrize("package", ORDER)
def test_a_package_imports_only_those_below_it(package: str) -> None:
    below = set(ORDER[: ORDER.index(package) + 1])
    upwards = {
        f"{name} imports {target}"
        for name in MODULES
        if place(name) == package
        for target in imported(name)
        if target and place(target) not in below
    }
    assert not upwards


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {name: set(imported(name)) for name in MODULES}
    for circle in RECURSIVE:
        for name in circle:
            graph[name] -= circle
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"modules import each other in a circle: {' imports '.join(reversed(error.args[1]))}")
