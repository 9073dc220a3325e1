"""Build a plugin's compiled code with CMake and Ninja.

A plugin's CMakeLists.txt must work on its own (not only under upstream's add_subdirectory), and install what it
builds relative to the backend's package folder.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from .. import system
from ..errors import ToolError
from ..faults import point
from ..progress import Progress, note, step
from ..project import base_interpreter, exchange
from . import refresh, windows
from .plugins import Plugin
from .sbom import Part, purl

_EDGE = re.compile(r"\[(\d+)/(\d+)\]")


def _program(name: str) -> str:
    """A build program: the interpreter's own (from its package), else the one on PATH."""
    scripts = sysconfig.get_path("scripts")
    found = shutil.which(name, path=os.pathsep.join([scripts, os.environ.get("PATH", os.defpath)]))
    if not found:
        raise ToolError(f"{name} is missing: pip install -r requirements/build.txt")
    return found


def _run(plugin: Plugin, command: list[str], progress: Progress | None = None) -> int:
    """Run a build program; its output is shown where it fails. Returns ninja's count of what it built."""
    environment = {**os.environ, "NINJA_STATUS": "[%f/%t] "}
    output: list[str] = []
    edges = 0
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as child:
        for line in child.stdout or ():
            output.append(line)
            if progress is not None and (count := _EDGE.match(line)):
                edges = int(count.group(2))
                progress.at(int(count.group(1)), edges)
    if child.returncode:
        sys.stderr.write("".join(output))
        lacks = system.lacking(system.BUILD)
        raise ToolError(
            f"plugin {plugin.folder}: `{' '.join(command[:3])} …` failed; its output is above{lacks and f'; {lacks}'}"
        )
    return edges


def native_folder(plugin: Plugin, build: Path, system: str = "") -> Path:
    """Where it is built: one folder for each interpreter, source folder and system, as CMake's cache fits no other.

    Environments of one interpreter have the same headers, so that wheels and editable installations share a folder.
    """
    key = hashlib.sha256(f"{plugin.folder}\0{base_interpreter()}\0{sys.version}{system}".encode()).hexdigest()[:12]
    return build / "native" / f"{plugin.name}-{key}"


def _pybind11(build: Path) -> Path:
    """pybind11's CMake folder, in its own copy: under pip each build has another temporary one, and CMake would
    compile everything again."""
    try:
        import pybind11
    except ImportError:
        found = sorted((build / "cache").glob("pybind11-*/share/cmake/pybind11"))
        if found:
            return found[-1]
        raise ToolError("pybind11 is missing: pip install -r requirements/build.txt") from None
    place = build / "cache" / f"pybind11-{pybind11.__version__}"
    if not place.is_dir():
        place.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(dir=build, prefix=".lib-"))
        for part in ("include", "share"):
            shutil.copytree(Path(pybind11.__file__).parent / part, scratch / part)
        scratch.rename(place)
    return place / "share" / "cmake" / "pybind11"


def build_native(plugin: Plugin, build: Path, system: str = "") -> dict[str, Path]:
    """Configure, build and install a plugin's compiled code, for this system or Windows. Returns path in the wheel →
    file."""
    if not plugin.has_native:
        return {}
    for_windows = system == windows.MACHINE
    folder = native_folder(plugin, build, system)
    # A compiler for another system is told where that one's Python is.
    chosen = windows.configuration(folder / "python") if for_windows else []
    stage, fresh = folder / "stage", folder / "stage.new"
    if cache := shutil.which("ccache"):
        chosen.append(f"-DCMAKE_CXX_COMPILER_LAUNCHER={cache}")
    ninja = _program("ninja")
    cmake = _program("cmake")
    configure = [
        cmake,
        "-S",
        str(plugin.folder),
        "-B",
        str(folder),
        "-G",
        "Ninja",
        "-DCMAKE_BUILD_TYPE=Release",
        f"-DCMAKE_MAKE_PROGRAM={ninja}",
        f"-DPython_EXECUTABLE={sys.executable}",
        f"-DPython3_EXECUTABLE={sys.executable}",
        f"-Dpybind11_DIR={_pybind11(build)}",
        *chosen,
    ]
    with step(f"build the native part of {plugin.name}") as progress:
        refresh.begin(plugin.folder, folder)
        _run(plugin, configure)
        edges = _run(plugin, [cmake, "--build", str(folder)], progress)
        shutil.rmtree(fresh, ignore_errors=True)
        stripping = [] if for_windows else ["--strip"]  # mingw's linker has done it: its strip puts the time in
        _run(plugin, [cmake, "--install", str(folder), "--prefix", str(fresh), *stripping])
        shutil.rmtree(folder / "stage.old", ignore_errors=True)
        exchange(fresh, stage, folder / "stage.old")
        point("native-staged")
        refresh.end(plugin.folder, folder)
    if not edges:
        note(f"the native part of {plugin.name} was up to date")
    return _libraries(plugin, stage, "*.pyd" if for_windows else "*.so")


@contextmanager
def building(plugins: Sequence[Plugin], build: Path) -> Iterator[Callable[[Plugin], dict[str, Path]]]:
    """Builds the compiled code of plugins, one after the other, beside what is done meanwhile. Yields what waits for a
    plugin's, and returns or raises what build_native() does."""
    with ThreadPoolExecutor(1) as pool:
        begun = {plugin.name: pool.submit(build_native, plugin, build) for plugin in plugins}
        try:
            yield lambda plugin: begun[plugin.name].result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _libraries(plugin: Plugin, stage: Path, pattern: str) -> dict[str, Path]:
    """Path in the wheel → file of what a build installed."""
    modules = sorted(stage.rglob(pattern))
    built = {f"{plugin.package}/{path.relative_to(stage).as_posix()}": path for path in modules}
    if not built:
        raise ToolError(f"plugin {plugin.folder}: its CMakeLists.txt installed no library")
    return built


def native_parts(native: dict[str, Path]) -> list[Part]:
    """What is compiled into the native parts."""
    if not native:
        return []
    import pybind11

    version = pybind11.__version__
    what = "headers compiled into the native part"
    return [Part("pybind11", version, purl("pybind11", version), what, "BSD-3-Clause")]
