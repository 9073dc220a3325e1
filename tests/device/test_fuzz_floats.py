"""Random expressions of floats: f32 within the bounds of its operations, bfloat16 as torch computes it."""

from pathlib import Path

import pytest

from tests.fuzz.floats import run

SEEDS = range(12)


@pytest.mark.parametrize("bfloat", [False, True], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("seed", SEEDS)
def test_expression(seed: int, bfloat: bool, tmp_path: Path) -> None:
    outcome = run(seed, bfloat, tmp_path)
    assert not outcome.fault, f"{outcome.fault}\n{outcome.source}"
