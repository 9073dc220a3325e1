"""The wheel in a fresh virtual environment: over stock triton, at work, and off again without a trace.

The tests run in the order of this file, on one environment.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from vendor_support import Venv

from tools.project import ReleaseWheel

PROBE = Path(__file__).parent / "install_probe.py"


@pytest.fixture(scope="module")
def before(venv: Venv) -> set[str]:
    """The environment's files before anything was installed."""
    return venv.files()


@pytest.fixture(scope="module")
def installed(venv: Venv, before: set[str], release: tuple[ReleaseWheel, Path], wheel_with_toy: Path) -> Venv:
    """The environment with stock triton, and the patched wheel installed over it."""
    venv.pip("install", "--no-deps", str(release[1]))
    assert (venv.site_packages / "triton/backends/nvidia").is_dir()
    assert not (venv.site_packages / "triton/backends/spirv").exists()
    venv.pip("install", "--no-deps", str(wheel_with_toy))
    return venv


def probe(venv: Venv, what: str, tmp_path: Path, **environment: str) -> dict[str, object]:
    done = venv.run(PROBE, what, TRITON_CACHE_DIR=str(tmp_path / "cache"), **environment)
    assert done.returncode == 0, done.stderr
    result: dict[str, object] = json.loads(done.stdout)
    return result


def test_it_replaces_stock_triton(installed: Venv) -> None:
    (info,) = installed.site_packages.glob("*.dist-info")
    assert "+spirv." in info.name
    for backend in ("nvidia", "amd", "spirv", "toy"):
        assert (installed.site_packages / "triton/backends" / backend / "compiler.py").is_file()


def test_backends_and_extras_are_found(installed: Venv, tmp_path: Path) -> None:
    found = probe(installed, "backends", tmp_path)
    assert found["backends"] == ["amd", "nvidia", "spirv", "toy"]
    assert found["extras"] == ["language", "tools"]


def test_cuda_still_compiles(installed: Venv, tmp_path: Path) -> None:
    found = probe(installed, "cuda", tmp_path)
    assert "ptx" in found["stages"] and "cubin" in found["stages"]  # type: ignore[operator]
    assert ".target sm_80" in str(found["ptx"])
    assert found["cubin"] == "7f454c46"  # an ELF file


def test_the_second_plugin_is_selected_at_run_time(installed: Venv, tmp_path: Path) -> None:
    found = probe(installed, "toy", tmp_path, TRITON_DEFAULT_BACKEND="toy")
    assert found == {"driver": "ToyDriver", "code": "toy code of add"}


def test_uninstall_leaves_no_file(installed: Venv, before: set[str]) -> None:
    installed.pip("uninstall", "--yes", "triton")
    assert installed.files() - before == set()
    assert not (installed.site_packages / "triton").exists()
    assert not list((installed.folder / "bin").glob("proton*"))
