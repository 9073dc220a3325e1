"""``python -m tests.fuzz --seeds A:B``: so many random kernels of each sort; what `python3 -m tools fuzz` runs."""

import argparse
import contextlib
import functools
import itertools
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from triton.backends.spirv import runtime, settings
from triton.backends.spirv.runtime.cpu.open_device import OpenCpuDevice

from benchmarks.kernel_times import KernelTimes, Observer, table
from tests.fuzz import costs, floats, keys, launches, metamorphic, orders, passes, scalars, steps, tile_runs, tiles
from tests.fuzz.families import FAMILIES
from tests.fuzz.minimising import Small, minimised
from tests.fuzz.programs import FOOTER, HEADER, generate
from tests.fuzz.running import Found, compare
from tests.fuzz.steps import Family

#: Programs that one process of the interpreter computes.
BATCH = 16

#: Seeds of one sort before it is the next one's turn; those of a single sort are in one piece.
ROUND = 4

#: Smaller programs that it computes at once.
MINIMISED = 16

#: Errors of a kernel that the race check makes too long for Mesa's CPU driver, or too large.
UNCHECKED = ("LoopLimitExceeded", "OutOfSharedMemory")

#: A kernel whose compilation and run take more processor time is shown: a busy machine makes none of them slow.
SLOW_SECONDS = 10.0


def seeds(text: str) -> range:
    """``A:B`` as a range. Raises argparse's error for anything else."""
    first, separator, end = text.partition(":")
    if not separator or not first.isdecimal() or not end.isdecimal() or int(first) >= int(end):
        raise argparse.ArgumentTypeError(f"must be A:B with A smaller than B, not {text!r}")
    return range(int(first), int(end))


@dataclass(frozen=True)
class Result:
    """What became of a kernel. ``fault`` is empty if it computed what was expected; ``source`` is the smallest
    kernel that was found to fail, ``ended`` whether there was time to find it; ``seconds``: of processor time."""

    sort: str
    seed: int
    fault: str
    source: str
    seconds: float
    ended: bool = True


def _programs(chosen: range, minimising: float) -> Iterator[Result]:
    for start in range(chosen.start, chosen.stop, BATCH):
        batch = [generate(seed) for seed in range(start, min(start + BATCH, chosen.stop))]
        with tempfile.TemporaryDirectory() as folder:
            outcomes = compare(batch, Path(folder))
        for outcome in outcomes:
            small = minimised(outcome, compare, minimising, MINIMISED) if outcome.fault else Small(outcome, True)
            source = HEADER + small.outcome.program.source + FOOTER
            number = outcome.program.number
            yield Result("programs", number, outcome.fault, source, outcome.seconds, small.ended)


def _tiles(chosen: range, minimising: float) -> Iterator[Result]:
    for seed in chosen:
        with tempfile.TemporaryDirectory() as folder:
            tile = tiles.generate(seed)
            outcomes = tile_runs.compare([tile], Path(folder))
        if not outcomes:
            yield Result("tiles", seed, "it does not run as Python", tiles.HEADER + tile.source, 0.0)
        for outcome in outcomes:
            small = minimised(outcome, tile_runs.compare, minimising) if outcome.fault else Small(outcome, True)
            source = tiles.HEADER + small.outcome.program.source
            yield Result("tiles", seed, outcome.fault, source, outcome.seconds, small.ended)


def _floats(chosen: range, minimising: float) -> Iterator[Result]:
    with tempfile.TemporaryDirectory() as folder:
        for seed in chosen:
            for bfloat in (False, True):
                outcome = floats.run(seed, bfloat, Path(folder))
                yield Result("bfloat16" if bfloat else "float32", seed, outcome.fault, outcome.source, outcome.seconds)


def _family(family: Family, chosen: range, minimising: float) -> Iterator[Result]:
    with tempfile.TemporaryDirectory() as folder:
        for seed in chosen:
            outcome = steps.run(family, seed, Path(folder), minimising)
            yield Result(family.name, seed, outcome.fault, outcome.source, outcome.seconds)


def _each(sort: str, run: Callable[[int, Path], Found], chosen: range, minimising: float) -> Iterator[Result]:
    for seed in chosen:
        with tempfile.TemporaryDirectory() as folder:
            found = run(seed, Path(folder))
        yield Result(sort, seed, found.fault, found.source, found.seconds)


def _races(chosen: range, minimising: float) -> Iterator[Result]:
    """Kernels on tiles, of 512 elements at most, in which accesses to shared memory are checked; on the CPU device and
    emulated ones also accesses to device memory."""
    word = settings.ALL if isinstance(runtime.current().opened, OpenCpuDevice) else "1"
    for seed in chosen:
        with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, TRITON_SPIRV_CHECK_RACES=word):
            outcomes = tile_runs.compare([tiles.generate(seed)], Path(folder))
        for outcome in outcomes:
            fault = "" if outcome.fault.startswith(UNCHECKED) else outcome.fault
            yield Result("races", seed, fault, tiles.HEADER + outcome.program.source, outcome.seconds)


