"""The part of include/triton_spirv.hpp that is made from Python's tables: drivers, features, float controls.

``python -m backend.ahead_of_time.cpp_tables`` writes it into the file; a test checks that it is current.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..capabilities import FLOAT_CONTROLS, REQUIRED
from ..driver_quirks import DRIVER_IDS, DRIVERS, OTHER
from ..runtime.vulkan.device_features import CAPABILITY_FEATURES, FEATURE_STRUCTS, place_of

PATH = Path(__file__).resolve().parents[1] / "include" / "triton_spirv.hpp"
_BEGIN = "// Written by python -m backend.ahead_of_time.cpp_tables: change the Python tables.\n"
_END = "// end of what is written\n"


def text() -> str:
    """What the file has to be."""
    before, _, rest = PATH.read_text(encoding="utf-8").partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}{_tables()}{_END}{after}"


def _tables() -> str:
    tables = {
        "DriverRow kDrivers": (
            f'{number}, "{name}", {str(DRIVERS.get(name, OTHER).faults.own_modules).lower()}'
            for number, name in DRIVER_IDS.items()
        ),
        "FeatureRow kFeatures": _features(),
        "ControlRow kControls": (
            f'"{control}{width}", &VkPhysicalDeviceFloatControlsProperties::{entry}{width}'
            for control, entry in FLOAT_CONTROLS.items()
            for width in (16, 32, 64)
        ),
    }
    return "".join(
        f"inline constexpr {name}[] = {{\n{''.join(f'    {{{row}}},{chr(10)}' for row in rows)}}};\n"
        for name, rows in tables.items()
    )


def _features() -> Iterator[str]:
    """A row a Vulkan feature, of what every kernel needs first."""
    for key, needed in {"": tuple(REQUIRED), **CAPABILITY_FEATURES}.items():
        for feature in needed:
            struct = next(name for name, (_, features) in FEATURE_STRUCTS.items() if feature in features)
            number, index = place_of(struct, feature)
            yield f'"{key}", "{feature}", "{FEATURE_STRUCTS[struct][0] or ""}", {number}, {index}'


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
