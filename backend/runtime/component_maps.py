"""Which matrix units kernels may use on a device: those whose component maps were measured, once a driver.

What was measured is kept in a file next to the pipeline caches, by the device and its driver's version.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from ..capabilities import PROFILES, Capabilities
from ..matrices import ComponentMap, MatrixConfiguration
from .arrays import array
from .component_probe import probe_data, probe_module, read_map
from .context import Context, devices, of_device
from .devices import DeviceInfo
from .launch import make_launcher
from .loader import vulkan
from .matrix_properties import MatrixProperties
from .pipeline import Kernel
from .pipeline_cache import folder

_log = logging.getLogger(__name__)

#: Of the file: raised when what it holds changes its meaning.
_VERSION = 1
#: Component types, rows, columns and use of a matrix that has a map.
Matrix = tuple[str, int, int, int]


def capabilities_of(device: DeviceInfo) -> Capabilities | None:
    """The device's capabilities with its matrix units; None where it cannot run kernels."""
    known = device.capabilities
    return known if known is None or not device.matrices else _with_matrices(device, os.getpid())


@cache
def _with_matrices(device: DeviceInfo, pid: int) -> Capabilities:
    assert device.capabilities is not None
    return replace(device.capabilities, matrices=_configurations(device))


def _configurations(device: DeviceInfo) -> tuple[MatrixConfiguration, ...]:
    path = _path(device)
    text = _read(path)
    if text is None:
        configurations = _measured(device)
        if configurations is None:
            return ()
        _write(path, [str(one) for one in configurations])
    else:
        configurations = text
    return _agreeing(device, configurations)


def _agreeing(device: DeviceInfo, found: Sequence[MatrixConfiguration]) -> tuple[MatrixConfiguration, ...]:
    """Those that do not contradict the profile of a device with the same driver."""
    kept = []
    for one in found:
        documented = {
            other.maps
            for profile in PROFILES.values()
            if device.capabilities is not None and profile.driver == device.capabilities.driver
            for other in profile.matrices
            if (other.shape, other.types, other.lanes) == (one.shape, one.types, one.lanes)
        }
        if documented and one.maps not in documented:
            _log.warning("%s: matrices %s are not used: their maps are not the documented ones", device.name, one)
        else:
            kept.append(one)
    return tuple(kept)


def _measured(device: DeviceInfo) -> list[MatrixConfiguration] | None:
    """The configurations whose maps could be measured; None where something failed that may not fail another time."""
    found: list[MatrixConfiguration] = []
    maps: dict[Matrix, ComponentMap | None] = {}
    try:
        context = of_device(devices().index(device))
    except _driver_faults() as error:  # kernels run without matrix units
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
        except _driver_faults() as error:  # kernels run without this one
            _log.warning("%s: %s are not used: %s: %s", device.name, properties, type(error).__name__, error)
            failed = True
            continue
        left, right, initial, total = maps[a, m, k, 0], maps[b, k, n, 1], maps[c, m, n, 2], maps[result, m, n, 2]
        if left is None or right is None or total is None or initial != total:
            _log.warning("%s: %s are not used: their components are not linear", device.name, properties)
            continue
        found.append(MatrixConfiguration(m, n, k, a, b, c, result, properties.saturating, (left, right, total)))
    return None if failed and not found else found


def _driver_faults() -> tuple[type[Exception], ...]:
    """What a driver may make of a probe: a call fails (VulkanError, a RuntimeError, from C++; VkError from Python), the
    module is rejected, or validation reports it (both RuntimeErrors). Anything else is a mistake in the probe."""
    return RuntimeError, OSError, vulkan().VkError


def _wanted(properties: Sequence[MatrixProperties]) -> list[MatrixProperties]:
    """What kernels can use, the fewest instructions first: large K, then small N, as upstream's fragments are."""
    usable = [
        one
        for one in properties
        if one.types[0] == one.types[1] and one.types[2] == one.types[3] and not one.saturating
    ]
    return sorted(usable, key=lambda one: (-one.k, -one.m, one.n))


def measure(context: Context, component: str, rows: int, columns: int, use: int) -> ComponentMap | None:
    """The component map of matrices of a device's subgroups. None where it is not linear. Raises what a launch does."""
    lanes = context.capabilities.subgroup_size
    data = probe_data(component, rows, columns, lanes)
    kernel = Kernel(context, "probe", probe_module(component, rows, columns, use, lanes))
    try:
        launch = make_launcher(context, "probe", [((0,), "data", "*i8")], False, {"data"})
        launch(1, 1, 1, 0, kernel.pipeline, None, None, None, None, array(data.view("int8")))
    finally:
        kernel.unload()
    return read_map(data, component, rows, columns, lanes)


# -- the file ----------------------------------------------------------------------------------------------------
def _path(device: DeviceInfo) -> Path:
    assert device.capabilities is not None
    key = (_VERSION, device.driver_version, device.capabilities.subgroup_size, device.matrices)
    digest = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
    return folder() / f"{device.driver}-{device.uuid}-{digest}.matrices.json"


def _read(path: Path) -> list[MatrixConfiguration] | None:
    try:
        return [MatrixConfiguration.parse(text) for text in json.loads(path.read_text(encoding="utf-8"))]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        _log.info("the component maps in %s are ignored: %s", path, error)
        return None


def _write(path: Path, texts: list[str]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(texts, file)
        os.replace(name, path)
    except OSError as error:
        _log.info("the component maps were not saved in %s: %s", path, error)
