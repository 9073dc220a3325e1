"""Who imports whom in backend/ and tools/: along the table in CONTRIBUTING.md, and never in a circle."""

import ast
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: What rooms import that is neither theirs nor the standard library's. Any other room needs the standard library alone.
FOREIGN = {
    "ahead_of_time": {"triton"},
    "autoload": {"torch"},
    "autoload/entry": {"torch", "triton"},
    "availability": {"triton"},
    "compiler": {"triton"},
    "cpu": {"llvmlite", "triton"},
    "cuda_extras": {"triton"},
    "driver": {"torch", "triton"},
    "inspection": {"numpy", "triton"},
    "kernel_tests": {"pytest", "torch", "triton"},
    "launching": {"numpy", "torch", "triton"},
    "libdevice": {"triton"},
    "passes": {"triton"},
    "pytest_plugin": {"pytest"},
    "resources": {"triton"},
    "runtime": {"numpy", "torch", "vulkan"},
    "stages": {"triton"},
    "stock_patches": {"triton"},
    "target": {"triton"},
    "torch/active": {"torch"},
    "torch/compile": {"sympy", "torch", "triton"},
    "torch/device": {"torch", "triton"},
    "torch/ops": {"torch", "triton"},
    "torch/registration": {"torch"},
    "upstream": {"triton"},
    "warming": {"triton"},
}
#: Rooms that import nothing foreign themselves, but rooms that do.
OVER_FOREIGN = {"cli", "reference", "torch"}
#: What the column "does not know" of CONTRIBUTING.md's table calls rooms, and packages of others.
WORDS = {
    "SPIR-V": "spirv",
    "TTGIR": "ttgir",
    "devices": "runtime",
    "lowering": "lowering",
    "how they are launched": "launching",
    "Triton": "triton",
    "triton": "triton",
    "no libtriton": "triton",
}

#: Modules that are built, and not files of this tree.
BUILT = ("backend._native", r"backend\._native")
#: The name of an import by string.
STRING = "by string"

Graph = dict[str, set[str]]


def module_name(path: Path) -> str:
    """``backend.ttgir.parser`` of its file, ``backend.ttgir`` of its ``__init__.py``."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
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


@cache
def imported(path: Path, module: str) -> tuple[tuple[str, str], ...]:
    """(module, name in it or '') of each import of a file, wherever it stands: in functions and type checks too. Of an
    import by string, (a regular expression of the modules, STRING)."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found: list[tuple[str, str]] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join(filter(None, (above(package, node.level), base)))
            found += ((base, alias.name) for alias in node.names)
        elif isinstance(node, ast.Call) and (pattern := imported_by_string(node, package)) is not None:
            found.append((pattern, STRING))
    return tuple(found)


@cache
def modules(top: str) -> Graph:
    """Module below a folder → the modules there that it imports. A package stands for its ``__init__.py`` alone. Raises
    AssertionError for modules of the tree that are not there."""
    graph: Graph = {}
    files = files_of(top)
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


def reached(graph: Graph, start: str) -> set[str]:
    """The nodes that can be reached from one, it itself only around a circle."""
    seen: set[str] = set()
    pending = [start]
    while pending:
        new = graph[pending.pop()] - seen
        seen |= new
        pending += new
    return seen


def circles(graph: Graph) -> list[set[str]]:
    """The sets of two or more nodes that reach each other."""
    reach = {start: reached(graph, start) for start in graph}
    found: list[set[str]] = []
    for node in graph:
        circle = {other for other in reach[node] if node in reach[other]}
        if len(circle) > 1 and circle not in found:
            found.append(circle)
    return found


def named_rooms(cell: str) -> set[str]:
    """The rooms of backend/ whose folders or files a cell names. Raises AssertionError where one is not there."""
    there, names = files_of("backend"), re.findall(r"`([\w/]+?)(?:/|\.py)`", cell)
    for name in names:
        assert name == "native" or f"backend.{name.replace('/', '.')}" in there, f"CONTRIBUTING.md has a row of {name}"
    return {"autoload" if name == "autoload" else room("backend." + name.replace("/", ".")) for name in names}


