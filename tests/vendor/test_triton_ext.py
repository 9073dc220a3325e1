"""The backend in the form of triton-ext: its layout, its CMake files within the whole, its own tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from vendor_support import ROOT, Venv

from tools.packaging.native import native_folder
from tools.packaging.plugins import load_plugin
from tools.project import Project

# What the checkout around it does: it adds each folder of backend/ whose triton-ext.conf is a CMake list of one name or
# more.
AROUND = """
cmake_minimum_required(VERSION 3.20)
project(triton-ext LANGUAGES CXX)
file(GLOB folders RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}/backend" "${CMAKE_CURRENT_SOURCE_DIR}/backend/*")
foreach(folder ${folders})
  file(READ "${CMAKE_CURRENT_SOURCE_DIR}/backend/${folder}/triton-ext.conf" conf)
  string(STRIP "${conf}" conf)
  list(GET conf 0 name)
  message(STATUS "building ${name}")
  add_subdirectory("backend/${folder}")
endforeach()
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("triton-ext")
    (folder / "backend").mkdir()
    (folder / "CMakeLists.txt").write_text(AROUND)
    command = [sys.executable, "-m", "tools", "triton-ext", str(folder)]
    environment = {**os.environ, "TRITON_SPIRV_TOOLS_IN_PLACE": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_it_has_the_files_that_are_asked_for(checkout: Path) -> None:
    place = checkout / "backend/SPIRV"
    name, status = (place / "triton-ext.conf").read_text().strip().split(";")
    assert (name, status) == ("spirv_backend", "experimental")
    facts = tomllib.loads((place / "pyproject.toml").read_text())
    assert facts["project"]["entry-points"]["triton.backends"] == {"spirv": "triton_spirv"}
    for path in facts["tool"]["scikit-build"]["wheel"]["packages"].values():
        assert (place / path).is_dir()
    for path in ("CMakeLists.txt", "Makefile", "README.md", "LICENSE", "test/test_spirv.py"):
        assert (place / path).is_file()
    assert "backend/native" not in (place / "CMakeLists.txt").read_text()


def test_the_whole_is_configured_with_it(checkout: Path, tmp_path: Path) -> None:
    import pybind11

    command = ["cmake", "-S", str(checkout), "-B", str(tmp_path), f"-DPython_EXECUTABLE={sys.executable}"]
    command += [f"-Dpybind11_DIR={pybind11.get_cmake_dir()}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "building spirv_backend" in done.stdout
    targets = subprocess.run(["cmake", "--build", str(tmp_path), "--target", "help"], capture_output=True, text=True)
    assert "triton_spirv_native" in targets.stdout


# How upstream's libtriton takes an extension, a library with the C function tritonGetPluginInfo, after 3.9: by three
# functions (triton#10775), or by one (triton#11167). Here another extension has been loaded before the backend.
STAND_IN = """
import ctypes, os, types
from triton._C import libtriton

calls, one = [], os.environ["EXTENSION_FORM"] == "one"


def extend_with(path):
    calls.append(path)
    ctypes.CDLL(path).tritonGetPluginInfo
    place = types.SimpleNamespace(add_nothing=lambda manager, arguments=(): None, extend_with=extend_with)
    setattr(libtriton.passes, "another" if one else "plugin", place)


if one:
    libtriton.extend_with = extend_with
else:
    libtriton.ir.extend_dialects_with = extend_with
    libtriton.ir.builder.extend_with = staticmethod(extend_with)
extend_with(os.environ["EXTENSION"])


def pytest_unconfigure(config):
    print("extended with", calls)
"""


@pytest.fixture(scope="module")
def installed(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Venv:
    """What `make build install` makes: the package, its entry point, and the launcher, which is built here already,
    beside stock triton."""
    project = Project(ROOT)
    venv = Venv(tmp_path_factory.mktemp("installed") / "venv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv.folder)], check=True)
    site = venv.site_packages
    stock = project.cache / "wheels" / project.lock().wheel_for_this_python().file
    shutil.unpack_archive(stock, site, "zip")
    shutil.copytree(checkout / "backend/SPIRV/python", site, dirs_exist_ok=True)
    for library in (native_folder(load_plugin(ROOT), project.build) / "stage").glob("*.so"):
        shutil.copy(library, site / "triton_spirv")
    facts = tomllib.loads((checkout / "backend/SPIRV/pyproject.toml").read_text())["project"]
    info = site / "triton_spirv-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: triton-spirv\nVersion: 0\n")
    points = facts["entry-points"]["triton.backends"]
    (info / "entry_points.txt").write_text("[triton.backends]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()))
    # What else is there comes from the running environment: numpy, vulkan, pytest.
    running = next(path for path in map(Path, sys.path) if (path / "numpy").is_dir())
    for path in running.iterdir():
        if not path.name.startswith(("triton", "_triton")) and path.suffix != ".pth":
            (site / path.name).symlink_to(path)
    return venv


@pytest.mark.parametrize("form", ["three", "one"])
def test_its_own_tests_pass_however_libtriton_is_extended(
    form: str, checkout: Path, installed: Venv, tmp_path: Path
) -> None:
    """The backend is Python and a launcher: it is found by its entry point, and extends libtriton with nothing."""
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    (tmp_path / "another.c").write_text("void *tritonGetPluginInfo(void) { return 0; }\n")
    another = tmp_path / "another.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(another), str(tmp_path / "another.c")], check=True)
    command = [str(installed.python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "stand_in", "test"]
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("TRITON_", "PYTHON", "PYTEST"))
    }
    environment |= {"TRITON_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}
    environment |= {"EXTENSION_FORM": form, "EXTENSION": str(another)}
    done = subprocess.run(
        command, cwd=checkout / "backend/SPIRV", env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    assert f"extended with {[str(another)]}" in done.stdout
