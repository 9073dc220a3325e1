"""Compiling a plugin's native part for Windows on x86-64, by mingw-w64 on Linux.

Nothing of Windows' Python is needed: the headers are those of the running CPython, which has the same minor version,
with Windows' pyconfig.h in the place of its own (windows_python/), and the import library names what the running
CPython's library exports. A name that only Linux's has would make the module refuse to load, which
`python3 -m tools windows` tries.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from ..errors import ToolError

MACHINE = "win_amd64"
#: Triton there, by another distribution: its versions end with .postN.
TRITON = "triton-windows>=3.8.0,<3.10"
#: GCC's thread model has to be POSIX's: that of Windows lacks std::mutex before GCC 13.
COMPILER = "x86_64-w64-mingw32-g++-posix"
_TOOLS = "x86_64-w64-mingw32-"
_INSTALL = "apt-get install g++-mingw-w64-x86-64-posix"
_PYTHONS = (11, 12, 13)
_PYCONFIG = Path(__file__).parent / "windows_python" / "pyconfig.h"
_EXPORTED = re.compile(r"^[0-9a-f]+ ([TDBR]) (_?Py\w+)$", re.MULTILINE)


def refusal() -> str:
    """Why nothing can be compiled for Windows here, '' if it can."""
    if sys.version_info[1] not in _PYTHONS or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return f"wheels for Windows are built by CPython 3.{_PYTHONS[0]} to 3.{_PYTHONS[-1]}, with its lock"
    if shutil.which(COMPILER) is None:
        return f"{COMPILER} is missing: {_INSTALL}"
    return ""


def module_suffix() -> str:
    """What the name of a module of this Python's minor version ends with on Windows."""
    return f".cp3{sys.version_info[1]}-{MACHINE}.pyd"


def _headers(folder: Path) -> Path:
    """The headers of the running CPython, with Windows' configuration."""
    place = folder / "include"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(sysconfig.get_path("include"), place)
    shutil.copy2(_PYCONFIG, place / "pyconfig.h")
    return place


def _library_of_python() -> Path:
    """What exports CPython's functions here: its shared library, or the interpreter itself."""
    folder, name = sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("INSTSONAME")
    shared = Path(folder or "", name or "")
    if sysconfig.get_config_var("Py_ENABLE_SHARED") and shared.is_file():
        return shared
    return Path(sys.executable).resolve()


def definitions(symbols: str, dll: str) -> str:
    """The module definition file of a DLL that exports what `nm` listed. Data are marked, as no code leads to them."""
    names = sorted((name, kind) for kind, name in _EXPORTED.findall(symbols))
    if not names:
        raise ToolError(f"no functions of Python were found to import from {dll}")
    lines = [f"    {name}{'' if kind == 'T' else ' DATA'}\n" for name, kind in names]
    return f"LIBRARY {dll}\nEXPORTS\n{''.join(lines)}"


def _import_library(folder: Path) -> Path:
    library, dll = _library_of_python(), f"python3{sys.version_info[1]}.dll"
    listed = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=False)
    listing, made = folder / "python.def", folder / "libpython.dll.a"
    listing.write_text(definitions(listed.stdout, dll))
    command = [f"{_TOOLS}dlltool", "-d", str(listing), "-l", str(made)]
    subprocess.run(command, check=True, cwd=folder)
    return made


def configuration(folder: Path) -> list[str]:
    """CMake's options for such a build. Raises ToolError."""
    if reason := refusal():
        raise ToolError(reason)
    folder.mkdir(parents=True, exist_ok=True)
    vulkan = folder / "vulkan"
    shutil.rmtree(vulkan, ignore_errors=True)
    for name in ("vulkan", "vk_video"):
        source = Path("/usr/include", name)
        if source.is_dir():
            shutil.copytree(source, vulkan / name)
    options = {
        "CMAKE_SYSTEM_NAME": "Windows",
        "CMAKE_SYSTEM_PROCESSOR": "AMD64",
        "CMAKE_CXX_COMPILER": COMPILER,
        # Files are named as they lie in the sources, wherever those are.
        "CMAKE_CXX_FLAGS": f'"-ffile-prefix-map={folder}=." -fno-ident',
        "TRITON_SPIRV_PYTHON_INCLUDE": str(_headers(folder)),
        "TRITON_SPIRV_PYTHON_LIBRARY": str(_import_library(folder)),
        "TRITON_SPIRV_MODULE_SUFFIX": module_suffix(),
        "TRITON_SPIRV_VULKAN_INCLUDE": str(vulkan),
    }
    return [f"-D{name}={value}" for name, value in options.items()]