def rows() -> list[tuple[set[str], str]]:
    """(rooms of backend/, what they do not know) by row of the table in CONTRIBUTING.md, the lowest first."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.partition("| package |")[2].partition("\n\n")[0]
    cells = [line.split("|") for line in table.splitlines()[2:]]
    return [(named_rooms(row[1]), row[3].strip()) for row in cells]


@pytest.mark.parametrize("top", ["backend", "tools"])
def test_no_file_imports_one_that_imports_it(top: str) -> None:
    assert circles(modules(top)) == []


@pytest.mark.parametrize("top", ["backend", "tools"])
def test_no_package_imports_one_that_imports_it(top: str) -> None:
    assert circles(rooms(modules(top))) == []


def test_no_room_of_the_runtime_imports_one_that_imports_it() -> None:
    graph = rooms(modules("backend"), room_of_runtime)
    assert {"vulkan", "launches", "context"} <= graph.keys()
    assert circles(graph) == []


def test_imports_go_up_the_table_in_contributing_and_never_down() -> None:
    rank = {name: row for row, (names, _) in reversed(list(enumerate(rows()))) for name in names}
    graph = rooms(modules("backend"))
    unlisted = {name for name in graph if name} - rank.keys()
    assert not unlisted, f"give {sorted(unlisted)} a row of the table 'Where things are' in CONTRIBUTING.md"
    wrong = {(name, target) for name in graph if name for target in graph[name] if rank[target] >= rank[name]}
    assert not wrong, "these import a room of their own row or of one below it in the table"


def foreign(*, by_string: bool = True) -> Graph:
    """Room → the packages that it imports and that are neither ours nor the standard library's."""
    found: Graph = {}
    for module, path in files_of("backend").items():
        for base, name in imported(path, module):
            package = base.replace("\\", "").split(".")[0]
            ours = package in ("", "backend") or base.startswith("triton.backends.spirv")
            if not ours and package not in sys.stdlib_module_names and (by_string or name != STRING):
                found.setdefault(room(module), set()).add(package)
    return found


def test_what_rooms_import_besides_the_standard_library() -> None:
    assert foreign() == FOREIGN, "a room that needed the standard library alone, and a new one, is to go on so"


def test_what_needs_the_standard_library_alone_does_so_all_the_way_down() -> None:
    graph = rooms(modules("backend"))
    over = {name for name in graph if name and reached(graph, name) & FOREIGN.keys()}
    assert over - FOREIGN.keys() == OVER_FOREIGN
    assert {"ttgir", "transforms", "lowering", "spirv"} <= graph.keys() - over


def test_rooms_do_not_know_what_their_row_says() -> None:
    """ "anything else" and "anything but `x.py`" name all of backend/ that a room imports; words in WORDS name what it
    does not import."""
    graph, packages = rooms(modules("backend")), foreign(by_string=False)
    checked = 0
    for names, unknown in rows():
        for name in names:
            known = graph.get(name, set())
            if unknown.startswith("anything"):
                assert known == named_rooms(unknown), f"{name} does not know {unknown}"
                checked += 1
            for word in re.split(r"[;,] ", unknown):
                assert WORDS.get(word) not in known | packages.get(name, set()), f"{name} does not know {word}"
                checked += word in WORDS
    assert checked > 30


def test_no_wing_of_the_rewrites_knows_the_other() -> None:
    """``transforms/gpu/`` and ``transforms/cpu/``; what neither needs alone is in ``transforms/``, which only the table
    joins with them."""

    def wing(module: str) -> str:
        _, *inside = module.removeprefix("backend.").split(".")
        if not module.startswith("backend.transforms."):
            return ""
        return inside[0] if inside[0] in ("cpu", "gpu", "table") else "any"

    graph = rooms(modules("backend"), wing)
    assert graph == {"": graph[""], "any": set(), "cpu": {"any"}, "gpu": {"any"}, "table": {"any", "cpu", "gpu"}}


def test_imports_by_string_are_seen() -> None:
    graph = modules("backend")
    assert "backend.torch.registration" in graph["backend.autoload.entry"]
    assert {"backend.torch.ops.sorting", "backend.torch.ops.norms"} <= graph["backend.torch.ops"]
    assert "backend.runtime.arrays" in graph["backend.runtime"]
