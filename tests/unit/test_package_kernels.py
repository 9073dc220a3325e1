"""benchmarks/package_kernels on a package of two files, one of which cannot be imported as it is."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

KERNELS = """
import absent.at_all
from absent import autotuner
import triton
import triton.language as tl
from toy.parts import row_of

@absent.at_all.registered("name", key=1)
@triton.autotune([triton.Config({"BLOCK": 64})], key=["n"])
@triton.jit
def sums(x_ptr, out, n, BLOCK: tl.constexpr):
    tl.store(out + tl.program_id(0), tl.sum(row_of(x_ptr, n, BLOCK)))

@triton.jit
def exchange_kernel(words):
    at = tl.arange(0, 64)
    moved = tl.inline_asm_elementwise(
        "shfl.sync.bfly.b32 $0, $1, 1, 31, -1;", "=r,r", [tl.load(words + at)], tl.float32, True, 1
    )
    tl.store(words + at, moved)

@triton.jit
def nonsense_kernel(x_ptr):
    tl.store(x_ptr, undefined)

def launch(x):
    sums[(1,)](x, x, 64)
"""
BROKEN = """
import triton
import triton.language as tl
raise RuntimeError("no such device")

@triton.jit
def past_kernel(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)
"""
PARTS = """
import triton
import triton.language as tl

@triton.jit
def row_of(base, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    start = base + tl.program_id(0) * n
    return tl.load(start + at, mask=at < n, other=0.0)
"""


def test_kernels_are_guessed_compiled_and_refused(tmp_path: Path) -> None:
    package = tmp_path / "packages" / "toy"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('a dependency')", encoding="utf-8")
    (package / "kernels.py").write_text(KERNELS, encoding="utf-8")
    (package / "handed_on").mkdir()
    (package / "broken.py").write_text(BROKEN, encoding="utf-8")
    (package / "parts.py").write_text(PARTS, encoding="utf-8")
    output = tmp_path / "rows.jsonl"
    command = [sys.executable, "-m", "benchmarks.package_kernels", tmp_path / "packages", "--profile", "lavapipe",
               "--output", output]  # fmt: skip

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)

    done = run()
    lines = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    rows = {row["kernel"]: row for row in lines if "kernel" in row}
    outcomes = {name: row["profiles"].get("lavapipe", ["not guessed"])[0] for name, row in rows.items()}
    assert outcomes == {
        "toy.kernels:sums": "passed",
        "toy.kernels:exchange_kernel": "refused",
        "toy.kernels:nonsense_kernel": "not guessed",
        "toy.broken:past_kernel": "passed",
    }, done.stderr
    assert done.returncode == 0  # a refusal by name is no failure
    assert "3 files, of which 1 have statements that failed" in done.stdout
    assert "| toy | 4 | 3 | 2 | 0 | 0 | 1 | 0 |" in done.stdout and "exchanges values between threads" in done.stdout
    (package / "later.py").write_text(PARTS.replace("row_of", "later_kernel"), encoding="utf-8")
    output.write_text(output.read_text(encoding="utf-8") + '{"kernel": "cut o', encoding="utf-8")
    resumed = run("--resume")
    assert "4 files, of which 1 have" in resumed.stdout and "| toy | 5 | " in resumed.stdout, resumed.stderr
    assert output.read_text(encoding="utf-8").count("sums") == 1
