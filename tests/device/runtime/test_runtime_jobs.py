"""Submissions that are bounded in time: batches and graphs are split, and a launch that takes longer is divided."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from triton.backends.spirv.field_reports import Care
from triton.backends.spirv.launching.expected_time import BYTES, OPERATIONS_A_UNIT, expected_seconds
from triton.backends.spirv.launching.split_grid import within_parts
from triton.backends.spirv.runtime.vulkan.device_info import VulkanDeviceInfo
from triton.backends.spirv.runtime.vulkan.job_limit import job_seconds, lockup_seconds
from triton.backends.spirv.transforms.kernel_function import kernel_of
from triton.backends.spirv.ttgir.parser import parse_module

ROOT = Path(__file__).parents[3]


def _run(case: str, seconds: str, layer: dict[str, str], program_ns: int = 25_000) -> tuple[dict[str, Any], int]:
    """What job_kernels.py prints, and how many command buffers were begun for the launches that count."""
    environment = {**os.environ, **layer, "FAULTY_TELL": "0", "FAULTY_PENDING": "0", "TRITON_SPIRV_VALIDATE": "0"}
    environment |= {"FAULTY_CLOCK": str(program_ns), "TRITON_SPIRV_SUBMISSION_SECONDS": seconds}
    command = [sys.executable, "-m", "tests.device.runtime.job_kernels", case]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    first, last = (index for index, line in enumerate(lines) if line == "marked")
    return json.loads(lines[-1]), lines[first:last].count("begun")


def test_launches_share_a_submission_where_it_is_not_bounded(faulty_layer: dict[str, str]) -> None:
    found, begun = _run("batch", "", faulty_layer)
    assert found["right"] and not found["bounded"] and found["submissions"] == 1 and begun < 8


def test_batches_and_graphs_are_split(faulty_layer: dict[str, str]) -> None:
    """24 launches of 0.4 ms, of which three fit into a submission."""
    found, begun = _run("batch", "0.0015", faulty_layer)
    assert found["right"] and found["bounded"] and found["unknown"]
    assert begun >= 7 and found["submissions"] == 8  # one was begun before


def test_a_long_launch_is_divided(faulty_layer: dict[str, str]) -> None:
    """By its code when it runs first, and by its time then."""
    found, begun = _run("long", "0.0005", faulty_layer, 1000)
    assert found["right"] and found["bounded"]
    assert found["before"] > 1 and begun > 1
    assert found["captured"] > 1 and found["submissions"] == found["captured"]


@pytest.mark.parametrize(
    ("grid", "parts", "limits"),
    [
        ((64, 1, 1), 4, (16, 1, 1)),
        ((64, 1, 1), 5, (13, 1, 1)),
        ((64, 8, 1), 4, (64, 2, 1)),
        ((64, 2, 3), 12, (32, 1, 1)),
        ((3, 1, 1), 9, (1, 1, 1)),
        ((7, 5, 2), 1, (7, 5, 2)),
    ],
)
def test_parts(grid: tuple[int, int, int], parts: int, limits: tuple[int, ...]) -> None:
    assert within_parts(grid, parts) == limits
    made = math.prod(-(-size // limit) for size, limit in zip(grid, limits, strict=True))
    assert made >= min(parts, math.prod(grid))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10000\n", 10.0),
        ("2000,2000,10000,10000", 2.0),
        ("10000,60000,10000,10000", 60.0),
        ("-1", math.inf),
        ("5000,0", math.inf),
        ("", None),
        ("(null)", None),
    ],
)
def test_lockup_timeout(text: str, seconds: float | None) -> None:
    assert lockup_seconds(text) == seconds


@pytest.mark.parametrize(
    ("driver", "care", "parameter", "setting", "seconds"),
    [
        ("mesa_radv", Care(job_seconds=1.0), None, "", 1.0),
        ("mesa_radv", Care(job_seconds=1.0), "20000", "", 10.0),
        ("mesa_radv", Care(job_seconds=1.0), "-1", "", None),
        ("mesa_radv", Care(), "3000", "", 1.5),
        ("mesa_radv", Care(job_seconds=1.0), "20000", "0.5", 0.5),
        ("nvidia_proprietary", Care(), "3000", "", None),
    ],
)
def test_job_seconds(
    driver: str,
    care: Care,
    parameter: str | None,
    setting: str,
    seconds: float | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRITON_SPIRV_SUBMISSION_SECONDS", setting)
    path = tmp_path / "lockup_timeout"
    if parameter is not None:
        path.write_text(parameter)
    device = VulkanDeviceInfo("GPU", "discrete", "ab", driver, (), None, care=care)
    assert job_seconds(device, path) == seconds


_COPY = """
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @kernel(%x: !tt.ptr<f32>) {
    %i = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32, #b>
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #b>
    %q = tt.addptr %p, %i : tensor<1024x!tt.ptr<f32>, #b>, tensor<1024xi32, #b>
    %v = tt.load %q : tensor<1024x!tt.ptr<f32>, #b>
    %w = arith.addf %v, %v : tensor<1024xf32, #b>
    tt.store %q, %w : tensor<1024x!tt.ptr<f32>, #b>
    tt.return
  }
}
"""


def test_expected_seconds() -> None:
    function = kernel_of(parse_module(_COPY, "copy.ttgir"))

    class Source:
        signature = {"x": "*fp32", "N": "constexpr"}

    seconds = expected_seconds(function, Source(), (object(), 7), (100, 1, 1), 8)
    assert seconds == pytest.approx(100 * (8 * 1024 / BYTES + 1024 / (8 * OPERATIONS_A_UNIT)))
    assert expected_seconds(None, Source(), (), (100, 1, 1), 8) == math.inf
