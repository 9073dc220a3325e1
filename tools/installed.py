"""The built wheel and its installation in .venv, redone only where what goes into the wheel has changed."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

from .progress import step
from .project import Project
from .venv import Stamps, pip

_VARIABLES = ("TRITON_PLUGIN_DIRS", "TRITON_WHEEL_NAME", "TRITON_WHEEL_VERSION_SUFFIX", "SOURCE_DATE_EPOCH")


def inputs_hash(project: Project) -> str:
    """sha256 over everything that decides what is in the wheel."""
    from .packaging.inputs import source_digest
    from .packaging.wheel import check_plugins

    settings = "".join(f"{variable}={os.environ.get(variable)}\n" for variable in _VARIABLES)
    words = f"{sys.version} {source_digest(project, check_plugins(project))}\n{settings}"
    return hashlib.sha256(words.encode()).hexdigest()


def ensure_wheel(project: Project, wanted: str) -> Path:
    """The wheel for the sources with that hash, in dist/; built where there is none yet."""
    from .packaging.wheel import build_wheel

    stamps = Stamps(project)
    digest, _, name = stamps.get("wheel").partition(" ")
    if digest == wanted and name and (project.dist / name).exists():
        return project.dist / name
    wheel = build_wheel(project)
    stamps.set("wheel", f"{wanted} {wheel.name}")
    return wheel


def ensure_installed(project: Project) -> Path:
    """Have the present wheel installed in .venv in place of an older one. Returns the wheel."""
    with project.exclusive():
        stamps = Stamps(project)
        wanted = inputs_hash(project)
        wheel = ensure_wheel(project, wanted)
        digest, _, name = stamps.get("installed").partition(" ")
        if digest == wanted:
            return wheel
        distribution = wheel.name.split("-", 1)[0]
        # An installation that is killed halfway must not pass for the older one.
        stamps.set("installed", f"unfinished {name or distribution}")
        with step(f"install {wheel.name}", quiet_child=False):
            if name and name != distribution:
                # Two distributions must not own the same triton/ folder.
                pip(project, "uninstall", "--yes", name)
            pip(project, "install", "--no-deps", "--force-reinstall", str(wheel))
        stamps.set("installed", f"{wanted} {distribution}")
        return wheel
