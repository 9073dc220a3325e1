"""The benchmark of GPUs computes right results: a kernel of each family, on small arrays."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_a_model_trains_as_on_the_cpu(tmp_path: Path) -> None:
    out = tmp_path / "lines.jsonl"
    command = [sys.executable, "-m", "benchmarks.models", "--small", "--device", "spirv,cpu", "--modes", "eager"]
    command += ["--precisions", "fp32", "--out", str(out), "llama"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert not [line for line in lines if "failure" in line]
    by = {(line["device"], line["part"]): line for line in lines}
    parts = ("machine", "host", "speed", "counts", "operations", "generate")
    assert set(by) == {(device, part) for device in ("spirv", "cpu") for part in parts}
    ours, theirs = by["spirv", "speed"]["losses"], by["cpu", "speed"]["losses"]
    assert ours == pytest.approx(theirs, rel=1e-5) and ours[-1] < ours[0]
    assert by["spirv", "counts"]["fallbacks"] == {} and by["spirv", "counts"]["launches"] > 50
    assert "llama              fp32  eager" in done.stdout


def test_convolutions_are_timed_on_each_device() -> None:
    command = [sys.executable, "-m", "benchmarks.convolutions", "--device", "spirv,cpu", "--batch", "1"]
    command += ["--types", "fp32", "--milliseconds", "1", "1x1-256-512-s2"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    parts = ("result", "gradient of x", "gradient of w")
    assert [(line["device"], line["part"]) for line in lines] == [(d, part) for d in ("spirv", "cpu") for part in parts]
    for line in lines:
        assert line["ms"] * line["tflops"] == pytest.approx(2 * 512 * 7 * 7 * 256 * 1e-9)
    assert done.stdout.count("\n1x1-256-512-s2") == len(parts)


def test_a_model_that_takes_too_long_is_told(tmp_path: Path) -> None:
    out = tmp_path / "lines.jsonl"
    command = [sys.executable, "-m", "benchmarks.models", "--small", "--seconds", "0.1", "--out", str(out), "gpt"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "spirv gpt process: not done in 0 s" in done.stdout
    assert json.loads(out.read_text())["part"] == "process"


def test_each_schedule_of_a_kernel_is_right_and_timed(tmp_path: Path) -> None:
    out = tmp_path / "schedules.json"
    command = [sys.executable, "-m", "benchmarks.schedules", "--small", "--only", "matmul_fp32", "--json", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (figure,) = json.loads(out.read_text())["figures"]
    expected = [row["expected"] for row in figure["schedules"]]
    # A device with matrix units has schedules for them, which change nothing of products of float32.
    assert expected == sorted(expected) and len(expected) > 1
    assert all(row["ms"] > 0 for row in figure["schedules"]) and figure["chosen"]["ms"] > 0
    assert len({str(row["schedule"]) for row in figure["schedules"]}) == len(expected)
    assert done.stdout.count("\n") == len(expected) + 3
