"""``triton-spirv doctor`` on a machine that is well, and on one that is made not to be."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from triton.backends.spirv.inspection import doctor as inspection_doctor


def doctor(**variables: str) -> tuple[int, str]:
    """Status and output; Python's traceback is never part of it. A device that was chosen for the tests is not."""
    given = {name: value for name, value in os.environ.items() if name != "TRITON_SPIRV_DEVICE"}
    command = [sys.executable, "-m", "triton.backends.spirv.cli", "doctor"]
    done = subprocess.run(command, env=given | variables, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    return done.returncode, done.stdout


def test_a_machine_that_is_well() -> None:
    status, output = doctor()
    assert status == 0 and output.endswith("kernels can run\n"), output
    assert re.search(r"ok  a tiny kernel ran on .+: first result after \d+ ms with compiling", output), output
    assert "triton 3" in output and "device 0: " in output and "FAULT" not in output


def test_hidden_drivers_are_the_reason() -> None:
    status, output = doctor(VK_DRIVER_FILES="/nowhere/none.json")
    assert status == 1
    assert "FAULT  VK_DRIVER_FILES names /nowhere/none.json, which does not exist\n" in output
    assert "is hidden by VK_DRIVER_FILES=/nowhere/none.json\n       → unset VK_DRIVER_FILES\n" in output
    assert "a tiny kernel: fix the faults above first" in output


@pytest.mark.parametrize(
    ("variables", "fault"),
    [
        ({"TRITON_SPIRV_DEVICE": "no such device"}, "TRITON_SPIRV_DEVICE='no such device'"),
        ({"TRITON_SPIRV_TIMEOUT": "soon"}, "TRITON_SPIRV_TIMEOUT must be a number of seconds"),
        ({"LOCAL_RANK": "first"}, "LOCAL_RANK='first' is not a number"),
    ],
)
def test_a_wrong_variable(variables: dict[str, str], fault: str) -> None:
    status, output = doctor(**variables)
    assert status == 1 and fault in output and output.count("FAULT") == 1, output
    missing = (
        "→ choose another device, or unset TRITON_SPIRV_DEVICE; a GPU that is not listed wants its Vulkan driver: "
    )
    assert (missing in output) == ("TRITON_SPIRV_DEVICE" in variables), output


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({}, "Triton's kernels do not go to spirv, because other is active\n       → set TRITON_SPIRV_BACKEND=1"),
        ({"TRITON_SPIRV_BACKEND": "1"}, "Triton's drivers other and spirv are active: kernels go to spirv, and"),
    ],
)
def test_another_active_driver(variables: dict[str, str], told: str) -> None:
    """As beside CUDA: doctor names the drivers that a library counts, and the one that is chosen."""
    program = """
import triton
from registered import OpListBackend, OpListDriver
from triton.backends.spirv.cli import main
other = type("OtherDriver", (OpListDriver,), {"is_active": classmethod(lambda cls: True)})
spirv = triton.backends.backends["spirv"]
triton.backends.backends.clear()
triton.backends.backends.update(spirv=spirv, other=triton.backends.Backend(OpListBackend, other))
print(type(triton.runtime.driver.active).__name__)
main(["doctor"])
"""
    given = {name: value for name, value in os.environ.items() if not name.startswith("TRITON_SPIRV_BACKEND")}
    paths = [str(Path(__file__).parents[2] / "examples/plugins"), *filter(None, [os.environ.get("PYTHONPATH")])]
    given |= {"PYTHONPATH": os.pathsep.join(paths), **variables}
    done = subprocess.run([sys.executable, "-c", program], env=given, capture_output=True, text=True, check=False)
    assert f" note  {told}" in done.stdout, done.stdout + done.stderr
    assert done.stdout.splitlines()[0] == ("SPIRVDriver" if variables else "OtherDriver")


def test_a_misspelt_variable() -> None:
    status, output = doctor(TRITON_SPIRV_DEVISE="0")
    assert status == 0 and "TRITON_SPIRV_DEVISE is not known" in output and "TRITON_SPIRV_DEVICE?" in output


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    status, output = doctor(TRITON_CACHE_DIR=str(file / "cache"))
    assert status == 0 and f" note  Triton's cache {file}/cache cannot be used (Not a directory): each" in output


