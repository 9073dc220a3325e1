"""``triton-spirv verdict``: ten wrong scripts, and whose fault each is, the kernel's or the compiler's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from triton.backends.spirv import cli
from triton.backends.spirv.inspection.whose_fault import _difference

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
        "The usual code and the interpreter print the same",
    ),
    "simplification": (
        "from triton.backends.spirv.spirv import fold, opcodes as op\nfold.RIGHT_IDENTITY[op.IMul] = 2\n"
        + HEADER
        + "    tl.store(out + i, tl.load(x + i).to(tl.int32) * 2)"
        + END,
        "The fault is the compiler's. script.py:8: kernel 'kernel': out[1] is 1 optimised and 2 by the reference",
        "the emission's 'simplification'",
    ),
    "lowering": (
        "from triton.backends.spirv.lowering import arith\narith.FLOAT['arith.subf'] = arith.FLOAT['arith.addf']\n"
        + HEADER
        + "    tl.store(out + i, 1 - tl.load(x + i))"
        + END,
        "The fault is the compiler's or the interpreter's. No access is outside a tensor",
        "A mandatory part of the compiler is wrong",
    ),
    "driver": (  # which takes signed integers for unsigned
        "from triton.backends.spirv.cpu import arithmetic\narithmetic._CONVERSIONS['OpConvertSToF'] = 'uitofp'\n"
        + HEADER
        + "    tl.store(out + i, (i - 32).to(tl.float32))"
        + END,
        "The fault is the compiler's or the interpreter's. No access is outside a tensor",
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
#: Where a script runs, if not on the CPU device.
DEVICES = {"driver": "emulate:nvidia-hopper"}


def _verdict(folder: Path, script: str, device: str = "cpu") -> tuple[int, str]:
    (folder / "script.py").write_text(script)
    environment = {
        **os.environ,
        "TRITON_CACHE_DIR": str(folder / "cache"),
        "TRITON_SPIRV_DEVICE": device,
        "TRITON_SPIRV_BACKEND": "1",
        "TRITON_DEFAULT_FP_FUSION": "1",
    }
    command = [sys.executable, "-m", "triton.backends.spirv.cli", "verdict", "script.py"]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, " ".join(done.stdout.split()).replace(f"{folder}/", "").replace(f"{ROOT}/tests/device/", "")


@pytest.mark.parametrize("name", SCRIPTS)
def test_whose_fault_it_is(name: str, tmp_path: Path) -> None:
    script, begins, says = SCRIPTS[name]
    status, text = _verdict(tmp_path, script, DEVICES.get(name, "cpu"))
    assert status == 0, text
    assert text.startswith(begins) and says in text, text


def test_a_script_that_says_nothing(tmp_path: Path) -> None:
    status, text = _verdict(tmp_path, HEADER + "    tl.store(out + i, tl.load(x + i))" + END.replace("print", "len"))
    assert status == 2 and text.startswith("This could not be decided: the script prints nothing")


def test_a_script_of_random_numbers(tmp_path: Path) -> None:
    script = HEADER + "    tl.store(out + i, tl.load(x + i))" + END.replace("torch.arange(64.0)", "torch.rand(64)")
    status, text = _verdict(tmp_path, script)
    assert status == 2 and text.startswith("This could not be decided: the script prints other numbers each time")


def test_an_assertion_that_fails_only_as_compiled_is_decided(tmp_path: Path) -> None:
    script = SCRIPTS["lowering"][0].replace("print(out.tolist())", "assert out[0] == 1 and out[2] == -1")
    status, text = _verdict(tmp_path, script)
    assert status == 0 and text.startswith("The fault is the compiler's or the interpreter's: the script ends")


def test_a_script_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["verdict", str(tmp_path / "none.py")]) == 1
    assert "there is no file" in capsys.readouterr().err


def test_numbers_may_be_rounded() -> None:
    assert _difference("largest error 7.3e-06", "largest error 4.1e-06") is None
    assert _difference("largest [1.00001, 2]\nok", "largest [1.00002, 2]\nok") is None
    assert _difference("a 1\nb 2", "a 1\nb 3") == ("b 2", "b 3")
    assert _difference("a\nb", "a") == ("b", "nothing more")
    assert _difference("nan", "nan") is None and _difference("a b", "a") == ("a b", "a")
