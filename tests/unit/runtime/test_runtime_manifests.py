"""Which installed drivers the environment hides from the Vulkan loader."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from triton.backends.spirv.runtime.vulkan import manifests


@pytest.fixture
def drivers(tmp_path: Path) -> Path:
    """Two manifests in a folder that is searched, one of whose libraries is missing, and a damaged one."""
    folder = tmp_path / "data" / "vulkan" / "icd.d"
    folder.mkdir(parents=True)
    (tmp_path / "libgood.so").touch()
    for name, library in (("good", str(tmp_path / "libgood.so")), ("gone", "../../../libgone.so")):
        (folder / f"{name}.json").write_text(json.dumps({"ICD": {"library_path": library, "api_version": "1.3.0"}}))
    (folder / "odd.json").write_text("{")
    return folder


def environment(folder: Path, **variables: str) -> dict[str, str]:
    nowhere = str(folder.parent / "nowhere")
    return {"HOME": nowhere, "XDG_CONFIG_DIRS": nowhere, "XDG_DATA_DIRS": str(folder.parents[1])} | variables


def here(found: list[manifests.Manifest], folder: Path) -> dict[str, manifests.Manifest]:
    return {manifest.path.name: manifest for manifest in found if manifest.path.parent == folder}


def test_installed_drivers_and_missing_libraries(drivers: Path) -> None:
    found = here(manifests.installed(environment(drivers)), drivers)
    assert {name: manifest.library_is_missing() for name, manifest in found.items()} == {
        "good.json": False,
        "gone.json": True,
        "odd.json": True,
    }


@pytest.mark.parametrize(
    ("variables", "hidden"),
    [
        ({}, set()),
        ({"VK_DRIVER_FILES": "/elsewhere/x.json"}, {"good.json", "gone.json", "odd.json"}),
        ({"VK_DRIVER_FILES": "/elsewhere/x.json:{folder}/good.json"}, {"gone.json", "odd.json"}),
        ({"VK_DRIVER_FILES": "{folder}"}, set()),
        ({"VK_ICD_FILENAMES": "{folder}/gone.json"}, {"good.json", "odd.json"}),
        ({"VK_ICD_FILENAMES": "/x.json", "VK_DRIVER_FILES": "{folder}/good.json"}, {"gone.json", "odd.json"}),
        ({"VK_LOADER_DRIVERS_DISABLE": "g*.json"}, {"good.json", "gone.json"}),
        ({"VK_LOADER_DRIVERS_SELECT": "good*,odd.json"}, {"gone.json"}),
    ],
)
def test_hidden_drivers(drivers: Path, variables: dict[str, str], hidden: set[str]) -> None:
    settings = {name: value.format(folder=drivers) for name, value in variables.items()}
    found = manifests.hidden(environment(drivers, **settings))
    assert {path.name for path in found if path.parent == drivers} == hidden
    for path, setting in found.items():
        assert setting in {f"{name}={value}" for name, value in settings.items()}, path


def test_the_error_names_what_hides_drivers(drivers: Path) -> None:
    code = (
        "from triton.backends.spirv.runtime.vulkan.devices import devices, DeviceUnavailable\n"
        "try:\n    print(devices())\nexcept DeviceUnavailable as error:\n    print(error)\n"
    )
    missing = f"{drivers}/none.json"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"VK_DRIVER_FILES": missing, "XDG_DATA_DIRS": f"{drivers.parents[1]}:/usr/share"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"VK_DRIVER_FILES={missing} hides the installed drivers" in done.stdout, done.stdout + done.stderr
    assert "unset it" in done.stdout and f"{drivers}/good.json" in done.stdout


class Registry:
    """Windows' registry, of keys with their values: what winreg has of it that is asked."""

    HKEY_LOCAL_MACHINE = "HKLM"

    def __init__(self, keys: dict[str, dict[str, object]]) -> None:
        self.keys = keys

    @contextmanager
    def OpenKey(self, root: str, name: str) -> Iterator[str]:
        if root != self.HKEY_LOCAL_MACHINE or not any(f"{key}\\".startswith(f"{name}\\") for key in self.keys):
            raise FileNotFoundError(name)
        if self.keys.get(name, {}).get("locked"):
            raise PermissionError(name)
        yield name

    def _below(self, name: str) -> list[str]:
        return [key[len(name) + 1 :] for key in self.keys if key.startswith(f"{name}\\")]

    def QueryInfoKey(self, name: str) -> tuple[int, int, int]:
        return len(self._below(name)), len(self.keys.get(name, {})), 0

    def EnumKey(self, name: str, index: int) -> str:
        return self._below(name)[index]

    def EnumValue(self, name: str, index: int) -> tuple[str, object, int]:
        return (*list(self.keys[name].items())[index], 1)


def test_windows_registry_names_the_drivers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Display adapters and software components name one manifest or several; of the loader's own key those that are 0
    count. A driver that two keys name is one; a key that may not be read hides no other."""
    for name in ("card", "twin", "component", "own", "off"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"ICD": {"library_path": f".\\{name}.dll"}}))
    places = {name: str(tmp_path / f"{name}.json") for name in ("card", "twin", "component", "own", "off")}
    adapters, components = manifests.DISPLAY_ADAPTERS, manifests._COMPONENTS
    keys: dict[str, dict[str, object]] = {
        rf"{adapters}\0000": {"DriverDesc": "a card", "VulkanDriverName": places["card"]},
        rf"{adapters}\0001": {"VulkanDriverName": [places["twin"], places["card"]]},
        rf"{adapters}\Properties": {"locked": True},
        rf"{components}\0003": {"VulkanDriverName": places["component"], "VulkanDriverNameWow": places["off"]},
        r"SOFTWARE\Khronos\Vulkan\Drivers": {places["own"]: 0, places["off"]: 1},
    }
    monkeypatch.setitem(sys.modules, "winreg", Registry(keys))
    monkeypatch.setattr(manifests, "WINDOWS", True)
    found = manifests.installed({})
    assert [one.path.stem for one in found] == ["card", "twin", "component", "own"]
    assert all(one.has_path() for one in found)
    monkeypatch.setitem(sys.modules, "winreg", Registry({}))
    assert manifests.installed({}) == []
