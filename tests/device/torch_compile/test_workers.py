"""Inductor's compile workers: they have no device, and compile for the one that the main process has."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.device.processes import run

_PROGRAM = Path(__file__).with_name("workers.py")


@pytest.mark.slow
@pytest.mark.parametrize("start", ["subprocess", "fork"])
def test_kernels_are_compiled_in_workers(start: str, tmp_path: Path) -> None:
    done = run(
        [sys.executable, str(_PROGRAM), start],
        seconds=300,
        TORCHINDUCTOR_CACHE_DIR=str(tmp_path / "inductor"),
        TRITON_CACHE_DIR=str(tmp_path / "triton"),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "right\n"
    assert list((tmp_path / "triton").rglob("*.spv")), "nothing was compiled"
