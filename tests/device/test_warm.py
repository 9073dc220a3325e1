"""``triton-spirv warm``: what a program compiles is recorded, compiled by other processes, and found by the program."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MODULE = """
import triton
import triton.language as tl

@triton.jit
def add(a, b):
    return a + b

@triton.jit
def combined(x, out, how: tl.constexpr, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(out + i, how(tl.load(x + i), 1.5))
"""

SCRIPT = """
from __future__ import annotations

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl
from triton import knobs
from kernels_of_mine import add, combined

FACTOR = tl.constexpr(3)
OTHER = 7

@triton.jit
def tripled(x):
    return x * FACTOR

@triton.autotune(configs=[triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64})], key=["n"])
@triton.jit
def tuned(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tripled(tl.load(x + i, mask=i < n)), mask=i < n)

@triton.jit
def nested(x, out):
    tl.store(out, tl.load(x) + 0.25)

def local():
    @triton.jit
    def inside(x, out):
        tl.store(out, tl.load(x) + 0.5)
    return inside

with open(sys.argv[1], "a") as log:
    log.write("ran\\n")
hits = []
knobs.compilation.listener = lambda src, cache_hit, **_: hits.append((src.fn.__name__, cache_hit))
x, out = torch.arange(64.0), torch.zeros(64)
tuned[lambda meta: (triton.cdiv(64, meta["BLOCK"]),)](x, out, 64)
assert torch.equal(out, 3 * x)
combined[(1,)](x, out, add, 64)
assert torch.equal(out, x + 1.5)
nested[(1,)](x, out)
local()[(1,)](x, out)
assert out[0] == 0.5
on = torch.arange(5.0, device="spirv")
assert (on * on + 1).tolist() == [1, 2, 5, 10, 17]
print("missed:", *sorted(name for name, hit in hits if not hit))
"""

GONE = {"name": "gone", "module": "kernels_of_mine", "root": "/"}


def run(folder: Path, cache: str, *command: str) -> subprocess.CompletedProcess[str]:
    """A command with its own cache, of kernels and of Mesa's."""
    environment = os.environ | {
        "TRITON_CACHE_DIR": str(folder / cache),
        "MESA_SHADER_CACHE_DIR": str(folder / cache),
        "TRITON_SPIRV_BACKEND": "1",
        "TRITON_DEFAULT_FP_FUSION": "1",
    }
    (folder / cache).mkdir(exist_ok=True)
    command = (sys.executable, *command)
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def warm(folder: Path, cache: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The verb."""
    return run(folder, cache, "-m", "triton.backends.spirv.cli", "warm", *arguments)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program and the record of its kernels, ``program.kernels``."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("warm")
    (folder / "kernels_of_mine.py").write_text(MODULE, encoding="utf-8")
    (folder / "program.py").write_text(SCRIPT, encoding="utf-8")
    done = warm(folder, "first", "--record", "program.kernels", "--", sys.executable, "program.py", "log")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[:2] == ["missed:", "combined"], done.stdout
    assert "inside: not recorded: it is defined within a function" in done.stderr
    return folder


def lines_of(folder: Path) -> list[dict[str, Any]]:
    """The lines of the record."""
    return [json.loads(line) for line in (folder / "program.kernels").read_text(encoding="utf-8").splitlines()]


def rewritten(folder: Path, name: str, kernel: str, **changed: Any) -> None:
    """A record of ``kernel`` alone, with some values changed."""
    line = next(line for line in lines_of(folder) if line["kernel"] == kernel)
    (folder / name).write_text(json.dumps(line | changed) + "\n", encoding="utf-8")


def test_the_program_compiles_nothing_after_it(recorded: Path) -> None:
    done = warm(recorded, "second", "--jobs", "2", "program.kernels")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "inside: skipped: it is defined within a function" in done.stdout
    count = len(lines_of(recorded))
    summary = done.stdout.splitlines()[-1]
    assert summary.startswith(f"{count} kernels: {count - 1} compiled, 0 already there, 1 skipped; "), done.stdout
    assert (recorded / "log").read_text(encoding="utf-8") == "ran\n", "the script's own statements ran"

    program = run(recorded, "second", "program.py", "log")
    assert program.stdout.strip() == "missed: inside", program.stdout + program.stderr

    again = warm(recorded, "second", "program.kernels")
    assert f"0 compiled, {count - 1} already there, 1 skipped" in again.stdout


def test_recording_a_program_that_finds_its_kernels_in_the_cache_records_them_too(recorded: Path) -> None:
    assert {"tuned", "combined", "nested", "elementwise"} <= {line["kernel"] for line in lines_of(recorded)}
    done = warm(recorded, "first", "--record", "again", "--", sys.executable, "program.py", "log2")
    assert done.stdout.strip() == "missed:" or done.stdout.split() == ["missed:", "inside"], done.stdout
    keys = {json.loads(line)["key"] for line in (recorded / "again").read_text(encoding="utf-8").splitlines()}
    assert keys == {line["key"] for line in lines_of(recorded)}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"format": 99}, "another version of triton-spirv recorded it"),
        ({"parameters": ["x", "y"]}, "its parameters have changed"),
        ({"function": GONE}, "kernels_of_mine has no kernel gone"),
        ({"function": {"name": "k", "module": "no_such_module", "root": "/"}}, "there is no module no_such_module"),
        ({"function": {"name": "k", "script": "/no/such.py"}}, "/no/such.py cannot be read: "),
        ({"passed": [GONE]}, "kernels_of_mine has no kernel gone"),
        ({"data": "{}"}, "it does not fit this version: KeyError"),
    ],
)
def test_a_line_that_does_not_fit_is_skipped_and_says_why(recorded: Path, changed: dict[str, Any], why: str) -> None:
    rewritten(recorded, "changed", "combined", **changed)
    done = warm(recorded, "third", "changed")
    assert done.returncode == 1
    assert done.stdout.startswith(f"[1/1] combined: skipped: {why}"), done.stdout + done.stderr


def test_a_source_that_changed_is_compiled_as_it_is_and_told_of(recorded: Path, tmp_path: Path) -> None:
    (tmp_path / "kernels_of_mine.py").write_text(MODULE.replace("a + b", "a - b"), encoding="utf-8")
    line = next(line for line in lines_of(recorded) if line["kernel"] == "combined")
    for place in (line["function"], *line["passed"]):
        place["root"] = str(tmp_path)
    (tmp_path / "one").write_text(json.dumps(line) + "\n", encoding="utf-8")
    done = warm(tmp_path, "fourth", "one")
    assert done.returncode == 0
    assert "[1/1] combined: compiled" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("1 of them got another key than was recorded: "), done.stdout


def test_a_process_that_dies_costs_its_kernel_alone(recorded: Path, tmp_path: Path) -> None:
    (tmp_path / "deadly.py").write_text("import os\nos._exit(7)\n", encoding="utf-8")
    line = next(line for line in lines_of(recorded) if line["kernel"] == "nested")
    deadly = line | {"key": "other", "function": {"name": "k", "module": "deadly", "root": str(tmp_path)}}
    (tmp_path / "two").write_text(f"{json.dumps(deadly)}\n{json.dumps(line)}\n", encoding="utf-8")
    done = warm(tmp_path, "fifth", "--jobs", "1", "two")
    assert "skipped: the process that compiled it ended with status 7" in done.stdout
    assert "[2/2] nested: compiled" in done.stdout
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["none"], "none cannot be read: No such file or directory"),
        (["program.py"], "program.py is no record of `triton-spirv warm --record`: line 1"),
        (["--record", "no/folder", "--", "true"], "no/folder cannot be written: No such file or directory"),
        (["--record", "empty", "--", "/no/such/program"], "/no/such/program cannot be run: No such file or directory"),
        (["--jobs", "0", "program.kernels"], "--jobs must be 1 or more"),
    ],
)
def test_mistakes_on_the_command_line(recorded: Path, arguments: list[str], why: str) -> None:
    done = warm(recorded, "sixth", *arguments)
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1] == f"triton-spirv warm: error: {why}"


def test_the_status_of_a_recorded_command_is_passed_on(tmp_path: Path) -> None:
    done = warm(tmp_path, "seventh", "--record", "none", "--", sys.executable, "-c", "raise SystemExit(5)")
    assert done.returncode == 5
    assert "0 kernels recorded in none" in done.stderr
