"""Which matrix units kernels may use on a device: those whose component maps were measured, once per driver."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ...capabilities import PROFILES
from ...matrices import ComponentMap, MatrixConfiguration
from ..context import Context, devices, of_device
from ..device_kind import DeviceInfo, MatrixProperties
from .component_probe import probe_data, probe_module, read_map
from .probing import DRIVER_FAULTS, Record, run

_log = logging.getLogger(__name__)

#: The version of what is kept: raised when its meaning changes.
_VERSION = 1
#: Component types, rows, columns and use of a matrix that has a map.
Matrix = tuple[str, int, int, int]


def configurations(device: DeviceInfo) -> tuple[MatrixConfiguration, ...]:
    """What kernels may use of a device's matrix units."""
    if not device.matrices:
        return ()
    file = Record(device, "matrices", (_VERSION, device.matrices))
    known = file.read(lambda texts: [MatrixConfiguration.parse(text) for text in texts])
    if known is None:
        known = _measured(device)
        if known is None:
            return ()
        file.write([str(one) for one in known])
    return _agreeing(device, known)


def _agreeing(device: DeviceInfo, found: Sequence[MatrixConfiguration]) -> tuple[MatrixConfiguration, ...]:
    """The configurations that do not contradict the profile of a device with the same driver."""
    kept = []
    for one in found:
        documented = {
            other.maps
            for profile in PROFILES.values()
            if device.capabilities is not None and profile.driver == device.capabilities.driver
            for other in profile.matrices
            if (other.shape, other.types, other.lanes, _lengths(other))
            == (
                *(one.shape, one.types, one.lanes),
                _lengths(one),  # RDNA 4 has other fragments than RDNA 3: none holds an element twice
            )
        }
        if documented and one.maps not in documented:
            _log.warning("%s: matrices %s are not used: their maps are not the documented ones", device.name, one)
        else:
            kept.append(one)
    return tuple(kept)


def _lengths(configuration: MatrixConfiguration) -> tuple[int, ...]:
    return tuple(len(map_.registers) for map_ in configuration.maps)


def _measured(device: DeviceInfo) -> list[MatrixConfiguration] | None:
    """The configurations whose maps could be measured; None if something failed that may not fail another time, and on
    a device that kernels are not offered."""
    offered = devices()
    if device not in offered:
        return None
    found: list[MatrixConfiguration] = []
    maps: dict[Matrix, ComponentMap | None] = {}
    try:
        context = of_device(offered.index(device))
    except DRIVER_FAULTS as error:  # kernels run without matrix units
        _log.warning("%s: its matrix units are not used: %s: %s", device.name, type(error).__name__, error)
        return None
    failed = False
    for properties in _wanted(device.matrices):
        a, b, c, result = properties.types
        m, n, k = properties.m, properties.n, properties.k
        try:
            for matrix in ((a, m, k, 0), (b, k, n, 1), (c, m, n, 2), (result, m, n, 2)):
                if matrix not in maps:
                    maps[matrix] = measure(context, *matrix)
        except DRIVER_FAULTS as error:  # kernels run without this one
            _log.warning("%s: %s are not used: %s: %s", device.name, properties, type(error).__name__, error)
            failed = True
            continue
        left, right, initial, total = maps[a, m, k, 0], maps[b, k, n, 1], maps[c, m, n, 2], maps[result, m, n, 2]
        if left is None or right is None or total is None or initial != total:
            _log.warning("%s: %s are not used: their components are not linear", device.name, properties)
            continue
        found.append(MatrixConfiguration(m, n, k, a, b, c, result, properties.saturating, (left, right, total)))
    return None if failed and not found else found


def _wanted(properties: Sequence[MatrixProperties]) -> list[MatrixProperties]:
    """What kernels can use, the largest matrices (and so the fewest instructions) first."""
    usable = [
        one
        for one in properties
        if one.types[0] == one.types[1] and one.types[2] == one.types[3] and not one.saturating
    ]
    return sorted(usable, key=lambda one: (-one.k, -one.m, -one.n))


def measure(context: Context, component: str, rows: int, columns: int, use: int) -> ComponentMap | None:
    """The component map of matrices of a device's subgroups. None if it is not linear. Raises what a launch does."""
    lanes = context.capabilities.subgroup_size
    data = probe_data(component, rows, columns, lanes)
    run(context, probe_module(component, rows, columns, use, lanes), data)
    return read_map(data, component, rows, columns, lanes)
