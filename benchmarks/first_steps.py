"""What the first steps of a training script cost with an empty cache, and which kernels they compile.

A transformer of four layers of width 256 trains under autocast to bfloat16, with batches of 1 to 16 sequences of 5 to
500 words, forward, backward and AdamW. It runs in a new process with an empty cache, then in a second one with the
cache that the first left. Printed are the seconds of making the model, of the first step and of all steps, by the clock
and by processor time, and what launches waited for the driver to load kernels; the entries that the first process left
in Triton's cache; and each function that was compiled with the seconds of it, its variants, and what differs between
them: types, constants, what arguments are known to be, options. Variants whose SPIR-V another one has, too, are
counted: nothing that differs between those matters.

    python -m benchmarks.first_steps [--steps N] [--width W] [--layers L] [--batch N] [--length N] [--dropout P] \
[--device NAME] [--each]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

_WORDS, _HEAD = 1000, 64


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _since(start: tuple[float, float]) -> list[float]:
    return [now - then for now, then in zip(_clocks(), start, strict=True)]


class Recorder:
    """What Triton compiles, a line of each: its function, what it was compiled for, its time and its SPIR-V."""

    def __init__(self) -> None:
        self.kernels: list[dict[str, Any]] = []

    def __call__(self, **told: Any) -> None:
        if told["cache_hit"]:
            return
        source, metadata, times = told["src"], told["metadata"], told["times"]
        names = source.fn.arg_names
        signature = {**source.signature}
        known = {names[place[0]]: "".join(sorted(what for what, _ in found)) for place, found in source.attrs.items()}
        constants = {names[place[0]]: str(value) for place, value in source.constants.items()}
        binary = next((path for name, path in told["metadata_group"].items() if name.endswith(".spv")), None)
        stages = {"to TTIR": times.ir_initialization, **dict(times.lowering_stages), "stored": times.store_results}
        self.kernels.append(
            {
                "name": source.name,
                "source": hashlib.sha256(source.fn.src.encode()).hexdigest(),
                "types": {name: type_ for name, type_ in signature.items() if type_ != "constexpr"},
                "constants": constants,
                "known": known,
                "options": {name: metadata.get(name) for name in ("num_warps", "enable_fp_fusion")},
                "stages": stages,
                "code": hashlib.sha256(Path(binary).read_bytes()).hexdigest() if binary else "",
            }
        )


def _timed_loads() -> list[float]:
    """The seconds by the clock that launches wait while the driver loads each kernel from now on."""
    from triton.backends.spirv.runtime.kernel import Kernel

    loads: list[float] = []
    made = Kernel.__init__

    def timed(self: Any, *args: Any, **kwargs: Any) -> None:
        start = time.perf_counter()
        made(self, *args, **kwargs)
        loads.append(time.perf_counter() - start)

    Kernel.__init__ = timed  # type: ignore[method-assign]
    return loads


def train(options: argparse.Namespace) -> dict[str, Any]:
    """The steps, in this process."""
    import torch
    from torch import nn
    from torch.nn import functional
    from triton import knobs

    recorder = Recorder()
    knobs.compilation.listener = recorder
    loads = _timed_loads() if options.device == "spirv" else []
    device, width = options.device, options.width
    start = _clocks()
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(
        width, max(1, width // _HEAD), 4 * width, options.dropout, "gelu", batch_first=True, norm_first=True
    )
    model = nn.Sequential(
        nn.Embedding(_WORDS, width),
        nn.TransformerEncoder(layer, options.layers, enable_nested_tensor=False),
        nn.LayerNorm(width),
        nn.Linear(width, _WORDS),
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    draw = random.Random(0)
    told: dict[str, Any] = {"made": _since(start), "losses": []}
    start = _clocks()
    for step in range(options.steps):
        batch, length = draw.randint(1, options.batch), draw.randint(5, options.length)
        words = torch.randint(_WORDS, (batch, length + 1)).to(device)
        optimizer.zero_grad()
        with torch.autocast(device, torch.bfloat16):
            scores = model(words[:, :-1])
            loss = functional.cross_entropy(scores.flatten(0, 1), words[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        told["losses"].append(loss.item())
        if not step:
            told["first"] = _since(start)
            told["kernels of the first"] = len(recorder.kernels)
    return {**told, "all": _since(start), "loads": loads, "kernels": recorder.kernels}


def _differing(variants: list[dict[str, Any]]) -> str:
    """What is not the same in all of them, with the number of its values."""
    told = []
    for part in ("types", "constants", "known", "options"):
        names = dict.fromkeys(name for one in variants for name in one[part])
        values = {name: {str(one[part].get(name)) for one in variants} for name in names}
        found = [f"{name} {'/'.join(sorted(kinds))}" for name, kinds in values.items() if len(kinds) > 1]
        told += [f"{part}: {', '.join(found)}"] if found else []
    return "; ".join(told)


def _print_kernels(kernels: list[dict[str, Any]], each: bool) -> None:
    functions: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for one in kernels:
        functions[one["name"], one["source"]].append(one)
    spent = {key: sum(sum(one["stages"].values()) for one in ones) / 1e6 for key, ones in functions.items()}
    alike = len(kernels) - len({one["code"] for one in kernels})
    print(f"{len(kernels)} kernels of {len(functions)} functions, {alike} of which have the SPIR-V of another")
    stages: dict[str, float] = defaultdict(float)
    for one in kernels:
        for name, micros in one["stages"].items():
            stages[name] += micros / 1e6
    print("seconds: " + ", ".join(f"{name} {seconds:.2f}" for name, seconds in stages.items()))
    print(f"{'function':44}{'seconds':>8}{'variants':>9}{'codes':>6}  what differs")
    for key in sorted(functions, key=lambda key: -spent[key]):
        ones = functions[key]
        codes = len({one["code"] for one in ones})
        print(f"{key[0]:44}{spent[key]:8.2f}{len(ones):9}{codes:6}  {_differing(ones)}")
        if each:
            for one in ones:
                seconds = sum(one["stages"].values()) / 1e6
                print(f"    {seconds:.2f} {one['types']} {one['constants']} {one['known']} {one['options']}")


def main() -> None:
    """Runs the two processes and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--batch", type=int, default=16, help="the most sequences of a batch")
    parser.add_argument("--length", type=int, default=500, help="the most words of a sequence")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--device", default="spirv", help="torch's name of it: spirv, cuda or cpu")
    parser.add_argument("--each", action="store_true", help="print each variant")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)  # train in this process
    options = parser.parse_args()
    if options.inside:
        print(json.dumps(train(options)))
        return
    with tempfile.TemporaryDirectory() as folder:
        names = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "MESA_SHADER_CACHE_DIR", "__GL_SHADER_DISK_CACHE_PATH")
        environment = {**os.environ, **dict.fromkeys(names, folder)}
        if options.device == "spirv":
            environment.setdefault("TRITON_SPIRV_TORCH_DEVICE", "1")
        command = [sys.executable, "-m", "benchmarks.first_steps", *sys.argv[1:], "--inside"]
        found = []
        for cache in ("empty", "kept"):
            start = time.perf_counter()
            ran = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
            whole = time.perf_counter() - start
            found.append(json.loads(ran.stdout.splitlines()[-1]))
            times = "; ".join(
                f"{name} {found[-1][part][0]:.2f} s, of the processor {found[-1][part][1]:.2f}"
                for name, part in (("model", "made"), ("first step", "first"), (f"{options.steps} steps", "all"))
            )
            loads = found[-1]["loads"]
            driver = (
                f"; {len(loads)} loaded by the driver, which launches waited {sum(loads):.2f} s for" if loads else ""
            )
            print(f"{cache} cache: {times}; the process {whole:.1f} s", flush=True)
            print(f"    {len(found[-1]['kernels'])} kernels compiled{driver}", flush=True)
            if cache == "empty":
                entries, soon = len(os.listdir(folder)), found[0]["kernels of the first"]
                print(f"entries in the cache: {entries}; {soon} kernels by the first step")
        print("losses " + " ".join(f"{loss:.4f}" for loss in found[0]["losses"]))
        _print_kernels(found[0]["kernels"], options.each)


if __name__ == "__main__":
    main()
