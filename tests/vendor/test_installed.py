"""The wheel in .venv: installed again where another Triton took its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import installed
from tools.project import Project

WHEEL = "triton-3.9.0+spirv.1.habc-cp311-cp311-manylinux_2_35_x86_64.whl"
OWN = "triton-3.9.0+spirv.1.habc.dist-info"


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """What pip is asked to do; it lays out the wheel's .dist-info as pip would."""
    site = tmp_path / ".venv/lib/python3.11/site-packages"
    done: list[tuple[str, ...]] = []

    def pip(_: Project, *arguments: str) -> None:
        done.append(arguments)
        for folder in site.glob("triton-*.dist-info"):
            folder.rmdir()
        if arguments[0] == "install":
            (site / OWN).mkdir(parents=True)

    monkeypatch.setattr(installed, "pip", pip)
    monkeypatch.setattr(installed, "inputs_hash", lambda project: "digest")
    monkeypatch.setattr(installed, "ensure_wheel", lambda project, wanted: project.dist / WHEEL)
    return done


def test_once_is_enough(tmp_path: Path, runs: list[tuple[str, ...]]) -> None:
    for _ in range(2):
        installed.ensure_installed(Project(tmp_path))
    assert [arguments[0] for arguments in runs] == ["install"]


@pytest.mark.parametrize("other", ["triton-3.7.1.dist-info", None])
def test_another_triton_took_its_place(other: str | None, tmp_path: Path, runs: list[tuple[str, ...]]) -> None:
    """`pip install torch` replaces the wheel with the Triton that torch asks for; `pip uninstall` removes it."""
    project = Project(tmp_path)
    installed.ensure_installed(project)
    site = tmp_path / ".venv/lib/python3.11/site-packages"
    (site / OWN).rmdir()
    if other:
        (site / other).mkdir()
    installed.ensure_installed(project)
    assert [path.name for path in site.glob("*.dist-info")] == [OWN]
    assert len([arguments for arguments in runs if arguments[0] == "install"]) == 2
