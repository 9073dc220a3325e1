"""The plugin beside stock Triton 3.8.0; beside_older_triton.py runs more tests there, weekly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from beside_older_triton import FILES, LACKS, OLDER, disagreements, environment, outcomes
from test_rebase_releases import wheels  # noqa: F401
from vendor_support import Venv

from tools.project import Project, ReleaseWheel


@pytest.fixture(scope="module")
def older(wheels: dict[str, ReleaseWheel], plugin_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Venv:  # noqa: F811
    """An environment with both."""
    triton = Project(Path(__file__).parents[2]).cache / "wheels" / wheels[OLDER].file
    return environment(tmp_path_factory.mktemp("older"), str(triton), plugin_wheel)


def test_a_kernel_runs_there(older: Venv, tmp_path: Path) -> None:
    script = Path(__file__).parent / "plugin_only_probe.py"
    done = older.run(script, TRITON_DEFAULT_BACKEND="spirv", TRITON_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["driver"], found["module"]) == ("SPIRVDriver", "triton_spirv.compiler")
    assert found["error"] < 1e-5
    assert "not stock Triton 3.9.0, so fixes of it are left out: bf16-constants, equal-constants, " in done.stderr
    assert "Values may be wrong without loop-carries. Values may be wrong without unsigned-loops." in done.stderr


def test_hints_for_caches_are_read_there(older: Venv, tmp_path: Path) -> None:
    passed, failed = outcomes(older, tmp_path, ["test_hints"])
    assert passed and not failed


def test_what_differs_is_found() -> None:
    """The table is wrong about a failure that it does not name, and about one that it names that does not happen."""
    named = ["test_elementwise.py::test_negative_zero_constant_keeps_its_sign[float32]"]
    assert disagreements(["test_elementwise"], named) == []
    another = "test_scan.py::test_three_dimensions"
    assert disagreements(["test_elementwise"], [*named, another]) == [f"{another} failed"]
    assert len(disagreements(FILES, [])) == len(LACKS)
