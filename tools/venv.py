"""The repository's own .venv: made, filled with pinned requirements, and entered. Standard library only."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

from backend.settings import TOOLS_IN_PLACE

from .errors import ToolError
from .hold import hold
from .progress import COUNT, step, steps
from .project import Project, base_interpreter, replace_file

# The requirement files of a level, each level with those before it.
REQUIREMENTS = {
    "": (),
    "build": ("build",),
    "run": ("build", "run"),
    "release": ("build", "release"),
    "test": ("build", "run", "release", "test", "torch"),
}
# Files of packages whose hash no lock can name.
_UNHASHED = ("torch",)


class Stamps:
    """What was done last, by the hash of what it was done from; kept in .venv, so that they go with it."""

    def __init__(self, project: Project) -> None:
        self._folder = project.venv / "stamps"

    def get(self, name: str) -> str:
        """What was last set, '' if nothing was."""
        path = self._folder / name
        return path.read_text() if path.exists() else ""

    def is_current(self, name: str, digest: str) -> bool:
        return self.get(name) == digest

    def set(self, name: str, digest: str) -> None:
        replace_file(self._folder / name, digest.encode())


def venv_python(project: Project) -> Path:
    """The .venv's interpreter."""
    return project.venv / "bin" / "python"


def inside(project: Project) -> bool:
    """Whether the running interpreter is the .venv's, or whether TRITON_SPIRV_TOOLS_IN_PLACE keeps it."""
    return TOOLS_IN_PLACE.get() or Path(sys.prefix).resolve() == project.venv.resolve()


def interpreter() -> str:
    """What a .venv is bound to: the interpreter it was made from."""
    return json.dumps([sys.version, base_interpreter()])


def ensure_venv(project: Project) -> None:
    """Make .venv if there is none, or if it belongs to another interpreter."""
    stamps = Stamps(project)
    if venv_python(project).exists() and stamps.is_current("interpreter", interpreter()):
        return
    with step("make .venv"):
        shutil.rmtree(project.venv, ignore_errors=True)
        done = subprocess.run(
            [sys.executable, "-m", "venv", str(project.venv)], capture_output=True, text=True, check=False
        )
    if done.returncode:
        shutil.rmtree(project.venv, ignore_errors=True)
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        hint = f" (on Debian: apt-get install python{version}-venv)" if "ensurepip" in done.stdout + done.stderr else ""
        raise ToolError(f"`{sys.executable} -m venv` failed{hint}: {(done.stderr or done.stdout).strip()}")
    stamps.set("interpreter", interpreter())


def pip(project: Project, *arguments: str) -> None:
    """Run the .venv's pip; quiet except for errors in a log, with its own progress bars on a terminal."""
    command = [str(venv_python(project)), "-m", "pip", *arguments, "--disable-pip-version-check"]
    if not sys.stderr.isatty():
        command += ["--quiet", "--progress-bar=off"]
    if subprocess.run(command, stdout=sys.stderr, check=False).returncode:
        raise ToolError(f"`pip {' '.join(arguments)}` failed: see its message above")


def ensure_requirements(project: Project, level: str) -> None:
    """Install the pinned requirements of a level where they changed since they were installed."""
    stamps = Stamps(project)
    for name in REQUIREMENTS[level]:
        path = project.root / "requirements" / f"{name}.txt"
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if stamps.is_current(f"requirements-{name}", digest):
            continue
        # With hashes, nothing is installed but what the file names.
        safely = () if name in _UNHASHED else ("--no-deps", "--require-hashes")
        with step(f"install requirements/{name}.txt", quiet_child=False):
            pip(project, "install", *safely, "-r", str(path))
        stamps.set(f"requirements-{name}", digest)


def enter(project: Project, level: str, arguments: list[str]) -> None:
    """Go on in the .venv, set up for a level (none for ''), where the running interpreter is not it."""
    if not level:
        return
    if inside(project):
        if not TOOLS_IN_PLACE.get():
            ensure_requirements(project, level)
        return
    # What a killed run left half-done is for the verb to finish, tell or take back.
    with hold(project, recover=False):
        ensure_venv(project)
        ensure_requirements(project, level)
    _replace_process(project, arguments)


def _replace_process(project: Project, arguments: list[str]) -> NoReturn:
    os.chdir(project.root)
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONHOME", "PYTHONPATH")}
    environment[COUNT] = str(steps())
    environment["VIRTUAL_ENV"] = str(project.venv)
    environment["PATH"] = os.pathsep.join([str(project.venv / "bin"), os.environ.get("PATH", os.defpath)])
    python = str(venv_python(project))
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(python, [python, "-m", "tools", *arguments], environment)
