"""A small checkout with the tools in it and a .venv: the tools run as a user starts them, from outside of .venv."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from toy_project import toy_project
from vendor_support import ROOT

from backend.settings import TOOLS_FAULT
from tools.venv import REQUIREMENTS, Stamps, interpreter

PYTHON = str(getattr(sys, "_base_executable", sys.executable))


class Checkout:
    """The toy upstream's project with `tools/`, so that `python3 -m tools` in it works on it alone."""

    def __init__(self, folder: Path) -> None:
        self.project = toy_project(folder / "checkout")
        root = self.project.root
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "tools", root / "tools", ignore=ignore)
        shutil.copytree(ROOT / "requirements", root / "requirements")
        (root / "backend").mkdir()
        for name in ("__init__.py", "settings.py"):
            shutil.copy(ROOT / "backend" / name, root / "backend")
        self.environment = {
            key: value for key, value in os.environ.items() if not key.startswith(("TRITON_", "PYTHON"))
        }
        # What the tools would make and fill, with the packages of the running environment.
        subprocess.run(
            [PYTHON, "-m", "venv", "--without-pip", str(self.project.venv)], env=self.environment, check=True
        )
        (site,) = self.project.venv.glob("lib/python3*/site-packages")
        (site / "running.pth").write_text(sysconfig.get_path("purelib") + "\n")
        stamps = Stamps(self.project)
        stamps.set("interpreter", interpreter())
        for name in REQUIREMENTS["test"]:
            digest = hashlib.sha256((root / "requirements" / f"{name}.txt").read_bytes()).hexdigest()
            stamps.set(f"requirements-{name}", digest)

    def run(self, *arguments: str, fault: str = "", **settings: str) -> subprocess.CompletedProcess[str]:
        """`python3 -m tools …` in its own process."""
        environment = self.environment | {TOOLS_FAULT.name: fault} | settings
        command = [PYTHON, "-m", "tools", *arguments]
        return subprocess.run(
            command, cwd=self.project.root, env=environment, capture_output=True, text=True, check=False, timeout=120
        )

    def ok(self, *arguments: str, **settings: str) -> str:
        done = self.run(*arguments, **settings)
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout
