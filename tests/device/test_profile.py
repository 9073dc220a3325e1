"""``triton-spirv profile``: launches of a script with the device's time."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from triton.backends.spirv import cli
from triton.backends.spirv.inspection.profile import busy, table
from triton.backends.spirv.inspection.trace import Launch

from tests.device.forks import run_python

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

UNSTATED = """
import torch
import triton
import triton.language as tl


@triton.jit
def product(a, b, out, K, M: tl.constexpr, N: tl.constexpr, STEP: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, STEP)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, K, STEP):
        x = tl.load(a + m[:, None] * K + start + k[None, :])
        y = tl.load(b + (start + k[:, None]) * N + n[None, :])
        total = tl.dot(x, y, total)
    tl.store(out + m[:, None] * N + n[None, :], total * 2)


@triton.jit
def up_to_the_diagonal(x, out, BLOCK: tl.constexpr):
    i, total = tl.arange(0, BLOCK), tl.zeros((BLOCK,), tl.float32)
    for row in range(tl.program_id(0)):
        total += tl.load(x + row * BLOCK + i)
    tl.store(out + tl.program_id(0) * BLOCK + i, total)


@triton.jit
def until_found(x, out):
    i = 0
    while tl.load(x + i) > 0:
        i += 1
    tl.store(out, i)


a, b, out = torch.ones(16, 80), torch.ones(80, 32), torch.zeros(16, 32)
product[(1,)](a, b, out, 80, M=16, N=32, STEP=16)
assert (out == 160).all()
rows = torch.zeros(9, 64)
up_to_the_diagonal[(9,)](torch.ones(9, 64), rows, BLOCK=64)
assert rows[8, 0] == 8
where = torch.zeros(1, dtype=torch.int32)
until_found[(1,)](torch.tensor([1.0, 1.0, 0.0]), where)
assert where.item() == 2
"""


def profile(tmp_path: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "script.py"
    script.write_text(text)
    return run_python(["-m", "triton.backends.spirv.cli", "profile", *options, str(script), "1000"])


def test_table_and_trace(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    done = profile(tmp_path, SCRIPT, "--trace", str(trace))
    assert done.returncode == 0, done.stderr
    rows = {line.split()[0]: line.split() for line in done.stderr.splitlines() if line.startswith(("scale ", "count "))}
    assert rows["scale"][1] == "4" and rows["count"][1] == "3"
    assert re.search(r"^the device was busy for \d+\.\d{3} ms of \d+\.\d{3} ms", done.stderr, re.MULTILINE)
    assert "GFLOP/s," in rows["scale"] and rows["scale"][-1] == "GB/s" and "GB/s" not in rows["count"]
    assert "7 launches; profiling took " in done.stderr
    events = json.loads(trace.read_text())["traceEvents"]
    device = [event for event in events if event.get("cat") == "kernel"]
    assert [event["name"] for event in device] == ["scale"] * 4 + ["count"] * 3
    assert [event["args"]["grid"] for event in device] == [[16]] * 4 + [[5, 2]] * 3
    for earlier, later in zip(device, device[1:], strict=False):
        assert earlier["ts"] >= 0 and earlier["dur"] > 0
        assert later["ts"] >= earlier["ts"] + earlier["dur"] - 0.01, "launches run in order"


THREADS = """
import threading

import numpy as np
import triton
import triton.language as tl
from triton.backends.spirv import runtime


