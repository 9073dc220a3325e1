"""Dots on the cooperative matrices of a newer Mesa's CPU driver: NEWER_MESA names its folder (newer_mesa.py)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from triton.backends.spirv.inspection.offline import NEWER_MESA, NoMesa

from .newer_mesa import command, environment


def test_a_folder_without_mesa_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoMesa, match="does not hold the Mesa of a newer Debian"):
        command(tmp_path, [])


def test_dots_of_fragments(tmp_path: Path) -> None:
    named = os.environ.get(NEWER_MESA, "")
    if not named:
        pytest.skip(f"{NEWER_MESA} names no folder with a newer Mesa")
    folder = Path(named).resolve()
    arguments = ["-m", "pytest", "-n0", "-q", "-p", "no:cacheprovider", "tests/device/test_dot_fragments.py"]
    arguments += ["-k", "[1] or 1- or -1]"]  # the ids of those on the device's own matrices
    done = subprocess.run(
        command(folder, arguments),
        env=environment(folder, tmp_path),
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stdout.strip().splitlines()[-1:]
    assert done.returncode == 0 and "skipped" not in "".join(last), done.stdout[-4000:] + done.stderr[-2000:]
