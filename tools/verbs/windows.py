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
from ..project import Project, file_sha256, pip_environment

_CHECKS = Path(windows.__file__).with_name("windows_checks.py")
#: Wine 8 fails with NumPy 2.4. The first for Python 3.13 is 2.1.
_NUMPY = "numpy==1.26.4" if sys.version_info < (3, 13) else "numpy==2.1.3"
_PACKAGES = ("panda3d==1.10.16", "triton-windows==3.8.0.post29", _NUMPY, "cffi", "pycparser", "vulkan")
#: What Wine 8 ends the process for, as it lacks a function; Python's `platform` does without.
_LEFT_OUT = ("_wmi.pyd",)
_WINE = "/usr/lib/wine/wine64"
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
#: torch of PyPI, and what it imports; sympy wants an mpmath before 1.4.
_TORCH = (
    *("torch==2.13.0", "filelock", "typing-extensions", "sympy", "mpmath<1.4", "networkx", "jinja2", "markupsafe"),
    *("fsspec", "setuptools"),
)
#: Wine's Vulkan reaches this driver of the machine, and letters outside of ASCII need a locale that has them. The
#: OpenMP of torch asks for processors in a way that Wine lacks.
_SETTINGS = {"LC_ALL": "C.UTF-8", "WINEDEBUG": "-all", "KMP_AFFINITY": "disabled"}
_DEVICE = "llvmpipe"
_NOT_COPIED = (".git", ".venv", "build", "dist", "shared", "__pycache__", ".*_cache")


def run(project: Project, arguments: list[str]) -> int:
    torch = "--torch" in arguments
    folders = [argument for argument in arguments if argument != "--torch"]
    if len(folders) > 1 or any(folder.startswith("-") for folder in folders):
        raise ToolError("windows takes --torch, and the folder that keeps what is fetched")
    lacks = [name for name in (_WINE, "xvfb-run", "x86_64-w64-mingw32-gcc") if shutil.which(name) is None]
    if lacks:
        raise ToolError(f"{', '.join(lacks)} is missing: apt-get install wine64 xvfb g++-mingw-w64-x86-64-posix")
    if refusal := windows.refusal():
        raise ToolError(refusal)
    kept = Path(folders[0] if folders else project.cache / f"windows-{_PYTHON}").absolute()
    target = targets.parse(f"cp{_PYTHON}-{windows.MACHINE}")
    wheel = plugin_wheel.build_wheel(project, target=target)
    fetched = _fetch(kept, _PACKAGES) + (_fetch(kept / "torch", _TORCH) if torch else [])
    with tempfile.TemporaryDirectory(prefix="tools windows ü ") as scratch:  # with spaces and letters, on purpose
        place = Path(scratch)
        with step("build the wheel again, in another folder"):
            check_again(project, wheel, target, place / "another checkout")
        with step("lay out Windows' Python"):
            python = lay_out(place / "python", [*fetched, wheel])
        with step("run tools/packaging/windows_checks.py under Wine"):
            _run(python, place, torch)
    note("all of it ran under Wine; docs/windows.md says what that does not show")
    return 0


def check_again(project: Project, wheel: Path, target: targets.Target, folder: Path) -> None:
    """Raises ToolError where a copy of the checkout in ``folder``, with nothing that was built, gives another wheel."""
    shutil.copytree(project.root, folder, ignore=shutil.ignore_patterns(*_NOT_COPIED))
    copy = Project(folder)
    copy.build.mkdir()
    copy.cache.symlink_to(project.cache)  # what is fetched
    # By the copy's own tools: they are among the sources that the version names.
    options = ["--quiet", "bdist_wheel", "--plugin-only", "--target", target.name]
    done = subprocess.run([sys.executable, "setup.py", *options], cwd=folder, check=False)
    if done.returncode:
        raise ToolError("the wheel cannot be built in another folder; what failed is above")
    (again,) = copy.dist.glob("*.whl")
    if (again.name, file_sha256(again)) != (wheel.name, file_sha256(wheel)):
        kept = shutil.copy(again, wheel.parent / f"{again.stem}.again")
        raise ToolError(f"{wheel} is another wheel than {kept}, which was built in another folder")
    shutil.rmtree(folder)


def _fetch(folder: Path, packages: tuple[str, ...]) -> list[Path]:
    """Their wheels for Windows, from the package registry."""
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
        command = [sys.executable, "-m", "pip", "download", "--quiet", "-d", str(folder), *choice, *packages]
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


def _run(python: Path, scratch: Path, torch: bool) -> None:
    """Runs the checks in Windows' Python. Its input and output are pipes: it takes no other files of Linux."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TRITON_", "PYTHON"))}
    environment |= _SETTINGS | {"WINEPREFIX": str(scratch / "prefix")}
    command = ["xvfb-run", "-a", _WINE, str(python), "-u", str(_CHECKS), "--vulkan", _DEVICE, *["--torch"] * torch]
    with subprocess.Popen(
        command,
        env=environment,
        cwd=scratch,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.close()
        for line in process.stdout:
            print(line.rstrip(), flush=True)
    if process.returncode:
        raise ToolError(f"the checks failed under Wine (status {process.returncode}); their output is above")