@pytest.mark.skipif(os.name == "nt", reason="rights of folders have another form on Windows")
def test_a_cache_that_others_can_write(tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o777)
    status, output = doctor(TRITON_CACHE_DIR=str(tmp_path))
    assert status == 0 and f" note  Triton's cache {tmp_path} holds code that is executed, and everybody can" in output


def test_without_numpy_the_kernel_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wheel does not ask for NumPy, because torch's tensors do without it."""
    version = inspection_doctor._version
    monkeypatch.setattr(inspection_doctor, "_version", lambda name: None if name == "numpy" else version(name))
    found = [*inspection_doctor._software(), *inspection_doctor._trial()]
    assert [one.what for one in found if one.remedy == "pip install numpy"] == [
        "NumPy is not installed: arrays of triton-spirv need it",
        "no kernel was tried: that takes NumPy",
    ]
    assert not any(one.state == inspection_doctor.FAULT for one in found)


@pytest.mark.parametrize(("torch", "state"), [("2.9.1+cpu", "NOTE"), ("2.10.0", "GOOD"), ("3.0.0a0+git1", "GOOD")])
def test_an_older_torch_lacks_the_device(monkeypatch: pytest.MonkeyPatch, torch: str, state: str) -> None:
    version = inspection_doctor._version
    monkeypatch.setattr(inspection_doctor, "_version", lambda name: torch if name == "torch" else version(name))
    (found,) = (one for one in inspection_doctor._software() if one.what.startswith("torch"))
    assert found.state == getattr(inspection_doctor, state) and bool(found.remedy) == (state == "NOTE")


def test_triton_of_windows_is_known_by_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it doctor would try no kernel there."""
    names = {"triton": None, "triton-windows": "3.8.0.post29", "numpy": None}
    monkeypatch.setattr(inspection_doctor, "_version", names.get)
    found = [*inspection_doctor._software(), *inspection_doctor._trial()]
    assert found[0].what.endswith("triton 3.8.0.post29, with the SPIR-V plugin")
    assert found[-1].what == "no kernel was tried: that takes NumPy"


def test_remedies_on_windows_are_those_of_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU whose driver is too old, a machine without spirv-val, and a device that is a CPU."""
    path = Path(inspection_doctor.system.__file__)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", "win32")
        spec = importlib.util.spec_from_file_location("system_of_windows", path)
        assert spec and spec.loader
        windows = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(windows)
    assert windows.WINDOWS and not inspection_doctor.system.WINDOWS

    def remedies() -> list[str]:
        checks = (inspection_doctor._devices, inspection_doctor._tools)
        return [finding.remedy for check in checks for finding in check() if finding.remedy]

    old = SimpleNamespace(
        describe=lambda: "an old GPU", driver="its driver", driver_version="1", details=dict, capabilities=None
    )
    processor = SimpleNamespace(kind="cpu", name="a processor")
    monkeypatch.setattr(inspection_doctor, "installed", lambda: [old])
    monkeypatch.setattr(inspection_doctor, "devices", list)
    monkeypatch.setattr(inspection_doctor, "choose", lambda _: (processor, "it is there"))
    monkeypatch.setattr(inspection_doctor.shutil, "which", lambda _: None)
    linux = remedies()
    monkeypatch.setattr(inspection_doctor, "system", windows)
    there = remedies()
    assert len(linux) == len(there) == 3
    assert "apt-get install mesa-vulkan-drivers" in linux[1] and "apt-get install spirv-tools" in linux[2]
    assert there[0].startswith("update the driver from amd.com/support") and there[0].endswith("use another device")
    assert "nvidia.com/drivers" in there[1] and there[2].startswith("the Vulkan SDK (vulkan.lunarg.com)")
    assert "apt" not in " ".join(there)


def test_another_accelerator_of_torch_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(inspection_doctor, "other_accelerator", lambda: "cuda")
    monkeypatch.delenv("TRITON_SPIRV_TORCH_DEVICE", raising=False)
    (finding,) = inspection_doctor._other_accelerator()
    assert finding.what == "torch has 'cuda' here, and so not the device 'spirv'"
    assert finding.remedy.startswith("set TRITON_SPIRV_TORCH_DEVICE=1 before torch is imported")
    monkeypatch.setenv("TRITON_SPIRV_TORCH_DEVICE", "1")
    assert not list(inspection_doctor._other_accelerator())
