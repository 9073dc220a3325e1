"""Which installed drivers the environment hides from the Vulkan loader."""

from __future__ import annotations

import json
import os
import subprocess
import sys
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
