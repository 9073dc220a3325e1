"""``triton-spirv doctor``: whether kernels can run on this machine, and what to do if they cannot."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import math
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import settings, system
from ..autoload.others import HOW_TO_CLAIM, other_accelerator
from ..autoload.versions import OLDEST_TORCH, is_too_old
from ..availability import other_active_drivers
from ..capabilities import FEATURES, Capabilities
from ..runtime import context
from ..runtime.device_choice import choose, devices, installed
from ..runtime.device_kind import DeviceInfo
from ..runtime.errors import DeviceUnavailable
from ..runtime.files import MAKE_OURS, asked_cache, distrusted, unusable
from ..runtime.vulkan import asking, manifests
from ..runtime.vulkan.device_info import VulkanDeviceInfo
from ..runtime.vulkan.job_limit import ON_AMDGPU, job_seconds, read_lockup_timeout

GOOD, NOTE, FAULT = "ok", "note", "FAULT"
#: Seconds after which the trial kernel is given up.
TRIAL_SECONDS = 120


@dataclass(frozen=True)
class Finding:
    """One line of the report: ``state`` is GOOD, NOTE (works, but may surprise) or FAULT (kernels cannot run)."""

    state: str
    what: str
    remedy: str = ""


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _triton() -> str | None:
    """The version of Triton, whose distribution has another name on Windows."""
    return _version("triton") or _version("triton-windows")


def _software() -> Iterator[Finding]:
    machine = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    triton = _triton()
    if triton is None:
        yield Finding(NOTE, f"{machine}; Triton is not installed: kernels compiled ahead of time can run")
    else:
        kind = "the patched wheel" if "+spirv" in triton else "with the SPIR-V plugin"
        yield Finding(GOOD, f"{machine}; triton {triton}, {kind}")
    torch = _version("torch")
    if torch is None:
        yield Finding(GOOD, "torch is not installed; arrays of triton-spirv work without it")
    elif is_too_old(torch):
        yield Finding(
            NOTE,
            f"torch {torch}: kernels take its CPU tensors; the device 'spirv' needs torch {OLDEST_TORCH} or newer",
            "pip install --upgrade torch, then install this wheel again",
        )
    else:
        yield Finding(GOOD, f"torch {torch}")
        yield from _other_accelerator()
    if _version("numpy") is None:
        yield Finding(NOTE, "NumPy is not installed: arrays of triton-spirv need it", "pip install numpy")
    try:
        context.native()
    except DeviceUnavailable as error:
        yield Finding(FAULT, str(error))


def _other_accelerator() -> Iterator[Finding]:
    """Whether torch's device steps aside, which takes torch's import."""
    try:
        other = other_accelerator()
    except (ImportError, OSError) as error:
        yield Finding(NOTE, f"torch cannot be imported: {error}", "install it again")
        return
    if other is not None and not settings.TORCH_DEVICE.get():
        yield Finding(NOTE, f"torch has '{other}' here, and so not the device 'spirv'", HOW_TO_CLAIM)


def _drivers() -> Iterator[Finding]:
    hidden, left_out = manifests.hidden(), asking.left_out()
    for manifest in manifests.installed():
        if manifest.path in hidden:
            setting = hidden[manifest.path]
            yield Finding(NOTE, f"driver {manifest.path} is hidden by {setting}", f"unset {setting.partition('=')[0]}")
        elif manifest.library_is_missing():
            named = f"its library {manifest.library} is missing" if manifest.library else "it cannot be read"
            yield Finding(NOTE, f"driver {manifest.path}: {named}", "install the driver again")
        elif manifest.path not in left_out:
            yield Finding(GOOD, f"driver {manifest.path}")
    for path, fault in left_out.items():
        again = f"; to ask it again before a day has passed, remove {asking.record_of(path)}"
        yield Finding(NOTE, f"driver {path} is left out: it {fault}", f"{system.UPDATE_DRIVER}{again}")
    for variable in manifests.REPLACING:
        for name in filter(None, os.environ.get(variable, "").split(os.pathsep)):
            if not Path(name).exists():
                yield Finding(FAULT, f"{variable} names {name}, which does not exist", f"correct or unset {variable}")


def _devices() -> Iterator[Finding]:
    try:
        found = installed()
    except DeviceUnavailable as error:
        yield Finding(FAULT, str(error))
        return
    for number, device in enumerate(found):
        text = f"device {number}: {device.describe()}, {device.driver} {device.driver_version}"
        if others := device.details().get("also_listed_by"):
            text += f", also listed by {', '.join(others)}"
        if device.capabilities is None:
            yield Finding(NOTE, text, f"{system.UPDATE_DRIVER}, or use another device")
            continue
        lacking = sorted(name for name in FEATURES if not device.capabilities.has(name))
        yield Finding(GOOD, text + (f"; optional features it lacks: {', '.join(lacking)}" if lacking else ""))
    for number, device in enumerate(found):
        if device.capabilities is not None and (said := small(device.capabilities)):
            yield Finding(NOTE, f"device {number}: {said}")
    yield from _time_limits(found)
    driver = f"a GPU that is not listed wants its Vulkan driver: {system.INSTALL_VULKAN}"
    try:
        chosen, reason = choose(devices())
    except (DeviceUnavailable, ValueError) as error:
        other = f"choose another device, or unset {settings.DEVICE.name}; {driver}" if settings.DEVICE.get() else ""
        yield Finding(FAULT, str(error), other)
        return
    if chosen.kind == "cpu":
        yield Finding(NOTE, f"kernels run on the CPU: {chosen.name}", driver)
    else:
        yield Finding(GOOD, f"kernels run on {chosen.name}, because: {reason}")


#: Features without which something is computed in another way, and those without which it is refused → what is said.
_EMULATED = {"float16": "float16 is computed in float32", "float32_atomic_add": "atomic additions of float32 are loops"}
_REFUSED = {
    "float64": "kernels with float64",
    "int8": "kernels with 8-bit integers",
    "int16": "kernels with 16-bit integers",
    "storage8": "tensors of 8-bit elements",
    "storage16": "tensors of 16-bit elements",
    "int64_atomics": "atomic operations on 64-bit elements",
}
#: What most kernels are written for: bytes of shared memory, and invocations of a program of four warps on such a GPU.
_USUAL_SHARED, _USUAL_INVOCATIONS = 32768, 256


def small(capabilities: Capabilities) -> str:
    """What a small device computes in another way, and what it refuses, before the first kernel says so; "" if
    nothing."""
    emulated = [text for feature, text in _EMULATED.items() if not capabilities.has(feature)]
    refused = [text for feature, text in _REFUSED.items() if not capabilities.has(feature)]
    parts = []
    if capabilities.shared_bytes < _USUAL_SHARED:
        emulated.append(f"tiles beyond {capabilities.shared_bytes // 1024} KiB of shared memory go in pieces")
        refused.append("those that still need more (OutOfResources)")
    if capabilities.max_workgroup_invocations < _USUAL_INVOCATIONS:
        refused.append(f"programs of more than {capabilities.max_workgroup_invocations} invocations (num_warps)")
    if emulated:
        parts.append(f"emulated: {', '.join(emulated)}")
    if refused:
        parts.append(f"refused: {', '.join(refused)}")
    return "; ".join(parts)


def _time_limits(found: Sequence[DeviceInfo]) -> Iterator[Finding]:
    """How long work may take that is submitted together, and what amdgpu's lockup_timeout says of it."""
    for number, device in enumerate(found):
        if not isinstance(device, VulkanDeviceInfo):
            continue
        seconds = job_seconds(device)
        if device.driver in ON_AMDGPU:
            limit = read_lockup_timeout()
            after = (
                "its default, 2 s on Linux 7" if limit is None else "no time" if math.isinf(limit) else f"{limit:g} s"
            )
            told = f"device {number}: amdgpu ends work after {after} (lockup_timeout), and the device is lost with it"
            bound = "submissions may take any time" if seconds is None else f"submissions take {seconds:g} s at most"
            remedy = "for longer launches, boot Linux with amdgpu.lockup_timeout=10000 (milliseconds)"
            yield Finding(NOTE if seconds is not None else GOOD, f"{told}; {bound}", remedy if seconds else "")
        elif seconds is not None:
            yield Finding(NOTE, f"device {number}: submissions take {seconds:g} s at most; longer launches are divided")


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):  # another process replaces its files meanwhile
            total += path.stat().st_size if path.is_file() else 0
    return total


