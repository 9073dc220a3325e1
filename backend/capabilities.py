"""What a Vulkan device can do, as frozen data.

A ``Capabilities`` value is all that the compiler may know about a device. Its canonical string is ``GPUTarget.arch``:
it is part of the cache key, and parsing it gives the same value back.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from .abi.tile_products import ELEMENTS
from .driver_quirks import DRIVERS, OTHER, Driver, corrected
from .matrices import MatrixConfiguration, format_configurations, parse_configurations

#: Float controls: each with a width of 16, 32 or 64 is a feature, ``preserve_denormals32`` say. The value is the entry
#: of VkPhysicalDeviceFloatControlsProperties before the width.
FLOAT_CONTROLS = {
    "round_to_nearest_even": "shaderRoundingModeRTEFloat",
    "preserve_denormals": "shaderDenormPreserveFloat",
    "preserve_signed_zero_inf_nan": "shaderSignedZeroInfNanPreserveFloat",
}

#: Every optional feature that lowering may ask about, with the Vulkan feature or extension that it stands for.
FEATURES = {
    "float16": "VkPhysicalDeviceShaderFloat16Int8Features::shaderFloat16",
    "float64": "VkPhysicalDeviceFeatures::shaderFloat64",
    "int8": "VkPhysicalDeviceShaderFloat16Int8Features::shaderInt8",
    "int16": "VkPhysicalDeviceFeatures::shaderInt16",
    "storage8": "VkPhysicalDevice8BitStorageFeatures::storageBuffer8BitAccess",
    "storage16": "VkPhysicalDevice16BitStorageFeatures::storageBuffer16BitAccess",
    "explicit_workgroup_layout": "VkPhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR",
    "int64_atomics": "VkPhysicalDeviceShaderAtomicInt64Features::shaderBufferInt64Atomics",
    "device_clock": "VkPhysicalDeviceShaderClockFeaturesKHR::shaderDeviceClock",
    "multiprocessor_built_ins": "VkPhysicalDeviceShaderSMBuiltinsFeaturesNV::shaderSMBuiltins",
    "float32_atomic_add": "VkPhysicalDeviceShaderAtomicFloatFeaturesEXT::shaderBufferFloat32AtomicAdd",
    "float64_atomic_add": "VkPhysicalDeviceShaderAtomicFloatFeaturesEXT::shaderBufferFloat64AtomicAdd",
    "matrices": "VkPhysicalDeviceCooperativeMatrixFeaturesKHR::cooperativeMatrix",
    "bfloat16_matrices": "VkPhysicalDeviceShaderBfloat16FeaturesKHR::shaderBFloat16CooperativeMatrix",
    **{
        f"{control}{width}": f"VkPhysicalDeviceFloatControlsProperties::{entry}{width}"
        for control, entry in FLOAT_CONTROLS.items()
        for width in (16, 32, 64)
    },
}

#: What may be measured of a device's own functions (runtime/measuring/native_probe.py): where each is within 2.5 ULP.
NATIVE_MATH = {
    "exp2": "Exp2 of GLSL.std.450 in f32, where the result is no subnormal number",
    "exp2_subnormal": "Exp2 of GLSL.std.450 in f32, where it is one",
}

#: Features without which no kernel can run: refused when the device is opened, so lowering never asks.
REQUIRED = {
    "bufferDeviceAddress": "VkPhysicalDeviceBufferDeviceAddressFeatures::bufferDeviceAddress",
    "vulkanMemoryModel": "VkPhysicalDeviceVulkanMemoryModelFeatures::vulkanMemoryModel",
    "vulkanMemoryModelDeviceScope": "VkPhysicalDeviceVulkanMemoryModelFeatures::vulkanMemoryModelDeviceScope",
    "shaderInt64": "VkPhysicalDeviceFeatures::shaderInt64",
    "computeFullSubgroups": "VkPhysicalDeviceSubgroupSizeControlFeatures::computeFullSubgroups",
    "subgroupSizeControl": "VkPhysicalDeviceSubgroupSizeControlFeatures::subgroupSizeControl",
}


@dataclass(frozen=True)
class Capabilities:
    """Limits and optional features of a device, or of a profile of devices.

    ``subgroup_size``: invocations of a subgroup; ``shared_bytes``: workgroup memory; ``push_constant_bytes``,
    ``max_workgroup_invocations``: as in VkPhysicalDeviceLimits. ``driver`` is the VkDriverId name in lower case,
    for workarounds alone. ``features`` are keys of FEATURES. ``matrices``: what its matrix units compute, as far as
    the compiler may use them: where it is known which lane holds which element. ``native_math``: keys of NATIVE_MATH.
    ``processor``: of a device that is a CPU, what machine code is made for (cpu/host.py); "" of a Vulkan device.
    ``tile_products``: element types (abi/tile_products.ELEMENTS) of whose tiles it has functions that give products: a
    workgroup is one subgroup, whose lanes are elements of vectors; a tile is an array of them in memory.
    ``corrections``: what kernels found of the driver that driver_quirks.py does not say (driver_quirks.corrected()).
    """

    driver: str
    subgroup_size: int
    shared_bytes: int
    push_constant_bytes: int
    max_workgroup_invocations: int
    features: frozenset[str]
    matrices: tuple[MatrixConfiguration, ...] = ()
    native_math: frozenset[str] = frozenset()
    processor: str = ""
    tile_products: frozenset[str] = frozenset()
    corrections: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        strange = self.native_math - NATIVE_MATH.keys()
        if strange:
            raise ValueError(f"unknown native functions {sorted(strange)}; known: {sorted(NATIVE_MATH)}")
        if no_elements := self.tile_products - ELEMENTS.keys():
            raise ValueError(f"unknown elements of tiles {sorted(no_elements)}; known: {sorted(ELEMENTS)}")
        unknown = self.features - FEATURES.keys()
        if unknown:
            raise ValueError(f"unknown device features {sorted(unknown)}; known: {sorted(FEATURES)}")
        if self.subgroup_size & (self.subgroup_size - 1) or not 1 <= self.subgroup_size <= 128:
            raise ValueError(f"subgroup size {self.subgroup_size} is not a power of two from 1 to 128")
        corrected(OTHER, self.corrections)

    @property
    def traits(self) -> Driver:
        """What is known of the driver."""
        driver = DRIVERS.get(self.driver, OTHER)
        return corrected(driver, self.corrections) if self.corrections else driver

    @property
    def most_subgroups(self) -> int:
        """The most subgroups of a workgroup: on a processor there is one, however many warps a kernel asks for."""
        return 1 if self.processor else self.max_workgroup_invocations // self.subgroup_size

    @property
    def scales(self) -> bool:
        """Whether a number is multiplied with a power of two by one instruction, rounded once: VSCALEFPS of
        AVX-512."""
        return self.processor.startswith("x86-64-v4")

    @property
    def slow_underflow(self) -> bool:
        """Whether an instruction whose result underflows is done by microcode, for all lanes of its vector: x86's takes
        150 cycles instead of 4, also where the result is 0. Armv8's cores take no longer."""
        return self.processor.startswith("x86-64")

    def has(self, feature: str) -> bool:
        """Whether the optional ``feature`` (a key of FEATURES) is there."""
        if feature not in FEATURES:
            raise KeyError(feature)
        return feature in self.features

    def arch(self) -> str:
        """The canonical string, ``GPUTarget.arch``: ``vulkan1.3;driver=…;subgroup_size=…;…;features=a,b``."""
        parts = ["vulkan1.3"]
        for name, form in _entries().items():
            value = getattr(self, name)
            if value or name not in _OMITTED:
                parts.append(f"{name}={form.text(value)}")
        return ";".join(parts)

    @classmethod
    @cache
    def parse(cls, arch: str) -> Capabilities:
        """The value whose ``arch()`` is given, or the profile of that name. Raises ValueError on anything else."""
        if arch in PROFILES:
            return PROFILES[arch]
        head, *rest = arch.split(";")
        pairs = dict(part.partition("=")[::2] for part in rest)
        entries = {name: form for name, form in _entries().items() if name not in _OMITTED or name in pairs}
        if head != "vulkan1.3" or [*pairs] != [*entries]:
            raise ValueError(
                f"{arch!r} is neither a device profile ({', '.join(PROFILES)}) nor an arch string "
                f"'vulkan1.3;{';'.join(name + '=…' for name in entries)}'"
            )
        return cls(**{name: form.parse(pairs[name]) for name, form in entries.items()})


#: Entries that an arch string lacks where they are empty.
_OMITTED = frozenset({"processor", "corrections"})


class _Form(NamedTuple):
    """How entries of a type are written: ``kind`` is JSON's type in a profile's file, ``read`` makes the value of it;
    ``text`` is the value in an arch string, ``parse`` makes it of that."""

    kind: type
    read: Callable[[Any], Any]
    text: Callable[[Any], str]
    parse: Callable[[str], Any]


#: By the type of a field of Capabilities.
_FORMS = {
    "int": _Form(int, int, str, int),
    "str": _Form(str, str, str, str),
    "frozenset[str]": _Form(
        list, frozenset, lambda names: ",".join(sorted(names)), lambda text: frozenset(filter(None, text.split(",")))
    ),
    "tuple[MatrixConfiguration, ...]": _Form(
        list,
        lambda texts: tuple(MatrixConfiguration.parse(text) for text in texts),
        format_configurations,
        parse_configurations,
    ),
}


def _entries() -> dict[str, _Form]:
    """The fields of Capabilities, and how they are written."""
    return {entry.name: _FORMS[str(entry.type)] for entry in fields(Capabilities)}


@dataclass(frozen=True)
class Profile:
    """A named device to compile for where none is present. ``sources`` says where its figures are from."""

    name: str
    description: str
    sources: tuple[str, ...]
    capabilities: Capabilities


