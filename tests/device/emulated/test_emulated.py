"""Emulated devices: results of every profile, and what no GPU says of a kernel: races, barriers, accesses outside."""

import json
import os
import re
import sys
from pathlib import Path

import pytest
from triton.backends.spirv import capabilities
from triton.backends.spirv.capabilities import profiles

from tests.device.emulated.files import EVERY_TIME, KERNEL_TESTS, LEFT_OUT
from tests.device.forks import run_python
from tests.device.processes import run

_KERNELS = str(Path(__file__).with_name("kernels.py"))
#: Profiles of GPUs.
PROFILES = [name for name, one in profiles().items() if not one.capabilities.processor and "lavapipe" not in name]


def emulate(profile: str, kernel: str, tmp_path: Path, **environment: str) -> str:
    """What kernels.py prints, on a device of a profile."""
    chosen = {
        "TRITON_SPIRV_DEVICE": f"emulate:{profile}",
        "TRITON_SPIRV_BACKEND": "1",
        "TRITON_CACHE_DIR": str(tmp_path),
    }
    done = run_python([_KERNELS, kernel], os.environ | chosen | environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("profile", PROFILES)
def test_kernels_are_right_on_every_profile(profile: str, tmp_path: Path) -> None:
    """Subgroups exchange elements; products are on the profile's matrix units; sums, along axes and in memory."""
    has_units = bool(profiles()[profile].capabilities.matrices)
    assert emulate(profile, "everything", tmp_path).splitlines() == ["right", f"right {has_units}", "right"]


@pytest.mark.parametrize(("profile", "order"), [("amd-rdna3", "1"), ("qualcomm-adreno7", "2")])
def test_subgroups_exchange_elements_in_any_order(profile: str, order: str, tmp_path: Path) -> None:
    assert emulate(profile, "turned", tmp_path, TRITON_SPIRV_DISORDER=order) == "right"


def test_a_missing_barrier_is_a_race(tmp_path: Path) -> None:
    said = emulate("amd-rdna3", "without barriers", tmp_path)
    assert said.startswith("KernelFault: kernels.py:") and "kernel 'turned_kernel' " in said
    assert "byte 512 of shared memory in subgroup 2, which subgroup 1 accesses with no barrier between them" in said


@pytest.mark.parametrize("profile", ["nvidia-hopper", "qualcomm-adreno7"])
def test_subgroups_run_in_the_order_that_is_asked_for(profile: str, tmp_path: Path) -> None:
    orders = [emulate(profile, "order", tmp_path, TRITON_SPIRV_DISORDER=str(number)) for number in range(4)]
    assert orders[0] == "[0, 1, 2, 3]" and len(set(orders)) > 1
    assert all(sorted(json.loads(order)) == [0, 1, 2, 3] for order in orders)
    assert emulate(profile, "order", tmp_path, TRITON_SPIRV_DISORDER="3") == orders[3]


@pytest.mark.parametrize("profile", ["intel-xe", "apple-m1"])
def test_shared_memory_holds_no_number_before_a_kernel_stores_one(profile: str, tmp_path: Path) -> None:
    """Of int32, float32 and float16. The same kernel is right where it has stored something."""
    assert emulate(profile, "never stored", tmp_path).splitlines() == ["['-1']", "['nan']", "['nan']"]
    assert emulate(profile, "strides", tmp_path).splitlines() == ["right"] * 3


def test_an_access_outside_of_shared_memory_has_its_line(tmp_path: Path) -> None:
    said = emulate("nvidia-hopper", "past the buffer", tmp_path)
    line = next(number for number, text in enumerate(Path(_KERNELS).read_text().splitlines(), 1) if "tl.gather" in text)
    assert said.startswith(f"KernelFault: kernels.py:{line}: kernel 'turned_kernel' reads from shared memory outside ")
    assert re.search(r"outside of what its workgroup has: byte \d{4} of 1024$", said)


def test_an_access_outside_of_tensors_has_its_line(tmp_path: Path) -> None:
    said = emulate("nvidia-hopper", "past the end", tmp_path)
    line = next(
        number for number, text in enumerate(Path(_KERNELS).read_text().splitlines(), 1) if "+ 16 * SIZE" in text
    )
    assert said.startswith(f"KernelFault: kernels.py:{line}: kernel 'past_kernel' reads from address 0x")
    assert said.endswith("which is in no tensor of the device; look for a missing mask")


@pytest.mark.parametrize(("profile", "status"), [("apple-m1", 0), ("faulty.json", 1)])
def test_a_random_kernel_that_is_rightly_refused_has_no_fault(profile: str, status: int, tmp_path: Path) -> None:
    """Apple's GPU has no 64-bit atomics, which the kernel needs. A device that cannot hold any tile has no such feature
    to name."""
    chosen = profile
    if status:
        text = (Path(capabilities.__file__).parent / "profiles" / "apple-m1.json").read_text()
        file = tmp_path / profile
        file.write_text(json.dumps({**json.loads(text), "shared_bytes": 16}))
        chosen = str(file)
    command = [sys.executable, "-m", "tests.fuzz", "--sorts", "atomics", "combining", "--seeds", "1:2"]
    done = run(
        [*command, "--minimise-seconds", "0", "--out", str(tmp_path / "out")],
        cwd=Path(__file__).parents[3],
        TRITON_SPIRV_DEVICE=f"emulate:{chosen}",
        TRITON_SPIRV_BACKEND="1",
        TRITON_CACHE_DIR=str(tmp_path),
    )
    assert done.returncode == status, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["nothing", "cpu-aarch64", "missing.json"])
