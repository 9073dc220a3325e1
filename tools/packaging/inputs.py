"""The digest of everything in this checkout that goes into a wheel; it is a part of the wheel's version."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from ..project import ROOT, Project
from ..queue import queue_hash
from .plugins import Plugin

# Folders beside backend/ that the CMakeLists.txt of a plugin may take sources from.
NATIVE_FOLDERS = ("src", "cmake", "include")


def plugin_sources(plugin: Plugin) -> dict[str, Path]:
    """Name → file of what a plugin gives: its Python files, the sources of its native part, its licences."""
    files = dict(plugin.files())
    files |= {f"{plugin.name}/licence/{path.name}": path for path in plugin.licences}
    if plugin.has_native:
        files[f"{plugin.name}/CMakeLists.txt"] = plugin.folder / "CMakeLists.txt"
        for part in NATIVE_FOLDERS:
            for path in sorted((plugin.folder / part).rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    files[f"{plugin.name}/{path.relative_to(plugin.folder).as_posix()}"] = path
    return files


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
