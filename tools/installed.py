"""The built wheel and its installation in .venv, redone only where what goes into the wheel has changed."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

from .progress import step
from .project import ROOT, Project
from .queue import queue_hash
from .venv import Stamps, pip

_VARIABLES = ("TRITON_PLUGIN_DIRS", "TRITON_WHEEL_NAME", "TRITON_WHEEL_VERSION_SUFFIX", "SOURCE_DATE_EPOCH")


def inputs_hash(project: Project) -> str:
    """sha256 over everything that decides what is in the wheel."""
    from .packaging.wheel import check_plugins

    digest = hashlib.sha256(f"{sys.version} {queue_hash(project)}".encode())
    for variable in _VARIABLES:
        digest.update(f"{variable}={os.environ.get(variable)}\n".encode())
    files = {"pyproject.toml": project.root / "pyproject.toml", "upstream.lock.toml": project.lock_file}
    for path in sorted((ROOT / "tools" / "packaging").glob("*.py")):
        files[f"packaging/{path.name}"] = path
    for plugin in check_plugins(project):
        # The sources of a native part lie in backend/ too, so they are among plugin.files().
        files |= plugin.files()
        files |= {f"{plugin.name}/licence/{path.name}": path for path in plugin.licences}
        if plugin.has_native:
            files[f"{plugin.name}/CMakeLists.txt"] = plugin.folder / "CMakeLists.txt"
    for name, path in sorted(files.items()):
        data = path.read_bytes()
        digest.update(f"{name} {len(data)}\n".encode())
        digest.update(data)
    return digest.hexdigest()


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
