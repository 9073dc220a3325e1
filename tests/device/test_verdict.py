"""``triton-spirv verdict``: ten wrong scripts, and whose fault each is, the kernel's or the compiler's."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import triton
from triton.backends.spirv import cli
from triton.backends.spirv.inspection import whose_fault
from triton.backends.spirv.inspection.whose_fault import FOUND, RIGHT, UNDECIDED, _difference

from tests.device.forks import run_python
from tests.device.seeded_faults import FAULTS

ROOT = Path(__file__).parents[2]

HEADER = """
import torch, triton, triton.language as tl
@triton.jit
def kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
"""
END = """
x, out = torch.arange(64.0), torch.zeros(64)
kernel[(2,)](x, out, 64, BLOCK=32)
print(out.tolist())
"""
#: Script → what the verdict begins with, and what it says besides.
SCRIPTS = {
    "mask": (
        HEADER + "    tl.store(out + i, tl.load(x + i + 1))" + END,
        "The fault is the kernel's. script.py:6: kernel 'kernel': load out of bounds: argument 'x' at index 64",
        "Mend the mask",
    ),
    "race": (
        HEADER + "    tl.store(out, tl.load(out) + tl.sum(tl.load(x + i)))" + END,
        "The fault is the kernel's. script.py:6: ",
        "Use an atomic operation",
    ),
    "stride": (
        HEADER + "    tl.store(out + i, tl.load(x + i // 2))" + END,
        "If the result is wrong, the fault is the kernel's or the script's. No access is outside a tensor, no race was",
        "each launch leaves the same values: kernel (script.py:3)",
    ),
    "simplification": (
        "from triton.backends.spirv.spirv import fold, opcodes as op\nfold.RIGHT_IDENTITY[op.IMul] = 2\n"
        + HEADER
        + "    tl.store(out + i, tl.load(x + i).to(tl.int32) * 2)"
        + END,
        "The fault is the compiler's. script.py:8: kernel 'kernel': out[1] is 1 optimised and 2 by the reference",
        "the code generator's 'simplification'",
    ),
    "lowering": (
        "from triton.backends.spirv.lowering import arith\narith.FLOAT['arith.subf'] = arith.FLOAT['arith.addf']\n"
        + HEADER
        + "    tl.store(out + i, 1 - tl.load(x + i))"
        + END,
        "The fault is the compiler's or the interpreter's. script.py:8: kernel 'kernel': out[1] is 2 as "
        "compiled and 0 under",
        "On emulate:nvidia-hopper the value is the same, so it is no fault of one device's code.",
    ),
    "driver": (  # which takes signed integers for unsigned
        "from triton.backends.spirv.cpu.arithmetic import _INSTRUCTIONS as t\nt['OpConvertSToF'] = t['OpConvertUToF']\n"
        + HEADER
        + "    tl.store(out + i, (i - 32).to(tl.float32))"
        + END,
        "The fault is the compiler's or the interpreter's. script.py:8: kernel 'kernel': out[0] is "
        "4.29497e+09 as compiled",
        "the lowering of an operation, LLVM or the driver",
    ),
}
for fault in ("upstream", "alike", "strips", "rounds"):
    SCRIPTS[fault] = (
        f"import sys\nsys.path.insert(0, {str(ROOT)!r})\nfrom tests.device.seeded_faults import FAULTS\n"
        f"seed, launch, _ = FAULTS[{fault!r}]\nseed()\nlaunch()\n",
        "The fault is the compiler's. seeded_faults.py:",
        f"'{FAULTS[fault][2]}'",
    )
#: What users write wrong, and three scripts that are right.
SCRIPTS |= {
    "grid": (  # too small
        HEADER + "    tl.store(out + i, tl.load(x + i))" + END.replace("zeros", "empty").replace("[(2,)]", "[(1,)]"),
        "If the result is wrong, the fault is the kernel's or the script's. script.py:6: kernel 'kernel' leaves 32 of "
        "64 elements of 'out' as nobody has written them, the first at 32: is the mask, the grid",
        "each launch leaves the same values",
    ),
    "added to nothing": (
        HEADER + "    tl.atomic_add(out, tl.sum(tl.load(x + i)))" + END.replace("zeros(64)", "empty(1)"),
        "If the result is wrong, the fault is the kernel's or the script's. script.py:6: kernel 'kernel' leaves 1 of 1",
        "or was it to be filled before?",
    ),
    "plain read": (
        HEADER
        + "    tl.atomic_add(out, tl.sum(tl.load(x + i)))\n    if tl.program_id(0) == 1:\n"
        + "        tl.store(out + 1, tl.load(out))"
        + END,
        "The fault is the kernel's. script.py:6: kernel 'kernel': program (0, 0, 0) updates out[0], which "
        "program (1, 0, 0) reads in line 8: only one of the two is atomic",
        "Use an atomic operation",
    ),
    "in place": (
        HEADER + "    tl.store(x + i, tl.load(x + i + 1, mask=i + 1 < n))" + END,
        "The fault is the kernel's. script.py:6: kernel 'kernel': program (1, 0, 0) writes x[32], which "
        "program (0, 0, 0) reads",
        "Use an atomic operation",
    ),
    "assumption": (
        HEADER + "    tl.assume(n % 16 == 1)\n    tl.store(out + i, tl.load(x + i % n))" + END,
        "The fault is the kernel's. script.py:6: tl.assume() or an assertion of the kernel is false",
        "may compute anything from a false tl.assume()",
    ),
    "transposed": (
        HEADER + "    tl.store(out + i, tl.load(x + i % 8 * 8 + i // 8))" + END,
        "If the result is wrong, the fault is the kernel's or the script's.",
        "So the kernel computes what it says.",
    ),
    "random numbers": (
        HEADER + "    tl.store(out + i, tl.exp(tl.load(x + i)))" + END.replace("torch.arange(64.0)", "torch.rand(64)"),
        "If the result is wrong, the fault is the kernel's or the script's.",
        "each launch leaves the same values",
    ),
    "nothing printed": (
        HEADER + "    tl.store(out + i, tl.load(x + i))" + END.replace("print", "len"),
        "If the result is wrong, the fault is the kernel's or the script's.",
        "each launch leaves the same values",
    ),
}
#: Scripts in which nothing is wrong but what they are for.
NOTHING_FOUND = ("stride", "grid", "added to nothing", "transposed", "random numbers", "nothing printed")
#: Where a script runs, if not on the CPU device.
DEVICES = {"driver": "emulate:nvidia-hopper"}


def _environment(folder: Path, script: str, device: str) -> dict[str, str]:
    """The variables of a verdict on a script, which is written into a folder."""
    (folder / "script.py").write_text(script)
    return {
        "TRITON_CACHE_DIR": str(folder / "cache"),
        "TRITON_SPIRV_DEVICE": device,
        "TRITON_SPIRV_BACKEND": "1",
        "TRITON_DEFAULT_FP_FUSION": "1",
    }


def _in_one_line(text: str, folder: Path) -> str:
    return " ".join(text.split()).replace(f"{folder}/", "").replace(f"{ROOT}/tests/device/", "")


def _verdict(folder: Path, script: str, device: str = "cpu") -> tuple[int, str]:
    """As a user asks for it: each step is a process of its own."""
    environment = os.environ | _environment(folder, script, device)
    done = run_python(["-m", "triton.backends.spirv.cli", "verdict", "script.py"], environment, folder)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, _in_one_line(done.stdout, folder)


def _run_step(command: list[str], env: dict[str, str], **how: object) -> subprocess.CompletedProcess[str]:
    """For subprocess.run: in a fork that has imported torch and triton, which takes most of the time of a step."""
    assert command[0] == sys.executable and how == {"capture_output": True, "text": True, "check": False}
    return run_python(command[1:], env)


@pytest.mark.parametrize("name", SCRIPTS)
def test_whose_fault_it_is(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script, begins, says = SCRIPTS[name]
    for variable, value in _environment(tmp_path, script, DEVICES.get(name, "cpu")).items():
        monkeypatch.setenv(variable, value)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(whose_fault, "subprocess", SimpleNamespace(run=_run_step))
    status = cli.main(["verdict", "script.py"])
    text = _in_one_line(capsys.readouterr().out, tmp_path)
    assert status == (RIGHT if name in NOTHING_FOUND else FOUND), text
    assert text.startswith(begins) and says in text, text
    reports = list(tmp_path.glob("*.verdict.json"))
    assert len(reports) == ("compiler" in text.partition(".")[0]), text
    for report in reports:
        assert f"To report it, send {report.name} and the script to" in text
        told = json.loads(report.read_text())
        assert text.startswith(" ".join(told["verdict"].replace(f"{ROOT}/tests/device/", "").split())), told["verdict"]
        assert "tt.func" in str(told) and told["versions"]["triton"]


UNDECIDABLE = {
    "random numbers": (
        HEADER + "    tl.store(out + i, tl.load(x + i))" + END.replace("x, out", "import numpy\nx, out", 1).replace(
            "torch.arange(64.0)", "torch.from_numpy(numpy.random.default_rng().random(64))"
        ),
        "argument 'x' of kernel 'kernel' (script.py:3) is another one in each run",
    ),
    "no kernel": ("import triton\nraise SystemExit(3)", "the script launches no kernel, and ends with"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNDECIDABLE)
def test_what_cannot_be_decided(name: str, tmp_path: Path) -> None:
    script, says = UNDECIDABLE[name]
    status, text = _verdict(tmp_path, script)
    assert status == UNDECIDED and text.startswith("This could not be decided: ") and says in text, text


def test_a_script_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["verdict", str(tmp_path / "none.py")]) == 1
    assert "there is no file" in capsys.readouterr().err


def test_numbers_may_be_rounded() -> None:
    assert _difference("largest error 7.3e-06", "largest error 4.1e-06") is None
    assert _difference("largest [1.00001, 2]\nok", "largest [1.00002, 2]\nok") is None
    assert _difference("a 1\nb 2", "a 1\nb 3") == ("b 2", "b 3")
    assert _difference("a\nb", "a") == ("b", "nothing more")
    assert _difference("nan", "nan") is None and _difference("a b", "a") == ("a b", "a")


def test_triton_s_own_folder_may_have_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after ``pip install --target``: a failure inside the interpreter has the kernel's line all the same."""
    monkeypatch.setattr(triton, "__file__", str(tmp_path / "any" / "triton" / "__init__.py"))
    assert whose_fault._of_a_package(str(tmp_path / "any" / "triton" / "runtime" / "interpreter.py"))
    assert not whose_fault._of_a_package(str(tmp_path / "any" / "script.py"))
