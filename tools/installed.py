"""The built wheel and its installation in .venv, redone only where what goes into the wheel has changed."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

from .faults import point
from .hold import hold
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


def editable_hash(project: Project) -> str:
    """sha256 over what an editable installation is made of: all but this repository's own Python files."""
    from .packaging.editable import stubs
    from .packaging.facts import is_own
    from .packaging.inputs import source_digest
    from .packaging.native import native_folder
    from .packaging.wheel import check_plugins

    plugins = check_plugins(project)
    own = [plugin for plugin in plugins if is_own(project, plugin)]
    texts = [stubs(project, plugin, native_folder(plugin, project.build)) for plugin in own]
    others = source_digest(project, [plugin for plugin in plugins if plugin not in own])
    has_command = [(plugin.folder / "backend" / "cli.py").is_file() for plugin in own]
    settings = [f"{variable}={os.environ.get(variable)}" for variable in _VARIABLES]
    return hashlib.sha256(repr((sys.version, others, texts, has_command, settings)).encode()).hexdigest()


def ensure_wheel(project: Project, wanted: str) -> Path:
    """The wheel for the sources with that hash, in dist/; built if there is none yet."""
    from .packaging.wheel import build_wheel

    stamps = Stamps(project)
    digest, _, name = stamps.get("wheel").partition(" ")
    if digest == wanted and name and (project.dist / name).exists():
        return project.dist / name
    wheel = build_wheel(project)
    stamps.set("wheel", f"{wanted} {wheel.name}")
    return wheel


def ensure_installed(project: Project) -> Path:
    """Makes sure that the present wheel is installed in .venv instead of an older one. Returns the wheel."""
    with hold(project):
        wanted = inputs_hash(project)
        wheel = ensure_wheel(project, wanted)
        if not _is_installed(project, wanted):
            _install(project, wheel, wanted)
        return wheel


def ensure_editable(project: Project) -> None:
    """Makes sure that this checkout is installed in .venv so that its Python files are used in place, and builds its
    native part."""
    from .packaging import refresh, wheel
    from .packaging.metadata import Kind
    from .packaging.native import build_native, native_folder

    with hold(project):
        for plugin in wheel.check_plugins(project):
            if plugin.has_native and not refresh.is_current(plugin.folder, native_folder(plugin, project.build)):
                build_native(plugin, project.build)
        wanted = f"editable-{editable_hash(project)}"
        if not _is_installed(project, wanted):
            built = wheel.build_wheel(project, project.build / "editable", kind=Kind.EDITABLE)
            _install(project, built, wanted)
            built.unlink()


def _is_installed(project: Project, wanted: str) -> bool:
    """Whether what the stamp names is still there: pip replaces it with the Triton that another package asks for."""
    digest, _, name = Stamps(project).get("installed").partition(" ")
    return digest == wanted and _distributions(project, name.partition("-")[0]) == [name]


def _distributions(project: Project, name: str) -> list[str]:
    """NAME-VERSION of what .venv has under that name."""
    folders = project.venv.glob(f"lib/python3*/site-packages/{name}-*.dist-info")
    return sorted(folder.name.removesuffix(".dist-info") for folder in folders)


def _install(project: Project, wheel: Path, wanted: str) -> None:
    stamps = Stamps(project)
    old = stamps.get("installed").partition(" ")[2]
    new = "-".join(wheel.name.split("-", 2)[:2])
    # An installation that is killed halfway must not pass for the older one.
    stamps.set("installed", f"unfinished {old or new}")
    with step(f"install {wheel.name}", quiet_child=False):
        if old and old.partition("-")[0] != new.partition("-")[0]:
            # Two distributions must not own the same triton/ folder.
            pip(project, "uninstall", "--yes", old.partition("-")[0])
        pip(project, "install", "--no-deps", "--force-reinstall", str(wheel))
    point("installed")
    stamps.set("installed", f"{wanted} {new}")
