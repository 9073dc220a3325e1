"""`windows`: build the plugin's wheel for Windows, and run it under Wine, beside `triton-windows`.

Windows' CPython is the one in panda3d's wheel, with the standard library of the running CPython, of the same version,
and a `python.exe` of a few lines. Wine's vulkan-1.dll reaches this machine's drivers, where there is a display.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from zipfile import ZipFile

from ..errors import ToolError
from ..packaging import plugin_wheel, targets, windows
from ..progress import note, step
from ..project import Project, pip_environment

_PROBE = Path(windows.__file__).with_name("windows_probe.py")
_PROCESSES = Path(windows.__file__).with_name("windows_processes_probe.py")
_CPU = Path(windows.__file__).with_name("windows_cpu_probe.py")
_SOFTMAX = f"{_PROBE}:softmax"
_SIGNATURE = "*fp32:16, *fp32:16, i32, 1024"
#: Wine 8 fails with NumPy 2.4. The first for Python 3.13 is 2.1.
_NUMPY = "numpy==1.26.4" if sys.version_info < (3, 13) else "numpy==2.1.3"
_PACKAGES = ("panda3d==1.10.16", "triton-windows==3.8.0.post29", _NUMPY, "cffi", "pycparser", "vulkan")
#: What Wine 8 ends the process for, as it lacks a function; Python's `platform` does without.
_LEFT_OUT = ("_wmi.pyd",)
_WINE = "/usr/lib/wine/wine64"
_SECONDS = 600
_PYTHON = f"3{sys.version_info[1]}"
_MAIN = rf"""
#include <windows.h>
typedef int (*Main)(int, wchar_t**);
int wmain(int argc, wchar_t** argv) {{
  HMODULE library = LoadLibraryW(L"python{_PYTHON}.dll");
  if (!library) return 127;
  return ((Main)(void*)GetProcAddress(library, "Py_Main"))(argc, argv);
}}
"""
_ON_THE_PROCESSOR, _ON_VULKAN = ({"TRITON_SPIRV_DEVICE": name} for name in ("cpu", "llvmpipe"))
#: What is run: the arguments of Windows' Python, what has to be printed, and settings.
_RUNS: tuple[tuple[tuple[str, ...], str, dict[str, str]], ...] = (
    ((str(_CPU),), "a time limit: endless loops ended", _ON_THE_PROCESSOR),
    (("-m", "triton_spirv.cli", "doctor"), "a tiny kernel ran on", _ON_THE_PROCESSOR),
    ((str(_PROBE),), "four threads: largest error", _ON_VULKAN),
    (("-m", "triton_spirv.cli", "info"), "used: device", _ON_VULKAN),
    (("-m", "triton_spirv.cli", "doctor"), "a tiny kernel ran on", _ON_VULKAN),
    (("-m", "triton_spirv.cli", "compile", _SOFTMAX, "-s", _SIGNATURE, "-o", "softmax.spv"), "softmax.spv", _ON_VULKAN),
    (
        ("-m", "triton_spirv.cli", "inspect", _SOFTMAX, "-s", _SIGNATURE, "-o", "softmax.html"),
        "softmax.html",
        _ON_VULKAN,
    ),
    ((str(_PROCESSES),), "a process after one that was killed", _ON_VULKAN),
)


def run(project: Project, arguments: list[str]) -> int:
    if len(arguments) > 1:
        raise ToolError("windows takes at most the folder that keeps what is fetched")
    lacks = [name for name in (_WINE, "xvfb-run", "x86_64-w64-mingw32-gcc") if shutil.which(name) is None]
    if lacks:
        raise ToolError(f"{', '.join(lacks)} is missing: apt-get install wine64 xvfb g++-mingw-w64-x86-64-posix")
    if refusal := windows.refusal():
        raise ToolError(refusal)
    kept = Path(arguments[0] if arguments else project.cache / f"windows-{_PYTHON}").absolute()
    target = targets.parse(f"cp{_PYTHON}-{windows.MACHINE}")
    wheel = plugin_wheel.build_wheel(project, target=target)
    with tempfile.TemporaryDirectory(prefix="tools windows ") as scratch:  # with spaces, on purpose
        place = Path(scratch)
        with step("lay out Windows' Python"):
            python = lay_out(place / "python", [*_fetch(kept), wheel])
        for given, wanted, settings in _RUNS:
            with step(f"run {' '.join(Path(one).name for one in given)} under Wine"):
                print(_run(python, place, given, wanted, settings), flush=True)
    note("all of it ran under Wine; docs/windows.md says what that does not show")
    return 0


def _fetch(folder: Path) -> list[Path]:
    """The wheels of _PACKAGES, from the package registry."""
    if not list(folder.glob("*.whl")):
        choice = [
            "--platform",
            windows.MACHINE,
            "--python-version",
            f"3.{sys.version_info[1]}",
            "--only-binary",
            ":all:",
            "--no-deps",
        ]
        command = [sys.executable, "-m", "pip", "download", "--quiet", "-d", str(folder), *choice, *_PACKAGES]
        done = subprocess.run(command, env=pip_environment(), capture_output=True, text=True, check=False)
        if done.returncode:
            raise ToolError(f"the packages for Windows cannot be fetched: {done.stderr.strip().splitlines()[-1]}")
    return sorted(folder.glob("*.whl"))


def lay_out(folder: Path, wheels: list[Path]) -> Path:
    """A Windows Python with these wheels in it. Returns its program."""
    packages, modules = folder / "Lib" / "site-packages", folder / "DLLs"
    modules.mkdir(parents=True)
    leave = shutil.ignore_patterns("site-packages", "test", "__pycache__", "config-*", "lib-dynload")
    shutil.copytree(sysconfig.get_path("stdlib"), folder / "Lib", ignore=leave)
    for wheel in wheels:
        with ZipFile(wheel) as archive:
            if not wheel.name.startswith("panda3d-"):
                archive.extractall(packages)
                continue
            for name in archive.namelist():
                if (
                    name.startswith("deploy_libs/")
                    and name.endswith((".dll", ".pyd"))
                    and Path(name).name not in _LEFT_OUT
                ):
                    at = modules if name.endswith(".pyd") else folder
                    (at / Path(name).name).write_bytes(archive.read(name))
    program, source = folder / "python.exe", folder / "python.c"
    source.write_text(_MAIN)
    subprocess.run(["x86_64-w64-mingw32-gcc", "-municode", "-O1", "-s", "-o", str(program), str(source)], check=True)
    return program


def _run(python: Path, scratch: Path, arguments: tuple[str, ...], wanted: str, settings: dict[str, str]) -> str:
    """What Windows' Python printed. Its input and output are pipes: it takes no other files of Linux."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TRITON_", "PYTHON"))}
    environment |= settings | {"WINEPREFIX": str(scratch / "prefix"), "WINEDEBUG": "-all"}
    environment |= {"TRITON_CACHE_DIR": f"Z:{scratch}/cache".replace("/", "\\")}
    done = subprocess.run(
        ["xvfb-run", "-a", _WINE, str(python), *arguments],
        env=environment,
        cwd=scratch,
        input="",
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_SECONDS,
        check=False,
    )
    if done.returncode or wanted not in done.stdout:
        sys.stderr.write(done.stdout + done.stderr)
        raise ToolError(f"{' '.join(arguments)} failed under Wine (status {done.returncode}); its output is above")
    return done.stdout.strip()
