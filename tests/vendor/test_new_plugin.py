"""`new-plugin` writes a plugin that keeps the contract, passes its own test and builds."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from vendor_support import ROOT, build_wheel

from tools.errors import ToolError
from tools.packaging.plugins import load_plugin
from tools.project import Project
from tools.verbs import new_plugin


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("new") / "my-gpu"
    assert new_plugin.run(Project(ROOT), ["my_gpu", str(folder)]) == 0
    return folder


def test_it_keeps_the_contract_and_names_nothing_else(folder: Path) -> None:
    assert load_plugin(folder).name == "my_gpu"
    texts = [path.read_text() for path in folder.rglob("*") if path.is_file()]
    assert not [text for text in texts if re.search("ttir.only", text, re.IGNORECASE)]
    assert (folder / "language/my_gpu/__init__.py").is_file()


def test_its_own_test_passes(folder: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_it_builds(folder: Path, tmp_path: Path) -> None:
    wheel = build_wheel(tmp_path, "--plugin-only", TRITON_PLUGIN_DIRS=str(folder))
    assert re.fullmatch(r"triton_my_gpu-0\.1\.0\+h[0-9a-f]{8}-py3-none-any\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        assert {"triton_my_gpu/compiler.py", "triton_my_gpu/driver.py"} <= set(archive.namelist())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "new-plugin needs a name"),
        (["--help"], "new-plugin needs a name"),
        (["My-GPU"], "'My-GPU' cannot be a backend's name"),
        (["class"], "'class' cannot be a backend's name"),
        (["spirv"], "the name 'spirv' is taken"),
        (["other", str(ROOT)], "is there already"),
    ],
)
def test_what_cannot_be_written(arguments: list[str], message: str) -> None:
    with pytest.raises(ToolError, match=message):
        new_plugin.run(Project(ROOT), arguments)
