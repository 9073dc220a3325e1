"""What of a driver's offer is used: on a driver on which kernels never ran here, what a self-test found right.

The self-test runs once for a device and a version of its driver, in a process of its own, with kernels of known results
(inspection/self_test.py). What is wrong, or ends that process, is left out of the capabilities. It takes Triton: where
that is not there, kernels come compiled, and nothing is tested.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace

from ... import settings
from ...capabilities import Capabilities
from ...field_reports import RAN_HERE
from ...settings import OFF
from ..device_kind import DeviceInfo
from ..errors import DeviceUnavailable
from .probing import Record

_log = logging.getLogger(__name__)

#: The version of what is kept: raised when the self-test changes.
_VERSION = 1
#: Seconds that a group of kernels may take, compiling included.
SECONDS = 60.0
_NAP = 0.01

BASICS, SUBGROUPS, FLOAT16, ATOMICS, MATRICES, BFLOAT16_MATRICES = (
    "basics",
    "subgroups",
    "float16",
    "float_atomics",
    "matrices",
    "bfloat16_matrices",
)
#: Groups of kernels → the features that are left out where one is wrong; none: no kernel is right without.
LEFT_OUT: dict[str, frozenset[str]] = {
    BASICS: frozenset(),
    SUBGROUPS: frozenset(),
    FLOAT16: frozenset({"float16"}),
    ATOMICS: frozenset({"float32_atomic_add", "float64_atomic_add"}),
    MATRICES: frozenset({"matrices", "bfloat16_matrices"}),
    BFLOAT16_MATRICES: frozenset({"bfloat16_matrices"}),
}


def is_tested(device: DeviceInfo) -> bool:
    """Whether a device is to pass the self-test: TRITON_SPIRV_SELF_TEST, or where no kernels ran on its driver."""
    wanted = settings.SELF_TEST.get().lower()
    if wanted in OFF or importlib.util.find_spec("triton") is None:
        return False
    return wanted != "auto" or device.driver not in RAN_HERE


def trusted(device: DeviceInfo) -> Capabilities:
    """The capabilities without what the self-test found wrong. Raises DeviceUnavailable where kernels are wrong that
    nothing can be left out of."""
    capabilities = device.capabilities
    assert capabilities is not None
    if not is_tested(device):
        return capabilities
    faults = faults_of(device)
    for group, fault in faults.items():
        if not LEFT_OUT[group]:
            raise DeviceUnavailable(
                f"{device.describe()} cannot run Triton kernels: the self-test of its driver {device.driver_version} "
                f"failed: {fault}; please report it with `triton-spirv report`; {settings.SELF_TEST.name}=0 uses the "
                "device all the same"
            )
    without = frozenset().union(*(LEFT_OUT[group] for group in faults)) if faults else frozenset()
    return replace(capabilities, features=capabilities.features - without)


def faults_of(device: DeviceInfo) -> dict[str, str]:
    """Groups that are wrong on a device → what is. Runs the self-test where nothing is kept of it."""
    record = Record(
        device, "self-test", (_VERSION, sorted(device.capabilities.features if device.capabilities else ()))
    )
    kept = record.read(lambda texts: dict(text.split(": ", 1) for text in texts))
    if kept is not None and kept.keys() <= LEFT_OUT.keys():
        return kept
    command = [sys.executable, "-m", f"{__package__.rpartition('.runtime')[0]}.inspection.self_test"]
    environment = {settings.SELF_TEST.name: "0", "TRITON_SPIRV_BACKEND": "1", "TRITON_SPIRV_DEVICE": device.uuid}
    try:
        faults = run(command, list(LEFT_OUT), environment)
    except OSError as error:  # no process can be started
        _log.info("the self-test of %s was not run: %s", device.name, error)
        return {}
    record.write([f"{group}: {fault}" for group, fault in faults.items()])
    for group, fault in faults.items():
        _log.warning(
            "%s: the self-test of %s failed, and kernels do without: %s; please report it with `triton-spirv report`",
            *(device.name, group, fault),
        )
    return faults


def run(
    command: Sequence[str], groups: Sequence[str], environment: dict[str, str], seconds: float = SECONDS
) -> dict[str, str]:
    """Groups that a child finds wrong, or that end it → what is wrong. Another child goes on behind such a group."""
    faults: dict[str, str] = {}
    left = list(groups)
    while left:
        said, ending = spoken([*command, *left], environment, seconds)
        begun = ""
        for line in said:
            word, _, rest = line.partition(" ")
            if word == "begin":
                begun = rest
            elif word in ("right", "wrong") and begun and rest.startswith(begun):
                left.remove(begun)
                if word == "wrong":
                    faults[begun] = rest.removeprefix(f"{begun}: ")
                begun = ""
        if left:
            failed = begun or left[0]
            faults[failed] = ending or "the process ended without a word"
            left.remove(failed)
            if not said:  # it does not begin
                return faults
    return faults


def spoken(command: Sequence[str], environment: dict[str, str], seconds: float) -> tuple[list[str], str]:
    """The lines that a child prints, and how it ended, "" if well. It may take ``seconds`` for each line."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        child = subprocess.Popen(
            command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=out, stderr=errors
        )
        size, since, hung = 0, time.monotonic(), False
        while child.poll() is None and not hung:
            time.sleep(_NAP)
            now = os.fstat(out.fileno()).st_size
            if now != size:
                size, since = now, time.monotonic()
            hung = time.monotonic() - since > seconds
        if hung:
            child.kill()  # and no wait: it may be in a call of the kernel that does not end
        out.seek(0)
        errors.seek(0)
        said, last = out.read().splitlines(), errors.read().strip().splitlines()
    if hung:
        return said, f"it does not end within {seconds:g} s"
    if child.returncode:
        return said, f"it ends the process with status {child.returncode}" + (f" ({last[-1]})" if last else "")
    return said, ""
