"""Mesa's compilers for GPUs that are not there: how to start a process that has such a device.

Drivers of Mesa's believe in a GPU where a library of Mesa's, its drm-shim, plays the kernel's driver. It comes from
Mesa's source (docs/internals/testing.md says how). RADV before Mesa 25.2 needs none. ``NEWER_MESA`` names a folder with
the unpacked packages of another Debian's Mesa, which then takes the place of the installed one; their C library's
loader starts the interpreter.
"""

from __future__ import annotations

import json
import os
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..runtime.vulkan import manifests

#: The environment variable that names such a folder.
NEWER_MESA = "NEWER_MESA"


class NoMesa(RuntimeError):
    """The driver, or the library that plays a GPU for it, is not there. The message says what to do."""


@dataclass(frozen=True)
class Compiler:
    """A driver of Mesa's. ``manifest``: how the name of its manifest begins; ``library``: the driver's own.

    ``shim``: the environment variable that names the library that plays its GPU; ``chosen_by``: the variable by which
    that library chooses one, and ``gpu``: which, where the variable is not set; "" if it plays only one.
    ``without``: environments in which it compiles without the library, for one version or another.
    """

    manifest: str
    library: str
    shim: str
    chosen_by: str = ""
    gpu: str = ""
    without: tuple[Mapping[str, str], ...] = ()


#: By Capabilities.driver.
COMPILERS = {
    "mesa_radv": Compiler(
        "radeon_icd",
        "libvulkan_radeon.so",
        "AMDGPU_NOOP_DRM_SHIM",
        "AMDGPU_GPU_ID",
        "navi31",
        # A Radeon RX 7900 by its names in Mesa to 23.0, and since.
        ({"RADV_FORCE_FAMILY": "gfx1100"}, {"RADV_FORCE_FAMILY": "navi31"}),
    ),
    "intel_open_source_mesa": Compiler(
        "intel_icd", "libvulkan_intel.so", "INTEL_NOOP_DRM_SHIM", "INTEL_STUB_GPU_PLATFORM", "dg2"
    ),
    # 0x172: GA102, of the GeForce RTX 3090.
    "mesa_nvk": Compiler("nouveau_icd", "libvulkan_nouveau.so", "NOUVEAU_NOOP_DRM_SHIM", "NOUVEAU_CHIPSET", "172"),
    # Of the Snapdragon 8 Gen 2.
    "mesa_turnip": Compiler("freedreno_icd", "libvulkan_freedreno.so", "FREEDRENO_NOOP_DRM_SHIM", "FD_GPU_ID", "740"),
    "mesa_honeykrisp": Compiler("asahi_icd", "libvulkan_asahi.so", "ASAHI_NOOP_DRM_SHIM"),
}


@dataclass(frozen=True)
class Process:
    """What starts Python with a device of a driver: ``interpreter`` and the ``environment`` to add."""

    interpreter: tuple[str, ...]
    environment: Mapping[str, str]


def processes(driver: str, folder: Path) -> Iterator[Process]:
    """The ways to a device of ``driver`` (a key of COMPILERS), one for each that may be right. A manifest that has to
    be written goes to ``folder``. Raises NoMesa."""
    compiler = COMPILERS[driver]
    newer = os.environ.get(NEWER_MESA, "")
    interpreter: tuple[str, ...] = (sys.executable,)
    if newer:
        interpreter = newer_interpreter(Path(newer).resolve(), compiler.library)
        found = [newer_manifest(Path(newer).resolve(), compiler.library, folder)]
    else:
        found = [one.path for one in manifests.installed() if one.path.name.startswith(compiler.manifest)]
    if not found:
        raise NoMesa(f"no {compiler.manifest}*.json is installed: apt-get install mesa-vulkan-drivers")
    shim = os.environ.get(compiler.shim, "")
    if shim and not Path(shim).is_file():
        raise NoMesa(f"{compiler.shim}={shim} is not there; docs/internals/testing.md says how to build it")
    gpus = compiler.without
    if shim:
        chosen = {compiler.chosen_by: os.environ.get(compiler.chosen_by, compiler.gpu)} if compiler.chosen_by else {}
        gpus = ({"LD_PRELOAD": str(Path(shim).resolve()), **chosen},)
    if not gpus:
        raise NoMesa(f"{compiler.shim} names no library that simulates a GPU: docs/internals/testing.md")
    for path in found:
        for gpu_environment in gpus:
            yield Process(interpreter, dict.fromkeys(manifests.REPLACING, str(path)) | dict(gpu_environment) | _PLAIN)


#: Nothing is read from caches, validated, or chosen by what else is set.
_PLAIN = {
    "MESA_SHADER_CACHE_DISABLE": "true",
    "TRITON_SPIRV_DEVICE": "",
    "LOCAL_RANK": "",
    "TRITON_SPIRV_VALIDATE": "0",
}


def _libraries(folder: Path) -> Path:
    return folder / "usr" / "lib" / str(sysconfig.get_config_var("MULTIARCH"))


def newer_interpreter(folder: Path, library: str) -> tuple[str, ...]:
    """What runs this interpreter on the libraries of ``folder``, a driver's ``library`` among them. Raises NoMesa."""
    libraries = _libraries(folder)
    loader = libraries / "ld-linux-x86-64.so.2"
    for file in (loader, libraries / library, libraries / "libvulkan.so.1"):
        if not file.exists():
            raise NoMesa(f"{file} is not there: {folder} does not hold the Mesa of a newer Debian")
    interpreter = Path(sys.executable).resolve()
    return (str(loader), "--argv0", sys.executable, "--library-path", str(libraries), str(interpreter))


def newer_manifest(folder: Path, library: str, where: Path) -> Path:
    """Writes the manifest of a driver of ``folder`` to the folder ``where``."""
    driver = {"api_version": "1.4.0", "library_path": str(_libraries(folder) / library)}
    path = where / f"{Path(library).stem}.json"
    path.write_text(json.dumps({"file_format_version": "1.0.1", "ICD": driver}), encoding="utf-8")
    return path
