"""A plugin of pytest's: chooses tests at random, and writes what became of each."""

from __future__ import annotations

import json
import random
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.outcomes import FAILED, NOT_ENDED, PASSED, SKIPPED, WRONG, ending_after, of_error

#: The row that counts what was collected.
COLLECTED = "collected"


def _outcome(error: BaseException) -> tuple[str, str]:
    """What kind of failure an error is, and its message in a line. An assertion of the test says that a value is
    wrong."""
    outcome, text = of_error(error)
    if outcome != FAILED:
        return outcome, text
    place = traceback.extract_tb(error.__traceback__)[-1]
    by_test = any(part.startswith("test") for part in Path(place.filename).parts[-2:])  # torch/testing, too
    kind = WRONG if isinstance(error, AssertionError) and by_test else FAILED
    return kind, f"{text} ({Path(place.filename).name}:{place.lineno})"


def shares(sizes: dict[str, int], total: int) -> dict[str, int]:
    """How many of ``total`` tests each file gets: as many as another, or all that it has."""
    found: dict[str, int] = {}
    for done, name in enumerate(sorted(sizes, key=lambda one: sizes[one])):
        found[name] = min(sizes[name], -(-total // (len(sizes) - done)))
        total -= found[name]
    return found


class Recorder:
    """``tests`` tests, spread over the files, at random, without those that ``output`` has a line of. A test that
    takes longer than ``seconds`` of processor time ends the process. ``only``: these tests, if not None."""

    def __init__(self, output: Path, tests: int, seed: int, seconds: float, only: set[str] | None = None) -> None:
        self.output, self.tests, self.seed, self.seconds, self.only = output, tests, seed, seconds, only
        self.found = (PASSED, "")
        self.began = 0.0

    def _write(self, test: str, outcome: str, message: str = "", seconds: float = 0.0) -> None:
        row = {"test": test, "outcome": outcome, "message": message, "seconds": round(seconds, 1)}
        with self.output.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(row) + "\n")

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Chooses."""
        files: dict[str, list[pytest.Item]] = {}
        for item in items:
            files.setdefault(item.nodeid.partition("::")[0], []).append(item)
        known = {json.loads(line)["test"] for line in self.output.read_text(encoding="utf-8").splitlines()}
        if COLLECTED not in known:
            self._write(COLLECTED, COLLECTED, str(len(items)))
        chosen = self.only
        if chosen is None:
            counts = shares({file: len(tests) for file, tests in files.items()}, self.tests)
            choices = (
                random.Random(f"{self.seed} {file}").sample(files[file], count) for file, count in counts.items()
            )
            chosen = {test.nodeid for some in choices for test in some}
        items[:] = [test for test in items if test.nodeid in chosen - known]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Writes a line before a test and one after it."""
        self.found, self.began = (PASSED, ""), time.process_time()
        self._write(item.nodeid, NOT_ENDED)
        with ending_after(self.seconds):
            result = yield
        self._write(item.nodeid, *self.found, time.process_time() - self.began)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[Any]) -> Iterator[Any]:
        """Remembers how a test ended."""
        report: pytest.TestReport = yield
        if report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
            self.found = (SKIPPED, str(reason).removeprefix("Skipped: "))
        elif report.failed and call.excinfo is not None:
            self.found = _outcome(call.excinfo.value)
        return report

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be imported has one line, unless tests were named."""
        if report.failed and self.only is None:
            self._write(report.nodeid, FAILED, str(report.longrepr).strip().splitlines()[-1])
