"""Whether what was measured again and again grows, and what growth would have been seen.

Memory of a process moves in steps, and neighbouring measurements are alike, so a line fitted by least squares would
promise more than it knows. Measurements are put together in blocks of equal time, each by its median; the slope is that
of Theil and Sen, the median of the slopes of all pairs of blocks, with the interval that Kendall's statistic gives it
(P. K. Sen, Estimates of the Regression Coefficient Based on Kendall's Tau, 1968). Something grows if the whole interval
lies above the bound. The interval's upper end is what could have gone unseen.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

#: Of Kendall's statistic, Sen's interval needs about ten; more are more alike.
_BLOCKS = 20
#: What is measured over and over in a test of many figures must not cry wolf: one in a thousand on each side.
_CONFIDENCE = 0.998


@dataclass(frozen=True, slots=True)
class Trend:
    """``slope``: relative growth an hour, with its interval; ``level``: the median of the measurements."""

    slope: float
    low: float
    high: float
    level: float

    def grows(self, bound: float) -> bool:
        """Whether it certainly grows by more than ``bound`` an hour."""
        return self.low > bound

    def __str__(self) -> str:
        return f"{self.level:,.0f}, {self.slope:+.1%} an hour (between {self.low:+.1%} and {self.high:+.1%})"


def trend(seconds: Sequence[float], values: Sequence[float]) -> Trend:
    """The trend of values that were measured at these times, which rise; at least one in each block."""
    start, end = seconds[0], seconds[-1]
    if end <= start:
        raise ValueError("a trend needs measurements at several times")
    blocks: dict[int, list[int]] = {}
    for place, at in enumerate(seconds):
        blocks.setdefault(min(_BLOCKS - 1, int((at - start) / (end - start) * _BLOCKS)), []).append(place)
    times = [statistics.median(seconds[place] for place in block) / 3600 for block in blocks.values()]
    medians = [float(statistics.median(values[place] for place in block)) for block in blocks.values()]
    level = statistics.median(medians)
    if not level:
        raise ValueError("a trend is relative to what is there")
    slopes = sorted(
        (medians[later] - medians[early]) / (times[later] - times[early]) / level
        for early, later in itertools.combinations(range(len(times)), 2)
    )
    count = len(times)
    deviation = math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    reach = statistics.NormalDist().inv_cdf((1 + _CONFIDENCE) / 2) * deviation
    low, high = (len(slopes) - reach) / 2, (len(slopes) + reach) / 2
    return Trend(
        statistics.median(slopes),
        slopes[int(low)] if low >= 1 else -math.inf,
        slopes[math.ceil(high)] if high < len(slopes) - 1 else math.inf,
        level,
    )