def _has_temporary_folder() -> bool:
    try:
        return bool(tempfile.gettempdir())
    except FileNotFoundError:
        return False


def _caches() -> Iterator[Finding]:
    cache = Path(asked_cache())
    if why := unusable(cache):
        state, rest = NOTE, ": each process compiles its kernels again"
        if not _has_temporary_folder():
            state, rest = FAULT, ", and no temporary folder, either"
        what = f"Triton's cache {cache} cannot be used ({why}){rest}"
        yield Finding(state, what, "set TRITON_CACHE_DIR to a writable folder")
        return
    if why := distrusted(str(cache)):
        yield Finding(NOTE, f"{why}: each process compiles its kernels again", MAKE_OURS[0].lower() + MAKE_OURS[1:])
        return
    nearest = next(folder for folder in (cache, *cache.parents) if folder.exists())
    free = shutil.disk_usage(nearest).free
    kept = f"{_size(cache) / 1e6:.1f} MB of kernels" if cache.exists() else "empty"
    text = f"cache {cache}: {kept}, {free / 1e9:.1f} GB free"
    yield Finding(NOTE, text, "make room on the disk") if free < 100e6 else Finding(GOOD, text)


def _settings() -> Iterator[Finding]:
    for setting in settings.SETTINGS.values():
        text = os.environ.get(setting.name)
        if not text:
            continue
        try:
            setting.get()
        except settings.SettingError as error:
            yield Finding(FAULT, str(error), f"correct or unset {setting.name}")
        else:
            yield Finding(GOOD, f"{setting.name}={text}")
    for sentence in settings.unknown(os.environ):
        yield Finding(NOTE, sentence)


