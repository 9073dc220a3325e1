"""The source form: build upstream from its submodule, with its own setup.py and our plugins.

It needs the submodule checked out and LLVM at upstream's commit; where either is missing it says what to run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from ..errors import ToolError
from ..progress import step
from ..project import Lock, Project
from ..queue import load_series, overlay_files
from .plugins import Plugin
from .wheel import check_plugins


def submodule_version(setup: str) -> str:
    """The version that an upstream setup.py states, '' where none is found."""
    found = re.search(r'^TRITON_VERSION = "([^"]+)"', setup, re.MULTILINE)
    return found.group(1) if found else ""


def check_submodule(project: Project, lock: Lock) -> Path:
    """The submodule's folder, checked out at the locked version."""
    upstream = project.submodule
    if not (upstream / "setup.py").is_file():
        raise ToolError(
            "upstream/ is not checked out: run `git submodule update --init upstream` "
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


def stage_plugin(plugin: Plugin, folder: Path, project: Project) -> Path:
    """The folder to name to upstream for a plugin.

    Upstream would install this repository's tools/ as triton.tools.extra, so of this repository it is shown a folder
    of links to what belongs to the plugin.
    """
    if plugin.folder.resolve() != project.root.resolve():
        return plugin.folder
    view = folder / plugin.name
    view.mkdir(parents=True)
    for part in ("backend", "language", "CMakeLists.txt"):
        if (plugin.folder / part).exists():
            (view / part).symlink_to(plugin.folder / part)
    return view


def _patch(tree: Path, project: Project) -> None:
    """Lay overlay/ over a copy of the source tree and apply the series to it."""
    for relative, path in overlay_files(project).items():
        target = tree / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    for patch in load_series(project, compiled=True):
        done = subprocess.run(
            ["git", "apply", "--whitespace=nowarn", "-"], cwd=tree, input=patch.diff, text=True, capture_output=True,
            env={**os.environ, "GIT_CEILING_DIRECTORIES": str(tree.parent)}, check=False,
        )
        if done.returncode:
            raise ToolError(f"patch {patch.name} does not apply to upstream/: {done.stderr.strip().splitlines()[0]}")


def build_wheel(project: Project, folder: Path | None = None) -> Path:
    """Build the wheel from source. The submodule is not changed: a patched copy of it is built."""
    plugins = check_plugins(project)
    lock = project.lock()
    upstream = check_submodule(project, lock)
    llvm = check_llvm(upstream)
    folder = folder or project.dist
    folder.mkdir(parents=True, exist_ok=True)
    project.build.mkdir(exist_ok=True)
    with project.exclusive(), tempfile.TemporaryDirectory(dir=project.build, prefix=".source-") as scratch:
        tree = Path(scratch) / "triton"
        with step("copy and patch upstream/"):
            shutil.copytree(upstream, tree, symlinks=True, ignore=shutil.ignore_patterns(".git"))
            _patch(tree, project)
        staged = [stage_plugin(plugin, Path(scratch) / "plugins", project) for plugin in plugins]
        suffix = f"+spirv.{project.settings()['version']}"
        suffix += os.environ.get("TRITON_WHEEL_VERSION_SUFFIX", "").replace("+", ".")
        environment = {
            **os.environ,
            "TRITON_PLUGIN_DIRS": ";".join(map(str, staged)),
            "TRITON_WHEEL_VERSION_SUFFIX": suffix,
            "LLVM_SYSPATH": str(llvm),
        }
        output = Path(scratch) / "dist"
        with step("build upstream from source", quiet_child=False):
            command = [sys.executable, "setup.py", "bdist_wheel", "--dist-dir", str(output)]
            done = subprocess.run(command, cwd=tree, env=environment, stdout=sys.stderr, check=False)
        wheels = list(output.glob("*.whl")) if output.is_dir() else []
        if done.returncode or len(wheels) != 1:
            raise ToolError("upstream's setup.py failed; its output is above")
        target = folder / wheels[0].name
        shutil.move(wheels[0], target)
    return target
