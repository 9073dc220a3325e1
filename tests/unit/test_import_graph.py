"""Who imports whom in backend/ and tools/: along the table in CONTRIBUTING.md, and never in a circle."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: What the rooms of the compile side that need no Triton, and so no GPU framework, may import besides each other.
PURE = ("abi", "settings", "drivers", "capabilities", "ttgir", "functions", "spirv", "errors", "layouts", "analysis")
PURE += ("transforms", "planning", "lowering")

#: Modules that are built, and not files of this tree.
BUILT = ("backend._native", r"backend\._native")
#: The name of an import by string.
STRING = "by string"

Graph = dict[str, set[str]]


def module_name(path: Path) -> str:
    """``backend.ttgir.parser`` of its file, ``backend.ttgir`` of its ``__init__.py``."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def files_of(top: str) -> dict[str, Path]:
    """The Python files below a folder by the names of their modules."""
    return {module_name(path): path for path in sorted((ROOT / top).rglob("*.py"))}


def text_of(node: ast.expr) -> str | None:
    """A string as a regular expression: what an f-string puts in is any names. None: it is no string."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.escape(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(
            r"[\w.]+" if isinstance(part, ast.FormattedValue) else text_of(part) or "" for part in node.values
        )
    return None


def above(package: str, dots: int) -> str:
    """The package that so many dots stand for in a module of ``package``."""
    return ".".join(package.split(".")[: len(package.split(".")) - dots + 1])


def imported_by_string(node: ast.Call, package: str) -> str | None:
    """A regular expression of the modules that a call such as ``import_module(".x", __package__)`` imports, if the text
    tells the package."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name not in ("import_module", "__import__") or not node.args:
        return None
    text = text_of(node.args[0])
    if not text or text.startswith("["):
        return None
    dots = len(re.match(r"(?:\\\.)*", text)[0]) // 2  # type: ignore[index]
    return text if not dots else re.escape(above(package, dots)) + r"\." + text[2 * dots :]


def imported(path: Path, module: str) -> Iterator[tuple[str, str]]:
    """(module, name in it or '') of each import of a file, wherever it stands: in functions and type checks too. Of an
    import by string, (a regular expression of the modules, STRING)."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join(filter(None, (above(package, node.level), base)))
            yield from ((base, alias.name) for alias in node.names)
        elif isinstance(node, ast.Call) and (pattern := imported_by_string(node, package)) is not None:
            yield pattern, STRING


def inside(files: Mapping[str, Path]) -> Graph:
    """Module → the modules of the same tree that it imports. A package stands for its ``__init__.py`` alone. Raises
    AssertionError for modules of the tree that are not there."""
    graph: Graph = {}
    top = next(iter(files)).partition(".")[0]
    for module, path in files.items():
        found = graph[module] = set()
        for base, name in imported(path, module):
            base = base.replace("triton.backends.spirv", "backend", 1).replace(r"triton\.backends\.spirv", "backend", 1)
            if name == STRING:
                targets = {file for file in files if re.fullmatch(base, file)}
                is_ours = base.startswith((f"{top}.", rf"{top}\."))
            else:
                targets = {one for one in (f"{base}.{name}", base) if one in files}
                targets = {max(targets, key=len)} if targets else set()
                is_ours = base == top or base.startswith(f"{top}.")
            assert targets or not is_ours or base in BUILT, f"{path} imports {base}, which is not there"
            found |= targets - {module}
    return graph


def room(module: str) -> str:
    """The package or file right below the tree's folder that a module belongs to; in torch/ the one below that.
    torch's entry point, which autoload/ itself imports, is a room of its own."""
    parts = module.split(".")[1:]
    if parts in (["autoload"], ["autoload", "entry"]):
        return "autoload/entry"
    return "/".join(parts[:2]) if parts[:1] == ["torch"] else parts[0] if parts else ""


def room_of_runtime(module: str) -> str:
    """The package or file right below runtime/ that a module belongs to, '' of others."""
    parts = module.split(".")
    return parts[2] if parts[1:2] == ["runtime"] and len(parts) > 2 else ""


def rooms(graph: Graph, room: Callable[[str], str] = room) -> Graph:
    """The graph of rooms."""
    result: Graph = {}
    for module, targets in graph.items():
        result.setdefault(room(module), set()).update(room(target) for target in targets)
    return {name: targets - {name, ""} for name, targets in result.items()}


