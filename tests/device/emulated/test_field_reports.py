"""Every row of field_reports.py that changes code: kernels of the device that is left, emulated."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from triton.backends.spirv import capabilities
from triton.backends.spirv.driver_quirks import DRIVER_IDS
from triton.backends.spirv.field_reports import ROWS, Care, Facts, care_for, rows_for

from .test_emulated import emulate

_PROFILES = Path(capabilities.__file__).parent / "profiles"

#: What a device lacks beside what its profile does, by the row's number.
LACKS = {"17": {"int16"}}
#: (The device of a report, the profile that stands for the rest of it) by the row's number.
DEVICES: Mapping[str, tuple[Facts, str]] = {
    "3": (Facts("amd_proprietary", kind="integrated", least_lanes=32, most_lanes=64, mixed_dots=True), "amd-rdna3"),
    "4": (Facts("amd_open_source", least_lanes=32, most_lanes=64), "amd-rdna3"),
    "5": (Facts("amd_proprietary", least_lanes=32, most_lanes=64, mixed_dots=True), "amd-rdna3"),
    "7": (Facts("intel_proprietary_windows", system="Windows", least_lanes=8), "intel-xe"),
    "8": (
        Facts("intel_proprietary_windows", (101, 8826), "Intel Arc Pro B70", system="Windows", least_lanes=16),
        "intel-xe",
    ),
    "9": (Facts("intel_proprietary_windows", (101, 8509), system="Windows", least_lanes=16), "intel-xe"),
    "11": (Facts("intel_proprietary_windows", system="Windows", least_lanes=16), "intel-xe"),
    "17": (Facts("amd_proprietary", (22, 3, 2), "Polaris", least_lanes=64, most_lanes=64), "amd-rdna3"),
    "18": (Facts("nvidia_proprietary", unit_threads=1024), "nvidia-hopper"),
    "19": (Facts("qualcomm_proprietary"), "qualcomm-adreno7"),
    "21": (Facts("moltenvk", vendor=0x1002, least_lanes=32, most_lanes=64), "amd-rdna3"),
    "22": (Facts("mesa_honeykrisp"), "apple-m1"),
}


def changes_code(row: Any) -> bool:
    """Whether kernels depend on a row: on features that are left out, on the lanes, or on the driver's table."""
    care: Care = row.care
    return bool(care.left_out) or care.most_lanes is not None or "driver_quirks.py" in row.instead


def profile_of(number: str) -> dict[str, Any]:
    """A profile of a row's device without what the rows that hold for it leave out."""
    facts, base = DEVICES[number]
    care, profile = care_for(facts), json.loads((_PROFILES / f"{base}.json").read_text())
    left_out = care.left_out | LACKS.get(number, set())
    matrices = [] if "matrices" in left_out else profile.get("matrices", [])
    if "bfloat16_matrices" in left_out:
        matrices = [one for one in matrices if "bf16" not in json.dumps(one)]
    features = [name for name in profile["features"] if name not in left_out]
    lanes = min(profile["subgroup_size"], care.most_lanes or profile["subgroup_size"])
    return {**profile, "driver": facts.driver, "subgroup_size": lanes, "features": features, "matrices": matrices}


def test_every_row_that_changes_code_has_a_device() -> None:
    assert {str(row.number) for row in ROWS if changes_code(row)} == DEVICES.keys()
    for number, (facts, _) in DEVICES.items():
        assert int(number) in {row.number for row in rows_for(facts)}, number
        assert facts.driver in DRIVER_IDS.values(), facts.driver


@pytest.mark.parametrize("number", DEVICES)
def test_kernels_of_what_is_left_are_right(number: str, tmp_path: Path) -> None:
    profile = profile_of(number)
    file = tmp_path / "device.json"
    file.write_text(json.dumps(profile))
    units = bool(profile["matrices"])
    assert emulate(str(file), "everything", tmp_path).splitlines() == ["right", f"right {units}", "right"]