def _costs(chosen: range, minimising: float) -> Iterator[Result]:
    """A seed is an operation with some number of warps: each once at most."""
    pairs = list(itertools.product(costs.OPERATIONS, costs.WARPS))
    for seed in chosen[: len(pairs)]:
        name, warps = pairs[seed % len(pairs)]
        with tempfile.TemporaryDirectory() as folder:
            outcome = costs.run(name, warps, Path(folder))
        fault = f"{name}, {warps} warps: {outcome.fault}" if outcome.fault else ""
        yield Result("costs", seed, fault, "", sum(outcome.seconds))


#: What runs the seeds of a sort, by its name.
SORTS: dict[str, Callable[[range, float], Iterator[Result]]] = {
    "programs": _programs,
    "tiles": _tiles,
    "floats": _floats,
    **{
        sort: functools.partial(_each, sort, run)
        for sort, run in {
            "metamorphic": metamorphic.run,
            "values": metamorphic.compared,  # kernels by the reference against the usual ones
            "launches": launches.run,
            "passes": passes.run,
            "keys": lambda seed, folder: keys.run(seed),
            "scalars": scalars.run,
            "orders": orders.run,
        }.items()
    },
    "races": _races,
    "costs": _costs,
    **{family.name: functools.partial(_family, family) for family in FAMILIES},
}


#: Sorts that have so many kernels, of all seeds together.
_FEW = {"costs": len(costs.OPERATIONS) * len(costs.WARPS)}


def results(sorts: Sequence[str], chosen: range, minimising: float) -> Iterator[Result]:
    """What becomes of the kernels, some of each sort in turn: a run that is stopped has kernels of all sorts."""
    step = ROUND if len(sorts) > 1 else len(chosen)
    for start in range(chosen.start, chosen.stop, step):
        batch = range(start, min(start + step, chosen.stop))
        for sort in sorts:
            there = range(start, min(batch.stop, chosen.start + _FEW.get(sort, len(chosen))))
            if there:
                yield from SORTS[sort](there, minimising)


@contextlib.contextmanager
def _stopped() -> Iterator[None]:
    """Ctrl-C ends the block."""
    try:
        yield
    except KeyboardInterrupt:
        print("stopped", flush=True)


def main(arguments: list[str]) -> int:
    """Runs the seeds and says what failed; 1 where something did."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seeds", type=seeds, metavar="A:B", help="of each sort; 0:100")
    parser.add_argument("--kernels", type=int, metavar="N", help="stop after so many, of all sorts together")
    parser.add_argument("--sorts", nargs="+", choices=list(SORTS), default=list(SORTS), metavar="SORT")
    parser.add_argument("--minimise-seconds", type=float, default=120.0, metavar="S")
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--times", type=int, default=0, metavar="N", help="show the N kernels that took longest")
    options = parser.parse_args(arguments)
    chosen = options.seeds or range(options.kernels or 100)
    found = itertools.islice(results(options.sorts, chosen, options.minimise_seconds), options.kernels)
    observer, kernels = Observer(), list[KernelTimes]()
    began, counts, failures = time.monotonic(), Counter[str](), 0
    slowest = (0.0, "none")
    watching = observer.watching() if options.times else contextlib.nullcontext()
    with watching, _stopped():
        for result in found:
            name = f"{result.sort} {result.seed}"
            for times in observer.taken():  # programs come a batch at a time, with the seed in their names
                times.place = result.sort if result.sort == "programs" else name
                kernels.append(times)
            counts[result.sort] += 1
            slowest = max(slowest, (result.seconds, name))
            if result.seconds > SLOW_SECONDS:
                print(f"slow: {name} took {result.seconds:.1f} s", flush=True)
            if result.fault:
                failures += 1
                options.out.mkdir(parents=True, exist_ok=True)
                path = options.out / f"{result.sort}_{result.seed}.py"
                why = ascii(result.fault[:1000]).strip("'\"")
                path.write_text(f"# {why}\n{result.source}", encoding="utf-8")
                rest = "" if result.ended else f" (the smallest one found in {options.minimise_seconds:g} s)"
                print(f"FAILED: {name}: {result.fault}\n  {path}{rest}", flush=True)
    numbers = ", ".join(f"{count} {sort}" for sort, count in counts.items())
    print(
        f"{sum(counts.values())} kernels ({numbers}) in {time.monotonic() - began:.0f} s, {failures} failed; "
        f"the slowest, {slowest[1]}, took {slowest[0]:.1f} s of processor time"
    )
    if options.times:
        print(table(kernels, options.times))
    return 1 if failures else 0


if __name__ == "__main__":
    os.environ["TRITON_SPIRV_BACKEND"] = "1"  # its kernels are for this backend, whatever else is there
    sys.exit(main(sys.argv[1:]))
