"""The benchmark of GPUs computes right results: a kernel of each family, on small arrays."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.gpu", "--backends", "spirv", "--small", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_kernel_of_each_family_is_right() -> None:
    names = ("layer_norm", "matmul_bf16", "attention_backward_causal")
    done = run("--check", "--only", ",".join(names))
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["SPIR-V:", "layer", "matmul", "attention"]
    assert all(" 0.00e+00 " not in line for line in lines), "compared with itself"


def test_unknown_kernels_are_refused() -> None:
    done = run("--only", "matmul_fp17")
    assert done.returncode == 2 and "unknown: matmul_fp17" in done.stderr
