"""What a device can do, including measured facts: component maps of its matrix units, errors of its functions, and what
its driver computes otherwise than driver_quirks.py says."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Set
from dataclasses import replace
from functools import cache

from ...capabilities import NATIVE_MATH, Capabilities
from ...driver_quirks import CORRECTABLE, fact_of
from ...matrices import component_features
from ..context import Context, devices, of_device
from ..device_kind import DeviceInfo
from . import driver_probe
from .component_maps import configurations
from .native_probe import BOUND, judged, probe_data, probe_module
from .probing import DRIVER_FAULTS, Record, run
from .trust import trusted

_log = logging.getLogger(__name__)

#: The versions of what is kept of functions and drivers: raised when its meaning changes.
_VERSION, _DRIVER_VERSION = 1, 1


def capabilities_of(device: DeviceInfo) -> Capabilities | None:
    """The device's capabilities with what was measured, once per driver; None if it cannot run kernels. Raises
    DeviceUnavailable where the self-test of its driver fails (trust.py)."""
    if device.capabilities is None or device.documented:
        return device.capabilities
    return _measured(device, os.getpid())


@cache
def _measured(device: DeviceInfo, pid: int) -> Capabilities:
    capabilities = replace(trusted(device), corrections=corrections(device))
    matrices = configurations(device) if capabilities.has("matrices") or not device.matrices else ()
    matrices = tuple(one for one in matrices if component_features(one.types) <= capabilities.features)
    return replace(capabilities, matrices=matrices, native_math=native_math(device))


def native_math(device: DeviceInfo) -> frozenset[str]:
    """What of NATIVE_MATH kernels may use on a device."""
    assert device.capabilities is not None
    if not device.capabilities.traits.native_math:
        return frozenset()
    record = Record(device, "functions", (_VERSION, BOUND))
    return _kept(device, record, NATIVE_MATH.keys(), measure, "its own functions are not used")


def corrections(device: DeviceInfo) -> frozenset[str]:
    """What kernels find of a device's driver that driver_quirks.py does not say (driver_quirks.corrected()). Where they
    cannot run the table counts, and so on a processor, whose machine code is this project's own."""
    capabilities = device.capabilities
    assert capabilities is not None
    if capabilities.processor:
        return frozenset()
    facts = sorted(CORRECTABLE)
    record = Record(device, "driver", (_DRIVER_VERSION, [(name, fact_of(capabilities.traits, name)) for name in facts]))
    allowed = {f"{sign}{name}" for sign in ("", "-") for name in facts}
    return _kept(device, record, allowed, ask, "what is known of its driver was not tried")


def _kept(
    device: DeviceInfo, record: Record, allowed: Set[str], find: Callable[[Context], frozenset[str]], otherwise: str
) -> frozenset[str]:
    """What of ``allowed`` is in the record, or what ``find`` finds on the device, which is then kept. Nothing on a
    device that kernels are not offered, and where kernels that measure cannot run, as a warning says: ``otherwise``."""
    known = record.read(lambda names: frozenset(names) & allowed)
    if known is None:
        offered = devices()
        if device not in offered:
            return frozenset()
        try:
            known = find(of_device(offered.index(device)))
        except (*DRIVER_FAULTS, ImportError) as error:  # without NumPy, too
            _log.warning("%s: %s: %s: %s", device.name, otherwise, type(error).__name__, error)
            return frozenset()
        record.write(sorted(known))
    return known


def measure(context: Context) -> frozenset[str]:
    """What of NATIVE_MATH holds on a device. Raises what a launch does."""
    data = probe_data()
    run(context, probe_module(context.capabilities.subgroup_size, context.capabilities.has), data)
    return judged(data)


def ask(context: Context) -> frozenset[str]:
    """The corrections that a device's answers ask for. Raises what a launch does."""
    has = context.capabilities.has
    data = driver_probe.probe_data(has)
    run(context, driver_probe.probe_module(context.capabilities.subgroup_size, has), data)
    return driver_probe.judged(data, has, context.capabilities.traits)
