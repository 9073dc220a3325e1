"""The command line: see the package."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from .processes import CASES, Task, alternate, spawn, work
from .report import BACKENDS, chart, rows, table


def _check(backends: list[str], task: Task) -> int:
    """Prints the error of each configuration of each kernel. 1 where one is wrong or fails."""
    wrong = False
    for backend in backends:
        result = spawn(backend, task)
        wrong |= "failure" in result
        print(f"{BACKENDS[backend]}: {result['device'] or result.get('failure')}")
        for case in result["results"]:
            for entry in case["tried"] or [case]:
                failure = entry.get("failure")
                wrong |= failure is not None
                print(f"  {case['name']:40} {failure or format(entry['error'], '.2e'):>10}  {entry.get('config', '')}")
    return int(wrong)


def main() -> int:
    """Measure, print, write. 1 where a backend gave no figures at all, or a result is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description="kernels through both backends")
    every = [*CASES, "launches"]
    parser.add_argument("--only", default=",".join(every), help=f"some of {', '.join(every)}")
    parser.add_argument("--backends", default="spirv,nvidia", help="some of spirv, nvidia")
    parser.add_argument(
        "--json", type=Path, help="write the figures there, and beside it each backend's after each kernel"
    )
    parser.add_argument("--chart", type=Path, help="write an SVG there")
    parser.add_argument("--seconds", type=float, default=60, help="after which no further configuration is tried")
    parser.add_argument("--check", action="store_true", help="only compare every configuration's result with float64")
    parser.add_argument("--small", action="store_true", help="one small configuration of each kernel")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        given = json.loads(options.worker)
        work(given["backend"], Task(**given["task"]), Path(given["target"]))
        return 0
    names, backends = options.only.split(","), options.backends.split(",")
    unknown = [name for name in names if name not in every] + [name for name in backends if name not in BACKENDS]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}")
    kernels = tuple(name for name in names if name != "launches")
    task = Task(kernels, options.seconds, not options.check, options.small)
    if options.check:
        return _check(backends, task)
    kept = {name: options.json.with_suffix(f".{name}.json") if options.json else None for name in backends}
    found = {backend: spawn(backend, task, kept[backend]) for backend in backends} if kernels else {}
    if "launches" in names:
        for backend, result in alternate(backends, task).items():
            known = found.setdefault(backend, {**result, "results": []})
            known["results"] += result["results"]
            if "failure" in result:
                known["failure"] = result["failure"]
    lines = rows(found)
    print(table(lines, found))
    if options.json:
        options.json.write_text(json.dumps({"figures": lines, "backends": found}, indent=1, ensure_ascii=False) + "\n")
    if options.chart:
        options.chart.write_text(chart(lines))
    return int(any("failure" in result for result in found.values()))


if __name__ == "__main__":
    sys.exit(main())
