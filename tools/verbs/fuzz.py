"""`fuzz`: random kernels against upstream's interpreter, float64 and torch; failing ones are made small and kept."""

from __future__ import annotations

import argparse
import subprocess
import sys

from ..installed import ensure_installed
from ..project import Project


def run(project: Project, arguments: list[str]) -> int:
    """Runs tests/fuzz on the seeds that are asked for; 1 where one failed."""
    parser = argparse.ArgumentParser(prog="python3 -m tools fuzz", description=__doc__)
    parser.add_argument("--seeds", default="0:100", metavar="A:B", help="from A up to B, without B (default: 0:100)")
    parser.add_argument("--sorts", nargs="+", metavar="SORT", help="sorts of kernels: docs/internals/testing.md")
    parser.add_argument(
        "--minimise-seconds", default="120", metavar="S", help="time to make a failing kernel small (default: 120)"
    )
    parser.add_argument("--out", default="build/fuzz", help="folder for failing kernels (default: build/fuzz)")
    parser.add_argument("--times", default="0", metavar="N", help="show the N kernels that took longest to compile")
    options = parser.parse_args(arguments)
    ensure_installed(project)
    command = [sys.executable, "-m", "tests.fuzz", "--seeds", options.seeds, "--out", options.out]
    command += ["--minimise-seconds", options.minimise_seconds, "--times", options.times]
    command += ["--sorts", *options.sorts] if options.sorts else []
    return subprocess.run(command, cwd=project.root, check=False).returncode
