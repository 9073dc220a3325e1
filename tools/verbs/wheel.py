"""`wheel`: build the wheel with setup.py, into dist/."""

from __future__ import annotations

import subprocess
import sys

from .. import system
from ..project import Project


def run(project: Project, arguments: list[str]) -> int:
    system.ensure(system.BUILD)
    command = [sys.executable, str(project.root / "setup.py"), "--quiet", "bdist_wheel", *arguments]
    return subprocess.run(command, cwd=project.root, check=False).returncode
