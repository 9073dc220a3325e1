"""The Vulkan drivers that are installed, and the environment variables that hide them from the loader.

Where manifests are looked for, and what the variables mean, is the Vulkan loader's documentation,
LoaderDriverInterface.md, sections "Driver Discovery" and "Overriding the Default Driver Usage". Windows' registry names
them (section "Driver Discovery on Windows"); other systems have folders for them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from ...system import WINDOWS, registry_values

#: Variables that replace the search for manifests; the loader reads the second one only without the first.
REPLACING = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")
#: The variable that adds manifests to those that are found.
ADDING = "VK_ADD_DRIVER_FILES"
#: Variables that choose among the manifests that were found, by patterns of their file names.
SELECTING, DISABLING = "VK_LOADER_DRIVERS_SELECT", "VK_LOADER_DRIVERS_DISABLE"

_FOLDER = Path("vulkan") / "icd.d"
#: The classes of display adapters and of software components in Windows' registry. Each device has a key in its class,
#: whose value ``VulkanDriverName`` names the manifests of its 64-bit drivers.
DISPLAY_ADAPTERS, _COMPONENTS = (
    rf"SYSTEM\CurrentControlSet\Control\Class\{{{name}}}"
    for name in ("4d36e968-e325-11ce-bfc1-08002be10318", "5c4c3332-344d-483c-8739-259e934c9cc8")
)
#: The key whose values are called as the manifests, and are 0 where the loader is to use them.
_DRIVERS = r"SOFTWARE\Khronos\Vulkan\Drivers"


@dataclass(frozen=True)
class Manifest:
    """A driver's JSON manifest. ``library`` is the shared library that it names, "" if it cannot be read."""

    path: Path
    library: str

    def has_path(self) -> bool:
        """Whether the library is named by a path, from the manifest's folder on."""
        return "/" in self.library or (WINDOWS and "\\" in self.library)

    def library_is_missing(self) -> bool:
        """Whether the library is named by a path that is not there. A bare name is left to the dynamic linker."""
        if not self.has_path():
            return not self.library
        return not (self.path.parent / self.library).exists()


def _search_folders(environment: Mapping[str, str]) -> Iterator[Path]:
    home = environment.get("HOME", "")
    configuration = environment.get("XDG_CONFIG_HOME") or (f"{home}/.config" if home else "")
    data = environment.get("XDG_DATA_HOME") or (f"{home}/.local/share" if home else "")
    folders = [configuration, *(environment.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":"), "/etc", data]
    folders += (environment.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share").split(":")
    seen = set()
    for folder in folders:
        if folder and folder not in seen:
            seen.add(folder)
            yield Path(folder) / _FOLDER


def _registered() -> Iterator[Path]:
    for name in (DISPLAY_ADAPTERS, _COMPONENTS):
        for values in registry_values(name, depth=1):
            drivers = values.get("VulkanDriverName", ())
            yield from map(Path, [drivers] if isinstance(drivers, str) else drivers)
    for values in registry_values(_DRIVERS):
        yield from (Path(name) for name, value in values.items() if value == 0)


def _read(path: Path) -> Manifest:
    try:
        library = json.loads(path.read_text(encoding="utf-8"))["ICD"]["library_path"]
    except (OSError, ValueError, KeyError, TypeError):
        library = ""
    return Manifest(path, str(library))


def installed(environment: Mapping[str, str] = os.environ) -> list[Manifest]:
    """The manifests that the loader finds by itself."""
    if WINDOWS:
        return [_read(path) for path in dict.fromkeys(_registered())]
    found = []
    for folder in _search_folders(environment):
        try:
            found += [_read(path) for path in sorted(folder.glob("*.json"))]
        except OSError:
            continue  # a folder of somebody else
    return found


def _is_named(path: Path, names: str) -> bool:
    for name in filter(None, names.split(os.pathsep)):
        named = Path(name)
        if path in (named, named / path.name) or (named.exists() and named.samefile(path)):
            return True
    return False


def _matches(path: Path, patterns: str) -> bool:
    return any(fnmatch(path.name, pattern) for pattern in patterns.split(",") if pattern)


def hidden(environment: Mapping[str, str] = os.environ) -> dict[Path, str]:
    """Installed manifests that the loader is made to ignore → the setting that hides each, as ``VARIABLE=value``."""
    replacing = next((name for name in REPLACING if environment.get(name)), None)
    found: dict[Path, str] = {}
    for manifest in installed(environment):
        path = manifest.path
        if replacing and not _is_named(path, environment[replacing]):
            found[path] = f"{replacing}={environment[replacing]}"
        elif environment.get(DISABLING) and _matches(path, environment[DISABLING]):
            found[path] = f"{DISABLING}={environment[DISABLING]}"
        elif environment.get(SELECTING) and not _matches(path, environment[SELECTING]):
            found[path] = f"{SELECTING}={environment[SELECTING]}"
    return found


def used(environment: Mapping[str, str] = os.environ) -> list[Manifest]:
    """The manifests whose drivers the loader loads, each once. Those whose library is missing are left out."""
    replacing = next((name for name in REPLACING if environment.get(name)), None)
    if replacing:
        found = [*_named(environment[replacing])]
    else:
        found = [*_named(environment.get(ADDING, "")), *installed(environment)]
    disabled, selected = environment.get(DISABLING), environment.get(SELECTING)
    kept = {
        one.path: one
        for one in found
        if not (one.library_is_missing() or (disabled and _matches(one.path, disabled)))
        and (not selected or _matches(one.path, selected))
    }
    return list(kept.values())


def _named(names: str) -> Iterator[Manifest]:
    for name in map(Path, filter(None, names.split(os.pathsep))):
        try:
            paths = sorted(name.glob("*.json")) if name.is_dir() else [name]
        except OSError:
            continue
        yield from map(_read, paths)


def hint(environment: Mapping[str, str] = os.environ) -> str:
    """A clause for an error about missing drivers: what is installed and hidden; "" if nothing is."""
    by_setting: dict[str, list[str]] = {}
    for path, setting in hidden(environment).items():
        by_setting.setdefault(setting, []).append(str(path))
    return "; ".join(
        f"{setting} hides the installed driver{'s' if len(paths) > 1 else ''} {', '.join(paths)}: unset it to use "
        f"{'them' if len(paths) > 1 else 'it'}"
        for setting, paths in by_setting.items()
    )
