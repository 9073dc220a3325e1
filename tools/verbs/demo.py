"""`demo`: set everything up, then run examples/demo.py with the installed wheel."""

from __future__ import annotations

import os
import subprocess
import sys

from .. import system
from ..installed import ensure_installed
from ..project import Project


def run(project: Project, arguments: list[str]) -> int:
    system.ensure(system.BUILD)
    ensure_installed(project)
    # Upstream's default of 3.9, said outright: else it warns that another release has another.
    environment = {"TRITON_DEFAULT_FP_FUSION": "1"} | os.environ
    command = [sys.executable, "-m", "examples.demo", *arguments]
    return subprocess.run(command, cwd=project.root, env=environment, check=False).returncode
