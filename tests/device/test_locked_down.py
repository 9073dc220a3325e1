"""Machines on which little can be written: kernels run, and ``triton-spirv doctor`` says the same."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_KERNEL = """
import numpy as np, triton, triton.language as tl
from triton.backends.spirv import runtime

@triton.jit
def add(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)

x, out = runtime.from_numpy(np.ones(100, np.float32)), runtime.empty(100, "float32")
add[(1,)](x, out, 100, BLOCK=128)
print("sum", out.to_numpy().sum())
"""
_DOCTOR = """
import sys
from triton.backends.spirv import cli
sys.exit(cli.main(["doctor"]))
"""
#: Python's list of temporary folders is empty, as tempfile finds it where none can be written.
_NO_TEMPORARY_FOLDER = """
import tempfile
tempfile.tempdir, tempfile._candidate_tempdir_list = None, lambda: ["/proc/nowhere"]
"""

#: What is locked → (what comes before the program, variables of its environment, what doctor says of it).
_LOCKED = {
    "temporary folder": (_NO_TEMPORARY_FOLDER, {}, "ok  cache"),
    "home": ("", {"HOME": "/proc/nowhere"}, "note  Triton's cache /proc/nowhere/.triton/cache cannot be used"),
    "home that is not known": ("", {"HOME": "~"}, "note  Triton's cache ~/.triton/cache cannot be used"),
}


def _run(program: str, folder: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    file = folder / "program.py"
    file.write_text(program)
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_CACHE_DIR"}
    if not variables:
        variables = {"TRITON_CACHE_DIR": str(folder / "cache")}
    environment |= {"TRITON_SPIRV_BACKEND": "1", "TRITON_DEFAULT_FP_FUSION": "1", **variables}
    return subprocess.run(
        [sys.executable, str(file)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


@pytest.mark.parametrize("what", _LOCKED)
def test_kernels_run_and_doctor_agrees(tmp_path: Path, what: str) -> None:
    before, variables, said = _LOCKED[what]
    ran = _run(before + _KERNEL, tmp_path, variables)
    assert ran.stdout == "sum 200.0\n", ran.stderr
    found = _run(before + _DOCTOR, tmp_path, variables)
    assert (found.returncode, "kernels can run" in found.stdout) == (0, True), found.stdout + found.stderr
    assert said in found.stdout
    assert not (tmp_path / "~").exists()


def test_neither_a_cache_nor_a_temporary_folder(tmp_path: Path) -> None:
    found = _run(_NO_TEMPORARY_FOLDER + _DOCTOR, tmp_path, {"HOME": "/proc/nowhere"})
    assert found.returncode == 1 and "and no temporary folder, either" in found.stdout
    assert "set TRITON_CACHE_DIR to a writable folder" in found.stdout
