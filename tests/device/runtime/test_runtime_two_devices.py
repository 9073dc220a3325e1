"""Two Vulkan devices in one process, and ranks that take one each.

A machine that has one lists Mesa's CPU driver twice, under the names of two manifests.
"""

import json
import os
import sys
from pathlib import Path

import pytest
from triton.backends.spirv.runtime.device_choice import devices

from tests.device.processes import on_path, run, run_script

pytestmark = pytest.mark.only_on("Vulkan", "there is one CPU device")

#: What a process runs first, in which Mesa's CPU driver is to be the best device.
_WITHOUT_THE_PROCESSOR = """
from triton.backends.spirv.runtime.cpu import kind
kind.Cpu.devices = lambda self: ()
"""

_PROGRAM = [sys.executable, "-m", "tests.device.runtime.two_devices"]
_ROOT = Path(__file__).parents[3]
_MANIFEST_FOLDERS = ("/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/etc/vulkan/icd.d")


def _cpu_manifests() -> list[Path]:
    """Manifests of Mesa's CPU driver: those that the environment lists, then those that are installed."""
    listed = os.environ.get("VK_DRIVER_FILES") or os.environ.get("VK_ICD_FILENAMES") or ""
    files = [Path(name) for name in listed.split(os.pathsep) if name]
    for folder in _MANIFEST_FOLDERS:
        files.extend(sorted(Path(folder).glob("lvp_icd*.json")))
    return [file for file in files if file.name.startswith("lvp_icd") and file.is_file()]


@pytest.fixture
def two_devices(tmp_path: Path) -> dict[str, str]:
    """The environment of a process that has two devices of one kind."""
    (tmp_path / "sitecustomize.py").write_text(_WITHOUT_THE_PROCESSOR)
    environment = {"TRITON_SPIRV_DEVICE": "", "LOCAL_RANK": "", "TRITON_SPIRV_BACKEND": "1"}
    environment["PYTHONPATH"] = on_path(tmp_path)
    usable = [device.kind for device in devices() if not device.lacks and device.api == "Vulkan"]
    if usable[:2] == usable[:1] * 2:
        return environment
    manifests = _cpu_manifests()
    if not manifests:
        pytest.skip("there is one Vulkan device, and Mesa's CPU driver is not installed to be listed twice")
    manifest = json.loads(manifests[0].read_text())
    library = manifest["ICD"]["library_path"]
    if "/" in library:
        manifest["ICD"]["library_path"] = str(manifests[0].resolve().parent / library)
    files = [tmp_path / f"{name}_icd.json" for name in ("first", "second")]
    for file in files:
        file.write_text(json.dumps(manifest))
    listed = os.pathsep.join(map(str, files))
    return {**environment, "VK_DRIVER_FILES": listed, "VK_ICD_FILENAMES": listed}


@pytest.mark.parametrize(
    "check",
    [
        "launches_from_one_thread",
        "launches_from_two_threads",
        "the_current_device_is_the_threads_own",
        "tensors_of_another_device_are_refused",
        "copies_between_devices",
        "torch_tensors",
        "host_memory_goes_to_the_current_device",
        "kernels_are_loaded_for_each_device",
        "events_and_waits",
    ],
)
@pytest.mark.parametrize("way", ["", "staged"])
def test_two_devices_in_one_process(two_devices: dict[str, str], long_file: Path, check: str, way: str) -> None:
    # The validation layer misses signals where several threads submit (test_runtime_async_faults.py).
    validate = {"TRITON_SPIRV_VALIDATE": "0"} if check == "launches_from_two_threads" else {}
    done = run([*_PROGRAM, check, str(long_file)], cwd=_ROOT, TRITON_SPIRV_HOST_MEMORY=way, **two_devices, **validate)
    assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_ranks_take_devices_in_turn(two_devices: dict[str, str], rank: int) -> None:
    """A rank sees the device that it takes alone: it is 'spirv:0' there. Ranks past the last device share."""
    script = """
from triton.backends.spirv.runtime import context
from triton.backends.spirv.runtime.device_choice import devices
found, mine = devices(), context.current()
alike = sum(found[0].kind == device.kind for device in found)
print(found.index(mine.device), mine.index, len(context.devices()), alike)
try:
    context.set_current_device(1)
except RuntimeError as error:
    print(error)
"""
    done = run_script(script, **{**two_devices, "LOCAL_RANK": str(rank)})
    told, refusal = done.stdout.splitlines() or pytest.fail(done.stderr)
    taken, index, seen, alike = map(int, told.split())
    assert alike >= 2
    assert (taken, index, seen) == (rank % alike, 0, 1)
    assert refusal.startswith("there is no device 'spirv:1': spirv:0 is ")
    assert f"chosen by LOCAL_RANK={rank}, of {alike} " in refusal


def test_a_wish_goes_before_the_rank(two_devices: dict[str, str]) -> None:
    script = """
from triton.backends.spirv.runtime.device_choice import devices
print(devices().index(current().device), current().index)
"""
    for wanted in ("0", "1"):
        done = run_script(script, **{**two_devices, "TRITON_SPIRV_DEVICE": wanted, "LOCAL_RANK": "0"})
        assert done.stdout == f"{wanted} 0\n", done.stderr


def test_gradients_on_both_devices(two_devices: dict[str, str], long_file: Path) -> None:
    done = run([*_PROGRAM, "gradients", str(long_file)], cwd=_ROOT, **two_devices)
    assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr


def test_gradients_on_the_chosen_device(two_devices: dict[str, str]) -> None:
    """torch counts one device of a backend from outside: the chosen one, whatever its place among all, is the first."""
    script = """
import torch, triton
device = triton.runtime.driver.active.get_active_torch_device()
x = torch.full((3, ), 2.0, device=device, requires_grad=True)
(x * x).sum().backward()
print(device, x.grad.tolist())
"""
    done = run_script(script, **{**two_devices, "TRITON_SPIRV_DEVICE": "1", "TRITON_SPIRV_HOST_MEMORY": "staged"})
    assert done.stdout == "spirv:0 [4.0, 4.0, 4.0]\n", done.stderr


def test_data_parallel_ranks_on_two_devices(two_devices: dict[str, str]) -> None:
    done = run(
        [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node",
            "2",
            "-m",
            "examples.data_parallel",
        ],
        seconds=240,
        cwd=_ROOT,
        OMP_NUM_THREADS="1",
        **two_devices,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert all(f"(LOCAL_RANK={rank}, of " in done.stdout for rank in range(2))
    assert done.stdout.count("max error") == 2 and "WRONG" not in done.stdout
