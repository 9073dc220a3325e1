"""The CPU time of ``import triton`` in this environment against stock Triton's in another.

    python -m venv /tmp/stock && /tmp/stock/bin/pip install triton==3.9.0
    python benchmarks/import_time.py /tmp/stock/bin/python [--runs N]

Both run turn about, from compiled bytecode. Prints the smallest and the median time of each in milliseconds, less what
a Python that imports nothing takes. Exits with 1 where the smallest is more than 5 ms above stock Triton's. Other
packages of the two environments count too: Triton looks for backends among them.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys

_LIMIT_MS = 5.0


def cpu_ms(python: str, script: str) -> float:
    """User and system time of one process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([python, "-c", script], check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stock", help="the Python interpreter of an environment with stock Triton")
    parser.add_argument("--runs", type=int, default=30)
    arguments = parser.parse_args()
    pythons = {"stock": arguments.stock, "this": sys.executable}
    for python in pythons.values():
        cpu_ms(python, "import triton")  # writes the bytecode
    times: dict[str, list[float]] = {name: [] for name in pythons}
    empty: dict[str, list[float]] = {name: [] for name in pythons}
    for _ in range(arguments.runs):
        for name, python in pythons.items():
            times[name].append(cpu_ms(python, "import triton"))
            empty[name].append(cpu_ms(python, ""))
    for name in pythons:
        start = min(empty[name])
        print(f"{name}: {min(times[name]) - start:.0f} ms, median {statistics.median(times[name]) - start:.0f} ms")
    return int(min(times["this"]) - min(times["stock"]) > _LIMIT_MS)


if __name__ == "__main__":
    sys.exit(main())
