"""Machine code that was compiled ahead of time, loaded in Python on the CPU device, in processes of its own."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from triton.backends.spirv import cli
from triton.backends.spirv.cpu.host import LEVELS, host_of, level_of, runs
from triton.backends.spirv.runtime import load_bundle
from triton.backends.spirv.runtime.compiled.kernel_file import IncompatibleModule, read_abi, sealed
from triton.backends.spirv.runtime.native_module import native

SOURCE = """
import triton
import triton.language as tl

@triton.jit
def scaled(x, out, n, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * scale, mask=i < n)

@triton.jit
def wild(out):
    at = tl.arange(0, 64)
    tl.store(out + at.to(tl.int64) * 100000000000, at)
"""
SIGNATURE = "*fp32, *fp32, i32, fp32, 64"
HERE = native().processor_level()
LEVEL = level_of(HERE)[0]
TARGET = f"cpu-{LEVEL}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("machine-code")
    (path / "kernel.py").write_text(SOURCE)
    return path


def compiled(folder: Path, *words: str, kernel: str = "scaled", signature: str = SIGNATURE) -> None:
    assert cli.main(["compile", f"{folder / 'kernel.py'}:{kernel}", "-s", signature, *words]) == 0


def run(program: str, folder: Path, device: str = "cpu") -> subprocess.CompletedProcess[str]:
    text = f"import numpy as np\nfrom triton.backends.spirv.runtime import load, load_bundle\n{program}"
    environment = {**os.environ, "TRITON_SPIRV_DEVICE": device}
    command = [sys.executable, "-c", text]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env=environment, timeout=300, check=False
    )


LAUNCH = """
x, out = np.arange(1000, dtype=np.float32), np.full(1010, 7, np.float32)
kernel[(16,)](x, out, 1000, 3.0)
assert (out[:1000] == 3 * x).all() and (out[1000:] == 7).all()
print(kernel.abi.machine_code.processor)
"""


def test_levels() -> None:
    ordered = [level for level in reversed(LEVELS) if level.startswith("x86")]
    for index, level in enumerate(ordered):
        assert [runs(level, here) for here in ordered] == [number >= index for number in range(len(ordered))]
        assert runs(f"{level}/znver3", level)
        assert not runs(level, "aarch64") and not runs("aarch64", level)
    assert runs("aarch64", "aarch64")
    assert runs("x86-64-v4+avx512vnni/znver5", "x86-64-v4+avx512vnni") and runs("x86-64-v3", "x86-64-v4+avx512vnni")
    assert not runs("x86-64-v4+avx512vnni", "x86-64-v4") and not runs("x86-64-v3+avxvnni", "x86-64-v4+avx512vnni")
    tiles = "x86-64-v4+amx-int8"
    assert runs("x86-64-v4+avx512vnni/znver5", tiles) and runs("x86-64-v4", tiles) and runs(tiles, tiles)
    pairs = "x86-64-v4+avx512bf16"
    assert runs("x86-64-v4+avx512vnni", pairs) and not runs(tiles, pairs) and not runs(pairs, tiles)
    assert not runs(tiles, "x86-64-v4+avx512vnni") and not runs("x86-64-v3+avxvnni", tiles)
    for wrong in ("x86-64-v3+avx512vnni", "x86-64-v3+amx-int8", "aarch64+avxvnni", "x86-64-v4+sse2"):
        with pytest.raises(ValueError, match="FEATURE one of amx-int8, avx512bf16, avx512vnni, avxvnni, dotprod"):
            host_of(wrong)
    assert not runs("riscv64", "riscv64") and not runs("x86-64-v3", "x86-64")


def test_the_object_alone_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compiled(folder, "-t", TARGET, "-o", str(folder / "alone.o"))
    assert capsys.readouterr().out.startswith(f"{folder}/alone.o and {folder}/alone.json\n")
    assert not (folder / "alone.spv").exists()
    done = run(f"kernel = load('alone.o')\n{LAUNCH}", folder)
    assert (done.returncode, done.stdout) == (0, f"{LEVEL}\n"), done.stderr


def test_a_module_takes_its_code_along(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compiled(folder, "-t", TARGET, "-o", str(folder / "both.spv"))
    assert capsys.readouterr().out.startswith(f"{folder}/both.spv, {folder}/both.o and {folder}/both.json\n")
    # Without a cache, and without LLVM.
    program = "import triton.backends.spirv.cpu.machine as machine\nmachine.assemble = None\nkernel = load('both.spv')"
    done = run(f"{program}\n{LAUNCH}", folder)
    assert (done.returncode, done.stdout) == (0, f"{LEVEL}\n"), done.stderr
    (folder / "both.o").unlink()
    done = run(f"kernel = load('both.spv')\n{LAUNCH}", folder)
    assert (done.returncode, done.stdout) == (0, f"{LEVEL}\n"), done.stderr


def test_the_code_for_most_instructions_is_taken_from_a_bundle(folder: Path) -> None:
    levels = [level for level in LEVELS if level != "x86-64-v2" and LEVELS[level][0] == LEVELS[LEVEL][0]]
    words = [word for level in reversed(levels) for word in ("-t", f"cpu-{level}")]
    compiled(folder, "-t", "nvk-ampere", "-t", "generic", *words, "--bundle", str(folder / "all.tsb"))
    done = run(f"kernel = load_bundle('all.tsb')['scaled']\n{LAUNCH}", folder)
    assert (done.returncode, done.stdout) == (0, f"{LEVEL}\n"), done.stderr


def test_a_bundle_without_code_says_why(folder: Path) -> None:
    compiled(folder, "-t", "nvk-ampere", "--bundle", str(folder / "gpu.tsb"))
    done = run("load_bundle('gpu.tsb')['scaled']", folder)
    assert done.returncode == 1
    assert "for mesa_nvk: it was compiled for the driver mesa_nvk, not cpu" in done.stderr


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"processor": "x86-64-v9"}, f"its machine code is for x86-64-v9, and this processor is {HERE}; compile it"),
        ({"processor": "riscv64"}, f"its machine code is for riscv64, and this processor is {HERE}; compile it"),
        ({"launch": 1}, "its machine code is called in version 1, this runtime knows version 2; compile it"),
        ({"sha256": "0" * 64}, "changed.json describes another module: changed.o has sha256"),
        ({"scratch_bytes": "1"}, "changed.json is damaged: machine_code.scratch_bytes is '1'"),
        ({"more": 1}, "changed.json is damaged: machine_code lacks one of the entries"),
    ],
)
def test_what_is_refused(folder: Path, entries: dict[str, Any], message: str) -> None:
    compiled(folder, "-t", TARGET, "-o", str(folder / "changed.o"))
    abi = json.loads((folder / "changed.json").read_text())
    abi["machine_code"] |= entries
    (folder / "changed.json").write_text(json.dumps(sealed(abi)))
    done = run("load('changed.o')", folder)
    assert done.returncode == 1
    assert "IncompatibleModule: " in done.stderr and message in done.stderr


def test_a_description_that_was_changed_is_not_believed(folder: Path) -> None:
    """Each number and truth value in it, one at a time: scratch memory, sizes, offsets, what is written."""
    compiled(folder, "-t", TARGET, "-o", str(folder / "right.o"))
    right = (folder / "right.json").read_text()
    shutil.copy(folder / "right.o", folder / "wrong.o")
    places = [found.span() for found in re.finditer(r"(?<=: )(?:\d+|true|false)\b|\b\d+(?=,?\n)", right)]
    assert len(places) > 20
    for start, end in places:
        word = right[start:end]
        other = {"true": "false", "false": "true"}.get(word) or str(int(word) + 16)
        (folder / "wrong.json").write_text(right[:start] + other + right[end:])
        with pytest.raises(IncompatibleModule):
            read_abi(folder / "wrong.o", (folder / "wrong.o").read_bytes())
    (folder / "wrong.json").write_text(right)
    assert read_abi(folder / "wrong.o", (folder / "wrong.o").read_bytes()).to_json() == right


def test_a_bundle_whose_description_was_changed_is_refused(folder: Path) -> None:
    compiled(folder, "-t", TARGET, "--bundle", str(folder / "right.tsb"))
    data = (folder / "right.tsb").read_bytes()
    (place,) = [found.end() for found in re.finditer(rb'"scratch_bytes": ', data)]
    changed = data[:place] + (b"1" if data[place : place + 1] != b"1" else b"2") + data[place + 1 :]
    (folder / "changed.tsb").write_bytes(changed)
    with pytest.raises(IncompatibleModule, match=r"changed.tsb is damaged, .* its checksum"):
        load_bundle(folder / "changed.tsb")


def test_an_object_of_a_module_without_one(folder: Path) -> None:
    compiled(folder, "-t", "generic", "-o", str(folder / "mixed.spv"))
    (folder / "mixed.o").write_bytes(b"ELF")
    done = run("load('mixed.o')", folder)
    assert "mixed.json describes a kernel without machine code, unlike mixed.o" in done.stderr


def test_a_gpu_s_module_is_not_called_an_object(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compile", f"{folder / 'kernel.py'}:scaled", "-s", SIGNATURE, "-t", "generic", "-o", str(folder / "g.o")]
    assert cli.main(words) == 1
    assert "is for machine code, and the target, of the driver generic, is no processor: name it g.spv" in (
        capsys.readouterr().err
    )


def test_another_architecture_s_code_needs_its_compiler(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = "cpu-x86-64-v3" if LEVEL == "aarch64" else "cpu-aarch64"
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(folder / "empty"))
    kernel = f"{folder / 'kernel.py'}:scaled"
    assert cli.main(["compile", kernel, "-s", SIGNATURE, "-t", other, "-o", str(folder / "other.o")]) == 1
    assert "pip install llvmlite, whose LLVM makes it" in capsys.readouterr().err
    assert not (folder / "other.o").exists() and not (folder / "other.json").exists()
    assert cli.main(["compile", kernel, "-s", SIGNATURE, "-t", other, "-o", str(folder / "other.spv")]) == 0
    assert f"there is no {folder}/other.o: machine code for" in capsys.readouterr().err
    assert "machine_code" not in json.loads((folder / "other.json").read_text())


def test_a_fault_has_its_line(folder: Path) -> None:
    compiled(folder, "-t", TARGET, "-o", str(folder / "wild.o"), kernel="wild", signature="*i32")
    done = run("load('wild.o')[(1,)](np.zeros(4, np.int32))", folder)
    assert done.returncode == 1
    line = SOURCE[: SOURCE.index("tl.store(out + at.to")].count("\n") + 1
    assert f"KernelFault: kernel.py:{line}: kernel 'wild' wrote to address" in done.stderr
