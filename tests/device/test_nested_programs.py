"""Random kernels compute here what upstream's interpreter computes; `python3 -m tools fuzz` runs more of them."""

import re
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.fuzz import tile_runs, tiles
from tests.fuzz.minimising import minimised
from tests.fuzz.programs import Program, generate
from tests.fuzz.running import Outcome, compare

SEEDS = range(24)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Outcome[Program]]:
    """What became of every kernel."""
    found = compare([generate(seed) for seed in SEEDS], tmp_path_factory.mktemp("nested-programs"))
    return {outcome.program.number: outcome for outcome in found}


@pytest.mark.parametrize("seed", SEEDS)
def test_random_program(outcomes: dict[int, Outcome[Program]], seed: int) -> None:
    assert not outcomes[seed].fault, f"{outcomes[seed].fault}\n{outcomes[seed].program.source}"


@pytest.mark.parametrize("seed", [2015, 2024, 2028, 2071, 2083, 2102])
def test_random_tile(tmp_path: Path, seed: int) -> None:
    (outcome,) = tile_runs.compare([tiles.generate(seed)], tmp_path)
    assert not outcome.fault, f"{outcome.fault}\n{outcome.program.source}"


def test_a_failing_program_is_made_small() -> None:
    """With a device that gets every multiplication wrong."""

    def wrong(programs: Sequence[Program], _: Path) -> list[Outcome[Program]]:
        def well_formed(program: Program) -> bool:
            text = "\n".join((*program.head, *program.body, *program.stores))
            used = set(re.findall(r"\bv\d+\b", text))
            return all(re.search(rf"\b{name} (=|\+=) |for {name} in", text) for name in used)

        return [
            Outcome(program, "wrong" if " * " in "".join(program.body) else "", False, 0.0)
            for program in programs
            if well_formed(program)
        ]

    program = next(p for p in map(generate, SEEDS) if " * " in "".join(p.body) and len(p.body) > 5)
    start = Outcome(program, "wrong", False, 0.0)
    small = minimised(start, wrong).outcome
    assert " * " in "".join(small.program.body) and small.program.number == program.number
    assert len(small.program.body) <= 2 and len(small.program.stores) == 1


def test_minimising_ends_in_time_with_the_smallest_program_so_far() -> None:
    """With a device that gets everything wrong and is slow about it."""

    def slow(programs: Sequence[Program], _: Path) -> list[Outcome[Program]]:
        time.sleep(0.05)
        return [Outcome(program, "wrong", False, 0.0) for program in programs]

    start = Outcome(max(map(generate, SEEDS), key=lambda program: len(program.body)), "wrong", False, 0.0)
    began = time.monotonic()
    small = minimised(start, slow, seconds=0.2)
    assert not small.ended and time.monotonic() - began < 5
    assert len(small.outcome.program.stores) < len(start.program.stores)
    whole = minimised(start, slow)
    assert whole.ended and not whole.outcome.program.body
