"""What five kinds of people do in their first hour, as commands that run one after the other, with their times.

    python -m benchmarks.walks                        # all walks
    python -m benchmarks.walks newcomer torch         # some of them

Each walk begins in an empty folder with an empty cache, and uses the installed wheel as its people would: by files and
commands. A step must end with the status that it names and print what it names. The table has seconds by the clock and
of processor time, with those of child processes; the exit status is 1 if a step went otherwise.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

_KERNEL = """
import numpy as np
import triton
import triton.language as tl
from triton.backends.spirv import runtime


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


if __name__ == "__main__":
    x, y = (runtime.from_numpy(np.random.rand(1 << 20).astype(np.float32)) for _ in range(2))
    out = runtime.empty(1 << 20, "float32")
    for _ in range(10):
        add[(1024,)](x, y, out, 1 << 20, BLOCK=1024)
    print("largest error:", np.abs(out.to_numpy() - (x.to_numpy() + y.to_numpy())).max())
"""
_MISSPELT = _KERNEL.replace("BLOCK=1024)", "BLOK=1024)")
_UNMASKED = _KERNEL.replace(", mask=i < n", "").replace("add[(1024,)]", "add[(1025,)]")
_TORCH = """
import torch

torch.manual_seed(0)
device = torch.device("spirv")
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
x = torch.rand(256, 8, device=device)
y = x.sum(1, keepdim=True)
losses = []
for _ in range(60):
    loss = (model(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < losses[0] / 10, losses
print("the loss fell; operations on the CPU:", sum(torch.spirv.fallbacks().values()))
"""
_LOADED = """
import numpy as np
from triton.backends.spirv.runtime import load_bundle

x, out = np.ones(8000, np.float32), np.zeros(8000, np.float32)
load_bundle("kernels.tsb")["add"][(8,)](x, x, out, 8000)
assert (out == 2).all()
print("right")
"""
_FILES = {"add.py": _KERNEL, "misspelt.py": _MISSPELT, "unmasked.py": _UNMASKED, "train.py": _TORCH, "app.py": _LOADED}
_HINTED, _PLAIN = "*fp32:16, *fp32:16, *fp32:16, i32:16, 1024", "*fp32, *fp32, *fp32, i32, 1024"


@dataclass(frozen=True)
class Step:
    """A command of a walk: ``python …`` or ``triton-spirv …``. ``prints``: a pattern of its output, both streams.
    ``variables``: of the environment."""

    command: tuple[str, ...]
    prints: str
    status: int = 0
    variables: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return " ".join([*(f"{name}={value}" for name, value in self.variables), *self.command])


def _spirv(*words: str) -> tuple[str, ...]:
    return ("triton-spirv", *words)


#: A kind of person → what they do.
WALKS = {
    "newcomer": (
        Step(_spirv("doctor"), "kernels can run|can be used|ok"),
        Step(("python", "add.py"), r"largest error: 0\.0"),
        Step(("python", "add.py"), r"largest error: 0\.0"),
        Step(("python", "misspelt.py"), r"did you mean BLOCK", 1),
        Step(
            ("python", "unmasked.py"),
            r"unmasked\.py:\d+: kernel 'add': load out of bounds: argument 'x'",
            1,
            (("TRITON_SPIRV_CHECK_BOUNDS", "1"),),
        ),
    ),
    "performance engineer": (
        Step(_spirv("profile", "--roofline", "--trace", "trace.json", "add.py"), r"add +10"),
        Step(_spirv("kernels", "add"), "add"),
        Step(_spirv("inspect", "add", "--launches", "trace.json"), r"add\.html"),
        Step(_spirv("inspect", "add.py:add"), r'A draft to correct: --signature "x=\*fp32:16', 1),
        Step(_spirv("compile", "add.py:add", "-s", _PLAIN, "-t", "amd-rdna3"), r"':16' would widen accesses"),
    ),
    "torch": (Step(("python", "train.py"), "the loss fell"), Step(("python", "train.py"), "the loss fell")),
    "vendor": (
        Step(_spirv("profiles"), "amd-rdna3"),
        Step(_spirv("compile", "add.py:add", "-s", _HINTED, "-t", "amd-rdna3"), r"add\.spv and add\.json"),
        Step(_spirv("disassemble", "add.spv"), "OpEntryPoint"),
        Step(_spirv("inspect", "add.py:add", "-s", _HINTED, "-t", "intel-xe"), r"add\.html"),
    ),
    "application developer": (
        Step(_spirv("compile", "add.py:add", "-s", _HINTED, "-t", "device", "--bundle", "kernels.tsb"), "add for"),
        Step(_spirv("stubs", "kernels.tsb"), r"kernels\.hpp"),
        Step(("python", "app.py"), "right"),
        Step(_spirv("include"), "include"),
    ),
}


@dataclass(frozen=True)
class Taken:
    """What a step took, in seconds, and what it did otherwise than it should; "" if nothing."""

    step: Step
    clock: float
    processor: float
    fault: str


def walk(name: str, folder: Path) -> list[Taken]:
    """Runs the steps of a walk in an empty folder, to the first one that goes otherwise."""
    for file, text in _FILES.items():
        (folder / file).write_text(text, encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TRITON_")}
    environment |= {"TRITON_CACHE_DIR": str(folder / "cache"), "TRITON_DEFAULT_FP_FUSION": "1"}
    environment["PYTHONPATH"] = ""
    for kept in ("TRITON_SPIRV_DEVICE", "TRITON_SPIRV_BACKEND"):
        if kept in os.environ:
            environment[kept] = os.environ[kept]
    taken: list[Taken] = []
    for step in WALKS[name]:
        taken.append(_take(step, folder, environment))
        if taken[-1].fault:
            break
    return taken


def _take(step: Step, folder: Path, environment: dict[str, str]) -> Taken:
    program, *words = step.command
    run = [sys.executable] if program == "python" else [sys.executable, "-m", "triton.backends.spirv.cli"]
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        [*run, *words],
        cwd=folder,
        env=environment | dict(step.variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    clock, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    fault = ""
    if done.returncode != step.status:
        fault = f"status {done.returncode} instead of {step.status}: {done.stdout[-2000:]}"
    elif not re.search(step.prints, done.stdout):
        fault = f"it does not print {step.prints!r}: {done.stdout[-2000:]}"
    return Taken(step, clock, processor, fault)


def main() -> int:
    """Runs walks and prints their steps."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.walks", description=__doc__)
    parser.add_argument("walks", nargs="*", metavar="WALK", help=f"of {', '.join(WALKS)} (default: all)")
    names = parser.parse_args().walks or list(WALKS)
    if unknown := [name for name in names if name not in WALKS]:
        parser.error(f"there is no walk {unknown[0]!r}; there are {', '.join(WALKS)}")
    failed = False
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            taken = walk(name, Path(folder))
        whole = sum(one.clock for one in taken), sum(one.processor for one in taken)
        print(f"{name}: {whole[0]:.1f} s, {whole[1]:.1f} s of processor time")
        for one in taken:
            print(f"  {one.clock:6.1f} s {one.processor:6.1f} s  {one.step}")
            if one.fault:
                failed = True
                print(f"         WRONG: {one.fault}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
