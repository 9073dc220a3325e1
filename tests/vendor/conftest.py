"""Fixtures of the vendor tests: the wheels, built once a session, and a fresh virtual environment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from vendor_support import ROOT, TOY_PLUGIN, Venv, build_wheel

from backend import settings
from tools.project import Project, ReleaseWheel
from tools.upstream import wheel_path


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel with this repository as its only plugin: the one that `tools test` built, where it did."""
    given = settings.WHEEL.get()
    return Path(given) if given else build_wheel(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="session")
def wheel_with_toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel with a second, Python-only plugin and a name suffix."""
    folder = tmp_path_factory.mktemp("dist-toy")
    return build_wheel(folder, TRITON_PLUGIN_DIRS=f"{ROOT};{TOY_PLUGIN}", TRITON_WHEEL_VERSION_SUFFIX="+toy")


@pytest.fixture(scope="session")
def plugin_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel with the backend alone."""
    return build_wheel(tmp_path_factory.mktemp("dist-plugin"), "--plugin-only")


@pytest.fixture(scope="session")
def release() -> tuple[ReleaseWheel, Path]:
    """Upstream's release wheel for this interpreter: its lock entry and its file."""
    project = Project(ROOT)
    entry = project.lock().wheel_for_this_python()
    return entry, wheel_path(project, entry)


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Venv:
    """A fresh virtual environment."""
    folder = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return Venv(folder)