def _tools() -> Iterator[Finding]:
    if shutil.which("spirv-val") is None:
        what = "spirv-val is not installed: TRITON_SPIRV_VALIDATE=1 needs it, and the validation layers"
        ways = dict.fromkeys((system.INSTALL_SPIRV_TOOLS, system.INSTALL_VALIDATION_LAYERS))
        yield Finding(NOTE, what, ", and ".join(ways))


def _trial() -> Iterator[Finding]:
    if _triton() is None:
        return
    if told := other_active_drivers():
        yield Finding(NOTE, *told)
    if _version("numpy") is None:
        yield Finding(NOTE, "no kernel was tried: that takes NumPy", "pip install numpy")
        return
    command = [sys.executable, "-m", f"{__package__}.trial"]
    environment = os.environ | {"TRITON_SPIRV_BACKEND": "1", "TRITON_ALWAYS_COMPILE": "1"}
    remedy = "run it with TRITON_SPIRV_VALIDATE=1, or try another device with TRITON_SPIRV_DEVICE"
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=TRIAL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        yield Finding(FAULT, f"a tiny kernel did not end within {TRIAL_SECONDS} s", remedy)
        return
    try:
        result = json.loads(done.stdout)
    except ValueError:
        lines = done.stderr.strip().splitlines()
        reason = lines[-1] if lines else f"the process ended with status {done.returncode}"
        yield Finding(FAULT, f"a tiny kernel failed: {reason}", f"{' '.join(command)} shows all of it; {remedy}")
        return
    if result["wrong"]:
        yield Finding(FAULT, f"a tiny kernel gave {result['wrong']} wrong values on {result['device']}", remedy)
        return
    yield Finding(
        GOOD,
        f"a tiny kernel ran on {result['device']}: first result after {result['first'] * 1e3:.0f} ms with compiling, "
        f"second launch {result['second'] * 1e6:.0f} µs",
    )


#: In the order in which one builds on the other.
CHECKS: Sequence[Callable[[], Iterator[Finding]]] = (_software, _settings, _drivers, _devices, _caches, _tools, _trial)


def run_doctor() -> int:
    """Prints a line for each finding. Status 1 if kernels cannot run."""
    faults = 0
    for check in CHECKS:
        if check is _trial and faults:
            print(" skip  a tiny kernel: fix the faults above first")
            continue
        for finding in check():
            print(f"{finding.state:>5}  {finding.what}", flush=True)
            if finding.remedy:
                print(f"       → {finding.remedy}", flush=True)
            faults += finding.state == FAULT
    print(f"{faults} fault{'s' if faults != 1 else ''}" if faults else "kernels can run")
    return int(faults > 0)
