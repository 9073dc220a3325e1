"""What a target's driver makes of a module: its statistics and its own code, on the page about a kernel.

A driver that has a device is asked in this process. Drivers of Mesa's compile for a GPU that is not there, where there
is what offline.py says. They work in their own process:

    python -m triton.backends.spirv.inspection.compilers DRIVER SUBGROUP_SIZE ANSWERS.json MODULE.spv ...
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..capabilities import Capabilities
from ..driver_quirks import DRIVERS
from ..runtime.cuda.cuda_driver import CudaError, compute_capability
from ..runtime.device_choice import devices, selected
from ..runtime.errors import DeviceUnavailable
from ..runtime.vulkan.compiled_code import driver_code
from ..runtime.vulkan.devices import VulkanDeviceInfo
from ..runtime.vulkan.statistics import (
    EXTENSION,
    FEATURE,
    Executable,
    Representation,
    Statistic,
    plausible,
    registers_and_spills,
)
from . import sass
from .nvidia_code import NoMachineCode, disassembled, machine_code
from .offline import COMPILERS, NoMesa, processes
from .zstandard import NoZstandard

#: The driver whose machine code comes from what it caches.
NVIDIA = "nvidia_proprietary"

#: Seconds after which a driver is given up.
SECONDS = 60

#: RADV's words for a GPU that it has another name for.
_UNKNOWN = "Unknown family"


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
    """What the driver that ``capabilities`` name says of a module, where it is on this machine; of a processor, what
    its code is."""
    driver = capabilities.driver
    if capabilities.processor:
        return _of_processor(spirv, capabilities)
    try:
        if (device := _device(driver)) is not None:
            return _answer(device, spirv, capabilities.subgroup_size)
    except DeviceUnavailable:
        pass  # a driver of Mesa's may still compile
    except (RuntimeError, ValueError) as error:
        return Answer(why=f"the driver {driver} failed: {error}")
    reason = f"this machine has no device of the driver {driver}"
    if driver not in COMPILERS:
        return Answer(why=reason)
    with tempfile.TemporaryDirectory() as folder:
        module = Path(folder) / "kernel.spv"
        module.write_bytes(spirv)
        try:
            return compiled_offline(driver, [module], capabilities.subgroup_size)[1][0]
        except NoMesa as error:
            return Answer(why=f"{reason}; Mesa compiles without one, but {error}")
        except subprocess.TimeoutExpired:
            return Answer(why=f"the driver {driver} did not compile the module within {SECONDS} s")
        except RuntimeError as error:
            return Answer(why=str(error).splitlines()[-1])


def _of_processor(spirv: bytes, capabilities: Capabilities) -> Answer:
    from ..cpu.machine import NoHostTarget
    from .processor_code import executables

    try:
        return Answer(f"a processor of {capabilities.processor}", "", tuple(executables(spirv, capabilities)))
    except NoHostTarget as error:
        return Answer(why=str(error))


def compiled_offline(
    driver: str, modules: Sequence[Path], subgroup_size: int, seconds: float | None = SECONDS
) -> tuple[dict[str, Any], list[Answer]]:
    """What a driver of COMPILERS says about a GPU that need not exist, as in ``triton-spirv info --json`` except for
    what is measured, and of each module, which is for subgroups of ``subgroup_size``.

    Raises NoMesa; RuntimeError with the driver's own words, the last line being the error, where it fails or refuses a
    module; subprocess.TimeoutExpired after ``seconds``.
    """
    error = None
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "answers.json"
        for process in processes(driver, Path(folder)):
            done = subprocess.run(
                [*process.interpreter, "-m", __spec__.name, driver, str(subgroup_size), str(out), *map(str, modules)],
                env={**os.environ, **process.environment},
                capture_output=True,
                text=True,
                errors="replace",
                timeout=seconds,
                check=False,
            )
            if not done.returncode:
                known = json.loads(out.read_text(encoding="utf-8"))
                return known["device"], [_read(one) for one in known["answers"]]
            said = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
            if error is None or _UNKNOWN not in said[-1]:
                error = RuntimeError("\n".join([*said[-40:-1], f"the driver {driver} failed: {said[-1]}"]))
    raise error or RuntimeError(f"the driver {driver} is not there")


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


def _device(driver: str) -> VulkanDeviceInfo | None:
    """The driver's device that this process uses, or its first one."""
    ours = (one for one in devices() if isinstance(one, VulkanDeviceInfo))
    able = [one for one in ours if one.driver == driver and one.capabilities is not None]
    with suppress(DeviceUnavailable):  # TRITON_SPIRV_DEVICE may name another driver's
        used = selected()
        return next((one for one in able if one is used), able[0] if able else None)
    return able[0] if able else None


def _answer(device: VulkanDeviceInfo, spirv: bytes, subgroup_size: int) -> Answer:
    if FEATURE not in device.vulkan_features:
        return Answer(device.name, f"{device.name} ({device.driver_version}) does not offer {EXTENSION}")
    found, cached = driver_code(device, spirv, subgroup_size, device.driver == NVIDIA)
    found, why = plausible(device.driver, found), ""
    if device.driver == NVIDIA:
        found, why = _with_machine_code(found, cached, device.uuid)
    return Answer(device.name, why, tuple(found), *registers_and_spills(device.driver, found))


def _with_machine_code(found: list[Executable], cached: bytes, uuid: str) -> tuple[list[Executable], str]:
    """The executables, the first with the machine code that NVIDIA's driver ``cached``, and why it has none, or ""."""
    try:
        code = machine_code(cached)
        text = disassembled(code, compute_capability(uuid))
    except (NoMachineCode, NoZstandard, CudaError) as error:
        return found, f"there is no machine code to show: {error}"
    own = Representation(DRIVERS[NVIDIA].machine_code, sass.commented(text, code), "NVIDIA's instructions, by nvdisasm")
    first, *others = found or [Executable("main", 0, ())]
    return [replace(first, representations=(*first.representations, own)), *others], ""


def _main(driver: str, subgroup_size: int, out: Path, modules: Sequence[Path]) -> None:
    """In the process that sees the driver's device."""
    device = _device(driver)
    if device is None:
        raise SystemExit(f"it has no device in {os.environ.get('VK_DRIVER_FILES')}")
    reported = {
        name: sorted(value) if isinstance(value, frozenset) else value
        for name, value in asdict(device.capabilities).items()  # type: ignore[arg-type]
    }
    reported |= {"name": device.name, "version": device.driver_version, "matrices": list(map(asdict, device.matrices))}
    answers = []
    for module in modules:
        try:
            answers.append(asdict(_answer(device, module.read_bytes(), subgroup_size)))
        except (RuntimeError, ValueError) as error:
            raise SystemExit(f"{module.name}: {error}") from None
    out.write_text(json.dumps({"device": reported, "answers": answers}), encoding="utf-8")


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), [Path(name) for name in sys.argv[4:]])
