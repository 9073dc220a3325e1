"""Mesa's CPU driver with the subgroups of a GPU, and kernels compiled as for that GPU's driver.

    python -m tests.drivers.wide_mesa build SOURCE FOLDER
    python -m tests.drivers.wide_mesa FOLDER nvidia-hopper -m pytest -n0 tests/device/test_reduce.py

The driver has subgroups of 4, 8 or 16 lanes, by the width of the CPU's vectors. Two constants of its source are all
that keeps it from more; LLVM cuts wider vectors into pieces. SOURCE is the unpacked source of Mesa 22.3 (``apt-get
source mesa``), which is changed; FOLDER becomes the driver and its manifest. The second line runs Python on it, with
as many lanes as the device profile has, and with the decisions of that profile's driver: layouts, conversions, loads
and barriers are then the same as on that GPU.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.drivers import DRIVERS, OTHER, Driver

_LIBRARY, _MANIFEST = "libvulkan_lvp.so", "lvp.json"

#: (file of Mesa's source, what stands there, what it becomes): 64 lanes of 32 bits.
_CHANGES = (
    ("src/gallium/auxiliary/gallivm/lp_bld_type.h", "LP_MAX_VECTOR_WIDTH 512", "LP_MAX_VECTOR_WIDTH 2048"),
    (
        "src/gallium/drivers/llvmpipe/lp_state_cs.c",
        "cs_type.length = MIN2(lp_native_vector_width / 32, 16)",
        "cs_type.length = MIN2(lp_native_vector_width / 32, 64)",
    ),
)

_OPTIONS = (
    "-Dbuildtype=release",
    "-Db_ndebug=true",
    "-Dgallium-drivers=swrast",
    "-Dvulkan-drivers=swrast",
    "-Dplatforms=",
    "-Dllvm=enabled",
    "-Dopengl=false",
    *(f"-D{name}=disabled" for name in ("glx", "egl", "gbm", "gles1", "gles2", "gallium-xa", "gallium-va")),
)

#: Names the profile whose driver's habits the kernels of a test's process have; tests/drivers/habits.py reads it.
HABITS_OF = "HABITS_OF"


def build(source: Path, folder: Path) -> None:
    """Changes the source, builds the driver and puts it into ``folder``. Raises SystemExit if the source is not as
    expected, subprocess.CalledProcessError where meson or ninja fails."""
    for name, before, after in _CHANGES:
        text = (source / name).read_text(encoding="utf-8") if (source / name).is_file() else ""
        if after not in text:
            if text.count(before) != 1:
                raise SystemExit(f"{source / name} does not hold {before!r} once: is this the source of Mesa 22.3?")
            (source / name).write_text(text.replace(before, after), encoding="utf-8")
    built = folder.resolve() / "build"
    if not (built / "build.ninja").exists():
        subprocess.run(["meson", "setup", built, source.resolve(), *_OPTIONS], check=True)
    target = f"src/gallium/targets/lavapipe/{_LIBRARY}"
    subprocess.run(["ninja", "-C", built, target], check=True)
    shutil.copy2(built / target, folder / _LIBRARY)
    manifest = {"file_format_version": "1.0.0", "ICD": {"library_path": f"./{_LIBRARY}", "api_version": "1.3.0"}}
    (folder / _MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")


def environment(folder: Path, profile: str) -> dict[str, str]:
    """What makes a process run on the driver in ``folder``, with the lanes and the habits of the profile."""
    manifest = folder.resolve() / _MANIFEST
    if not manifest.is_file():
        raise SystemExit(f"{folder} holds no {_MANIFEST}: build the driver first (--help)")
    return {
        "VK_DRIVER_FILES": str(manifest),
        "VK_ICD_FILENAMES": str(manifest),
        "LP_NATIVE_VECTOR_WIDTH": str(32 * PROFILES[profile].subgroup_size),
        "MESA_SHADER_CACHE_DISABLE": "true",  # its key does not hold the width
        "PYTEST_PLUGINS": "tests.drivers.habits",
        HABITS_OF: profile,
    }


#: Of a driver as it computes and fails, of its statistics, and of how much code its compiler stands.
_ITS_OWN = (
    "faults",
    "fused",
    "exact_division",
    "rounds_doubles",
    "native_math",
    "unit_registers",
    "register_statistics",
    "spill_statistics",
    "dot_unroll",
    "dots_unroll",
    "dot_unroll_registers",
    "unrolled_instructions",
    "unrolled_in_loop",
    "unrolled_elementwise",
)


def with_habits(own: Driver, other: Driver) -> Driver:
    """What the compiler decides for ``other``, on a driver that computes and fails as ``own`` does. The number of lanes
    is that of the device."""
    kept: dict[str, Any] = {name: getattr(own, name) for name in _ITS_OWN}
    return replace(other, lanes=None, matrix_lanes=None, **kept)


def adopt(profile: str) -> None:
    """From now on, this process compiles for Mesa's CPU driver with the habits of the profile's driver."""
    theirs = DRIVERS.get(PROFILES[profile].driver, OTHER)
    DRIVERS["mesa_llvmpipe"] = with_habits(DRIVERS["mesa_llvmpipe"], theirs)


def main(arguments: list[str]) -> None:
    """Builds the driver, or runs Python on it."""
    if len(arguments) == 3 and arguments[0] == "build":
        folder = Path(arguments[2])
        folder.mkdir(parents=True, exist_ok=True)
        build(Path(arguments[1]), folder)
        return
    if len(arguments) < 3 or arguments[1] not in PROFILES:
        raise SystemExit(f"{__doc__}\nprofiles: {', '.join(PROFILES)}")
    folder, profile, *rest = arguments
    os.execve(sys.executable, [sys.executable, *rest], os.environ | environment(Path(folder), profile))


if __name__ == "__main__":
    main(sys.argv[1:])
