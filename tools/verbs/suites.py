"""`suites`: tests that kernel libraries publish for CUDA, on this device: benchmarks/suites."""

from __future__ import annotations

import subprocess
import sys

from ..installed import ensure_installed
from ..project import Project


def run(project: Project, arguments: list[str]) -> int:
    """Runs them; 1 where a failure has no reason."""
    if not {"-h", "--help", "--page"} & set(arguments):
        ensure_installed(project)
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.suites", *arguments], cwd=project.root, check=False
    ).returncode
