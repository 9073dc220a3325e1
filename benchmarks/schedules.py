"""How long kernels take by each schedule that they have, beside what is expected (backend/planning/cost.py).

    python -m benchmarks.schedules [--only matmul_fp16,attention] [--json FILE]

Every configuration of benchmarks.gpu's kernels is compiled by every schedule by which it fits on the device, checked
against float64, and timed. A schedule's line has its time, how many times as long as the best one's that is, and how
many times were expected. The factors of cost.py are fitted to these figures. Below each configuration stands what the
choice costs: the time by the schedule that is chosen, over the best one's. Schedules that change nothing of a kernel,
or by which it does not fit, have no line.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from unittest import mock

from triton import knobs
from triton.backends.spirv import stages
from triton.backends.spirv.planning.cost import Candidate
from triton.backends.spirv.transforms.schedule import Schedule
from triton.runtime.jit import JITFunction

from benchmarks.gpu import attention, products, rows
from benchmarks.gpu.cases import SMALL, Case, Sizes, SpirvMemory
from benchmarks.gpu.measuring import measure
from benchmarks.gpu.processes import CASES
from examples import flash_attention

_MODULES = (attention, products, rows, flash_attention)


def _forget() -> None:
    """Compiled kernels, and which do not fit."""
    stages._TOO_LARGE.clear()
    for function in (value for module in _MODULES for value in vars(module).values()):
        if isinstance(function, JITFunction):
            function.device_caches.clear()
            function.relaunch = None


@contextlib.contextmanager
def only(schedule: Candidate | None) -> Iterator[list[Candidate]]:
    """Kernels are laid out by one schedule alone, or by any where it is None. Yields the last kernel's schedules."""
    found: list[Candidate] = []
    listed = stages.candidates

    def candidates(facts: Any) -> list[Candidate]:
        found[:] = listed(facts)
        return found if schedule is None else [one for one in found if one.schedule == schedule.schedule]

    _forget()
    with (
        tempfile.TemporaryDirectory() as folder,
        knobs.cache.scope(),
        mock.patch.object(stages, "candidates", candidates),
    ):
        knobs.cache.dir = folder
        yield found
    _forget()


def by_schedule(case: Case, config: dict[str, Any], memory: Any) -> Iterator[dict[str, Any]]:
    """A row for each schedule by which a configuration fits: what is expected, and ``ms``. The last is what the one has
    that is chosen. Raises RuntimeError for a wrong result."""
    one = replace(case, configs=[config])
    with only(None) as known:
        chosen = measure(one, memory, 1e9)["tried"][0]
    for candidate in list(known):
        with only(candidate):
            tried = measure(one, memory, 1e9)["tried"][0]
        if "OutOf" in tried.get("failure", ""):
            continue
        if "failure" in tried:
            raise RuntimeError(f"{case.name} {config} {candidate.schedule.summary()}: {tried['failure']}")
        figures = {"ms": tried["ms"], "first_call_s": tried["first_call_s"]}
        yield {"schedule": asdict(candidate.schedule), "expected": candidate.expected, **figures}
    yield {"ms": chosen.get("ms")}


def main(arguments: Sequence[str]) -> int:
    """Measures, prints, writes. 1 where a configuration fits by no schedule."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.schedules", description=__doc__)
    parser.add_argument("--only", default="matmul_fp32,matmul_fp16,attention,attention_128")
    parser.add_argument("--json", type=Path, help="write the figures there after each configuration")
    parser.add_argument("--small", action="store_true", help="one configuration of each kernel, on small arrays")
    options = parser.parse_args(arguments)
    memory, figures, fits = SpirvMemory(), list[dict[str, Any]](), True
    print(memory.device)
    for name in options.only.split(","):
        case = CASES[name](memory, SMALL if options.small else Sizes())
        for config in case.configs[-1:] if options.small else case.configs:
            *found, chosen = by_schedule(case, config, memory)
            figures.append({"kernel": case.name, "config": config, "schedules": found, "chosen": chosen})
            best = min((row["ms"] for row in found), default=0.0)
            print(f"{case.name} {config}")
            for row in found:
                summary = Schedule(**row["schedule"]).summary()
                print(f"  {row['ms']:9.4f} ms {row['ms'] / best:6.2f} {row['expected']:6.2f}  {summary}")
            fits = fits and bool(found)
            if found:
                print(f"  {chosen['ms'] / best:.2f} of the best one's time by the schedule that is chosen", flush=True)
            if options.json:
                options.json.write_text(json.dumps({"device": memory.device, "figures": figures}, indent=1) + "\n")
    return int(not fits)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
