"""The soak of benchmarks.soak, in short, and that it finds what grows."""

import math
import random
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from benchmarks.soak import soak
from benchmarks.trends import trend

#: A round counts as a second: what certainly grows by a percent of its level a round is blamed.
_SHORT: dict[str, Any] = {"bound": 36.0, "longest": 12, "tell": lambda text: None}


def test_what_does_not_grow_is_not_blamed() -> None:
    """Noise, steps down, and the same number all the time."""
    blamed = 0
    for seed in range(200):
        source = random.Random(seed)
        seconds = [float(second) for second in range(0, 900, 5)]
        values = [1e9 + source.choice((0, 4 << 20)) + source.gauss(0, 1 << 20) for _ in seconds]
        blamed += trend(seconds, values).grows(0.01)
    assert blamed == 0
    constant = trend([0.0, 1.0, 2.0], [7.0] * 3)
    assert constant.slope == 0 and not constant.grows(0.01)


def test_what_grows_is_found_and_bounded() -> None:
    source = random.Random(1)
    seconds = [float(second) for second in range(0, 900, 5)]
    found = trend(seconds, [1e9 * (1 + 0.08 * at / 3600) + source.gauss(0, 1 << 20) for at in seconds])
    assert found.grows(0.01) and found.low < 0.08 < found.high
    few = trend([0.0, 1.0, 2.0], [1.0, 2.0, 3.0])
    assert few.low == -math.inf and few.high == math.inf and not few.grows(0.01)


def test_some_rounds_of_training() -> None:
    measured = soak(0, workers=1, rounds=24, **_SHORT)
    assert measured.compared and measured.losses[-1] < measured.losses[0]
    assert set(measured.figures["open files"][1:]) == {measured.figures["open files"][-1]}


def test_a_leak_is_named() -> None:
    kept = []

    def leak() -> None:
        kept.append(torch.ones(1 << 18, device="spirv"))

    with pytest.raises(AssertionError, match="what grows: .*pool allocated"):
        soak(0, workers=0, after_round=leak, rounds=12, **_SHORT)
