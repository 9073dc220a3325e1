"""The digest of everything in this checkout that goes into a wheel; it is a part of the wheel's version."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from ..project import ROOT, Project
from ..queue import queue_hash
from .plugins import EXTENSION_MODULE, Plugin
from .refresh import SUFFIXES

# Of this repository, which holds much besides the plugin: the folders beside backend/ that CMake may take sources from.
NATIVE_FOLDERS = ("src", "cmake", "include")
# What builds leave in a plugin's folder.
_OUTPUTS = ("build", "dist", "__pycache__")
_OUTPUT_SUFFIXES = (".egg-info", ".pyc", ".pyo")


def plugin_sources(plugin: Plugin) -> dict[str, Path]:
    """Name → file of what a plugin gives: its Python files, the sources of its native part, its licences.

    CMake may take sources from anywhere in the folder, so those are all of its files; only this repository's are known.
    """
    files = dict(plugin.files())
    files |= {f"{plugin.name}/licence/{path.name}": path for path in plugin.licences}
    if plugin.has_native:
        own = plugin.folder.resolve() == ROOT
        tops = [plugin.folder / part for part in NATIVE_FOLDERS] if own else [plugin.folder]
        natives = [path for top in tops for path in _walk(top)]
        natives += [path for path in plugin.folder.iterdir() if path.suffix in SUFFIXES] if own else []
        for path in (plugin.folder / "CMakeLists.txt", *natives):
            files[f"{plugin.name}/{path.relative_to(plugin.folder).as_posix()}"] = path
    return files


def _walk(top: Path) -> list[Path]:
    """The files of a folder without what is hidden or built."""
    found: list[Path] = []
    for parent, folders, names in os.walk(top):
        folders[:] = sorted(name for name in folders if _is_source(name) and name not in _OUTPUTS)
        found += [Path(parent, name) for name in sorted(names) if _is_source(name) and Path(parent, name).is_file()]
    return found


def _is_source(name: str) -> bool:
    return not name.startswith(".") and not name.endswith(_OUTPUT_SUFFIXES) and not EXTENSION_MODULE.match(name)


def digest_of(files: dict[str, Path], *words: str) -> str:
    """sha256 over words, and over the names and bytes of files."""
    digest = hashlib.sha256("\n".join(words).encode())
    for name, path in sorted(files.items()):
        data = path.read_bytes()
        digest.update(f"{name} {len(data)}\n".encode())
        digest.update(data)
    return digest.hexdigest()


def source_digest(project: Project, plugins: Iterable[Plugin]) -> str:
    """sha256 over queue, lock, plugins and the tools that pack them: the same on every machine and for every Python."""
    files = {"pyproject.toml": project.root / "pyproject.toml", "upstream.lock.toml": project.lock_file}
    for path in sorted((ROOT / "tools" / "packaging").glob("*.py")):
        files[f"packaging/{path.name}"] = path
    for plugin in plugins:
        files |= plugin_sources(plugin)
    return digest_of(files, queue_hash(project))
