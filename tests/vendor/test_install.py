"""The wheels in a fresh virtual environment: the plugin alone beside stock triton; the patched wheel over stock triton,
at work, and off again without a trace.

The tests run in the order of this file, on one environment.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from vendor_support import ROOT, Venv

from tools.project import Project, ReleaseWheel

PROBE = Path(__file__).parent / "install_probe.py"


@pytest.fixture(scope="module")
def before(venv: Venv) -> set[str]:
    """The environment's files before any triton was installed."""
    venv.pip("install", *Project(ROOT).settings()["dependencies"], "numpy")
    return venv.files()


@pytest.fixture(scope="module")
def stock(venv: Venv, before: set[str], release: tuple[ReleaseWheel, Path]) -> Venv:
    """The environment with stock triton."""
    venv.pip("install", "--no-deps", str(release[1]))
    assert (venv.site_packages / "triton/backends/nvidia").is_dir()
    assert not (venv.site_packages / "triton/backends/spirv").exists()
    return venv


@pytest.fixture(scope="module")
def both(stock: Venv, plugin_wheel: Path, wheel_with_toy: Path) -> Venv:
    """The environment with the plugin-only wheel, and the patched wheel put beside it."""
    stock.pip("install", "--no-deps", "--force-reinstall", str(plugin_wheel))
    stock.pip("install", "--no-deps", str(wheel_with_toy))
    return stock


@pytest.fixture(scope="module")
def installed(both: Venv) -> Venv:
    """The environment with the patched wheel alone."""
    both.pip("uninstall", "--yes", "triton-spirv")
    return both


def test_the_plugin_beside_stock_triton(stock: Venv, plugin_wheel: Path, tmp_path: Path) -> None:
    stock.pip("install", str(plugin_wheel))
    assert stock.pip_check() == "No broken requirements found.\n"
    script = Path(__file__).parent / "plugin_only_probe.py"
    environment = {"TRITON_DEFAULT_BACKEND": "spirv", "TRITON_CACHE_DIR": str(tmp_path)}
    done = stock.run(script, **environment)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["driver"], found["module"]) == ("SPIRVDriver", "triton_spirv.compiler")
    assert found["error"] < 1e-5
    assert "triton_spirv.compiler.SPIRVBackend" in found["registered"]
    assert found["one_module"], "triton.backends.spirv and triton_spirv are two copies"
    # A folder there would be taken for a triton that has the backend inside.
    assert not (stock.site_packages / "triton/backends/spirv").exists()


def test_the_plugin_beside_the_patched_wheel_is_refused(both: Venv) -> None:
    # pip tells of it when either is installed over the other, and in `pip check` …
    assert "triton-spirv" in both.pip_check() and "triton===" in both.pip_check()
    # … and where that is not heeded, triton does not start.
    done = both.run(PROBE, "cuda")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()[-1:]
    assert line.startswith("ImportError: triton-spirv is installed with a triton that has the backend 'spirv' inside")
    assert "`pip uninstall triton-spirv`" in line


def probe(venv: Venv, what: str, tmp_path: Path, **environment: str) -> dict[str, object]:
    done = venv.run(PROBE, what, TRITON_CACHE_DIR=str(tmp_path / "cache"), **environment)
    assert done.returncode == 0, done.stderr
    result: dict[str, object] = json.loads(done.stdout)
    return result


def test_it_replaces_stock_triton(installed: Venv) -> None:
    (info,) = installed.site_packages.glob("triton*.dist-info")
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
