"""The wheel's tag: the running interpreter's, and the oldest platform that every library in it runs on."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Collection
from pathlib import Path

# What PEP 600 lets a manylinux wheel take from the machine it is installed on.
_SYSTEM_LIBRARIES = re.compile(
    r"(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|libutil|libnsl|libresolv)\.so\.\d+|ld-linux[-\w]*\.so\.\d"
)
# The glibc of the first mainstream distribution whose libstdc++ has the version.
_GLIBC_OF_GLIBCXX = ((24, 27), (25, 28), (28, 31), (29, 34), (30, 35), (32, 39), (33, 40))
_GLIBC_BASE = 28


def python_tag() -> tuple[str, str]:
    """(python tag, abi tag) of an extension module built for the running interpreter."""
    major, minor = sys.version_info[:2]
    threads = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    return f"cp{major}{minor}", f"cp{major}{minor}{threads}"


def needed_glibc(library: Path, beside: Collection[str] = ()) -> int | None:
    """The minor number of the oldest glibc 2.x that a library runs on. ``beside``: names of libraries in the wheel.

    None if that cannot be told: there is no readelf, or the library needs another one than manylinux allows.
    """
    readelf = shutil.which("readelf") or shutil.which("llvm-readelf")
    if readelf is None:
        return None
    text = subprocess.run([readelf, "-d", "-V", "-W", str(library)], capture_output=True, text=True, check=True).stdout
    others = {*re.findall(r"\(NEEDED\).*\[(.*)\]", text)}.difference(beside)
    if any(not _SYSTEM_LIBRARIES.fullmatch(name) for name in others):
        return None
    needed = [int(minor) for minor in re.findall(r"Name: GLIBC_2\.(\d+)", text)] or [0]
    for version in re.findall(r"Name: GLIBCXX_3\.4\.(\d+)", text):
        later = [glibc for glibcxx, glibc in _GLIBC_OF_GLIBCXX if int(version) <= glibcxx]
        if not later:
            return None
        needed.append(later[0])
    return max(needed)


def platform_tag(upstream: str, built: list[Path]) -> str:
    """The platform tag of a wheel with upstream's libraries and those built here.

    Upstream's own tag where nothing was built; else the manylinux tag that the newest requirement asks for, or
    linux_<arch> where that cannot be told.
    """
    if not built:
        return upstream
    arch = platform.machine()
    minor = _GLIBC_BASE
    for library in built:
        needed = needed_glibc(library, [path.name for path in built])
        if needed is None:
            return f"linux_{arch}"
        minor = max(minor, needed)
    return upstream if minor == _GLIBC_BASE else f"manylinux_2_{minor}_{arch}"