def circles(graph: Graph) -> list[set[str]]:
    """The sets of two or more nodes that reach each other."""
    reach: Graph = {}
    for start in graph:
        seen: set[str] = set()
        pending = [start]
        while pending:
            new = graph[pending.pop()] - seen
            seen |= new
            pending += new
        reach[start] = seen
    found: list[set[str]] = []
    for node in graph:
        circle = {other for other in reach[node] if node in reach[other]}
        if len(circle) > 1 and circle not in found:
            found.append(circle)
    return found


def order() -> list[set[str]]:
    """The rooms of backend/ by row of the table in CONTRIBUTING.md, the lowest first."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.partition("| package |")[2].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines()[2:]]
    names = [re.findall(r"`([\w/]+?)(?:/|\.py)`", cell) for cell in cells]
    there = files_of("backend")
    for name in (one for row in names for one in row):
        assert name == "native" or f"backend.{name.replace('/', '.')}" in there, f"CONTRIBUTING.md has a row of {name}"
    return [
        {"autoload" if name == "autoload" else room("backend." + name.replace("/", ".")) for name in row}
        for row in names
    ]


@pytest.mark.parametrize("top", ["backend", "tools"])
def test_no_file_imports_one_that_imports_it(top: str) -> None:
    assert circles(inside(files_of(top))) == []


@pytest.mark.parametrize("top", ["backend", "tools"])
def test_no_package_imports_one_that_imports_it(top: str) -> None:
    assert circles(rooms(inside(files_of(top)))) == []


def test_no_room_of_the_runtime_imports_one_that_imports_it() -> None:
    graph = rooms(inside(files_of("backend")), room_of_runtime)
    assert {"vulkan", "launches", "context"} <= graph.keys()
    assert circles(graph) == []


def test_imports_go_up_the_table_in_contributing_and_never_down() -> None:
    rank = {name: row for row, names in reversed(list(enumerate(order()))) for name in names}
    graph = rooms(inside(files_of("backend")))
    unlisted = {name for name in graph if name} - rank.keys()
    assert not unlisted, f"give {sorted(unlisted)} a row of the table 'Where things are' in CONTRIBUTING.md"
    wrong = {(name, target) for name in graph if name for target in graph[name] if rank[target] >= rank[name]}
    assert not wrong, "these import a room of their own row or of one below it in the table"


def outside(names: Iterable[str]) -> set[tuple[str, str]]:
    """(room, package) of what these rooms import that is neither theirs nor the standard library's."""
    return {
        (room(module), base.split(".")[0])
        for module, path in files_of("backend").items()
        if room(module) in names
        for base, _ in imported(path, module)
        if base.split(".")[0] not in ("backend", *sys.stdlib_module_names)
    }


def test_what_makes_spirv_of_ttgir_needs_the_standard_library_alone() -> None:
    assert outside(PURE) == set()


def test_what_runs_kernels_does_not_know_triton() -> None:
    assert "triton" not in {package for _, package in outside(["runtime", "torch/device", "autoload"])}


def test_torch_reaches_the_runtime_through_one_door() -> None:
    """The few names of ``runtime/__init__``, which all have docstrings where they can have one."""
    names = {
        name
        for module, path in files_of("backend").items()
        if module.startswith("backend.torch")
        for base, name in imported(path, module)
        if base.startswith("backend.runtime") or (base, name) == ("backend", "runtime")
    }
    others = {
        (module, base)
        for module, path in files_of("backend").items()
        if module.startswith("backend.torch")
        for base, _ in imported(path, module)
        if base.startswith(("backend.runtime.", "backend.native"))
    }
    assert others == set()
    assert {"NAME", "runtime"} <= names and len(names) < 30


def test_imports_by_string_are_seen() -> None:
    graph = inside(files_of("backend"))
    assert "backend.torch.registration" in graph["backend.autoload.entry"]
    assert {"backend.torch.ops.sorting", "backend.torch.ops.norms"} <= graph["backend.torch.ops"]
    assert "backend.runtime.arrays" in graph["backend.runtime"]


def test_no_import_hides_from_the_graph_of_the_compile_side() -> None:
    hidden = [
        module
        for module, path in files_of("backend").items()
        if room(module) in PURE
        if "TYPE_CHECKING" in path.read_text(encoding="utf-8")
    ]
    assert hidden == [], "an import for types alone is one that would make a cycle: move what is imported down"
