"""Whether ``x * y + z`` is rounded once: a launch, ``warmup``, ``triton-spirv warm`` and ``compile`` agree, whatever
Triton's own default is."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from triton.backends.spirv.inspection import peaks

from tests.device.processes import run

#: 3.9 fuses where TRITON_DEFAULT_FP_FUSION is not set, and says that 3.10 will not: `later` is its default.
_PROGRAM = """
import json, sys, warnings
import numpy as np, triton, triton.language as tl
from triton import knobs
from triton.backends.spirv import cli
from triton.backends.spirv.runtime import empty, from_numpy, load

@triton.jit
def chain(x, out):
    value = tl.load(x)
    tl.store(out, value * value - 1.00048828125)

def main():
    if sys.argv[1] == "later":
        vars(type(knobs.language))["default_fp_fusion"].default = False
    warnings.simplefilter("ignore")
    hits = []
    knobs.compilation.listener = lambda cache_hit, **_: hits.append(cache_hit)
    x, out = from_numpy(np.full(1, 1.000244140625, np.float32)), empty(1, "float32")
    launched = chain[(1,)](x, out)
    found = {"launch": float(out.to_numpy()[0])}
    found["warmup is the launch's"] = chain.warmup(x, out, grid=(1,)).hash == launched.hash
    request = [f"{__file__}:chain", "--signature", "*fp32, *fp32", "-o", sys.argv[2]]
    assert cli.main(["compile", *request]) == 0
    out = empty(1, "float32")
    load(sys.argv[2])[(1,)](x, out)
    print(json.dumps(found | {"compile": float(out.to_numpy()[0]), "hits": hits[:1]}))

if __name__ == "__main__":
    main()
"""
#: (1 + 2^-12)^2 - (1 + 2^-11), rounded once; the product alone is rounded to 1 + 2^-11.
_FUSED = 2.0**-24


@pytest.mark.parametrize(
    ("default", "variables", "value"),
    [
        ("today", {}, _FUSED),
        ("later", {}, 0.0),
        ("later", {"TRITON_DEFAULT_FP_FUSION": "1"}, _FUSED),
        ("today", {"TRITON_DEFAULT_FP_FUSION": "0"}, 0.0),
        ("today", {"TRITON_DEFAULT_FP_FUSION": "1", "TRITON_FORCE_DISABLE_FP_FUSION": "1"}, 0.0),
    ],
)
def test_all_ways_to_a_kernel_agree(
    default: str, variables: dict[str, str], value: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TRITON_DEFAULT_FP_FUSION", "TRITON_FORCE_DISABLE_FP_FUSION"):
        monkeypatch.delenv(name, raising=False)
    program, record = tmp_path / "program.py", tmp_path / "kernels"
    program.write_text(_PROGRAM, encoding="utf-8")

    def ran(cache: str, *command: str) -> subprocess.CompletedProcess[str]:
        folder = tmp_path / cache
        done = run([sys.executable, *command], cwd=tmp_path, TRITON_CACHE_DIR=str(folder), **variables)
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    warm = ("-m", "triton.backends.spirv.cli", "warm")
    program_of = (str(program), default, str(tmp_path / "chain.spv"))
    agreed = {"launch": value, "warmup is the launch's": True, "compile": value}
    first = ran("first", *warm, "--record", str(record), "--", sys.executable, *program_of)
    assert json.loads(first.stdout.splitlines()[-1]) == agreed | {"hits": [False]}
    ran("second", *warm, str(record))
    second = ran("second", *program_of)
    assert json.loads(second.stdout.splitlines()[-1]) == agreed | {"hits": [True]}


def test_peaks_are_measured_with_fused_multiply_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "0")
    fused: dict[str, bool] = {}

    def seconds(launch: Callable[[], Any]) -> float:
        made = launch()
        fused[made.name] = made.metadata.enable_fp_fusion
        return 1.0

    monkeypatch.setattr(peaks, "_fastest", seconds)
    peaks.measured()
    assert fused["multiply_adds"]
    assert not fused["copy"]
