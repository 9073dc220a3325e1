"""Dots on the cooperative matrices of a newer Mesa's CPU driver: NEWER_MESA names its folder (newer_mesa.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from triton.backends.spirv.inspection.offline import NEWER_MESA, NoMesa

from .checks import assert_tests_pass
from .newer_mesa import environment, interpreter


def test_a_folder_without_mesa_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoMesa, match="does not hold the Mesa of a newer Debian"):
        interpreter(tmp_path, tmp_path)


def test_dots_of_fragments(tmp_path: Path) -> None:
    named = os.environ.get(NEWER_MESA, "")
    if not named:
        pytest.skip(f"{NEWER_MESA} names no folder with a newer Mesa")
    folder = Path(named).resolve()
    own_matrices = "[1] or 1- or -1]"  # the ids of tests on the device's own
    program, variables = str(interpreter(folder, tmp_path)), environment(folder, tmp_path)
    assert_tests_pass(program, variables, "tests/device/test_dot_fragments.py", "-k", own_matrices)


def test_what_is_started_there_has_the_same_libraries(tmp_path: Path) -> None:
    """A child process, and a command of the environment, open the newer driver too."""
    named = os.environ.get(NEWER_MESA, "")
    if not named:
        pytest.skip(f"{NEWER_MESA} names no folder with a newer Mesa")
    folder = Path(named).resolve()
    child = (
        "import subprocess, sys; subprocess.run(['triton-spirv', 'info']); subprocess.run([sys.executable, '-c', {!r}])"
    )
    opened = "from triton.backends.spirv.runtime.context import current; print(current().device.driver_version)"
    program = str(interpreter(folder, tmp_path))
    done = subprocess.run(
        [program, "-c", child.format(opened)],
        env=environment(folder, tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    version = done.stdout.splitlines()[-1]
    assert version.startswith("Mesa 2") and f"driver mesa_llvmpipe {version}" in done.stdout
    plain = subprocess.run([sys.executable, "-c", opened], capture_output=True, text=True, check=True)
    assert version != plain.stdout.strip(), "the newer Mesa is the one that is installed"
