"""Random kernels that need no reference: compiled and launched in several ways, without a pass of upstream's, with race
checks, by keys that look alike, and in time that does not run away; `python3 -m tools fuzz` runs more of them."""

from pathlib import Path

import pytest
from triton.backends.spirv.launching.values import values_launcher as launcher
from triton.runtime import jit

from benchmarks.passes import added
from tests.fuzz import costs, keys, launches, metamorphic, orders, passes, scalars
from tests.fuzz.__main__ import SORTS
from tests.written import written


@pytest.mark.parametrize("seed", [3, 5, 9])
def test_a_kernel_computes_the_same_in_all_ways(seed: int, tmp_path: Path) -> None:
    outcome = metamorphic.run(seed, tmp_path, most=3)
    assert not outcome.fault, f"{outcome.fault}\n{outcome.source}"


@pytest.mark.parametrize("seed", [1, 2])
def test_a_kernel_computes_what_the_reference_does(seed: int, tmp_path: Path) -> None:
    before = launcher.compared_here
    outcome = metamorphic.compared(seed, tmp_path)
    assert not outcome.fault, f"{outcome.fault}\n{outcome.source}"
    assert launcher.compared_here > before


@pytest.mark.parametrize("seed", [0, 1, 57, 158])
def test_a_kernel_of_scalars_computes_what_python_does(seed: int, tmp_path: Path) -> None:
    """The last two are wrong where a loop does not carry each name (patches/loop-carries.patch)."""
    outcome = scalars.run(seed, tmp_path)
    assert not outcome.fault, f"{outcome.fault}\n{outcome.source}"


@pytest.mark.parametrize("seed", [0, 5, 19])
def test_loads_and_stores_are_in_order(seed: int, tmp_path: Path) -> None:
    outcome = orders.run(seed, tmp_path)
    assert not outcome.fault, f"{outcome.fault}\n{outcome.source}"


def test_a_load_that_sees_a_later_store_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = orders.FUNCTIONS
    load, store = "    old = tl.load(q + at)\n", "    tl.store(q + at, v)\n"
    late = kept.replace(load + store, store + "    old = v\n")
    assert late != kept
    monkeypatch.setattr(orders, "FUNCTIONS", late)
    monkeypatch.setattr(orders, "written", lambda path, source: written(path, source.replace(late, kept)))
    assert any("wrong, the first at" in orders.run(seed, tmp_path).fault for seed in (1, 2))


@pytest.mark.parametrize("seed", [0, 4])
def test_a_kernel_computes_the_same_however_it_is_launched(seed: int, tmp_path: Path) -> None:
    outcome = launches.run(seed, tmp_path)
    assert not outcome.fault, f"{outcome.fault}\n{outcome.source}"


def test_a_value_that_depends_on_the_block_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launches, "FOOTER", launches.FOOTER.replace("tl.sum(found, 1)", "tl.sum(found, 1) + C"))
    assert "twice as many columns" in launches.run(0, tmp_path).fault


@pytest.mark.parametrize("item", ["cse", "coalesce"])
def test_a_kernel_computes_the_same_without_a_pass(item: str, tmp_path: Path) -> None:
    outcome = passes.run(passes.PASSES.index(item), tmp_path)
    assert outcome.changed and not outcome.fault, f"{outcome.fault}\n{outcome.source}"


def test_each_pass_has_kernels_of_its_own() -> None:
    assert list(passes.AIMS) == list(passes.PASSES)


def test_a_pass_that_changes_values_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that takes any update in a loop for the reduction's own, as upstream has."""
    with added("ttgpuir.add_optimize_thread_locality") as item:
        fault, _ = passes._compared(passes.HEADER + _UPDATED, item, 32, 1, tmp_path / "kernel")
    assert fault == f"without {item!r}: rows_out: 32 of 97 values differ"


_UPDATED = """    r1 = tl.zeros((R,), tl.float32)
    for k in range(0, n):
        r1 = r1 - tl.sum(tl.load(x + k * R * R + at), 1)
    tl.store(rows_out + i, r1)
"""


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
