"""Drivers that crash or hang when they are asked for their devices are named and left out, and Python survives."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from triton.backends.spirv.runtime import DeviceUnavailable
from triton.backends.spirv.runtime.vulkan import asking, manifests

SOURCE = Path(__file__).with_name("faulty_driver.cpp")
FAULTS = {"crashing": "raise(SIGSEGV)", "hanging": "for (;;) pause()", "leaving": "_exit(3)"}

PROGRAM = """
import logging
logging.basicConfig(level=logging.WARNING)
import triton
from triton.backends.spirv.runtime import DeviceUnavailable, device_choice
try:
    print([device.driver for device in device_choice.KINDS["Vulkan"].devices()])
except DeviceUnavailable as error:
    print("none:", error)
"""


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Manifests of drivers with each fault, by its name."""
    folder = tmp_path_factory.mktemp("drivers")
    for name, fault in FAULTS.items():
        library = folder / f"lib{name}.so"
        subprocess.run(["g++", "-shared", "-fPIC", f"-DFAULT={fault}", "-o", library, SOURCE], check=True)
        manifest = {"file_format_version": "1.0.0", "ICD": {"library_path": str(library), "api_version": "1.3.0"}}
        (folder / f"{name}.json").write_text(json.dumps(manifest))
    return {name: folder / f"{name}.json" for name in FAULTS}


@pytest.fixture(scope="module")
def working() -> Path:
    """The manifest of Mesa's CPU driver."""
    found = next((one.path for one in manifests.used() if one.path.name.startswith("lvp_icd")), None)
    if found is None:
        pytest.skip("needs Mesa's CPU driver")
    return found


def _run(drivers: list[Path], cache: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_SPIRV_DEVICE"}
    environment |= {"VK_DRIVER_FILES": ":".join(map(str, drivers)), "TRITON_CACHE_DIR": str(cache)}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=100, check=False
    )


@pytest.mark.parametrize(("name", "said"), [("crashing", "SIGSEGV"), ("leaving", "status 3")])
def test_a_faulty_driver_is_left_out(
    faulty: dict[str, Path], working: Path, tmp_path: Path, name: str, said: str
) -> None:
    first = _run([faulty[name], working], tmp_path)
    assert first.returncode == 0, first.stderr
    assert "mesa_llvmpipe" in first.stdout
    assert f"{faulty[name]} is left out" in first.stderr and said in first.stderr
    # The answer is kept: nobody is asked again, nor told again.
    second = _run([faulty[name], working], tmp_path)
    assert "mesa_llvmpipe" in second.stdout and "left out" not in second.stderr


def test_a_faulty_driver_alone(faulty: dict[str, Path], tmp_path: Path) -> None:
    done = _run([faulty["crashing"]], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "none: no Vulkan driver can be used" in done.stdout and "SIGSEGV" in done.stdout


def test_a_driver_that_hangs_is_given_up(faulty: dict[str, Path], working: Path) -> None:
    found = asking.judged([working, faulty["hanging"]], seconds=4)
    assert found == {faulty["hanging"]: "does not answer within 4 s"}


def test_drivers_that_fail_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """As row 6 of field_reports.py: each alone answers. The last one without which the others answer is left out."""
    a, b, c = (Path(f"/{name}.json") for name in "abc")

    def ask(drivers: list[Path], _: float) -> str | None:
        return "crashes" if {a, b} <= set(drivers) else None

    monkeypatch.setattr(asking, "ask", ask)
    assert asking.judged([a, b, c]) == {b: "beside a.json, c.json, it crashes"}
    assert asking.judged([a, c]) == {}


def test_a_new_library_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = tmp_path / "libdriver.so"
    library.write_bytes(b"1")
    manifest = tmp_path / "driver.json"
    manifest.write_text(json.dumps({"ICD": {"library_path": str(library)}}))
    monkeypatch.setenv("VK_DRIVER_FILES", str(manifest))
    before = asking.record_of(manifest)
    library.write_bytes(b"22")
    assert before is not None and asking.record_of(manifest) not in (None, before)


def test_without_hides_from_the_loader_alone(faulty: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [faulty["crashing"], faulty["leaving"]]
    monkeypatch.setenv("VK_DRIVER_FILES", ":".join(map(str, paths)))
    monkeypatch.delenv("VK_ICD_FILENAMES", raising=False)
    with asking.without({paths[0]: "crashes"}):
        assert os.environ["VK_DRIVER_FILES"] == os.environ["VK_ICD_FILENAMES"] == str(paths[1])
    assert os.environ["VK_DRIVER_FILES"] == ":".join(map(str, paths)) and "VK_ICD_FILENAMES" not in os.environ
    monkeypatch.setattr(asking, "left_out", dict)  # what it finds is kept for the process
    with pytest.raises(DeviceUnavailable, match="no Vulkan driver can be used"), asking.without(paths):
        pass
