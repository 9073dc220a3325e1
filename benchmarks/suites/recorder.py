"""A plugin of pytest's: chooses tests at random, and writes what became of each."""

from __future__ import annotations

import fcntl
import gc
import json
import math
import mmap
import os
import random
import re
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from benchmarks.outcomes import FAILED, NOT_ENDED, PASSED, SKIPPED, WRONG, ending_after, of_error

from .launches import Comparisons, Launches

#: The row that counts what was collected.
COLLECTED = "collected"
#: How many places of a failure its line names.
_PLACES = 8


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


def by_turns(tests: Iterable[str], before: Iterable[str]) -> list[str]:
    """A cell of each test's in any order, then a second of each. Those ``before`` have had their turn."""
    turns = Counter(name.partition("[")[0] for name in before)

    def turn(test: str) -> int:
        turns[test.partition("[")[0]] += 1
        return turns[test.partition("[")[0]]

    mixed = list(tests)
    random.Random().shuffle(mixed)
    return sorted(mixed, key=turn)


def elements(test: str) -> int:
    """How many elements of a tensor a test's name states: ``[B2-T63-H3-D64]`` 24,192. Of sequences one after the other,
    ``cu_seqlens[0, 15, 100]``, the last number is the length of all."""
    cell = test.partition("[")[2]
    sizes = dict(re.findall(r"(?<![A-Za-z])([BTHD])(\d+)(?![A-Za-z])", cell))
    ends = re.search(r"cu(?:_seqlens)?\[[^\]]*?(\d+)\]", cell)
    return math.prod(map(int, (sizes | {"T": ends[1]} if ends else sizes).values()))


def data() -> int:
    """How many bytes of memory of its own this process has; 0 where the system does not say it in Linux's way."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5]) * mmap.PAGESIZE
    except FileNotFoundError:
        return 0


@contextmanager
def more_data(size: int) -> Iterator[None]:
    """Lets this process, and those that it starts, have no more than so many bytes of memory besides what it has, where
    it is known. Of much that is left then, what nothing refers to is given back."""
    before = data()
    if sys.platform == "win32" or not before:
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = before + size if hard == resource.RLIM_INFINITY else min(before + size, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
    if data() > before + size // 4:
        gc.collect()
        if torch := sys.modules.get("torch"):
            torch.spirv.empty_cache()


class Recorder:
    """``tests`` tests, spread over the files, at random, without those that ``output`` has a line of: several processes
    may share them. A test that takes longer than ``seconds`` of processor time ends the process; one that needs more
    than ``memory`` bytes besides what the process has gets an error. ``only``: these tests, if not None. ``largest``:
    not those whose name states more elements, if not 0. ``more``: what each line has besides. ``values``: whether
    launches are compared (launches.py)."""

    def __init__(
        self,
        output: Path,
        tests: int,
        seed: int,
        seconds: float,
        memory: int,
        only: set[str] | None = None,
        largest: int = 0,
        more: dict[str, Any] | None = None,
        values: bool = False,
    ) -> None:
        self.output, self.tests, self.seed, self.seconds, self.only = output, tests, seed, seconds, only
        self.memory, self.largest, self.more, self.launches = memory, largest, more or {}, Launches()
        self.comparisons: Comparisons | None = None
        if values:
            with self._rows() as rows:
                compared = [row.get("compared", {}).values() for row in rows.values()]
                self.comparisons = Comparisons({one for found in compared for digests in found for one in digests})
        self.found = (PASSED, "")
        self.places: list[str] = []

    @contextmanager
    def _rows(self) -> Iterator[dict[str, dict[str, Any]]]:
        """The lines so far, while no other process of this suite reads or writes any."""
        with self.output.open("r+", encoding="utf-8") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            yield {row["test"]: row for row in map(json.loads, stream.read().splitlines())}

    def _write(self, test: str, outcome: str, message: str = "", **more: Any) -> None:
        row = {"test": test, "outcome": outcome, "message": message, **self.more, **more}
        with self.output.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(row) + "\n")

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Chooses, or takes the choice of the process that came first, with more where that chose fewer than it should.
        All have their turn, so that a run that is ended early has some of each."""
        with self._rows() as rows:
            chosen: set[str] = set(rows[COLLECTED]["chosen"]) if COLLECTED in rows else set()
            wanted = chosen if self.only is None else self.only
            if self.only is None and len(chosen) < self.tests:
                wanted = set(self._choice(items, chosen))
            if COLLECTED not in rows or wanted != chosen:
                self._write(COLLECTED, COLLECTED, str(len(items)), chosen=sorted(wanted))
        left = wanted - rows.keys()
        found = {test.nodeid: test for test in items if test.nodeid in left}
        items[:] = [found[name] for name in by_turns(found, rows)]

    def _choice(self, items: list[pytest.Item], before: set[str]) -> Iterator[str]:
        yield from before
        files: dict[str, list[pytest.Item]] = {}
        for item in items:
            if not self.largest or elements(item.nodeid) <= self.largest:
                files.setdefault(item.nodeid.partition("::")[0], []).append(item)
        for file, count in shares({file: len(tests) for file, tests in files.items()}, self.tests).items():
            new = [test.nodeid for test in files[file] if test.nodeid not in before]
            count -= len(files[file]) - len(new)
            yield from random.Random(f"{self.seed} {file}").sample(new, max(count, 0))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool:
        """Runs a test that no line names, with a line before it and one after it."""
        with self._rows() as rows:
            if item.nodeid in rows:
                return True
            self._write(item.nodeid, NOT_ENDED, process=os.getpid())
        self.found, self.places, began = (PASSED, ""), [], time.process_time()
        self.launches.begin()
        if self.comparisons:
            self.comparisons.begin()
        with ending_after(self.seconds), more_data(self.memory):
            # What its module and its class prepare is taken down, too: the next test here may be of another one.
            runtestprotocol(item, log=False, nextitem=None)
            for name in ("last_type", "last_value", "last_traceback", "last_exc"):
                vars(sys).pop(name, None)  # they refer to a failure's tensors
        if torch := sys.modules.get("torch"):
            torch.set_default_device(None)  # tests run in another order than the library's
        more: dict[str, Any] = {"at": self.places} if self.places else {}
        more["seconds"] = round(time.process_time() - began, 1)
        more |= {"launches": self.launches.count, "kernels": sorted(self.launches.kernels)}
        if self.comparisons:
            more["compared"] = {name: sorted(found) for name, found in self.comparisons.compared.items()}
            more["not_compared"] = self.comparisons.not_compared
        self._write(item.nodeid, *self.found, **more)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[Any]) -> Iterator[Any]:
        """Remembers how a test ended."""
        report: pytest.TestReport = yield
        if report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
            self.found = (SKIPPED, str(reason).removeprefix("Skipped: "))
        elif report.failed and call.excinfo is not None:
            self.found = _outcome(call.excinfo.value)
            frames = traceback.extract_tb(call.excinfo.value.__traceback__)[-_PLACES:]
            self.places = [f"{Path(one.filename).name}:{one.lineno}" for one in frames]
        return report

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be imported has one line, unless tests were named."""
        if report.failed and self.only is None:
            self._write(report.nodeid, FAILED, str(report.longrepr).strip().splitlines()[-1])
