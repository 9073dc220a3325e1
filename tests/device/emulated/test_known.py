"""What `triton-spirv profile` and `inspect` say of kernels on an emulated device: what they do, and no time."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.device.emulated.__main__ import environment
from tests.device.forks import run_python

#: Of the script's kernel.
WARPS = 4
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
COMMAND = ("-m", "triton.backends.spirv.cli")


def run(tmp_path: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A verb of triton-spirv on an emulated device, in a folder with the script."""
    (tmp_path / "script.py").write_text(SCRIPT)
    here = environment("amd-rdna3") | {"TRITON_CACHE_DIR": str(tmp_path / "cache")}
    return run_python([*COMMAND, *command], here, tmp_path)


def page(path: Path) -> dict[str, object]:
    """The data of a page of inspect."""
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', path.read_text(), re.DOTALL)
    assert found is not None
    known: dict[str, object] = json.loads(found[1])
    return known


def rows(stderr: str) -> list[list[str]]:
    """The table of `profile`: its titles, and the cells of each kernel."""
    lines = [line for line in stderr.splitlines() if not line.lstrip().startswith(("/", "warn"))]
    end = next(number for number, line in enumerate(lines) if line.startswith("Figures are of all launches."))
    assert " ".join(lines[end:]).endswith("An emulated device has no times.")
    assert not re.search(r"\bms\b|µs|GB/s", "".join(lines[:end]))
    return [re.split("  +", line) for line in lines[:end]]


def test_a_profile_has_figures_and_no_time(tmp_path: Path) -> None:
    done = run(tmp_path, "profile", "script.py")
    assert done.returncode == 0, done.stderr
    barriers, shared = done.stdout.split()
    titles, (name, *cells) = rows(done.stderr)
    assert titles == [
        *("kernel", "launches", "programs", "read", "written", "operations", "instructions", "barriers", "shared"),
        "bank steps",
    ]
    elements = 30 * 64 * 64
    *cells, instructions, found, there, steps = cells
    assert (name, cells) == ("turned", ["3", "30", f"{4 * elements:,}", f"{4 * elements:,}", f"≈ {elements:,}"])
    assert (found, there.replace(",", "")) == (str(30 * int(barriers)), shared) and int(barriers) > 0

    assert run(tmp_path, "inspect", "turned", "-o", "page.html").returncode == 0
    known = page(tmp_path / "page.html")
    banks, mix = known["banks"], known["mix"]
    assert isinstance(banks, list) and isinstance(mix, list)
    # The kernel has no branches, and each of its warps meets as many conflicts as the first one.
    subgroups = 30 * WARPS
    told = "/".join(f"{subgroups * sum(one[what] for one in banks):,}" for what in ("steps", "fewest"))
    assert steps == told and banks
    assert int(instructions.replace(",", "")) == subgroups * sum(count for _, count in mix)
    facts = dict(known["facts"])  # type: ignore[call-overload]
    assert (facts["driver"], facts["subgroup"], known["speed"]) == ("mesa_radv", 32, None)


#: A kernel that reads every ``stride``-th word, in three programs. CASE tells its launches apart.
BANKS = """
import sys

import numpy as np
from triton.backends.spirv.runtime import array
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def strided(x, y, stride, rounds, LANES: gl.constexpr, CASE: gl.constexpr):
    row: gl.constexpr = gl.BlockedLayout([1], [LANES], [1], [0])
    i = gl.arange(0, LANES, layout=row)
    room = gl.allocate_shared_memory(gl.int32, [1024], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    room.store(gl.load(x + gl.arange(0, 1024, layout=row)))
    total = gl.zeros([LANES], gl.int32, layout=row)
    for _ in range(rounds):
        total += room.gather(i * stride, 0)
    gl.store(y + i, total)


lanes, *strides = map(int, sys.argv[1:])
x, y = np.arange(1024, dtype=np.int32), array(np.zeros(lanes, np.int32))
for stride in strides:
    for rounds in (10, 20, 30):
        strided[(3,)](array(x), y, stride, rounds, LANES=lanes, CASE=100 * stride + rounds, num_warps=1)
        assert (y.array == rounds * x[: lanes * stride : stride]).all()
"""


@pytest.mark.parametrize(
    ("profile", "lanes", "cases"),
    [
        ("nvidia-hopper", 32, {1: (1, 1), 2: (2, 1), 31: (1, 1), 32: (32, 1)}),
        ("intel-xe", 32, {1: (2, 2), 15: (2, 2), 16: (32, 2)}),  # 16 banks serve half of the lanes at a time
        ("qualcomm-adreno7", 64, {1: (2, 2), 2: (4, 2)}),
    ],
)
def test_conflicts_of_banks_that_are_known(
    profile: str, lanes: int, cases: dict[int, tuple[int, int]], tmp_path: Path
) -> None:
    """Ten rounds more cost ten times the steps of one access in each program, and ten times the same instructions.
    ``cases``: stride → the steps of an access, and the fewest possible."""
    found = counted(profile, tmp_path, lanes, *cases)
    for stride, (steps, fewest) in cases.items():
        first, second, third = (found[100 * stride + rounds] for rounds in (10, 20, 30))
        for once, again in ((first, second), (second, third)):
            assert (again["steps"] - once["steps"], again["fewest"] - once["fewest"]) == (30 * steps, 30 * fewest)
            assert again["read"] == once["read"] == 3 * 4096 and once["written"] == 3 * 4 * lanes
        more = second["instructions"] - first["instructions"]
        assert 0 < more == third["instructions"] - second["instructions"] and more % 30 == 0


def counted(profile: str, tmp_path: Path, *arguments: int) -> dict[int, dict[str, int]]:
    """Case → what `profile` says of the kernel above."""
    script = tmp_path / "banks.py"
    script.write_text(BANKS)
    done = run_python(
        [*COMMAND, "profile", str(script), *map(str, arguments)],
        environment(profile) | {"TRITON_CACHE_DIR": str(tmp_path / "cache")},
    )
    assert done.returncode == 0, done.stderr
    titles, *kernels = rows(done.stderr)
    found = {}
    for cells in kernels:
        known = dict(zip(titles, cells, strict=True))
        case = re.search(r"CASE=(\d+)", known.pop("kernel"))
        known["steps"], known["fewest"] = known.pop("bank steps").split("/")
        assert case is not None
        found[int(case[1])] = {name: int(text.replace(",", "")) for name, text in known.items() if text != "–"}
    return found


@pytest.mark.parametrize("option", ["--roofline", "--trace=x.json"])
def test_times_are_refused(option: str, tmp_path: Path) -> None:
    done = run(tmp_path, "profile", option, "script.py")
    assert done.returncode == 1 and done.stdout == "" and not (tmp_path / "x.json").exists()
    assert done.stderr.splitlines()[-1] == (
        "triton-spirv profile: error: an emulated device has no times, which --trace and --roofline are about; "
        "leave them out"
    )
