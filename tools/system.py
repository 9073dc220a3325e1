"""System packages: found missing by what they provide, installed with apt-get where that is possible."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .errors import ToolError
from .progress import step

_DATA_FOLDERS = ("/usr/share/vulkan", "/usr/local/share/vulkan", "/etc/vulkan")


@dataclass(frozen=True)
class Need:
    """Something the system must provide."""

    what: str
    packages: tuple[str, ...]
    present: Callable[[], bool]
    otherwise: str = ""  # what to do where the packages do not bring it


def _has_loader() -> bool:
    try:
        ctypes.CDLL("libvulkan.so.1")
    except OSError:
        return False
    return True


def _has_manifest(folder: str, pattern: str) -> bool:
    return any(any(Path(data, folder).glob(pattern)) for data in _DATA_FOLDERS)


def _has_driver() -> bool:
    if any(os.environ.get(name) for name in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES")):
        return True
    return _has_manifest("icd.d", "*.json")


def _has_vulkan_headers() -> bool:
    folders = ["/usr/include", "/usr/local/include"]
    if sdk := os.environ.get("VULKAN_SDK"):
        folders.append(f"{sdk}/include")
    return any(Path(folder, "vulkan/vulkan_core.h").exists() for folder in folders)


def _has_python_headers() -> bool:
    return Path(sysconfig.get_path("include"), "Python.h").exists()


def _on_path(*programs: str) -> Callable[[], bool]:
    return lambda: all(shutil.which(program) for program in programs)


def _has_browser() -> bool:
    return any(map(shutil.which, ("chromium", "google-chrome"))) and shutil.which("chromedriver") is not None


_PYTHON_DEV = f"python{sys.version_info[0]}.{sys.version_info[1]}-dev"

BUILD = (
    Need("a C++ compiler", ("g++",), lambda: any(shutil.which(name) for name in ("c++", "g++", "clang++"))),
    Need("git", ("git",), _on_path("git")),
    Need("strip and readelf", ("binutils",), _on_path("strip", "readelf")),
    Need("Python's headers", (_PYTHON_DEV,), _has_python_headers),
    Need("the Vulkan headers", ("libvulkan-dev",), _has_vulkan_headers),
)
RUN = (
    Need("the Vulkan loader", ("libvulkan1",), _has_loader),
    Need("a Vulkan driver", ("mesa-vulkan-drivers",), _has_driver),
)
TEST = (
    Need("a C++ compiler for Windows", ("g++-mingw-w64-x86-64-posix",), _on_path("x86_64-w64-mingw32-g++-posix")),
    Need("spirv-val and spirv-dis", ("spirv-tools",), _on_path("spirv-val", "spirv-dis")),
    Need(
        "the Vulkan validation layers",
        ("vulkan-validationlayers",),
        lambda: _has_manifest("explicit_layer.d", "VkLayer_khronos_validation.json"),
    ),
    Need(
        "a browser and its driver",
        ("chromium", "chromium-driver"),
        _has_browser,
        "Ubuntu's package is a snap that apt does not install: install google-chrome and chromedriver instead",
    ),
)


def lacking(needs: tuple[Need, ...]) -> str:
    """What is missing, in one sentence with the command to type; "" if nothing is."""
    missing = [need for need in needs if not need.present()]
    if not missing:
        return ""
    packages = " ".join(package for need in missing for package in need.packages)
    said = f"missing on this system: {', '.join(need.what for need in missing)}"
    if shutil.which("apt-get") is None:
        return f"{said}; install it with your package manager (on Debian and Ubuntu: apt-get install {packages})"
    root = "" if os.geteuid() == 0 else "sudo "
    return f"{said}; type: {root}apt-get update && {root}apt-get install -y --no-install-recommends {packages}"


def ensure(needs: tuple[Need, ...]) -> None:
    """Install what is missing with apt-get when root; else a ToolError with the command to type."""
    lacks = lacking(needs)
    if not lacks:
        return
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        raise ToolError(lacks)
    missing = [need for need in needs if not need.present()]
    packages = [package for need in missing for package in need.packages]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with step(f"apt-get install {' '.join(packages)}", quiet_child=False):
        for command in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
            quiet = [] if sys.stderr.isatty() else ["-qq"]
            done = subprocess.run(
                [apt, *quiet, *command], env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False
            )
            if done.returncode:
                raise ToolError(f"`apt-get {' '.join(command)}` failed: see its message above")
    still = [need for need in missing if not need.present()]
    if still:
        listed = "; ".join(need.what + (f" ({need.otherwise})" if need.otherwise else "") for need in still)
        raise ToolError(f"apt-get installed {' '.join(packages)}, but the system still lacks {listed}")
