"""Two processes whose tensors are on the device, over gloo."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from tests.device.processes import run  # noqa: E402


@pytest.mark.skipif(not torch.distributed.is_gloo_available(), reason="this torch has no gloo")
def test_collectives_and_gradients_of_two_ranks(tmp_path: Path) -> None:
    program = str(Path(__file__).with_name("ranks.py"))
    commands = [[sys.executable, program, str(rank), str(tmp_path / "meeting")] for rank in range(2)]
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda command: run(command, OMP_NUM_THREADS="1"), commands))
    assert all(rank.returncode == 0 and "\nright" in "\n" + rank.stdout for rank in done), [
        rank.stderr for rank in done
    ]
