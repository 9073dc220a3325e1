"""Each backend in its own process."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

from . import attention, products, rows
from .cases import SMALL, Case, CudaMemory, Sizes, SpirvMemory
from .launches import launches
from .measuring import measure

#: Processes of each backend that measure launches, turn about: what a process has at its start, such as where its
#: memory lies, moves these figures more than anything within it.
LAUNCH_ROUNDS = 5

CASES: dict[str, Callable[[Any, Sizes], Case]] = {
    "add": rows.vector_add,
    "softmax": rows.softmax,
    "layer_norm": rows.layer_norm,
    "matmul_fp32": products.fp32,
    "matmul_tf32": products.tf32,
    "matmul_fp16": products.fp16,
    "matmul_fp16_large": products.fp16_large,
    "matmul_bf16": products.bf16,
    "matmul_bf16_large": products.bf16_large,
    "matmul_int8": products.int8,
    "attention": attention.forward,
    "attention_128": partial(attention.forward, depth=128),
    "attention_causal": partial(attention.forward, causal=True),
    "attention_128_causal": partial(attention.forward, depth=128, causal=True),
    "attention_backward": attention.backward,
    "attention_backward_causal": partial(attention.backward, causal=True),
}


@dataclass(frozen=True)
class Task:
    """What a process does. ``seconds``: after which no further configuration of a kernel is tried; not ``timed``:
    results are only compared; ``small``: one configuration of each kernel, on small arrays."""

    names: tuple[str, ...]
    seconds: float = 60.0
    timed: bool = True
    small: bool = False


def _smallest(configs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    def elements(config: dict[str, Any]) -> int:
        return prod(value for name, value in config.items() if name.startswith("BLOCK"))

    return [min(configs, key=elements)]


def work(backend: str, task: Task, target: Path) -> None:
    """Does a task in this process, and writes the figures."""
    memory = SpirvMemory() if backend == "spirv" else CudaMemory()
    results = []
    for name in task.names:
        try:
            if name == "launches":
                results += launches(memory)
                continue
            case = CASES[name](memory, SMALL if task.small else Sizes())
            if task.small:
                case = replace(case, configs=_smallest(case.configs))
            results.append(measure(case, memory, task.seconds, task.timed))
        except Exception as error:
            results.append({"name": name, "unit": "", "failure": f"{type(error).__name__}: {error}", "tried": []})
        finally:
            partial = {"backend": backend, "device": memory.device, "results": results}
            target.write_text(json.dumps(partial))  # what was found so far, should this process end early


def spawn(backend: str, task: Task, kept: Path | None = None) -> dict[str, Any]:
    """The figures of a process that does a task. It writes them to ``kept`` after each kernel, where that is given."""
    with tempfile.TemporaryDirectory() as folder:
        target = kept or Path(folder) / "figures.json"
        target.unlink(missing_ok=True)
        fused = {"TRITON_DEFAULT_FP_FUSION": "1"}  # releases of Triton have other defaults
        environment = {**fused, **os.environ, "TRITON_DEFAULT_BACKEND": backend}
        environment.pop("TRITON_SPIRV_BACKEND", None)  # it would choose SPIR-V for both
        worker = json.dumps({"backend": backend, "task": asdict(task), "target": str(target)})
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.gpu", "--worker", worker],
            env=environment,
            cwd=Path(__file__).parents[2],
            check=False,
        )
        found: dict[str, Any] = {"backend": backend, "device": "", "results": []}
        if target.exists():
            found = json.loads(target.read_text())
        if done.returncode or not target.exists():
            found["failure"] = f"its process ended with {done.returncode}"
        return found


def _failed(result: dict[str, Any]) -> bool:
    return "failure" in result or any("failure" in entry for entry in result["results"])


def alternate(backends: list[str], task: Task) -> dict[str, dict[str, Any]]:
    """Launches in LAUNCH_ROUNDS processes of each backend, turn about: the median of each figure, and all of them."""
    found: dict[str, dict[str, Any]] = {}
    figures: dict[tuple[str, str], list[float]] = {}
    for _ in range(LAUNCH_ROUNDS):
        for backend in backends:
            result = spawn(backend, replace(task, names=("launches",)))
            for entry in result["results"]:
                if "rate" in entry:
                    figures.setdefault((backend, entry["name"]), []).append(entry["rate"])
            # A failure of any of the processes is what is told.
            if not _failed(found.get(backend, {"results": []})):
                found[backend] = result
    for (backend, name), values in figures.items():
        for entry in found[backend]["results"]:
            if entry["name"] == name and "rate" in entry:
                entry["rate"], entry["rounds"] = statistics.median(values), values
    return found
