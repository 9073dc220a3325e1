"""Upstream's plugin contract, checked before anything is built.

A plugin is a folder with backend/name.conf, backend/compiler.py and backend/driver.py; language/*, tools/* and
CMakeLists.txt are optional. TRITON_PLUGIN_DIRS names the folders, separated by `;`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import ToolError
from ..project import ROOT

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: Modules of a plugin's backend/ that are installed outside of triton as well, as `triton_NAME_MODULE`, because others
#: import them before triton: module → their group of entry points, and what of the module they import or call.
OUTSIDE = {"autoload": ("torch.backends", ":autoload"), "pytest_plugin": ("pytest11", ".pytest_hooks")}
_SKIPPED_FOLDERS = frozenset({"__pycache__", ".git", ".mypy_cache", ".ruff_cache", ".pytest_cache"})
_SKIPPED_SUFFIXES = (".pyc", ".pyo")
# An extension module in the folder of a plugin that CMake builds is left over from some other build.
EXTENSION_MODULE = re.compile(r".*\.(cpython-[^.]*|abi3)\.so$")


@dataclass(frozen=True)
class Plugin:
    """A plugin folder that keeps the contract."""

    name: str
    folder: Path

    @property
    def has_native(self) -> bool:
        """Whether CMake has something to build for it."""
        return (self.folder / "CMakeLists.txt").is_file()

    @property
    def package(self) -> str:
        """Where the backend goes in the wheel."""
        return f"triton/backends/{self.name}"

    @property
    def entry_points(self) -> dict[str, str]:
        """Group → entry point of each module of OUTSIDE that the plugin has."""
        return {
            group: f"triton_{self.name}_{module}{function}"
            for module, (group, function) in OUTSIDE.items()
            if self._module_files(module)
        }

    def outside_files(self) -> dict[str, Path]:
        """Path in the wheel → file of the modules of OUTSIDE."""
        return {name: path for module in OUTSIDE for name, path in self._module_files(module).items()}

    def _module_files(self, module: str) -> dict[str, Path]:
        """Path in the wheel → file of backend/MODULE.py, or of the package backend/MODULE, if there is one."""
        place, top = self.folder / "backend" / module, f"triton_{self.name}_{module}"
        if (alone := place.with_suffix(".py")).is_file():
            return {f"{top}.py": alone}
        return {f"{top}/{rel}": path for rel, path in _walk(place).items()} if (place / "__init__.py").is_file() else {}

    @property
    def licences(self) -> list[Path]:
        """The plugin's licence files."""
        names = ("LICENSE", "LICENCE", "NOTICE")
        return sorted(path for path in self.folder.iterdir() if path.is_file() and path.name.upper().startswith(names))

    def files(self) -> dict[str, Path]:
        """Path in the wheel → file of the plugin, without what CMake builds."""
        found = {f"{self.package}/{rel}": path for rel, path in _walk(self.folder / "backend").items()}
        if self.has_native:
            found = {rel: path for rel, path in found.items() if not EXTENSION_MODULE.match(path.name)}
        found |= self.outside_files()
        for part in ("language", "tools"):
            folder = self.folder / part
            if folder.is_dir() and not _is_this_package(folder):
                found |= {f"triton/{part}/extra/{rel}": path for rel, path in _walk(folder).items()}
        return found


def _is_this_package(folder: Path) -> bool:
    """Whether a plugin's tools/ is the `tools` package that is running.

    This repository is itself a plugin folder, and its tools/ holds its build commands, not something for
    triton.tools.extra. No other plugin's tools/ can be the running package.
    """
    return folder.resolve() == ROOT / "tools"


def _walk(folder: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED_FOLDERS)
        for name in (*folders, *sorted(names)):
            path = Path(parent) / name
            if path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
                raise ToolError(f"plugin {folder.parent}: {path} is a link that leads out of the plugin")
            if path.is_dir():
                if path.is_symlink():
                    raise ToolError(f"plugin {folder.parent}: {path} is a link to a folder, which is not followed")
                continue
            if name.endswith(_SKIPPED_SUFFIXES):
                continue
            found[path.relative_to(folder).as_posix()] = path
    return found


def plugin_folders(environment: Mapping[str, str], default: Path) -> list[Path]:
    """The folders that TRITON_PLUGIN_DIRS names, without `..` in them; `default` where it is unset."""
    value = environment.get("TRITON_PLUGIN_DIRS")
    if value is None:
        return [default]
    named = [Path(entry.strip()) for entry in value.split(";") if entry.strip()]
    return [path.resolve() if path.is_absolute() and ".." in path.parts else path for path in named]


def load_plugin(folder: Path) -> Plugin:
    """Check one folder against the contract; a ToolError says what it lacks."""
    if not folder.is_absolute():
        raise ToolError(f"plugin {folder}: TRITON_PLUGIN_DIRS takes absolute paths")
    if not folder.is_dir():
        several = [part for part in str(folder).split(":") if part]
        if len(several) > 1 and all(Path(part).is_dir() for part in several):
            raise ToolError(f"TRITON_PLUGIN_DIRS separates folders by ';': write {';'.join(several)}")
        raise ToolError(f"plugin {folder}: there is no such folder")
    backend = folder / "backend"
    if not backend.is_dir():
        raise ToolError(f"plugin {folder}: there is no backend/ in it")
    conf = backend / "name.conf"
    if not conf.is_file():
        raise ToolError(f"plugin {folder}: backend/name.conf is missing")
    name = conf.read_text().strip()
    if not _IDENTIFIER.fullmatch(name):
        raise ToolError(f"plugin {folder}: the name {name!r} in backend/name.conf is not a C identifier")
    for required in ("compiler.py", "driver.py"):
        if not (backend / required).is_file():
            raise ToolError(f"plugin {folder}: backend/{required} is missing")
    return Plugin(name, folder)


def load_plugins(folders: list[Path], in_tree: frozenset[str]) -> list[Plugin]:
    """Check all folders, and that no name is taken twice or by a backend of upstream."""
    plugins: dict[str, Plugin] = {}
    for folder in folders:
        plugin = load_plugin(folder)
        if plugin.name in in_tree:
            raise ToolError(f"plugin {folder}: the name {plugin.name!r} belongs to a backend of upstream")
        if plugin.name in plugins:
            raise ToolError(f"plugin {folder}: {plugins[plugin.name].folder} has the name {plugin.name!r} too")
        plugins[plugin.name] = plugin
    owners: dict[str, str] = {}
    for plugin in plugins.values():
        for path in plugin.files():
            if path in owners:
                raise ToolError(f"plugin {plugin.folder}: {path} also comes from the plugin {owners[path]!r}")
            owners[path] = plugin.name
    return list(plugins.values())
