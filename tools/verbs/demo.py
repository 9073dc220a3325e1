"""`demo`: set everything up, then run examples/demo.py with the installed wheel."""

from __future__ import annotations

import subprocess
import sys

from .. import system
from ..installed import ensure_installed
from ..project import Project


def run(project: Project, arguments: list[str]) -> int:
    system.ensure(system.BUILD + system.RUN)
    ensure_installed(project)
    return subprocess.run([sys.executable, "-m", "examples.demo", *arguments], cwd=project.root, check=False).returncode
