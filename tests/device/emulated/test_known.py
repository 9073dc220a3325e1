"""What `triton-spirv profile` and `inspect` say of kernels on an emulated device: what they do, and no time."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.device.emulated.__main__ import environment

SCRIPT = """
import numpy as np
import triton
import triton.language as tl
from triton.backends.spirv.runtime import array


@triton.jit
def turned(x_ptr, y_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(y_ptr + at, tl.trans(tl.load(x_ptr + at)) + 1.0)


x, y = np.random.rand(64, 64).astype(np.float32), array(np.zeros((64, 64), np.float32))
for _ in range(3):
    kernel = turned[(2, 5)](array(x), y, N=64)
assert (y.array == x.T + 1).all()
print(kernel.asm["spvasm"].count(" OpControlBarrier "), kernel.metadata.shared)
"""
COMMAND = (sys.executable, "-m", "triton.backends.spirv.cli")


def run(tmp_path: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A verb of triton-spirv on an emulated device, in a folder with the script."""
    (tmp_path / "script.py").write_text(SCRIPT)
    here = environment("amd-rdna3") | {"TRITON_CACHE_DIR": str(tmp_path / "cache")}
    return subprocess.run([*COMMAND, *command], cwd=tmp_path, env=here, capture_output=True, text=True, check=False)


def page(path: Path) -> dict[str, object]:
    """The data of a page of inspect."""
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', path.read_text(), re.DOTALL)
    assert found is not None
    known: dict[str, object] = json.loads(found[1])
    return known


def test_a_profile_has_figures_and_no_time(tmp_path: Path) -> None:
    done = run(tmp_path, "profile", "script.py")
    assert done.returncode == 0, done.stderr
    barriers, shared = done.stdout.split()
    title, row, *note = [line for line in done.stderr.splitlines() if not line.lstrip().startswith(("/", "warn"))]
    assert re.split("  +", title) == [
        *("kernel", "launches", "programs", "bytes", "operations", "instructions", "barriers", "shared", "bank steps")
    ]
    name, *cells, instructions, found, there, steps = re.split("  +", row)
    moved, operations = 30 * 2 * 64 * 64 * 4, 30 * 64 * 64
    assert (name, cells) == ("turned", ["3", "30", f"≈ {moved:,}", f"≈ {operations:,}"])
    assert (found, there.replace(",", "")) == (barriers, shared) and int(barriers) > 0
    assert " ".join(note).endswith("An emulated device has no times.") and not re.search(r"\bms\b|µs|GB/s", row + title)

    assert run(tmp_path, "inspect", "turned", "-o", "page.html").returncode == 0
    known = page(tmp_path / "page.html")
    banks, mix = known["banks"], known["mix"]
    assert isinstance(banks, list) and isinstance(mix, list)
    assert steps == f"{sum(one['steps'] for one in banks)}/{sum(one['fewest'] for one in banks)}" and banks
    assert instructions.replace(",", "") == str(sum(count for _, count in mix))
    facts = dict(known["facts"])  # type: ignore[call-overload]
    assert (facts["driver"], facts["subgroup"], known["speed"]) == ("mesa_radv", 32, None)


@pytest.mark.parametrize("option", ["--roofline", "--trace=x.json", "--html=x.html"])
def test_times_are_refused(option: str, tmp_path: Path) -> None:
    done = run(tmp_path, "profile", option, "script.py")
    assert done.returncode == 1 and done.stdout == "" and not (tmp_path / "x.json").exists()
    assert done.stderr.splitlines()[-1] == (
        "triton-spirv profile: error: an emulated device has no times, which --trace, --html and --roofline are about; "
        "leave them out"
    )
