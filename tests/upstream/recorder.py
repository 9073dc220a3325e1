"""A plugin of pytest: a line of JSON for each test, written as it ends; samples, and a time after which tests wait.

Its settings are environment variables, which processes of xdist inherit. Names in the lines begin with the file's name.
"""

import json
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest

#: The file; a part of the tests, as ``N/OF`` of a shuffled list; seconds since 1970 after which no test starts.
OUT, SAMPLE, UNTIL = "UPSTREAM_TESTS_OUT", "UPSTREAM_TESTS_SAMPLE", "UPSTREAM_TESTS_UNTIL"
#: Outcomes in the lines, beside pytest's own: a test that did not start in time.
LATE = "late"
_SEED, _LONGEST = 52, 400


def _short(name: str) -> str:
    path, separator, rest = name.partition("::")
    return Path(path).name + separator + rest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep one part of the shuffled tests, in their own order: the same in each process."""
    number, _, of = os.environ.get(SAMPLE, "0/1").partition("/")
    places = list(range(len(items)))
    random.Random(_SEED).shuffle(places)
    items[:] = [items[place] for place in sorted(places[int(number) :: int(of)])]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Start no test after the time."""
    until = os.environ.get(UNTIL)
    if until and time.time() > float(until):
        pytest.skip(LATE)


class Recorder:
    """Writes the file. Only the process that collects the reports has it."""

    def __init__(self, path: str) -> None:
        self._path = path

    def pytest_runtest_logreport(self, report: Any) -> None:
        """One line for a test that ran, or that ended before that."""
        if report.when != "call" and (report.when == "teardown" or report.passed):
            return
        why = ""
        if report.skipped:
            why = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        elif report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            why = crash.message if crash is not None else str(report.longrepr)
        outcome = "xfailed" if hasattr(report, "wasxfail") else LATE if why == f"Skipped: {LATE}" else report.outcome
        line = {"test": _short(report.nodeid), "outcome": outcome, "seconds": round(report.duration, 2)}
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line | {"why": " ".join(why.split())[:_LONGEST]}) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    """Record in the process that has all reports."""
    if not hasattr(config, "workerinput") and os.environ.get(OUT):
        config.pluginmanager.register(Recorder(os.environ[OUT]))
