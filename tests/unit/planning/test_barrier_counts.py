"""The benchmark that counts barriers (docs/internals/analysis.md) sees the barriers of a kernel that is compiled."""

import subprocess
import sys
from pathlib import Path

_COUNT = """
from benchmarks import barriers
from triton.backends.spirv.capabilities import PROFILES
recorder = barriers.Recorder()
for name in ("lavapipe", "nvidia-hopper"):
    barriers.compile_kernel(barriers.normalize, "*fp32:16, *fp32:16, 1, 1024", PROFILES[name], {"num_warps": 4})
    counts = recorder.take()
    print(counts["workgroup"], counts["inside"])
barriers.compile_kernel(barriers.product, "*fp32:16, *fp32:16, 16, 16", PROFILES["lavapipe"], {"num_warps": 4})
print(sum(recorder.take().values()))
"""


def test_each_barrier_is_counted_once() -> None:
    """A normalisation has two reductions, each of which has one and none before it. A product has others."""
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", _COUNT], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *normalisations, product = done.stdout.splitlines()
    assert normalisations == ["0 2"] * 2 and int(product) > 0
