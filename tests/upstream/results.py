"""The rate of a run of upstream's tests, and what in it was not expected."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .expected import EXPECTED, Expected, reason_for

#: The newest rate, which docs/internals/surface.md shows.
RATE = Path(__file__).with_name("rate.json")


@dataclass
class Results:
    """Tests by what became of them. ``expected``: failed, and a row says why; ``failed``: nothing says why."""

    passed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    #: Rows of which tests ran, and all passed.
    stale: list[Expected] = field(default_factory=list)

    @property
    def ran(self) -> int:
        """How many tests ran to an end."""
        return len(self.passed) + len(self.failed) + len(self.expected)


def read(path: Path) -> dict[str, str]:
    """Test → outcome, of a file of recorder.py."""
    lines = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {line["test"]: line["outcome"] for line in lines}


def classify(outcomes: Mapping[str, str], among: Iterable[str] | None = None) -> Results:
    """Of all tests, or of those ``among`` which another backend passes."""
    found, chosen = Results(), set(outcomes if among is None else among)
    for test, outcome in outcomes.items():
        if test not in chosen:
            continue
        if outcome == "passed":
            found.passed.append(test)
        elif outcome == "failed":
            (found.expected if reason_for(test) else found.failed).append(test)
        else:
            found.skipped.append(test)
    failed = found.failed + found.expected
    for row in EXPECTED:
        if any(map(row.matches, found.passed)) and not any(map(row.matches, failed)):
            found.stale.append(row)
    return found


def summary(results: Results) -> str:
    """What a run is worth, in lines."""
    rate = 100 * len(results.passed) / results.ran if results.ran else 0.0
    lines = [f"{test}: {reason_for(test)}" for test in sorted(results.expected)]
    lines += [f"FAILED {test}" for test in sorted(results.failed)]
    lines += [f"all pass: take the row '{row.tests}' away" for row in results.stale]
    lines.append(
        f"{len(results.passed)} of {results.ran} tests passed ({rate:.1f} %); {len(results.expected)} failed as "
        f"expected, {len(results.failed)} otherwise; {len(results.skipped)} were skipped"
    )
    return "\n".join(lines)
