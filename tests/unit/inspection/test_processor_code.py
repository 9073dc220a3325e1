"""What the verbs of ``triton-spirv`` show of the CPU device: machine code beside its source, peaks, kernels."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.inspection.processor_code import code_lines, executables
from triton.backends.spirv.runtime.native_module import native

from tests.device.forks import run_python

SOURCE = """
import torch, triton, triton.language as tl

@triton.jit
def scaled(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n)
    tl.store(out + i, tl.sqrt(value) + 1, mask=i < n)  # root

@triton.jit
def of_columns(x, out, rows, columns, BLOCK: tl.constexpr):
    best = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, rows, BLOCK):
        best += tl.load(x + (start + tl.arange(0, BLOCK)) * columns + tl.program_id(0))  # far apart
    tl.store(out + tl.arange(0, BLOCK), best)

if __name__ == "__main__":
    x, out = torch.rand(1000), torch.empty(1000)
    for _ in range(3):
        scaled[(16,)](x, out, 1000, BLOCK=64)
"""
ROOT_LINE = SOURCE.splitlines().index("    tl.store(out + i, tl.sqrt(value) + 1, mask=i < n)  # root") + 1
FAR_LINE = next(number for number, line in enumerate(SOURCE.splitlines(), 1) if line.endswith("# far apart"))
LEVEL = native().processor_level()
TARGET = "cpu-aarch64" if LEVEL.startswith("aarch64") else "cpu-x86-64-v3"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("processor-code")
    (path / "scaled.py").write_text(SOURCE)
    return path


def verb(folder: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    settings = {
        "TRITON_SPIRV_DEVICE": "cpu",
        "TRITON_CACHE_DIR": str(folder / "cache"),
        "TRITON_DEFAULT_FP_FUSION": "1",
    }
    done = run_python(["-m", "triton.backends.spirv.cli", *map(str, words)], os.environ | settings, folder)
    assert done.returncode == 0, done.stderr
    return done


def test_a_page_has_the_machine_code_beside_the_line(folder: Path) -> None:
    verb(folder, "inspect", "scaled.py:scaled", "-s", "*fp32, *fp32, i32, 64", "-t", TARGET, "-o", "scaled.html")
    text = (folder / "scaled.html").read_text()
    data = json.loads(re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', text, re.S)[1])  # type: ignore[index]
    stage = next(one for one in data["stages"] if one["id"] == "machine")
    root = data["places"].index(f"{folder}/scaled.py:{ROOT_LINE}")
    code = [line for line, places in stage["lines"] if root in places]
    assert any("sqrt" in line for line in code), stage
    assert not any(line.startswith("\t.") for line, _ in stage["lines"])
    (program,) = data["driver"]["executables"]
    statistics = {row["name"]: row["value"] for row in program["statistics"]}
    assert statistics["Instructions"] > statistics["Vector instructions"] > 4
    assert statistics["Instructions"] == sum(line.startswith(" ") for line, _ in stage["lines"])
    assert statistics["Scratch"] == 0


@pytest.mark.parametrize(("target", "bits"), [("cpu-x86-64-v3", 256), ("cpu-x86-64-v4", 512)])
@pytest.mark.skipif(LEVEL.startswith("aarch64"), reason="names of x86's registers")
def test_the_page_reads_the_instructions(folder: Path, target: str, bits: int) -> None:
    """How wide accesses are, which loop gathers, and the verdict, by the machine code."""
    arguments = {"scaled": "*fp32, *fp32, i32, 64", "of_columns": "*fp32, *fp32, i32, i32, 64"}
    pages = {}
    for name, signature in arguments.items():
        verb(folder, "inspect", f"scaled.py:{name}", "-s", signature, "-t", target, "-o", f"{name}.html")
        text = (folder / f"{name}.html").read_text()
        pages[name] = json.loads(re.search(r'type="application/json">(.*?)</script>', text, re.S)[1])  # type: ignore[index]
    wide, far = pages["scaled"], pages["of_columns"]
    assert wide["machine"]["vector_bits"] == bits and [one["bits"] for one in wide["accesses"]] == [bits, bits]
    assert len(wide["machine"]["loops"]) == 1  # over strips: that over programs is none of the kernel's
    assert f"its vectors have up to {bits} bits" in wide["verdict"]
    (loop, *_) = far["machine"]["loops"]
    assert loop["places"][0].endswith(f":{FAR_LINE}") and loop["instructions"] >= loop["vectors"] + loop["calls"] > 0
    assert loop["gathers"] >= 4 and f"scaled.py:{FAR_LINE} gathers or scatters {loop['gathers']} vec" in far["verdict"]
    load, store = far["accesses"]
    assert load["bits"] == 32 and f"{loop['gathers']} gathers" in load["why"] and store["bits"] == bits
    (program,) = far["driver"]["executables"]
    statistics = {row["name"]: row for row in program["statistics"]}
    assert statistics["Vector width"]["value"] == bits
    told = statistics[f"Loop at scaled.py:{FAR_LINE}"]
    assert told["value"] == loop["instructions"] and f" {loop['gathers']} gathers" in told["description"]


def test_a_kernel_that_ran_shows_its_machine_code_with_lines(folder: Path) -> None:
    subprocess.run(
        [sys.executable, "scaled.py"],
        cwd=folder,
        env=os.environ | {"TRITON_SPIRV_DEVICE": "cpu", "TRITON_CACHE_DIR": str(folder / "cache")},
        check=True,
    )
    listed = verb(folder, "kernels").stdout
    assert re.search(r" cpu +4 +16 .* scaled +.*scaled\.py:5$", listed, re.M), listed
    text = verb(folder, "disassemble", "scaled", "--stage", "machine").stdout
    assert text.startswith(f"// a processor of {LEVEL}\n// Instructions ")
    place = text.index(f"  # scaled.py:{ROOT_LINE}: tl.store(out + i, tl.sqrt(value) + 1, mask=i < n)  # root\n")
    assert "sqrt" in text[place:]


def test_code_of_another_architecture_names_its_compiler(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    other = "cpu-x86-64-v3" if LEVEL.startswith("aarch64") else "cpu-aarch64"
    verb(folder, "compile", "scaled.py:scaled", "-s", "*fp32, *fp32, i32, 64", "-t", other, "-o", "other.spv")
    spirv = (folder / "other.spv").read_bytes()
    try:
        lines, _ = code_lines(spirv, PROFILES[other])
    except RuntimeError as error:
        assert "pip install llvmlite" in str(error)
        return
    assert any("sqrt" in line.text for line in lines)
    assert executables(spirv, PROFILES[other])[0].statistics[1].value > 4


def test_the_roofline_has_peaks_of_one_thread_and_of_all(folder: Path) -> None:
    done = verb(folder, "profile", "--roofline", "--trace", "trace.json", "scaled.py")
    found = re.search(
        r"^at best ([\d,.]+) GB/s of a copy and ([\d,.]+) GFLOP/s of f32 multiply-adds on CPU \(.*\); "
        r"one thread at best ([\d,.]+) GB/s and ([\d,.]+) GFLOP/s; caches at best ([\d,.]+) GB/s$",
        done.stderr,
        re.M,
    )
    assert found is not None, done.stderr
    figures = [float(one.replace(",", "")) for one in found.groups()]
    memory, operations, memory_of_a_thread, operations_of_a_thread, caches = figures
    assert 0.1 < memory_of_a_thread <= memory < 5000
    assert 5 < operations_of_a_thread <= operations and caches > memory
    assert re.search(r"^scaled: .* limits? it: the median of 2 launches", done.stderr, re.M)
    peaks = json.loads((folder / "trace.json").read_text())["otherData"]["triton-spirv peaks"]
    assert round(peaks["operations_of_a_thread"] / 1e9, 1) == operations_of_a_thread
    assert re.search(r"^scaled +3 ", done.stderr, re.M)


def test_info_and_doctor(folder: Path) -> None:
    known = json.loads(verb(folder, "info", "--json").stdout)
    device = known["devices"][known["used"]["index"]]
    assert (device["driver"], device["driver_version"], device["kind"]) == ("cpu", LEVEL, "cpu")
    text = verb(folder, "doctor").stdout
    assert re.search(r"a tiny kernel ran on CPU \(", text), text
    assert "kernels can run" in text


def test_kernels_are_compiled_before_a_program_runs(folder: Path) -> None:
    verb(folder, "warm", "--record", "kernels.json", "--", sys.executable, "scaled.py")
    done = verb(folder, "warm", "kernels.json")
    assert "scaled" in done.stdout + done.stderr
