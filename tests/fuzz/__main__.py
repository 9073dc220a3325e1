"""``python -m tests.fuzz --seeds A:B``: so many random kernels of each sort; what `python3 -m tools fuzz` runs."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.fuzz import floats, tile_runs, tiles
from tests.fuzz.minimising import minimised
from tests.fuzz.programs import FOOTER, HEADER, generate
from tests.fuzz.running import compare

#: Programs that one process of the interpreter computes.
BATCH = 16

#: A kernel that takes longer to compile and run is shown.
SLOW_SECONDS = 10.0


def seeds(text: str) -> range:
    """``A:B`` as a range. Raises argparse's error for anything else."""
    first, separator, end = text.partition(":")
    if not separator or not first.isdecimal() or not end.isdecimal() or int(first) >= int(end):
        raise argparse.ArgumentTypeError(f"must be A:B with A smaller than B, not {text!r}")
    return range(int(first), int(end))


def _programs(chosen: range) -> Iterator[tuple[str, int, str, str, float]]:
    for start in range(chosen.start, chosen.stop, BATCH):
        batch = [generate(seed) for seed in range(start, min(start + BATCH, chosen.stop))]
        with tempfile.TemporaryDirectory() as folder:
            outcomes = compare(batch, Path(folder))
        for outcome in outcomes:
            small = minimised(outcome, compare) if outcome.fault else outcome
            source = HEADER + small.program.source + FOOTER
            yield "programs", outcome.program.number, outcome.fault, source, outcome.seconds


def _tiles(chosen: range) -> Iterator[tuple[str, int, str, str, float]]:
    for seed in chosen:
        with tempfile.TemporaryDirectory() as folder:
            tile = tiles.generate(seed)
            outcomes = tile_runs.compare([tile], Path(folder))
        if not outcomes:
            yield "tiles", seed, "it does not run as Python", tiles.HEADER + tile.source, 0.0
        for outcome in outcomes:
            small = minimised(outcome, tile_runs.compare) if outcome.fault else outcome
            yield "tiles", seed, outcome.fault, tiles.HEADER + small.program.source, outcome.seconds


def _floats(chosen: range) -> Iterator[tuple[str, int, str, str, float]]:
    with tempfile.TemporaryDirectory() as folder:
        for seed in chosen:
            for bfloat in (False, True):
                outcome = floats.run(seed, bfloat, Path(folder))
                yield "bfloat16" if bfloat else "float32", seed, outcome.fault, outcome.source, outcome.seconds


def main(arguments: list[str]) -> int:
    """Runs the seeds and says what failed; 1 where something did."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seeds", type=seeds, default=range(100), metavar="A:B")
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"))
    options = parser.parse_args(arguments)
    began, counts, failures = time.monotonic(), Counter[str](), 0
    slowest = (0.0, "none")
    for results in (_programs(options.seeds), _tiles(options.seeds), _floats(options.seeds)):
        for sort, seed, fault, source, seconds in results:
            counts[sort] += 1
            slowest = max(slowest, (seconds, f"{sort} {seed}"))
            if seconds > SLOW_SECONDS:
                print(f"slow: {sort} {seed} took {seconds:.1f} s", flush=True)
            if fault:
                failures += 1
                options.out.mkdir(parents=True, exist_ok=True)
                path = options.out / f"{sort}_{seed}.py"
                path.write_text(source, encoding="utf-8")
                print(f"FAILED: {sort} {seed}: {fault}\n  {path}", flush=True)
    numbers = ", ".join(f"{count} {sort}" for sort, count in counts.items())
    print(
        f"{sum(counts.values())} kernels ({numbers}) in {time.monotonic() - began:.0f} s, {failures} failed; "
        f"the slowest, {slowest[1]}, took {slowest[0]:.1f} s"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
