"""The benchmark that counts barriers (docs/analysis.md) sees those of a kernel that is compiled."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_COUNT = """
from benchmarks import barriers
from triton.backends.spirv.capabilities import PROFILES
recorder = barriers.Recorder()
barriers.compile_kernel(barriers.normalize, "*fp32:16, *fp32:16, 1, 1024", PROFILES["lavapipe"], {"num_warps": 4})
counts = recorder.take()
print(counts["workgroup"], counts["inside"])
"""


def test_each_barrier_of_a_normalisation_is_counted_once() -> None:
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", _COUNT], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    before, inside = map(int, done.stdout.split())
    assert before > 0 and inside == 2  # a reduction has one, and there are two
