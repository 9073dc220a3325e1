"""The three products in backend/, as CONTRIBUTING.md has them: no import goes down its table of them, those that go up
pass through named doors, and each product, as the tests, keeps to its budget of lines."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from triton.backends.spirv.extension_points import POINTS, given

from tests.unit.test_import_graph import ROOT, files_of, imported, modules

#: Names that torch's device takes of the first product: few enough to keep all of them as they are.
_MOST_NAMES = 32
_CODE = {".py", ".cpp", ".h", ".hpp"}


@dataclass(frozen=True)
class Product:
    """A row of the table: the folders and files of backend/, the modules that it may import of rows above (None: any of
    the first), and the most lines of code (budgets/)."""

    name: str
    places: tuple[str, ...]
    doors: tuple[str, ...]
    budget: int


def _budget(product: str) -> int:
    return int((ROOT / "tests" / "unit" / "budgets" / f"{product}.txt").read_text("ascii"))


def _products() -> list[Product]:
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("| product |")[2].partition("\n\n")[0]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    quoted = re.compile(r"`([\w/.]+)`")
    return [
        Product(name, tuple(quoted.findall(places)), tuple(quoted.findall(doors)), _budget(file.strip("`")))
        for name, places, doors, file in cells
    ]


COMPILER, TORCH, INSPECTION, TESTS = _products()


def _product(path: str) -> Product:
    """The product that a file of backend/ belongs to, by its path in it."""
    for one in (TORCH, INSPECTION):
        if path.startswith(one.places):
            return one
    return COMPILER


def _path(module: str) -> str:
    return files_of("backend")[module].relative_to(ROOT / "backend").as_posix()


def _crossings() -> Iterator[tuple[str, str]]:
    """(file, file that it imports) where they belong to two products. What backend/__init__.py has is everybody's."""
    for module, targets in modules("backend").items():
        for target in targets - {"backend"}:
            if _product(_path(module)) is not _product(_path(target)):
                yield _path(module), _path(target)


def test_no_product_imports_one_below_it() -> None:
    order = [COMPILER, TORCH, INSPECTION]
    down = {(a, b) for a, b in _crossings() if order.index(_product(b)) > order.index(_product(a))}
    assert down == set(), "such a thing is given through extension_points.py"


@pytest.mark.parametrize("product", [TORCH, INSPECTION], ids=lambda product: product.name)
def test_a_product_imports_others_through_its_doors_alone(product: Product) -> None:
    used = {b for a, b in _crossings() if _product(a) is product and (product is TORCH or _product(b) is TORCH)}
    assert used == {door + "__init__.py" if door.endswith("/") else door for door in product.doors}


def test_torch_takes_few_names() -> None:
    doors = {"backend." + door.removesuffix(".py").rstrip("/").replace("/", ".") for door in TORCH.doors}
    torch = {module: path for module, path in files_of("backend").items() if _product(_path(module)) is TORCH}
    names = {one for module, path in torch.items() for one in imported(path, module) if one[0] in doors}
    assert 20 < len(names) <= _MOST_NAMES


def test_tests_of_what_is_decided_follow_the_products() -> None:
    """What a test of the compiler imports is the compiler. Two files of tests are about the modules of all products."""
    torchs = re.compile(r"^\s*(?:from|import) (?:triton\.backends\.spirv|backend)\.(?:torch|autoload)\b", re.MULTILINE)
    files = [path for top in ("unit", "lowering", "surface") for path in (ROOT / "tests" / top).rglob("*.py")]
    using = {path for path in files if torchs.search(path.read_text("utf-8"))}
    outside = {path.name for path in using if not path.parent.name.startswith("torch_")}
    assert len(using) > len(outside)
    assert outside <= {"test_import_cost.py", "test_import_graph.py"}


def test_nothing_of_the_native_part_outside_torch_includes_torch() -> None:
    files = [path for path in (ROOT / "backend" / "native").rglob("*.[ch]*") if path.parent.name != "torch"]
    assert len(files) > 50
    assert [path for path in files if '#include "torch/' in path.read_text(encoding="utf-8")] == []


@pytest.mark.parametrize("point", POINTS)
def test_what_an_extension_point_names_is_there(point: str) -> None:
    assert callable(given(point))
    assert _product(POINTS[point].partition(":")[0].replace(".", "/") + ".py") is not COMPILER


def test_things_are_resolved_by_name_in_few_places() -> None:
    resolving = {
        _path(module) for module, path in files_of("backend").items() if "resolve_name" in path.read_text("utf-8")
    }
    assert resolving == {"extension_points.py", "launching/kernel_records.py", "warming/finding.py"}


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def test_each_product_keeps_to_its_budget_of_lines() -> None:
    """Who needs more lines than a budget has raises it, and says why under "Size" in CHANGELOG."""
    code = [path for top in ("backend", "tests") for path in (ROOT / top).rglob("*") if path.suffix in _CODE]
    counted = dict.fromkeys((COMPILER, TORCH, INSPECTION, TESTS), 0)
    for path in code:
        top, _, inner = path.relative_to(ROOT).as_posix().partition("/")
        counted[TESTS if top == "tests" else _product(inner)] += _lines(path)
    for product, lines in counted.items():
        assert 0.9 * product.budget < lines <= product.budget, f"{product.name}: {lines} lines"
