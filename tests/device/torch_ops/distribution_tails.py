"""Counts of drawn numbers in the tails of every distribution, against their exact probabilities.

``python -m tests.device.torch_ops.distribution_tails --draws 1e9`` draws so many of each; test_distributions.py fewer.
"""

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import NormalDist

import torch
from triton.backends.spirv.torch import registration

_AT_ONCE = 1 << 22
#: Tails of these probabilities are counted, where one number of a hundred draws' worth is expected at least.
_PROBABILITIES = [10.0**-power for power in range(1, 10)]
#: A count may be so many standard deviations from the expected one, and 3 more: of a Poisson distribution of one.
_DEVIATIONS = 6


@dataclass(frozen=True)
class Distribution:
    """``draw`` fills a float32 tensor; ``quantile`` gives the number below which a part of all lies, of a small part,
    and ``upper`` that above which it lies; None where there is no such tail. ``least``: the smallest part above that is
    counted."""

    draw: Callable[[torch.Tensor], torch.Tensor]
    quantile: Callable[[float], float] | None
    upper: Callable[[float], float] | None
    lowest: float = -math.inf
    highest: float = math.inf
    least: float = 0


def _normal(part: float) -> float:
    return NormalDist().inv_cdf(part)


def _cotangent(part: float) -> float:
    return 1 / math.tan(math.pi * part)


DISTRIBUTIONS: dict[str, Distribution] = {
    # The largest number of tl.rand (uint_to_uniform_float) is 1 - 2^-23, and its neighbours are 2^-24 apart.
    "uniform": Distribution(lambda x: x.uniform_(), lambda p: p, lambda p: 1 - p, 0, 1 - 2**-23, least=2**-22),
    "exponential": Distribution(
        lambda x: x.exponential_(), lambda p: -math.log1p(-p), lambda p: -math.log(p), 1e-38, 46.0
    ),
    "normal": Distribution(lambda x: x.normal_(), _normal, lambda p: -_normal(p), -10, 10),
    "log_normal": Distribution(
        lambda x: x.log_normal_(0, 1), lambda p: math.exp(_normal(p)), lambda p: math.exp(-_normal(p)), 4e-5, 3e4
    ),
    "cauchy": Distribution(lambda x: x.cauchy_(), lambda p: -_cotangent(p), _cotangent, -2e19, 2e19),
    # Above k tries lies (1 - p)^k: in between whole numbers as above the lower one.
    "geometric": Distribution(lambda x: x.geometric_(1e-3), None, lambda p: math.log(p) / math.log1p(-1e-3), 1, 1e5),
}


def wrong(name: str, draws: int) -> Iterator[str]:
    """What is wrong with a distribution: numbers outside its support, and tails with too many numbers, or too few."""
    distribution, count = DISTRIBUTIONS[name], 0
    tails = [p for p in _PROBABILITIES if p * draws > 0.01]
    below = {p: distribution.quantile(p) for p in tails} if distribution.quantile else {}
    above = {p: distribution.upper(p) for p in tails if p >= distribution.least} if distribution.upper else {}
    found = torch.zeros(len(below) + len(above), dtype=torch.int64, device="spirv")
    outside = torch.zeros((), dtype=torch.int64, device="spirv")
    drawn = torch.empty(_AT_ONCE, device="spirv")
    while count < draws:
        distribution.draw(drawn)
        found += torch.stack(
            [(drawn < end).sum() for end in below.values()] + [(drawn > end).sum() for end in above.values()]
        )
        outside += (~((drawn >= distribution.lowest) & (drawn <= distribution.highest))).sum()
        count += _AT_ONCE
    if outside:
        yield f"{name}: {int(outside)} of {count} numbers lie outside [{distribution.lowest}, {distribution.highest}]"
    ends = [("below", p, end) for p, end in below.items()] + [("above", p, end) for p, end in above.items()]
    for (side, p, end), number in zip(ends, found.tolist(), strict=True):
        if name == "geometric":
            p = math.exp(math.floor(end) * math.log1p(-1e-3))
        expected = p * count
        if abs(number - expected) > _DEVIATIONS * math.sqrt(expected) + 3:
            yield f"{name}: {number} of {count} numbers lie {side} {end:.6g}, not about {expected:.6g}"


def main() -> int:
    """Prints what is wrong; 1 where anything is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=float, default=1e9)
    parser.add_argument("--only", nargs="*", default=[*DISTRIBUTIONS])
    arguments = parser.parse_args()
    registration.register()
    problems = 0
    for name in arguments.only:
        torch.manual_seed(1)
        for problem in wrong(name, int(arguments.draws)):
            problems += 1
            print(problem, flush=True)
        print(name, "was counted", flush=True)
    return int(problems > 0)


if __name__ == "__main__":
    sys.exit(main())
