"""`upstream-tests`: upstream's own tests on a device of this backend, and the rate that passes."""

from __future__ import annotations

import subprocess
import sys

from ..installed import ensure_installed
from ..project import Project


def run(project: Project, arguments: list[str]) -> int:
    """Runs tests/upstream, with its arguments and its status."""
    ensure_installed(project)
    command = [sys.executable, "-m", "tests.upstream", *arguments]
    return subprocess.run(command, cwd=project.root, check=False).returncode