@triton.jit
def again(x, out, n, rounds, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for step in range(rounds):
        total += tl.load(x + (i + step) % n)
    tl.store(out + i, total, mask=i < n)


def work(count):
    x, out = runtime.from_numpy(np.ones(count, np.float32)), runtime.empty(count, "float32")
    for _ in range(2):
        again[(triton.cdiv(count, 256),)](x, out, count, 3, BLOCK=256)
    assert (out.to_numpy() == 3).all()


work(1024)
other = threading.Thread(target=work, args=(2048,), name="other")
other.start()
other.join()
"""

#: What the Trace Event Format asks of each phase, beside the name, the phase and the ids of process and thread.
REQUIRED = {"X": {"ts": float, "dur": float, "cat": str}, "M": {"args": dict}, "s": {"ts": float, "id": int},
            "f": {"ts": float, "id": int}}  # fmt: skip


def test_the_trace_has_launches_compilations_and_copies_by_thread(tmp_path: Path) -> None:
    """As many as the lines below the table say, in the form that Perfetto and chrome://tracing read."""
    trace = tmp_path / "trace.json"
    for cached in (False, True):
        done = profile(tmp_path, THREADS, "--trace", str(trace))
        assert done.returncode == 0, done.stderr
        known = json.loads(trace.read_text())
        assert known["displayTimeUnit"] in ("ms", "ns")
        for event in known["traceEvents"]:
            assert isinstance(event["name"], str) and isinstance(event["pid"], int) and isinstance(event["tid"], int)
            for name, type_ in REQUIRED[event["ph"]].items():
                assert isinstance(event[name], type_) and (type_ is not float or event[name] >= 0), event
        spans = [event for event in known["traceEvents"] if event["ph"] == "X"]
        by_kind = {kind: [one for one in spans if one["cat"] == kind] for kind in {one["cat"] for one in spans}}
        counts = {kind: len(found) for kind, found in by_kind.items()}
        assert counts == {"kernel": 4, "launch": 4, "cached" if cached else "compile": 1, "load": 1, "copy": 4}
        row = next(line.split() for line in done.stderr.splitlines() if line.startswith("again "))
        assert int(row[1]) == counts["kernel"]
        total = sum(event["dur"] for event in by_kind["kernel"]) / 1e3
        assert abs(total - float(row[2])) < 1e-3, "the table's milliseconds"
        line = re.search(
            r"^kernels: (\d+) compiled.*, (\d+) taken .*, (\d+) loaded .*; (\d+) copies", done.stderr, re.M
        )
        assert line is not None, done.stderr
        assert [int(one) for one in line.groups()] == [
            counts.get(one, 0) for one in ("compile", "cached", "load", "copy")
        ]
        assert sorted(event["args"]["bytes"] for event in by_kind["copy"]) == [4096, 4096, 8192, 8192]
        threads = {
            event["tid"]: event["args"]["name"] for event in known["traceEvents"] if event["name"] == "thread_name"
        }
        assert len(threads) == 2 and "MainThread" in threads.values()
        for kind in ("launch", "copy"):
            assert {event["tid"] for event in by_kind[kind]} == set(threads), "each has its own track"
        if not cached:
            assert {"ttir", "ttgir", "spv"} <= set(by_kind["compile"][0]["args"])
        for asked, ran in zip(by_kind["launch"], by_kind["kernel"], strict=True):
            assert asked["name"] == ran["name"] == "again" and asked["args"]["bytes"] == 2 * asked["args"]["distinct"]
        arrows = [event["id"] for event in known["traceEvents"] if event["ph"] in "sf"]
        assert sorted(arrows) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_an_estimate_where_a_kernel_states_nothing(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    done = profile(tmp_path, UNSTATED, "--trace", str(trace))
    assert done.returncode == 0, done.stderr
    events = [event for event in json.loads(trace.read_text())["traceEvents"] if event.get("cat") == "kernel"]
    known = {event["name"]: event["args"] for event in events}
    product, diagonal, until = (known[name] for name in ("product", "up_to_the_diagonal", "until_found"))
    assert product["estimated"] and product["bytes"] == 4 * (5 * (16 * 16 + 16 * 32) + 16 * 32)
    assert product["flops"] == 5 * 2 * 16 * 32 * 16 + 16 * 32
    assert diagonal["bytes"] == 9 * 4 * 64 * (4 + 1), "the program in the middle stands for all"
    assert diagonal["flops"] == 9 * 4 * 64
    assert not until["estimated"] and until["bytes"] == until["flops"] == 0


def test_the_table_tells_estimates_from_what_kernels_state() -> None:
    launches = [
        Launch("stated", (1,), 0.0, 1, flops=3e9, moved=2e9, milliseconds=1e3),
        Launch("guessed", (1,), 0.0, 1, flops=0, moved=4e9, distinct=1e9, milliseconds=1e3, estimated=True),
        Launch("tiny", (1,), 0.0, 1, flops=0, moved=8, milliseconds=1e3, estimated=True),
    ]
    first, second, third, note = table(launches).splitlines()[1:]
    assert first.endswith("  3.0 GFLOP/s, 2.0 GB/s") and "GB/s" not in third
    assert second.endswith("  ≈ 4.0 GB/s, ≈ 1.0 GB/s of them once")
    assert note.startswith("≈ is an estimate from the kernel's loads, stores and arithmetic")
    assert "≈" not in table(launches[:1])


def test_the_first_launch_stands_apart_and_the_rate_is_the_medians() -> None:
    times = [50.0, 2.0, 4.0, 3.0]
    launches = [Launch("k", (1,), 0.0, 1, moved=8e6, begin=100.0 * n, milliseconds=ms) for n, ms in enumerate(times)]
    heading, row = table(launches).splitlines()
    assert heading.split() == "kernel launches total ms share first µs median µs longest µs rate".split()
    name, count, total, share, first, median, longest, *rate = row.split()
    assert (name, count, total, share, first) == ("k", "4", "59.000", "100.0%", "50000.0")
    assert (median, longest) == ("3000.0", "4000.0"), "of the launches after the first"
    assert rate == ["2.7", "GB/s"]
    (alone,) = table(launches[:1]).splitlines()[1:]
    assert alone.split()[4:] == ["50000.0", "–", "–", "0.2", "GB/s"]


def test_busy_time_counts_what_overlaps_once() -> None:
    """Two streams' launches may overlap on the device."""
    spans = [(0.0, 10.0), (5.0, 10.0), (30.0, 10.0)]
    launches = [Launch("k", (1,), 0.0, 1, begin=begin, milliseconds=length) for begin, length in spans]
    assert busy(launches) == (25.0, 40.0)


SPECIALISED = """
import torch
import triton
import triton.language as tl


@triton.jit
def filled(out, value, BLOCK: tl.constexpr):
    tl.store(out + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), value)


def main():
    out = torch.zeros(256)
    for block in (64, 64, 128, 128, 128):
        filled[(256 // block,)](out, 1.0, BLOCK=block)
    filled[(4,)](out.to(torch.float64), 1.0, BLOCK=64, num_warps=2)


if __name__ == "__main__":
    main()
"""


def test_a_row_for_each_specialisation(tmp_path: Path) -> None:
    done = profile(tmp_path, SPECIALISED)
    found = dict(re.findall(r"^filled(\[.*?\]) +(\d+) ", done.stderr, re.MULTILINE))
    assert found == {
        "[out=*fp32:16, BLOCK=64, num_warps=4]": "2",
        "[out=*fp32:16, BLOCK=128, num_warps=4]": "3",
        "[out=*fp64:16, BLOCK=64, num_warps=2]": "1",
    }, done.stderr


def test_a_module_is_run_as_python_runs_it(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "kernels.py").write_text(SPECIALISED.partition("def main")[0])
    lines = "from .kernels import filled, torch\nimport sys\nprint(sys.argv[1:], sys.path[0])\n"
    (package / "script.py").write_text(lines + "filled[(4,)](torch.zeros(256), 1.0, BLOCK=64)\n")
    command = [sys.executable, "-m", "triton.backends.spirv.cli", "profile", "-m"]
    done = subprocess.run(
        [*command, "package.script", "-x", "1"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and done.stdout == f"['-x', '1'] {tmp_path}\n", done.stderr
    assert re.search(r"^filled +1 ", done.stderr, re.MULTILINE)
    for name in ("package.nothing", "nothing.at.all"):
        done = subprocess.run([*command, name], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert done.stderr == f"triton-spirv profile: error: there is no module {name}\n"


def test_the_roofline_and_the_page_about_a_kernel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The trace has what the device reaches at best, and the page shows where the kernel stands."""
    trace, page = tmp_path / "trace.json", tmp_path / "page.html"
    done = profile(tmp_path, SCRIPT, "--roofline", "--trace", str(trace))
    assert done.returncode == 0 and "at best " in done.stderr, done.stderr
    arguments = [f"{tmp_path}/script.py:scale_kernel", "-s", "*fp32, *fp32, i32, 64", "-o", str(page)]
    script = tmp_path / "script.py"
    script.write_text(script.read_text().partition("\nn = int")[0])  # the kernels alone: `inspect` runs the file
    command = ["inspect", *arguments, "--launches", str(trace)]
    assert cli.main(command) == 0, capsys.readouterr()
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page.read_text(), re.S)
    assert found is not None
    speed = json.loads(found[1])["speed"]
    assert (speed["launches"], speed["grid"], speed["bytes"], speed["flops"]) == (3, [16], 8000, 1000)
    assert not speed["estimated"] and speed["seconds"] > 0
    assert speed["peaks"]["bytes_a_second"] > 0 and speed["peaks"]["operations_a_second"] > 0
    for text, message in (
        ("{}", "is not a trace"),
        ('{"traceEvents": []}', "has no launch of the kernel scale_kernel"),
    ):
        trace.write_text(text)
        capsys.readouterr()
        assert cli.main(command) == 1
        error = capsys.readouterr().err
        assert message in error and error.count("\n") == 1, error


@pytest.mark.parametrize(
    ("ending", "status", "message"),
    [("sys.exit(3)", 3, "7 launches"), ("raise KeyError('mine')", 1, "KeyError: 'mine'"), ("sys.exit('bye')", 1, "")],
)
def test_the_scripts_own_end(tmp_path: Path, ending: str, status: int, message: str) -> None:
    done = profile(tmp_path, SCRIPT + ending)
    assert done.returncode == status and message in done.stderr and "7 launches" in done.stderr


def test_a_script_without_kernels(tmp_path: Path) -> None:
    done = profile(tmp_path, "print('hello')")
    assert done.returncode == 0 and done.stdout == "hello\n" and "launched no Triton kernel" in done.stderr


def test_a_script_that_is_not_there(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "triton.backends.spirv.cli", "profile", str(tmp_path / "none.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr == f"triton-spirv profile: error: there is no file {tmp_path}/none.py\n"


def test_a_folder_that_is_not_there_is_said_before_the_script_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "script.py"
    script.write_text("raise SystemExit('it ran')")
    assert cli.main(["profile", "--trace", str(tmp_path / "no" / "file"), str(script)]) == 1
    assert capsys.readouterr().err == f"triton-spirv profile: error: there is no folder {tmp_path}/no\n"


@pytest.mark.parametrize("option", ["--trace=t.json", "--roofline"])
def test_its_own_options_behind_the_script_are_refused(tmp_path: Path, option: str) -> None:
    script = tmp_path / "script.py"
    script.write_text("import sys\nprint(sys.argv[1:])\n")
    command = [sys.executable, "-m", "triton.backends.spirv.cli", "profile", str(script)]
    done = subprocess.run([*command, "1", option], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stdout == ""
    assert f"error: {option} stands behind {script}" in done.stderr
    done = subprocess.run([*command, "--", "1", option], capture_output=True, text=True, check=False)
    assert done.stdout == f"['1', '{option}']\n", done.stderr
