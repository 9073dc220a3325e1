"""`python3 -m tools upstream-tests` on a folder of tests like upstream's: the rate, and which failures it explains."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.upstream.expected import EXPECTED, reason_for
from tests.upstream.results import classify, read

ROOT = Path(__file__).parents[2]

KERNELS = """
import pytest, torch, triton
import triton.language as tl

@triton.jit
def double(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, 2 * tl.load(x + i))

@pytest.mark.parametrize("size", [16, 32])
def test_double(size, device, fresh_triton_cache):
    x = torch.ones(size, device=device)
    double[(1,)](x, BLOCK=size)
    assert (x == 2).all() and triton.runtime.driver.active.get_current_target().backend == "spirv"

def test_of_another_backend():
    pytest.skip("only on CUDA")

def test_wrong(device):
    assert device == "nowhere"
"""
EXPLAINED = """
import pytest

@pytest.mark.parametrize("what", ["device_print_scalar-int32", "device_print-int32"])
def test_print(what):
    assert "scalar" not in what
"""
#: An upstream checkout's conftest.py is there, and is used.
CONFTEST = """
import pytest

def pytest_addoption(parser):
    parser.addoption("--device", default="cuda")

@pytest.fixture
def device(request):
    return request.config.getoption("--device")

@pytest.fixture
def fresh_triton_cache(tmp_path):
    yield str(tmp_path)
"""


def upstream_tests(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.upstream", str(folder), "--device", "cpu", "--processes", "1", *options]
    return subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("conftest", ["", CONFTEST], ids=["copied", "checkout"])
def test_the_rate_and_what_was_not_expected(conftest: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    folder, out = tmp_path / "language", tmp_path / "out.jsonl"
    folder.mkdir()
    (folder / "test_core.py").write_text(KERNELS)
    (folder / "test_subprocess.py").write_text(EXPLAINED)
    if conftest:
        (tmp_path / "conftest.py").write_text(conftest)
    done = upstream_tests(folder, "--out", str(out))
    assert done.returncode == 1, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1] == ("3 of 5 tests passed (60.0 %); 1 failed as expected, 1 otherwise; 1 were skipped"), done.stdout
    assert "FAILED test_core.py::test_wrong" in lines
    assert "test_subprocess.py::test_print[device_print_scalar-int32]: a number is printed once" in done.stdout
    found = {line["test"]: line for line in map(json.loads, out.read_text().splitlines())}
    assert "nowhere" in found["test_core.py::test_wrong"]["why"] and len(found) == 6
    if not conftest:
        return
    passing = upstream_tests(folder, "--among", str(out), "-k", "double")
    assert passing.returncode == 0 and passing.stdout.splitlines()[-1].startswith("2 of 2 tests passed (100.0 %)")
    sampled = [upstream_tests(folder, "--sample", f"{n}/2", "--out", str(tmp_path / f"{n}.jsonl")) for n in (0, 1)]
    assert all(one.returncode in (0, 1) for one in sampled)
    parts = [set(read(tmp_path / f"{n}.jsonl")) for n in (0, 1)]
    assert parts[0] | parts[1] == set(found) and not parts[0] & parts[1]
    late = upstream_tests(folder, "--seconds", "1e-9")
    assert late.returncode == 2 and "no test ran" in late.stdout


def test_a_folder_that_is_not_there_says_what_to_do(tmp_path: Path) -> None:
    done = upstream_tests(tmp_path / "gone")
    assert done.returncode == 2 and "name a folder of upstream's tests" in done.stderr


def test_a_row_whose_tests_all_pass_is_told() -> None:
    row = EXPECTED[0]
    name = "test_subprocess.py::test_print[device_print_scalar-int8]"
    assert (
        row.matches(name) and reason_for(name) == row.reason and reason_for("test_core.py::test_empty_kernel") is None
    )
    assert classify({name: "passed"}).stale == [row]
    both = classify({name: "failed", name.replace("8", "16"): "passed"})
    assert both.stale == [] and both.expected == [name] and both.ran == 2
    assert classify({name: "failed", "other": "failed"}, among=["other"]).failed == ["other"]


def test_each_row_has_a_pattern_of_its_own() -> None:
    assert len({row.tests for row in EXPECTED}) == len(EXPECTED)
    assert all(row.reason and "::" in row.tests for row in EXPECTED)
