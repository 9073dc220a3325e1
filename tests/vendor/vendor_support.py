"""What the vendor tests share: building a wheel, and a virtual environment to install it in."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOY_PLUGIN = Path(__file__).parent / "plugins" / "toy-backend"
_SETTINGS = ("TRITON_PLUGIN_DIRS", "TRITON_WHEEL_NAME", "TRITON_WHEEL_VERSION_SUFFIX", "SOURCE_DATE_EPOCH")


def build_wheel(folder: Path, *options: str, **settings: str) -> Path:
    """Build a wheel with setup.py into a folder, with these settings and no others."""
    environment = {key: value for key, value in os.environ.items() if key not in _SETTINGS} | settings
    subprocess.run(
        [sys.executable, "setup.py", "--quiet", "bdist_wheel", "--dist-dir", str(folder), *options],
        cwd=ROOT,
        env=environment,
        check=True,
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


@dataclass(frozen=True)
class Venv:
    """A virtual environment without pip of its own."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        return self.folder / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"

    def pip(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "pip", "--python", str(self.python), "--quiet", *arguments]
        subprocess.run([*command, "--disable-pip-version-check"], check=True)

    def pip_check(self) -> str:
        """What `pip check` finds wrong."""
        command = [sys.executable, "-m", "pip", "--python", str(self.python), "check"]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    def run(self, script: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a script in it, with no Triton settings but those given."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("TRITON_", "PYTHON"))}
        return subprocess.run(
            [str(self.python), str(script), *arguments],
            env=inherited | environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def files(self) -> set[str]:
        """Every file and link of site-packages."""
        return {p.relative_to(self.site_packages).as_posix() for p in self.site_packages.rglob("*") if not p.is_dir()}
