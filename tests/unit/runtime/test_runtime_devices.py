"""Choosing a device, and reading modules, without a device."""

import struct

import pytest
from triton.backends.spirv import availability, cli
from triton.backends.spirv.capabilities import FEATURES, FLOAT_CONTROLS, PROFILES, REQUIRED
from triton.backends.spirv.driver_quirks import DRIVER_IDS, DRIVERS
from triton.backends.spirv.runtime import DeviceUnavailable, device_choice
from triton.backends.spirv.runtime.cpu.kind import Cpu
from triton.backends.spirv.runtime.device_choice import select
from triton.backends.spirv.runtime.modules.module_info import ModuleInfo, read_module
from triton.backends.spirv.runtime.vulkan import asking, devices
from triton.backends.spirv.runtime.vulkan.device_features import CAPABILITY_FEATURES, FEATURE_STRUCTS
from triton.backends.spirv.runtime.vulkan.devices import VulkanDeviceInfo
from triton.backends.spirv.runtime.vulkan.loader import vulkan


def _device(name: str, kind: str, uuid: str, lacks: tuple[str, ...] = ()) -> VulkanDeviceInfo:
    able = None if lacks else PROFILES["generic"]
    return VulkanDeviceInfo(name, kind, uuid, "generic", lacks, able, api_version=(1, 3), max_subgroups=32)


_FOUND = (
    _device("NVIDIA H100", "discrete", "ab" * 16),
    _device("Intel Arc", "integrated", "cd" * 16),
    _device("Old Card", "discrete", "ef" * 16, ("shaderInt64", "vulkanMemoryModel")),
)


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        (None, "NVIDIA H100"),
        ("", "NVIDIA H100"),
        ("0", "NVIDIA H100"),
        ("1", "Intel Arc"),
        ("arc", "Intel Arc"),
        ("100", "NVIDIA H100"),
        ("cd" * 16, "Intel Arc"),
        ("CDCDCDCD-cdcd-cdcd-cdcd-cdcdcdcdcdcd", "Intel Arc"),
    ],
)
def test_select(wanted: str | None, name: str) -> None:
    assert select(_FOUND, wanted).name == name


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("7", "TRITON_SPIRV_DEVICE='7' matches no device; the devices are 0: NVIDIA H100"),
        ("10", "'10' matches no device"),
        ("4090", "'4090' matches no device"),
        ("radeon", "'radeon' matches no device"),
        ("old", r"Old Card \(discrete, .*\) cannot run Triton kernels: it lacks shaderInt64, vulkanMemoryModel"),
    ],
)
def test_select_refuses(wanted: str, message: str) -> None:
    with pytest.raises(DeviceUnavailable, match=message):
        select(_FOUND, wanted)


def test_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "left_out", dict)
    with pytest.raises(DeviceUnavailable, match="no device was found; .*apt-get install mesa-vulkan-drivers"):
        select((), None)


def test_drivers_without_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loader has an error for it: a driver for a GPU that is not there, alone."""

    class Loaded:
        def physical_devices(self) -> list[object]:
            raise RuntimeError("vkEnumeratePhysicalDevices failed: VK_ERROR_INITIALIZATION_FAILED (-3)")

    monkeypatch.setattr(asking, "left_out", dict)
    monkeypatch.setattr(devices, "instance", Loaded)
    monkeypatch.setattr(device_choice._found, "_found", [])
    monkeypatch.setattr(Cpu, "devices", lambda self: ())
    monkeypatch.delenv("TRITON_SPIRV_DEVICE", raising=False)
    with pytest.raises(DeviceUnavailable, match="the drivers that are used have none .*apt-get install"):
        devices.devices()
    assert "have none" in cli.information()["error"]
    assert "have none" in (availability.unavailable_reason() or "")


def test_drivers_have_the_names_of_the_binding() -> None:
    """Its header ends before Honeykrisp (26), or has a provisional name."""
    prefix = "VK_DRIVER_ID_"
    there = {name.removeprefix(prefix): value for name, value in vars(vulkan()).items() if name.startswith(prefix)}
    known = {value: name.lower() for name, value in there.items() if not name.endswith("_KHR") and name[0] != "_"}
    assert len(known) > 20
    assert {number: DRIVER_IDS[number] for number in known if number < 26} == {
        number: name for number, name in known.items() if number < 26
    }
    assert {DRIVER_IDS[number] for number in (3, 13, 18, 24, 26)} >= {"mesa_radv", "mesa_turnip", "mesa_honeykrisp"}
    assert DRIVERS.keys() - {"cpu"} <= set(DRIVER_IDS.values())  # which is no Vulkan driver


def test_every_capability_is_probed_and_enabled() -> None:
    controls = {f"{control}{width}" for control in FLOAT_CONTROLS for width in (16, 32, 64)}
    assert CAPABILITY_FEATURES.keys() | controls == FEATURES.keys()
    enabled = {feature for _, features in FEATURE_STRUCTS.values() for feature in features}
    assert enabled.issuperset(REQUIRED)
    for needs in CAPABILITY_FEATURES.values():
        assert needs and enabled.issuperset(needs)


def _instruction(opcode: int, *words: int) -> list[int]:
    return [(len(words) + 1) << 16 | opcode, *words]


def _text(value: str) -> list[int]:
    data = value.encode() + b"\0"
    return list(struct.unpack(f"<{-(-len(data) // 4)}I", data.ljust(-(-len(data) // 4) * 4, b"\0")))


def _module(*parts: list[int]) -> bytes:
    words = [0x07230203, 0x10600, 0, 10, 0, *(word for part in parts for word in part)]
    return struct.pack(f"<{len(words)}I", *words)


_ENTRY = _instruction(15, 5, 1, *_text("add_kernel"), 2, 3)
_LOCAL_SIZE = _instruction(16, 1, 17, 32, 2, 1)
_END = _instruction(56)


def test_read_module() -> None:
    assert read_module(_module(_ENTRY, _LOCAL_SIZE, _END)) == ModuleInfo("add_kernel", (32, 2, 1), None)
    note = _instruction(330, *_text("subgroup_size=16"))
    other = _instruction(330, *_text("another tool"))
    found = read_module(_module(_ENTRY, _LOCAL_SIZE, other, note, _END))
    assert found.subgroup_size == 16
    assert not found.may_wait
    add = _instruction(234, 1, 2, 3, 4, 5, 6)
    assert read_module(_module(_ENTRY, _LOCAL_SIZE, add, _END)).has_atomics
    for access, waits in ((2, False), (3, True)):  # Aligned, Volatile | Aligned
        load = _instruction(61, 1, 2, 3, access, 4)
        assert read_module(_module(_ENTRY, _LOCAL_SIZE, load, _END)).may_wait is waits
    assert found.invocations == 64


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (b"", "0 bytes are not a SPIR-V module"),
        (b"\0" * 21, "21 bytes are not"),
        (b"ELF!" * 9, "not a SPIR-V module: it starts with 0x21464c45"),
        (_module(_LOCAL_SIZE, _END), "no compute entry point with a LocalSize"),
        (_module(_ENTRY, _END), "no compute entry point with a LocalSize"),
        (_module(_ENTRY, _LOCAL_SIZE), "does not end with OpFunctionEnd"),
        (_module(_ENTRY, _LOCAL_SIZE, [0], _END), "cut off or damaged at word"),
        (_module(_ENTRY, _LOCAL_SIZE, [9 << 16 | 61]), "cut off or damaged at word"),
    ],
)
def test_damaged_modules(module: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_module(module)