#: What a report's profile is written with as long as nobody has looked at it.
_UNCHECKED = "triton-spirv report: what the driver says of itself, of which no document was read"


class NotAReport(ValueError):
    """A file that ``triton-spirv report`` did not write, or on a device that runs no kernels."""


def reported_profile(path: Path, report: Any) -> dict[str, Any]:
    """The profile of the device that ``triton-spirv report`` wrote a report about. Raises NotAReport."""
    try:
        device = next(one for one in report["info"]["devices"] if one["index"] == report["info"]["used"]["index"])
        limits, features = device["capabilities"], device["features"]
        found = {
            "description": f"{device['name']}, driver {device['driver']} {device['driver_version']}",
            "sources": [_UNCHECKED],
            "driver": device["driver"],
            "features": sorted(name for name, there in features.items() if there),
            **{name: device[name] for name in ("matrices", "native_math", "tile_products", "corrections")},
        }
    except (KeyError, TypeError, StopIteration) as error:
        raise NotAReport(
            f"{path} is no report of a device that runs kernels: {type(error).__name__}: {error}"
        ) from None
    return found | {entry.name: limits[entry.name] for entry in fields(Capabilities) if entry.name in limits}


def read_profile(path: Path) -> Profile:
    """The profile in a JSON file: ``description``, ``sources``, and the entries of Capabilities; or that of a report,
    which ``triton-spirv report`` writes.

    Raises OSError if the file cannot be read, ValueError on anything that is not a profile.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not a device profile: {error}") from None
    if isinstance(data, dict) and "info" in data:
        data = reported_profile(path, data)
    if not isinstance(data, dict):
        raise ValueError(f"{path} is not a device profile: it holds no JSON object")
    entries = _entries()
    # What has a default may be left out.
    data = {
        entry.name: entries[entry.name].kind() for entry in fields(Capabilities) if entry.default is not MISSING
    } | data
    wrong = sorted(data.keys() ^ {*entries, "description", "sources"})
    if wrong:
        lacking = [name for name in wrong if name not in data]
        said = f"lacks {', '.join(lacking)}" if lacking else f"has unknown entries {', '.join(wrong)}"
        raise ValueError(f"{path} is not a device profile: it {said}")
    for name, form in entries.items():
        if type(data[name]) is not form.kind:
            raise ValueError(f"{path}: {name} is {data[name]!r}, which is not {form.kind.__name__}")
    try:
        capabilities = Capabilities(**{name: form.read(data[name]) for name, form in entries.items()})
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from None
    return Profile(path.stem, data["description"], tuple(data["sources"]), capabilities)


@cache
def profiles() -> dict[str, Profile]:
    """The profiles that come with the backend, by name."""
    found = [read_profile(path) for path in sorted((Path(__file__).parent / "profiles").glob("*.json"))]
    return {profile.name: profile for profile in found}


#: What the devices of the profiles can do, by the profile's name.
PROFILES = {name: profile.capabilities for name, profile in profiles().items()}