def test_a_name_that_is_no_gpus_is_refused(name: str) -> None:
    done = run([sys.executable, _KERNELS, "turned"], TRITON_SPIRV_DEVICE=f"emulate:{name}", TRITON_SPIRV_BACKEND="1")
    last = done.stdout + done.stderr
    assert f"TRITON_SPIRV_DEVICE=emulate:{name}" in last and "Traceback" not in done.stdout


def test_a_profile_of_a_file(tmp_path: Path) -> None:
    """An AMD GPU with subgroups of 64 and without matrix units."""
    text = (Path(capabilities.__file__).parent / "profiles" / "amd-rdna3.json").read_text()
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({**json.loads(text), "subgroup_size": 64, "matrices": []}))
    assert emulate(str(file), "turned", tmp_path) == "right"


def test_a_report_of_a_device(tmp_path: Path) -> None:
    """What `triton-spirv report` writes is a device here, with the matrix units and the features that it has."""
    found = profiles()["intel-xe"].capabilities
    entries = ("driver", "subgroup_size", "shared_bytes", "push_constant_bytes", "max_workgroup_invocations")
    device = {
        "index": 0,
        "name": "A GPU",
        "driver": found.driver,
        "driver_version": "1",
        "capabilities": {name: getattr(found, name) for name in entries},
        "features": {name: name in found.features for name in capabilities.FEATURES},
        "matrices": list(map(str, found.matrices)),
        **dict.fromkeys(("native_math", "tile_products", "corrections"), []),
    }
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"format": 1, "info": {"used": {"index": 0}, "devices": [device]}}))
    assert emulate(str(report), "everything", tmp_path).splitlines() == ["right", "right True", "right"]
    report.write_text(json.dumps({"format": 1, "info": {"used": None, "devices": [device]}}))
    done = run([sys.executable, _KERNELS, "turned"], TRITON_SPIRV_DEVICE=f"emulate:{report}", TRITON_SPIRV_BACKEND="1")
    assert "is no report of a device that runs kernels" in done.stdout + done.stderr


def test_host_memory_is_not_used_in_place(tmp_path: Path) -> None:
    done = run(
        [sys.executable, _KERNELS, "turned"],
        TRITON_SPIRV_DEVICE="emulate:apple-m1",
        TRITON_SPIRV_BACKEND="1",
        TRITON_SPIRV_HOST_MEMORY="zero-copy",
    )
    assert "has memory of its own" in done.stdout + done.stderr


def test_every_file_of_the_lists_is_there() -> None:
    """A new file of tests runs on emulated devices unless LEFT_OUT has it, with a reason."""
    folder = Path(__file__).parents[1]
    every = [name for names in EVERY_TIME.values() for name in names]
    assert [name for name in (*LEFT_OUT, *every) if not (folder / name).exists()] == []
    assert set(every) <= set(KERNEL_TESTS) and all(LEFT_OUT.values())
    assert {path.name for path in folder.glob("test_*.py")} <= {*KERNEL_TESTS, *LEFT_OUT}


def test_every_gpu_has_its_tests() -> None:
    assert {*EVERY_TIME, "generic"} == set(PROFILES)
    weekly = (Path(__file__).parents[3] / ".github/workflows/weekly.yml").read_text()
    assert f"profile: [{', '.join(EVERY_TIME)}]" in weekly


@pytest.mark.parametrize("profile", EVERY_TIME)
def test_device_tests_on_a_profile(profile: str) -> None:
    command = [sys.executable, "-m", "tests.device.emulated", profile, "-n0", "-q", "-p", "no:cacheprovider"]
    command.append("--each-value-of-all")
    files = [f"tests/device/{name}" for name in EVERY_TIME[profile]]
    done = run([*command, *files], seconds=500, cwd=Path(__file__).parents[3])
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
