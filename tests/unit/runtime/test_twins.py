"""One GPU that several drivers list, and which queue family takes kernels, without a device."""

from typing import Any

import pytest
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.field_reports import Facts, care_for
from triton.backends.spirv.runtime.vulkan.device_info import VulkanDeviceInfo
from triton.backends.spirv.runtime.vulkan.devices import best_family, transfer_family
from triton.backends.spirv.runtime.vulkan.twins import without_twins


def _device(driver: str, uuid: str, luid: str = "", lacks: tuple[str, ...] = ()) -> VulkanDeviceInfo:
    able: Any = None if lacks else PROFILES["generic"]
    return VulkanDeviceInfo(
        f"GPU of {driver}", "discrete", uuid, driver, lacks, able, luid=luid, care=care_for(Facts(driver))
    )


@pytest.mark.parametrize(
    ("found", "kept"),
    [
        ([_device("amd_open_source", "ab"), _device("mesa_radv", "ab")], [("mesa_radv", ("amd_open_source",))]),
        ([_device("mesa_nvk", "ab"), _device("nvidia_proprietary", "ab")], [("nvidia_proprietary", ("mesa_nvk",))]),
        (
            [_device("mesa_dozen", "cd", "12"), _device("amd_proprietary", "ab", "12")],
            [("amd_proprietary", ("mesa_dozen",))],
        ),
        (
            [_device("mesa_radv", "ab", lacks=("shaderInt64",)), _device("amd_open_source", "ab")],
            [("amd_open_source", ("mesa_radv",))],
        ),
        ([_device("mesa_radv", "ab"), _device("mesa_radv", "cd")], [("mesa_radv", ()), ("mesa_radv", ())]),
        # All of a CPU driver's have one UUID.
        ([_device("mesa_llvmpipe", "ab"), _device("mesa_llvmpipe", "ab")], [("mesa_llvmpipe", ())] * 2),
        ([_device("mesa_radv", ""), _device("mesa_llvmpipe", "")], [("mesa_radv", ()), ("mesa_llvmpipe", ())]),
    ],
)
def test_a_gpu_is_listed_once(found: list[VulkanDeviceInfo], kept: list[tuple[str, tuple[str, ...]]]) -> None:
    assert [(device.driver, device.also_listed_by) for device in without_twins(found)] == kept


def test_a_gpu_of_three_drivers() -> None:
    found = [_device(driver, "ab") for driver in ("amd_open_source", "mesa_dozen", "mesa_radv")]
    (kept,) = without_twins(found)
    assert kept.driver == "mesa_radv" and set(kept.also_listed_by) == {"amd_open_source", "mesa_dozen"}


@pytest.mark.parametrize(
    ("families", "compute_only", "index"),
    [({0: 7, 1: 6}, True, 1), ({0: 7, 1: 6}, False, 0), ({0: 7}, True, 0), ({2: 6}, True, 2), ({}, True, None)],
)
def test_queue_family(families: dict[int, int], compute_only: bool, index: int | None) -> None:
    """Flags: 1 graphics, 2 compute, 4 transfer."""
    assert best_family(families, compute_only) == index


@pytest.mark.parametrize(
    ("families", "index"),
    [
        ({0: (15, 64), 1: (12, 64), 2: (14, 64)}, 1),
        ({0: (7, 64), 1: (4, 64)}, 1),
        ({0: (7, 64), 1: (6, 64)}, 0),
        ({0: (7, 64), 1: (0x2C, 64)}, 0),
        ({0: (7, 64), 1: (4, 32)}, 0),
        ({0: (7, 64)}, 0),
    ],
)
def test_transfer_family(families: dict[int, tuple[int, int]], index: int) -> None:
    """Flags, further: 8 binds sparse memory, 0x20 decodes video."""
    assert transfer_family(families, 0) == index
