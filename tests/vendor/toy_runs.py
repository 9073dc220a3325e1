"""Runs of the tools on the toy upstream, in processes of their own that are killed or run out of disk."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from toy_project import ALPHA, FIRST, SECOND, make_project, snapshot, write_release
from vendor_support import ROOT

from backend.settings import TOOLS_FAULT
from tools import faults
from tools.project import Project

NEW_COMMIT = "cd" * 20
NEW_ALPHA = "line 0\n" + ALPHA
KILLED, FULL = "killed", "disk-full"
REBASE = ("rebase", "--to", "1.1", "--commit", NEW_COMMIT, "--no-test")


class Toy:
    """A checkout on the toy upstream and a way to run the tools on it in their own process."""

    def __init__(self, folder: Path, cached: bool = True) -> None:
        self.registry = folder / "registry"
        wheel = write_release(self.registry, "1.0")
        write_release(self.registry, "1.1", alpha=NEW_ALPHA)
        patches = {"first.patch": FIRST, "second.patch": SECOND}
        self.project = make_project(folder / "repo", patches, {"layer.py": "LAYER = 1\n"}, wheel)
        if cached:
            shutil.copytree(self.registry, self.project.cache / "wheels")
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("TRITON_")} | {
            "TRITON_SPIRV_TOOLS_IN_PLACE": "1",
            "PYTHONPATH": str(ROOT),
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.registry),
            "TRITON_PLUGIN_DIRS": "",
        }

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "tools", "--root", str(self.project.root), *arguments]

    def run(self, *arguments: str, fault: str = "") -> subprocess.CompletedProcess[str]:
        environment = self.environment | {TOOLS_FAULT.name: fault}
        command = self.command(*arguments)
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)

    def stop(self, *arguments: str, point: str, how: str) -> None:
        """Run until a point, where it is killed or the disk is full."""
        if how == KILLED:
            done = self.run(*arguments, fault=point)
            assert done.returncode == -signal.SIGKILL, done.stderr
        else:
            done = self.run(*arguments, fault=f"{point}:{FULL}")
            assert done.returncode == 1, done.stderr
            assert done.stderr.splitlines()[-1].startswith("error: no room on the disk"), done.stderr

    def ok(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    def tree(self) -> dict[str, bytes]:
        """The files of build/upstream."""
        return snapshot(self.project.tree)


BUILD = """
import sys
sys.path.insert(0, {root!r})
from pathlib import Path
from tools.__main__ import reported
from tools.packaging import wheel
from tools.project import Project
wheel.STRIPPED = ()
raise SystemExit(reported(lambda: wheel.{function}(Project(Path({project!r}))) and 0))
"""


def build(toy: Toy, function: str, fault: str = "") -> subprocess.CompletedProcess[str]:
    """Run the wheel builder on the toy."""
    code = BUILD.format(root=str(ROOT), project=str(toy.project.root), function=function)
    environment = toy.environment | {TOOLS_FAULT.name: fault}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


# Where the disk is full, besides the kills at each point: in the middle of what writes most.
FULL_AT = ("sync-unpacked", "apply-moving", "journal-half", "rebase-picked", "wheel-member", "tree-laid-out")


def both(*verbs: str) -> list[object]:
    """Each point of some verbs, killed, and some with a full disk."""
    points = [point for verb in verbs for point in faults.POINTS[verb]]
    cases = [(point, KILLED) for point in points] + [(point, FULL) for point in FULL_AT if point in points]
    return [pytest.param(point, how, id=f"{point}-{how}") for point, how in cases]


def clean(project: Project) -> bool:
    """Whether build/ holds no scratch folder."""
    return not [path for path in project.build.iterdir() if path.name.startswith(".") and path.name != ".lock"]
