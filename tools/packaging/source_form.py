"""The source form: build upstream from its submodule, with its own setup.py and our plugins.

It needs the submodule checked out and LLVM at upstream's commit; where either is missing it says what to run.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from ..errors import ToolError
from ..hold import hold
from ..progress import step
from ..project import Lock, Project
from ..queue import load_series, overlay_files
from ..submodule import how_to_check_out
from .archive import record_digest
from .facts import check_upstream
from .metadata import entry_points_text, identity
from .native import build_native
from .plugins import Plugin
from .wheel import UNFINISHED, check_plugins

# What has a place in upstream's table of init functions besides the plugins.
_TABLE = ("nvidia", "amd", "proton")


def submodule_version(setup: str) -> str:
    """The version that an upstream setup.py states, '' if none is found."""
    found = re.search(r'^TRITON_VERSION = "([^"]+)"', setup, re.MULTILINE)
    return found.group(1) if found else ""


def check_submodule(project: Project, lock: Lock) -> Path:
    """The submodule's folder, checked out at the locked version."""
    upstream = project.submodule
    if not (upstream / "setup.py").is_file():
        raise ToolError(
            f"upstream/ is not checked out: run `{how_to_check_out(project, lock)}` "
            f"(if commit {lock.commit[:12]} cannot be fetched: `git clone --branch {lock.ref} {lock.url} upstream`)"
        )
    found = submodule_version((upstream / "setup.py").read_text())
    if found != lock.version:
        raise ToolError(
            f"upstream/ is triton {found or 'of an unknown version'}, upstream.lock.toml says {lock.version}: run "
            f"`git -C upstream fetch origin {lock.ref} && git -C upstream checkout FETCH_HEAD`, then put the commit "
            "of `git -C upstream rev-parse HEAD` in upstream.lock.toml"
        )
    return upstream


def check_llvm(upstream: Path) -> Path:
    """The LLVM that LLVM_SYSPATH names."""
    value = os.environ.get("LLVM_SYSPATH", "")
    if value and (Path(value) / "lib/cmake/mlir/MLIRConfig.cmake").is_file():
        return Path(value)
    wanted = upstream / "cmake" / "llvm-hash.txt"
    commit = wanted.read_text().strip() if wanted.is_file() else "the commit of upstream/cmake/llvm-hash.txt"
    state = f"LLVM_SYSPATH={value} has no lib/cmake/mlir/MLIRConfig.cmake" if value else "LLVM_SYSPATH is not set"
    raise ToolError(
        f"{state}: build LLVM at {commit} with `cmake -G Ninja -S llvm -B build -DCMAKE_BUILD_TYPE=Release "
        '-DLLVM_ENABLE_PROJECTS="mlir;lld" -DLLVM_TARGETS_TO_BUILD="host;NVPTX;AMDGPU" -DLLVM_ENABLE_ASSERTIONS=ON '
        "&& ninja -C build` and set LLVM_SYSPATH to that build folder"
    )


def plugin_room(upstream: Path) -> int | None:
    """How many plugins fit besides upstream's own; None if its table of init functions has no known limit.

    Upstream calls init_triton_<name> for each entry of a list, by macros FOR_EACH_1, FOR_EACH_2, … of main.cc.
    """
    main = upstream / "python" / "src" / "main.cc"
    if not main.is_file():
        return None
    sizes = [int(number) for number in re.findall(r"#define\s+FOR_EACH_(\d+)\(", main.read_text())]
    return max(sizes) - len(_TABLE) if sizes else None


def check_room(upstream: Path, plugins: list[Plugin]) -> None:
    """Refuse more plugins with native code than upstream's table holds."""
    room = plugin_room(upstream)
    native = [plugin.name for plugin in plugins if plugin.has_native]
    if room is not None and len(native) > room:
        raise ToolError(
            f"upstream has room for {room} plugins with native code besides {', '.join(_TABLE)}, TRITON_PLUGIN_DIRS "
            f"names {len(native)}: {', '.join(native)}; leave one out, or drop its CMakeLists.txt if it is Python only"
        )


