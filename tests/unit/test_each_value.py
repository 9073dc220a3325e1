"""Which cells of a matrix of tests are run for each change (tests/each_value.py)."""

import itertools
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import vulkan_part
from tests.each_value import FILES, ROOT, covering

CELLS = st.sets(st.tuples(st.sampled_from("abcde"), st.sampled_from("xyz"), st.sampled_from("12")), min_size=1)


@given(CELLS)
def test_every_value_is_there_and_no_cell_without_need(cells: set[tuple[str, ...]]) -> None:
    found = covering([(cell, cell) for cell in sorted(cells)])
    assert found == sorted(set(found)) and set(found) <= cells
    for at in range(3):
        assert {cell[at] for cell in found} == {cell[at] for cell in cells}
    assert len(found) <= sum(len({cell[at] for cell in cells}) for at in range(3))


def test_a_full_matrix_is_left_with_as_many_cells_as_its_longest_axis_has() -> None:
    cells = [*itertools.product("abcdef", "xyz", "12")]
    found = covering([(cell, cell) for cell in cells])
    assert len(found) == 6
    assert len({cell[1:] for cell in found}) == 6  # other values beside each


def test_one_parameter_keeps_all_its_cells() -> None:
    assert covering([(n, (str(n),)) for n in range(9)]) == [*range(9)]


@pytest.mark.parametrize("files", [FILES, vulkan_part.FILES])
def test_listed_files_are_there(files: Mapping[str, str]) -> None:
    assert all((ROOT / path).exists() and why for path, why in files.items())


def test_what_is_left_to_each_week_is_named() -> None:
    """A test file that leaves tests to each week says which others are run for each change."""
    having = [path for path in (ROOT / "tests").rglob("test_*.py") if "mark.weekly" in path.read_text("utf-8")]
    assert 1 < len(having) < 20
    assert all("mark.weekly(" in path.read_text("utf-8") for path in having)


#: A matrix, one that loses a type where it is skipped, and a test without parameters.
TESTS = """
import pytest

@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
@pytest.mark.parametrize("of", ["sum", "max", "min"])
def test_matrix(of, kind): pass

@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("kind", [pytest.param("f16", marks=pytest.mark.skip(reason="none")), "f32"])
def test_skipped(kind, size): pass

def test_alone(): pass

@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.weekly("[0]"))])
def test_seeds(seed): pass
"""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "14 passed, 2 skipped"),
        (("--each-value",), "13 passed, 2 skipped, 1 deselected"),
        (("--each-value", "-p", "listed"), "7 passed, 2 skipped, 7 deselected"),
        (("--each-value-of-all",), "7 passed, 2 skipped, 7 deselected"),
    ],
    ids=["all cells", "of a file that is not listed", "of one that is", "of all files"],
)
def test_a_run(arguments: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "listed.py").write_text("from tests import each_value\neach_value._listed = lambda item: True\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.conftest"]
    done = subprocess.run(
        [*command, "-c", str(ROOT / "pyproject.toml"), f"--rootdir={ROOT}", *arguments, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert said in done.stdout
