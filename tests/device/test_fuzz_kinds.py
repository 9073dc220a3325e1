"""Random kernels that need no reference: compiled in several ways, with race checks, by keys that look alike, and in
time that does not run away; `python3 -m tools fuzz` runs more of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from triton.runtime import jit

from tests.fuzz import costs, keys, metamorphic
from tests.fuzz.__main__ import SORTS


@pytest.mark.parametrize("seed", [3, 5, 9])
def test_a_kernel_computes_the_same_in_all_ways(seed: int, tmp_path: Path) -> None:
    outcome = metamorphic.run(seed, tmp_path, most=3)
    assert not outcome.fault, f"{outcome.fault}\n{outcome.source}"


def test_random_kernels_have_no_races() -> None:
    for result in SORTS["races"](range(4), 0.0):
        assert not result.fault, f"{result.fault}\n{result.source}"


def test_arguments_that_look_alike_have_kernels_of_their_own() -> None:
    for seed in range(20):
        outcome = keys.run(seed)
        assert not outcome.fault, f"{outcome.fault}\n{outcome.source}"


def test_keys_that_only_compare_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def compared(cache: dict[object, str], specialization: list[object], options: object) -> str:
        return cache.setdefault((tuple(specialization), str(options)), str(specialization) + str(options))

    monkeypatch.setattr(jit, "compute_cache_key", compared)
    assert any(keys.run(seed).fault for seed in range(20))


@pytest.mark.parametrize("name", ["gather", "sum of all"])
def test_twice_the_elements_take_three_times_as_long_at_most(name: str, tmp_path: Path) -> None:
    outcome = costs.run(name, 4, tmp_path, costs.SIZES[:4])
    assert len(outcome.seconds) == 4 and not outcome.fault


def test_what_runs_away_is_found() -> None:
    assert costs.Result("", 1, (0.5, 1.4, 4.3)).fault == "1024 elements took 4.30 s, 512 took 1.40"
    assert not costs.Result("", 1, (0.1, 0.9, 2.6)).fault
