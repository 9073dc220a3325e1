"""What a device can do, including measured facts: component maps of its matrix units, errors of its functions."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from functools import cache

from ...capabilities import NATIVE_MATH, Capabilities
from ..context import Context, devices, of_device
from ..device_kind import DeviceInfo
from .component_maps import configurations
from .native_probe import BOUND, judged, probe_data, probe_module
from .probing import DRIVER_FAULTS, Record, run
from .trust import trusted

_log = logging.getLogger(__name__)

#: The version of what is kept of functions: raised when its meaning changes.
_VERSION = 1


def capabilities_of(device: DeviceInfo) -> Capabilities | None:
    """The device's capabilities with what was measured, once per driver; None if it cannot run kernels. Raises
    DeviceUnavailable where the self-test of its driver fails (trust.py)."""
    if device.capabilities is None or device.documented:
        return device.capabilities
    return _measured(device, os.getpid())


@cache
def _measured(device: DeviceInfo, pid: int) -> Capabilities:
    capabilities = trusted(device)
    matrices = configurations(device) if capabilities.has("matrices") or not device.matrices else ()
    if not capabilities.has("bfloat16_matrices"):
        matrices = tuple(one for one in matrices if "bf16" not in (one.a, one.b, one.c, one.result))
    return replace(capabilities, matrices=matrices, native_math=native_math(device))


def native_math(device: DeviceInfo) -> frozenset[str]:
    """What of NATIVE_MATH kernels may use on a device."""
    assert device.capabilities is not None
    if not device.capabilities.traits.native_math:
        return frozenset()
    record = Record(device, "functions", (_VERSION, BOUND))
    known = record.read(lambda names: frozenset(names) & NATIVE_MATH.keys())
    if known is None:
        try:
            known = measure(of_device(devices().index(device)))
        except DRIVER_FAULTS as error:  # kernels compute the functions themselves
            _log.warning("%s: its own functions are not used: %s: %s", device.name, type(error).__name__, error)
            return frozenset()
        record.write(sorted(known))
    return known


def measure(context: Context) -> frozenset[str]:
    """What of NATIVE_MATH holds on a device. Raises what a launch does."""
    data = probe_data()
    run(context, probe_module(context.capabilities.subgroup_size, context.capabilities.has), data)
    return judged(data)
