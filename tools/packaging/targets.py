"""Which wheels can be built where, and what a wheel for another interpreter or machine is built from.

Upstream's own libraries come from its wheel for that target, so only the plugins' compiled parts tie a build to a
machine: such a plugin needs the target's interpreter. Without them, each wheel can be built anywhere.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass

from ..errors import ToolError
from ..project import Lock, Project, ReleaseWheel, is_free_threaded
from ..registry import ARCHITECTURES, PYTHONS, pip_choice
from .plugins import Plugin

_NAME = re.compile(r"cp3(\d+)(t?)-(\w+)")
_ASK = "import platform, sys, sysconfig; print(sys.version_info[1], sysconfig.get_config_var('Py_GIL_DISABLED') or 0)"


@dataclass(frozen=True)
class Target:
    """A kind of interpreter on a kind of machine."""

    minor: int
    free_threaded: bool
    arch: str

    @property
    def name(self) -> str:
        """The target as `--target` takes it, such as cp314t-aarch64."""
        return f"{self.abi}-{self.arch}"

    @property
    def python(self) -> str:
        return f"cp3{self.minor}"

    @property
    def abi(self) -> str:
        return f"cp3{self.minor}{'t' if self.free_threaded else ''}"

    def wheel(self, lock: Lock) -> ReleaseWheel:
        """Upstream's wheel for it; a ToolError if there is none."""
        return lock.wheel_for((3, self.minor), self.free_threaded, self.arch)

    def pip_choice(self) -> list[str]:
        """The options that make pip choose for it."""
        return pip_choice(self.minor, self.free_threaded, self.arch)


def released(project: Project) -> list[Target]:
    """What a release has wheels for, as pyproject.toml says."""
    names = project.settings()["release-pythons"]
    return [parse(f"{name}-{arch}") for name in names for arch in ARCHITECTURES]


def here() -> Target:
    """The running interpreter."""
    return Target(sys.version_info[1], is_free_threaded(), platform.machine())


def parse(name: str) -> Target:
    """A target by its name."""
    found = _NAME.fullmatch(name)
    if not found:
        raise ToolError(f"--target {name!r} is not of the form cp314-x86_64 or cp314t-aarch64")
    return Target(int(found.group(1)), bool(found.group(2)), found.group(3))


def interpreter(target: Target) -> str:
    """The path of an interpreter of that kind on this machine, '' if there is none."""
    if target == here():
        return sys.executable
    path = shutil.which(f"python3.{target.minor}{'t' if target.free_threaded else ''}")
    if path is None or target.arch != platform.machine():
        return ""
    done = subprocess.run([path, "-c", _ASK], capture_output=True, text=True, check=False)
    return path if done.stdout.split() == [str(target.minor), str(int(target.free_threaded))] else ""


def refusal(target: Target, lock: Lock, plugins: list[Plugin]) -> str:
    """Why a wheel for a target cannot be built by this interpreter, '' if it can."""
    try:
        target.wheel(lock)
    except ToolError:
        return "upstream released no wheel for it"
    native = [plugin.name for plugin in plugins if plugin.has_native]
    if target == here() or not native:
        return ""
    what = f"the compiled part of {', '.join(native)}"
    if target.arch != platform.machine():
        return f"{what} has to be compiled on {target.arch}"
    threads = " (free-threaded)" if target.free_threaded else ""
    path = interpreter(target)
    if path:
        return f"{what} has to be compiled with that Python: {path} -m tools wheel"
    return f"{what} has to be compiled with Python 3.{target.minor}{threads}, which is not on PATH"


def table(lock: Lock, plugins: list[Plugin]) -> list[str]:
    """One line a target: can its wheel be built here, and how."""
    rows = []
    for minor, threads in PYTHONS:
        for arch in ARCHITECTURES:
            target = Target(minor, threads, arch)
            reason = refusal(target, lock, plugins)
            how = "tools wheel" if target == here() else f"tools wheel --target {target.name}"
            rows.append((target.name, "no" if reason else "yes", reason or how))
    width = max(len(row[0]) for row in rows)
    return [f"{name:<{width}}  {answer:<3}  {text}" for name, answer, text in rows]
