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


class Recorder:
    """``sample`` tests of each file, at random, without those that ``output`` has a line of. A test that takes longer
    than ``seconds`` of processor time ends the process."""

    def __init__(self, output: Path, sample: int, seed: int, seconds: float) -> None:
        self.output, self.sample, self.seed, self.seconds = output, sample, seed, seconds
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
        chosen = []
        for file, tests in files.items():
            some = set(random.Random(f"{self.seed} {file}").sample(range(len(tests)), min(self.sample, len(tests))))
            chosen += [test for index, test in enumerate(tests) if index in some and test.nodeid not in known]
        items[:] = chosen

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
        """A file that cannot be imported has one line."""
        if report.failed:
            self._write(report.nodeid, FAILED, str(report.longrepr).strip().splitlines()[-1])
