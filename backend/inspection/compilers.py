"""What a target's driver makes of a module: its statistics and its own code, on the page about a kernel.

A driver that has a device is asked in this process. Drivers of Mesa's compile for a GPU that is not there, if the
environment describes one: RADV by a variable, ANV where a library plays the kernel's driver, of which
benchmarks/intel_shaders.py knows more. They work in a process of their own:

    python -m triton.backends.spirv.inspection.compilers DRIVER MODULE.spv ANSWER.json
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..capabilities import Capabilities
from ..runtime import manifests
from ..runtime.devices import DeviceInfo, compute_queue_family, devices
from ..runtime.errors import VulkanUnavailable
from ..runtime.loader import vulkan
from ..runtime.logical_device import create_device, create_pipeline_layout
from ..runtime.statistics import (
    EXTENSION,
    FEATURE,
    Executable,
    Representation,
    Statistic,
    executables,
    registers_and_spills,
)

#: Seconds after which a driver is given up.
SECONDS = 60

#: Names the library of Mesa's that plays an Intel GPU.
SHIM = "INTEL_NOOP_DRM_SHIM"


@dataclass(frozen=True)
class Answer:
    """``device``: its name, "" without an answer. ``why``: why there is none, or what to know of it.

    ``registers`` and ``spills``: as in Triton's ``n_regs`` and ``n_spills``.
    """

    device: str = ""
    why: str = ""
    executables: tuple[Executable, ...] = ()
    registers: int | None = None
    spills: int | None = None


def asked(spirv: bytes, capabilities: Capabilities) -> Answer:
    """What the driver that ``capabilities`` name says of a module, where it is on this machine."""
    driver = capabilities.driver
    try:
        if (device := _device(driver)) is not None:
            return _answer(device, spirv)
    except VulkanUnavailable:
        pass  # a driver of Mesa's may still compile
    except (RuntimeError, ValueError) as error:
        return Answer(why=f"the driver {driver} failed: {error}")
    reason = _missing(driver)
    for environment in _offline(driver):
        answer, reason = _ask(driver, spirv, environment)
        if answer is not None:
            return answer
    return Answer(why=reason)


def _offline(driver: str) -> Iterator[Mapping[str, str]]:
    """Environments in which the driver has a device that is not there."""
    if driver == "mesa_radv":
        for manifest in _of("radeon_icd"):
            for family in ("gfx1100", "navi31"):  # a Radeon RX 7900 by its names in Mesa to 23.0, and since
                yield manifest | {"RADV_FORCE_FAMILY": family}
    shim = os.environ.get(SHIM, "")
    if driver == "intel_open_source_mesa" and shim:
        for manifest in _of("intel_icd"):
            yield manifest | {"LD_PRELOAD": shim, "INTEL_STUB_GPU_PLATFORM": "dg2"}


def _of(prefix: str) -> list[dict[str, str]]:
    found = [str(one.path) for one in manifests.installed() if one.path.name.startswith(prefix)]
    return [dict.fromkeys(manifests.REPLACING, path) for path in found]


def _missing(driver: str) -> str:
    text = f"this machine has no device of the driver {driver}"
    if driver == "mesa_radv":
        return f"{text}, and no RADV, which compiles without one: apt-get install mesa-vulkan-drivers"
    if driver == "intel_open_source_mesa":
        return f"{text}; with {SHIM}, ANV compiles without one (benchmarks/intel_shaders.py says how)"
    return text


def _ask(driver: str, spirv: bytes, environment: Mapping[str, str]) -> tuple[Answer | None, str]:
    with tempfile.TemporaryDirectory() as folder:
        module, out = Path(folder) / "kernel.spv", Path(folder) / "answer.json"
        module.write_bytes(spirv)
        try:
            done = subprocess.run(
                [sys.executable, "-m", __spec__.name, driver, str(module), str(out)],
                env=os.environ
                | {"TRITON_SPIRV_DEVICE": "", "LOCAL_RANK": "", "TRITON_SPIRV_VALIDATE": "0"}
                | dict(environment),
                capture_output=True,
                text=True,
                errors="replace",
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None, f"the driver {driver} did not compile the module within {SECONDS} s"
        if done.returncode:
            said = done.stderr.strip().splitlines()
            return None, f"the driver {driver} failed: {said[-1] if said else f'status {done.returncode}'}"
        return _read(json.loads(out.read_text(encoding="utf-8"))), ""


def _read(known: dict[str, Any]) -> Answer:
    found = tuple(
        Executable(
            one["name"],
            one["subgroup_size"],
            tuple(Statistic(**row) for row in one["statistics"]),
            tuple(Representation(**row) for row in one["representations"]),
        )
        for one in known["executables"]
    )
    return Answer(known["device"], known["why"], found, known["registers"], known["spills"])


def _device(driver: str) -> DeviceInfo | None:
    return next((one for one in devices() if one.driver == driver and one.capabilities is not None), None)


def _answer(device: DeviceInfo, spirv: bytes) -> Answer:
    if FEATURE not in device.vulkan_features:
        return Answer(device.name, f"{device.name} ({device.driver_version}) does not offer {EXTENSION}")
    assert device.capabilities is not None
    vk = vulkan()
    handle = create_device(device, compute_queue_family(device))
    layout = create_pipeline_layout(handle, device.capabilities)
    try:
        found = executables(handle, layout, spirv, device.capabilities.subgroup_size, texts=True)
    finally:
        vk.lib.vkDestroyPipelineLayout(handle, layout, vk.ffi.NULL)
        vk.lib.vkDestroyDevice(handle, vk.ffi.NULL)
    return Answer(device.name, "", tuple(found), *registers_and_spills(device.driver, found))


def _main(driver: str, module: Path, out: Path) -> None:
    """In the process that sees the driver's device."""
    device = _device(driver)
    if device is None:
        raise SystemExit(f"it has no device in {os.environ.get('VK_DRIVER_FILES')}")
    out.write_text(json.dumps(asdict(_answer(device, module.read_bytes()))), encoding="utf-8")


if __name__ == "__main__":
    _main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
