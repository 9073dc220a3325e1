"""Kernels of the user's own in compiled functions, in fresh processes: what is launched first used to be traced."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.device.processes import run

_PROGRAM = Path(__file__).with_name("user_kernels.py")


@pytest.mark.parametrize(("device", "first"), [("cpu", "breaks"), ("spirv", "fullgraph")])
def test_kernels_in_compiled_functions(device: str, first: str, tmp_path: Path) -> None:
    done = run(
        [sys.executable, str(_PROGRAM), device, first],
        seconds=400,
        TORCHINDUCTOR_CACHE_DIR=str(tmp_path / "inductor"),
        TRITON_CACHE_DIR=str(tmp_path / "triton"),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("right") == 7, done.stdout