def stage_plugin(plugin: Plugin, folder: Path, project: Project) -> Path:
    """The folder to name to upstream for a plugin.

    Upstream would install this repository's tools/ as triton.tools.extra, and takes from a plugin's CMakeLists.txt no
    more than its part of libtriton. So of this repository it is shown a folder with what belongs to the plugin, and
    the library that is built of it.
    """
    if plugin.folder.resolve() != project.root.resolve():
        return plugin.folder
    view = folder / plugin.name
    view.mkdir(parents=True)
    prefix = f"{plugin.package}/"
    for name, path in {**plugin.files(), **build_native(plugin, project.build)}.items():
        if name.startswith(prefix):
            target = view / "backend" / name.removeprefix(prefix)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    for part in ("language", "CMakeLists.txt"):
        if (plugin.folder / part).exists():
            (view / part).symlink_to(plugin.folder / part)
    for path in plugin.folder.iterdir():
        # Sources that CMakeLists.txt names beside backend/.
        if plugin.has_native and path.is_dir() and path.name in ("src", "cmake", "include"):
            (view / path.name).symlink_to(path)
    return view


def _patch(tree: Path, project: Project) -> None:
    """Lay overlay/ over a copy of the source tree and apply the series to it."""
    for relative, path in overlay_files(project).items():
        target = tree / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    for patch in load_series(project, compiled=True):
        done = subprocess.run(
            ["git", "apply", "--whitespace=nowarn", "-"],
            cwd=tree,
            input=patch.diff,
            text=True,
            capture_output=True,
            env={**os.environ, "GIT_CEILING_DIRECTORIES": str(tree.parent)},
            check=False,
        )
        if done.returncode:
            raise ToolError(f"patch {patch.name} does not apply to upstream/: {done.stderr.strip().splitlines()[0]}")


def _with_entry_points(wheel: Path, target: Path, plugins: list[Plugin]) -> None:
    """Write ``wheel`` to ``target`` with what upstream's setup.py does not know of: the module that torch calls at its
    import, its entry point, and the plugins' commands."""
    with zipfile.ZipFile(wheel) as built, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as out:
        record = next(name for name in built.namelist() if name.endswith(".dist-info/RECORD"))
        points = record.replace("RECORD", "entry_points.txt")
        known = built.read(points).decode() if points in built.namelist() else ""
        added = {points: entry_points_text(known, plugins).encode()}
        for plugin in plugins:
            added |= {name: path.read_bytes() for name, path in plugin.outside_files().items()}
        for member in built.infolist():
            if member.filename not in (record, *added):
                out.writestr(member, built.read(member))
        rows = [row for row in csv.reader(built.read(record).decode().splitlines()) if row and row[0] not in added]
        for name, content in added.items():
            out.writestr(name, content)
            rows.insert(-1, [name, record_digest(hashlib.sha256(content).digest()), str(len(content))])
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        out.writestr(record, text.getvalue())


def build_wheel(project: Project, folder: Path | None = None) -> Path:
    """Build the wheel from source. The submodule is not changed: a patched copy of it is built."""
    plugins = check_plugins(project)
    lock = project.lock()
    check_upstream(project, plugins)
    upstream = check_submodule(project, lock)
    check_room(upstream, plugins)
    llvm = check_llvm(upstream)
    folder = folder or project.dist
    folder.mkdir(parents=True, exist_ok=True)
    project.build.mkdir(exist_ok=True)
    with hold(project), tempfile.TemporaryDirectory(dir=project.build, prefix=".source-") as scratch:
        tree = Path(scratch) / "triton"
        with step("copy and patch upstream/"):
            shutil.copytree(upstream, tree, symlinks=True, ignore=shutil.ignore_patterns(".git"))
            _patch(tree, project)
        staged = [stage_plugin(plugin, Path(scratch) / "plugins", project) for plugin in plugins]
        environment = {
            **os.environ,
            "TRITON_PLUGIN_DIRS": ";".join(map(str, staged)),
            "TRITON_WHEEL_VERSION_SUFFIX": identity(project, plugins).version.removeprefix(lock.version),
            "LLVM_SYSPATH": str(llvm),
        }
        # Upstream would otherwise download vendors' tools, which no lock vouches for. 0 lets it.
        environment.setdefault("TRITON_OFFLINE_BUILD", "1")
        output = Path(scratch) / "dist"
        with step("build upstream from source", quiet_child=False):
            command = [sys.executable, "setup.py", "bdist_wheel", "--dist-dir", str(output)]
            done = subprocess.run(command, cwd=tree, env=environment, stdout=sys.stderr, check=False)
        wheels = list(output.glob("*.whl")) if output.is_dir() else []
        if done.returncode or len(wheels) != 1:
            raise ToolError("upstream's setup.py failed; its output is above")
        target = folder / wheels[0].name
        # Copied beside its place first: that may be on another disk.
        unfinished = folder / f"{UNFINISHED}{wheels[0].name}"
        if any(plugin.entry_points for plugin in plugins):
            _with_entry_points(wheels[0], unfinished, plugins)
        else:
            shutil.copyfile(wheels[0], unfinished)
        os.replace(unfinished, target)
    return target
