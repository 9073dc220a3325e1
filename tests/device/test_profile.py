"""``triton-spirv profile``: launches of a script with the device's time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys

import torch
import triton
import triton.language as tl


def stated(grid, metadata, args):
    return {"name": "scale", "bytes": 8 * args["n"], "flops32": args["n"]}


@triton.jit(launch_metadata=stated)
def scale_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


@triton.jit
def count(x):
    tl.atomic_add(x, 1)


n = int(sys.argv[1])
x, out, total = torch.ones(n), torch.zeros(n), torch.zeros(1, dtype=torch.int32)
for _ in range(4):
    scale_kernel[(triton.cdiv(n, 64),)](x, out, n, BLOCK=64)
for _ in range(3):
    count[(5, 2)](total)
assert out.sum().item() == 2 * n and total.item() == 30
"""


def profile(tmp_path: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "script.py"
    script.write_text(text)
    command = [sys.executable, "-m", "triton.backends.spirv.cli", "profile", *options, str(script), "1000"]
    return subprocess.run(command, env=os.environ, capture_output=True, text=True, check=False)


def test_table_trace_and_page(tmp_path: Path) -> None:
    trace, page = tmp_path / "trace.json", tmp_path / "page.html"
    done = profile(tmp_path, SCRIPT, "--trace", str(trace), "--html", str(page))
    assert done.returncode == 0, done.stderr
    rows = {line.split()[0]: line.split() for line in done.stderr.splitlines() if line.startswith(("scale ", "count "))}
    assert rows["scale"][1] == "4" and rows["count"][1] == "3"
    assert "GFLOP/s," in rows["scale"] and rows["scale"][-1] == "GB/s" and "GB/s" not in rows["count"]
    assert "7 launches; profiling took " in done.stderr
    events = json.loads(trace.read_text())["traceEvents"]
    device = [event for event in events if event.get("cat") == "kernel"]
    assert [event["name"] for event in device] == ["scale"] * 4 + ["count"] * 3
    assert [event["args"]["grid"] for event in device] == [[16]] * 4 + [[5, 2]] * 3
    for earlier, later in zip(device, device[1:], strict=False):
        assert earlier["ts"] >= 0 and earlier["dur"] > 0
        assert later["ts"] >= earlier["ts"] + earlier["dur"] - 0.01, "launches run in order"
    assert page.read_text().count("<rect ") == 7


@pytest.mark.parametrize(
    ("ending", "status", "message"),
    [("sys.exit(3)", 3, "7 launches"), ("raise KeyError('mine')", 1, "KeyError: 'mine'"), ("sys.exit('bye')", 1, "")],
)
def test_the_scripts_own_end(tmp_path: Path, ending: str, status: int, message: str) -> None:
    done = profile(tmp_path, SCRIPT + ending)
    assert done.returncode == status and message in done.stderr and "7 launches" in done.stderr


def test_a_script_without_kernels(tmp_path: Path) -> None:
    done = profile(tmp_path, "print('hello')")
    assert done.returncode == 0 and done.stdout == "hello\n" and "launched no kernel" in done.stderr


def test_a_script_that_is_not_there(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "triton.backends.spirv.cli", "profile", str(tmp_path / "none.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr == f"triton-spirv profile: error: there is no file {tmp_path}/none.py\n"
