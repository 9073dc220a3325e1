"""Random kernels of every family compute here what NumPy computes; `python3 -m tools fuzz` runs more of them."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.fuzz.families import FAMILIES
from tests.fuzz.steps import Family, fault, generate, run

SEEDS = range(3)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("family", FAMILIES, ids=[family.name for family in FAMILIES])
def test_random_kernel(family: Family, seed: int, tmp_path: Path) -> None:
    outcome = run(family, seed, tmp_path)
    assert not outcome.fault, f"{outcome.fault}\n{outcome.source}"


#: Kernels of the family "integers" that NVIDIA's 580.159 got wrong without its workarounds (driver_quirks.py). The
#: first has max(x, y) - y of 64 bits, of which low bits are wanted. The next two divide numbers that the driver takes
#: for small. The last subtracts -2^15 from what the driver finds to be 0.
WRONG_ONCE = (700388, 710857, 711555, 780165)


@pytest.mark.parametrize("seed", WRONG_ONCE)
def test_kernels_that_a_driver_got_wrong(seed: int, tmp_path: Path) -> None:
    outcome = run(next(family for family in FAMILIES if family.name == "integers"), seed, tmp_path)
    assert not outcome.fault, f"{outcome.fault}\n{outcome.source}"


def test_lines_that_give_the_programs_number_are_kept(tmp_path: Path) -> None:
    family = next(family for family in FAMILIES if family.name == "atomics")
    kernel = generate(family, 2, steps=1).without_idle_lines()
    assert kernel.programs > 1 and not fault(kernel, tmp_path)


def test_a_wrong_value_is_found_and_its_kernel_has_no_other_lines(tmp_path: Path) -> None:
    family = next(family for family in FAMILIES if family.name == "integers")
    kernel = generate(family, 5, steps=4)
    small = kernel.without_idle_lines()
    assert len(small.lines) < len(kernel.lines) and len(small.memory) < len(kernel.memory)
    assert not fault(small, tmp_path)
    (output,) = (name for name in small.memory if f"tl.store({name} " in small.lines[-1].text)
    wrong = small.expected[output].copy()
    wrong[3] += 1
    found = fault(replace(small, expected={**small.expected, output: wrong}), tmp_path)
    assert found.startswith(f"{output}: 1 of "), found
