"""Tests that kernel libraries publish, as they are, on this device under CUDA's name: what became of them.

    python -m tools suites --fetch sources                 # libraries with their tests; pip installs their needs
    python -m tools suites sources [--only liger-kernel] [--tests 300] [--each 120] [--jobs 8 --within 600]
    python -m tools suites sources --values                # those that passed, with TRITON_SPIRV_CHECK_VALUES=1; of a
                                                           # library without results, those that are chosen
    python -m tools suites --page                          # docs/internals/suites.md, of the results in build/suites;
                                                           # a library without results stays as it is there

Everything runs inside ``torch.spirv.as_cuda()``. From all files so many tests are chosen at random, as many of each
where it has them, each with a limit of processor time and one of memory. A test's result is a word of outcomes.py,
``wrong`` if one of its assertions fails, beside the commit that it ran at. table.py has the libraries, and the failures
that are the library's or a limit, by the reason. The exit status is 1 if a failure has no reason. Autotuned kernels run
in the first configuration that fits.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import textwrap
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.outcomes import FAILURES, NOT_ENDED, PASSED, SKIPPED

from .recorder import COLLECTED
from .table import LIMIT, OF_ALL, OUT_OF_TIME, SUITES, THEIRS, Suite

Rows = dict[str, dict[str, Any]]
_ROOT = Path(__file__).parents[2]
_PAGE = _ROOT / "docs" / "internals" / "suites.md"


def fetch(suite: Suite, sources: Path) -> None:
    """Installs what a library needs, and unpacks it and its tests in ``sources``."""
    pip = [sys.executable, "-m", "pip"]
    if suite.needs:
        subprocess.run([*pip, "install", "--quiet", *suite.needs], check=True)
    if (sources / suite.folder).is_dir():
        return
    sources.mkdir(parents=True, exist_ok=True)
    repository, tag = suite.repository
    if repository:
        url = f"https://github.com/{repository}"
        command = ["git", "clone", "--quiet", "--depth", "1", "--branch", tag, url, str(sources / suite.folder)]
        subprocess.run(command, check=True)
        return
    command = [*pip, "download", "--quiet", "--no-deps", "--no-binary", ":all:", "-d", str(sources)]
    subprocess.run([*command, f"{suite.package}=={suite.version}"], check=True)
    with tarfile.open(sources / f"{suite.folder}.tar.gz") as opened:
        opened.extractall(sources, filter="data")


def _files(suite: Suite, root: Path) -> list[str]:
    left_out = {name for names in suite.without.values() for name in names.split()}
    found = sorted({file for pattern in suite.files for file in root.glob(pattern)})
    found = [file for file in found if suite.text in file.read_text(encoding="utf-8")]
    return [str(file.relative_to(root)) for file in found if file.stem.removeprefix("test_") not in left_out]


def commit() -> str:
    """The commit of this tree, with ``-dirty`` where files differ from it; empty outside a checkout."""
    command = ["git", "-C", str(_ROOT), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except FileNotFoundError:
        return ""


def run_here(root: Path, options: argparse.Namespace) -> int:
    """Runs the files ``options.files`` of an unpacked library in this process."""
    import pytest
    import torch

    from benchmarks.libraries import ignore_unknown_keys, take_first_configurations

    from .recorder import Recorder

    take_first_configurations()
    ignore_unknown_keys()
    os.chdir(root)
    sys.path[:0] = [str(root / path) for path in options.path.split()]
    sys.modules.update({name: ModuleType(name) for name in options.absent.split()})
    only = set(json.loads(options.chosen.read_text(encoding="utf-8"))) if options.chosen else None
    memory, more = int(options.memory * (1 << 30)), {"commit": options.commit, "torch": torch.__version__}
    sizes = options.tests, options.seed, options.each, memory
    recorder = Recorder(options.output, *sizes, only, options.largest, more, options.values)
    # Without the library's own settings of pytest, some of which need plugins.
    settings = ["-c", os.devnull, "--rootdir", str(root), "-p", "no:cacheprovider", "--continue-on-collection-errors"]
    settings += ["-q", "--no-header", "--tb=no", *options.arguments.split()]
    with torch.spirv.as_cuda(types=options.types):
        exec(textwrap.dedent(options.first), {})
        return int(pytest.main([*settings, *options.files], plugins=[recorder]))


def results(output: Path) -> Rows:
    """The last line of each test."""
    text = output.read_text(encoding="utf-8") if output.is_file() else ""
    return {row["test"]: row for row in map(json.loads, text.splitlines())}


def newest(folder: Path, suite: Suite) -> Rows:
    """The lines of a suite's tests; of one that passed, and passed again with its launches compared, the second."""
    rows, again = (results(folder / f"{suite.package}{kind}.jsonl") for kind in ("", ".values"))
    known = {name: row for name, row in again.items() if row.get("commit") and row["outcome"] == PASSED}
    return {name: row | (known.get(name, {}) if row["outcome"] == PASSED else {}) for name, row in rows.items()}


def output(suite: Suite, options: argparse.Namespace) -> Path:
    return Path(options.output).resolve() / f"{suite.package}{'.values' if options.values else ''}.jsonl"


class _Runs:
    """The processes that run a suite's tests: each takes one that no line of ``output`` names yet, until none is
    left."""

    def __init__(self, suite: Suite, options: argparse.Namespace) -> None:
        self.suite, self.open = suite, True
        self.root, folder = (options.sources / suite.folder / suite.inside).resolve(), options.output.resolve()
        folder.mkdir(parents=True, exist_ok=True)
        self.output = output(suite, options)
        self.log = self.output.with_suffix(".log")
        # A test that was under way when a run was ended has no result.
        ended = [test for test, row in results(self.output).items() if not row.get("process")] if options.resume else []
        lines = self.output.read_text(encoding="utf-8").splitlines(keepends=True) if ended else []
        kept = [line for line in lines if json.loads(line)["test"] in set(ended)]
        self.output.write_text("".join(kept), encoding="utf-8")
        self.options = ["--here", "--output", str(self.output), "--tests", str(options.tests)]
        self.options += ["--seed", str(options.seed), "--each", str(options.each), f"--path={suite.path}"]
        self.options += ["--memory", str(options.memory), f"--commit={commit()}"]
        self.options += [f"--absent={suite.absent}", f"--arguments={suite.arguments}", f"--first={suite.first[0]}"]
        self.options += ["--largest", str(suite.largest), *(["--types"] if suite.types else [])]
        self.environment = os.environ | suite.environment
        self.tests: int = options.tests
        self.passed: list[str] | None = None
        if options.values:
            self.options.append("--values")
            self.environment["TRITON_SPIRV_CHECK_VALUES"] = "1"
            if rows := results(folder / f"{suite.package}.jsonl"):
                chosen = folder / f"{suite.package}.chosen.json"
                # Of a test that is known to launch no kernel of the library's, nothing would be compared.
                passed = [(name, row.get("launches", 1)) for name, row in rows.items() if row["outcome"] == PASSED]
                self.passed = [name for name, launches in passed if launches]
                chosen.write_text(json.dumps(self.passed), encoding="utf-8")
                self.options += ["--chosen", str(chosen)]

    def start(self) -> subprocess.Popen[bytes] | None:
        """A further process, with the files that have a test left; None if there are none."""
        rows = results(self.output)
        files = _files(self.suite, self.root)
        chosen = self.passed if self.passed is not None else rows.get(COLLECTED, {}).get("chosen", [])
        if self.passed is not None or len(chosen) >= self.tests:
            left = {test.partition("::")[0] for test in chosen if test not in rows}
            files = [file for file in files if file in left]
        self.open = bool(files)
        if not files:
            return None
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.suites", str(self.root), *files, *self.options]
        with self.log.open("ab") as log:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment, start_new_session=True
            )

    def ended(self, process: subprocess.Popen[bytes]) -> None:
        """Writes what became of the test that a process was in when it ended, if it was in one."""
        rows = results(self.output)
        inside = [row for row in rows.values() if row["outcome"] == NOT_ENDED and row.get("process") == process.pid]
        for row in inside:
            in_time = process.returncode != -signal.SIGPROF
            row["message"] = f"its process ended with {process.returncode}" if in_time else OUT_OF_TIME
            with self.output.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps({**row, "process": 0}) + "\n")
        self.open &= bool(inside)
        if not inside and len(rows) < 2:
            print(f"{self.suite.package}: pytest ended before any test: {self.log}")


def run(suites: Sequence[Suite], options: argparse.Namespace) -> None:
    """Runs the tests of libraries, in ``options.jobs`` processes at a time, with a new one after one that did not end.
    What is under way is ended after ``options.within`` seconds, and when this process is interrupted."""
    runs = [_Runs(suite, options) for suite in suites]
    live: list[tuple[_Runs, subprocess.Popen[bytes]]] = []
    ends = time.monotonic() + options.within
    try:
        while time.monotonic() < ends:
            for one, process in live[:]:
                if process.poll() is not None:
                    live.remove((one, process))
                    one.ended(process)
            while len(live) < options.jobs and (wanting := [one for one in runs if one.open]):
                fewest = min(wanting, key=lambda wanted: sum(one is wanted for one, _ in live))
                started = fewest.start()
                if started:
                    live.append((fewest, started))
            if not live:
                return
            time.sleep(0.2)
    finally:
        for _, process in live:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@dataclass
class Counts:
    """A row of the table. ``reasons``: (whose, reason) → tests. ``ours``: lines that say which test failed, and how.
    ``unmarked``: of how many results it is not known which commit gave them. ``launches``: of the tests that passed,
    those whose launches were counted, how many of them each. ``kernels``: the library's that tests that passed launch,
    of those whose names are known; ``compared``: kernels with a launch whose values were; ``not_compared``: why one's
    were not. ``torch``: its versions."""

    collected: int = 0
    passed: int = 0
    skipped: int = 0
    unmarked: int = 0
    launches: list[int] = field(default_factory=list)
    reasons: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    ours: list[str] = field(default_factory=list)
    kernels: set[str] = field(default_factory=set)
    compared: set[str] = field(default_factory=set)
    not_compared: dict[str, str] = field(default_factory=dict)
    torch: set[str] = field(default_factory=set)

    def of(self, whose: str) -> int:
        """How many failures are whose."""
        return sum(len(tests) for (one, _), tests in self.reasons.items() if one == whose)

    @property
    def reached(self) -> str:
        """How many tests that passed launch a kernel of the library's, of how many that is known of."""
        return f"{sum(map(bool, self.launches))} of {len(self.launches)}" if self.launches else ""

    @property
    def run(self) -> int:
        """How many tests ran."""
        return self.passed + len(self.ours) + self.of(THEIRS) + self.of(LIMIT)


def counted(suite: Suite, rows: Rows) -> Counts:
    """What became of a suite's tests."""
    counts = Counts()
    for test, row in rows.items():
        outcome, said = row["outcome"], f"{test}: {row['message']}"
        counts.unmarked += outcome != COLLECTED and not row.get("commit")
        if outcome == COLLECTED:
            counts.collected = int(row["message"])
        elif outcome == NOT_ENDED and row.get("process"):
            continue  # it was under way when the run ended
        elif outcome in FAILURES:
            known = (*suite.known, *OF_ALL)
            whose = next(((whose, why) for pattern, whose, why in known if re.search(pattern, said)), None)
            if whose:
                counts.reasons[whose].append(test)
            else:
                counts.ours.append(f"{outcome}: {said}")
        else:
            counts.passed += outcome == PASSED
            counts.torch |= {row["torch"]} if "torch" in row else set()
            counts.kernels |= set(row.get("kernels", ()))
            counts.compared |= row.get("compared", {}).keys()
            counts.not_compared |= row.get("not_compared", {})
            counts.launches += [row["launches"]] if outcome == PASSED and "launches" in row else []
            counts.skipped += outcome == SKIPPED
    return counts


def report(suite: Suite, counts: Counts) -> bool:
    """Prints a suite's counts, and failures by their reason; whether each has one."""
    print(
        f"{suite.package} {suite.version}: {counts.collected} collected, {counts.run} run: {counts.passed} passed, "
        f"{len(counts.ours)} ours, {counts.of(THEIRS)} theirs, {counts.of(LIMIT)} limits; {counts.skipped} skipped"
    )
    for (whose, reason), tests in sorted(counts.reasons.items()):
        print(f"    {len(tests)} × {whose}: {reason}, as in {tests[0]}")
    for line in sorted(counts.ours):
        print(f"    {line}")
    return not counts.ours


def _of_values(again: Counts, alone: bool = False) -> list[str]:
    """What a library's part of the page says of tests with values compared; ``alone``: that were not run before."""
    kernels = (again.kernels & again.not_compared.keys()) - again.compared
    left = {kernel.rpartition(".")[2]: re.split(r" \(|; ", again.not_compared[kernel])[0] for kernel in kernels}
    said = [f"Not compared: `{kernel}`, since {why}." for kernel, why in sorted(left.items())]
    if alone:
        run = f"With values compared: the chosen tests in a run of its own, with torch {', '.join(sorted(again.torch))}"
        said += [f"{run}; {again.reached} that passed launch a kernel." if again.launches else f"{run}."]
    for (whose, why), tests in sorted(again.reasons.items()):
        said += [f"With values compared, {whose}: {why} ({len(tests)})."]
    return [line for one in said for line in textwrap.wrap(one, 118)]


def _with_values(section: list[str], said: list[str]) -> list[str]:
    """A library's part of the page with what it now says of values."""
    parts = re.split(r"^(?=[A-Z|`])", "\n".join(section), flags=re.MULTILINE)
    others = [part for part in parts if not part.startswith(("Not compared: ", "With values compared"))]
    text = "".join(others).partition("\n| tests |")
    return [*text[0].splitlines(), *said, *f"{text[1]}{text[2]}".splitlines()]


def page(folder: Path, before: str = "", fewer: bool = False) -> str:
    """docs/internals/suites.md. A suite without results, or without those of values, is as it was ``before``.

    Raises ValueError if there are values of fewer tests than before, unless ``fewer`` says that they count.
    """
    kept = {part.partition("\n")[0]: part.strip().splitlines()[1:] for part in before.split("\n## ")}
    found = [(suite, counted(suite, newest(folder, suite))) for suite in SUITES]
    lines = [
        "# Libraries' test suites",
        "",
        "Tests that kernel libraries publish for CUDA, as they are, on the CPU device inside `torch.spirv.as_cuda()`",
        "([torch.md](../torch.md)). Skips of the tests' own are not counted as run. *ours*: failures that this project",
        "has yet to mend; *theirs*: of the library or its test; *limits*: of the device, or of the time for one test.",
        "*kernels*: tests that passed and launch a kernel besides those of the device's own operations, of how many",
        "this is known. *values*: tests that passed, or differed, with `TRITON_SPIRV_CHECK_VALUES=1` (of those that",
        "passed before, or of those chosen, in a run of its own), and how many differed, except for what is left",
        "where terms cancel ([debugging.md](../debugging.md#check-values)).",
        "*compared*: the library's kernels with a launch whose values were compared, of those that such tests launch.",
        "Of launches with the same code, grid, numbers and shapes the first is compared. The device's own operations",
        "are not.",
        "",
        "| library | collected | run | passed | ours | theirs | limits | skipped | kernels | values | compared |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lost = []
    for suite, counts in found:
        again = counted(suite, results(folder / f"{suite.package}.values.jsonl"))
        name = f"| {suite.package} {suite.version} |"
        row = next((line for line in before.splitlines() if line.startswith(name)), f"{name} not run yet{' |' * 10}")
        cells = [cell.strip() for cell in row.split("|")[2:-1]]
        if counts.collected:
            cells[:5] = map(str, (counts.collected, counts.run, counts.passed, len(counts.ours), counts.of(THEIRS)))
            cells[5:8] = map(str, (counts.of(LIMIT), counts.skipped, counts.reached))
        if ran := again.passed + len(again.ours):
            if not fewer and ran < (earlier := int(cells[8].partition(" ")[0] or 0)):
                lost.append(f"{suite.package} {ran}, not {earlier}")
            known = again.kernels | counts.kernels
            cells[8:] = (
                f"{ran} run, {len(again.ours)}",
                f"{len(known & again.compared)} of {len(known)}" if known else "",
            )
        lines.append(f"{name} {' | '.join(cells)} |" if ran or counts.collected else row)
    if lost:
        raise ValueError(f"values of fewer tests than on the page: {'; '.join(lost)}. --fewer-values takes them")
    lines += ["", "## How they are run", "", "```"]
    lines += ["python3 -m tools suites --fetch sources   # libraries with their tests; pip installs their needs"]
    lines += ["python3 -m tools suites sources           # results: build/suites/LIBRARY.jsonl", "```", ""]
    lines += [
        "Tests are chosen at random, as many of each file where it has them. `benchmarks/suites/table.py` has the"
    ]
    lines += ["libraries, what is left out, and the reasons below. `python3 -m tools suites --page` writes this page."]
    for suite, counts in found:
        lines += ["", f"## {suite.package}"]
        again = counted(suite, results(folder / f"{suite.package}.values.jsonl"))
        if not counts.collected and suite.package in kept:
            section = kept[suite.package]
            lines += _with_values(section, _of_values(again, alone=True)) if again.passed else section
            continue
        lines += [""]
        name, tag = suite.repository
        lines += [f"Tests: `{'`, `'.join(suite.files)}` of {f'{name}, {tag}' if name else 'its source distribution'}."]
        lines += [f"{setting}={value} is set." for setting, value in suite.environment.items()]
        if suite.first[0]:
            lines += textwrap.wrap(f"Run first, since {suite.first[1]}:", 118)
            lines += ["", "```", *textwrap.dedent(suite.first[0]).strip().splitlines(), "```", ""]
        for why, names in suite.without.items():
            lines += textwrap.wrap(f"Left out: {why} (`{'`, `'.join(names.split())}`).", 118)
        if suite.types:
            lines += ["Run inside `torch.spirv.as_cuda(types=True)`."]
        if suite.largest:
            lines += [f"Left out: tests whose names state more than {suite.largest:,} elements (`B`·`T`·`H`·`D`)."]
        if counts.unmarked:
            lines += [f"Results of an earlier state, whose commit is not known: {counts.unmarked}."]
        lines += _of_values(again)
        if counts.reasons or counts.ours:
            lines += ["", "| tests | whose | why |", "| --- | --- | --- |"]
            lines += [f"| {len(tests)} | {whose} | {why} |" for (whose, why), tests in sorted(counts.reasons.items())]
            lines += [f"| 1 | ours | {line[:160].replace('|', '/')} |" for line in sorted(counts.ours)]
    return "\n".join(lines) + "\n"


def main() -> int:
    """The command line: see above."""
    parser = argparse.ArgumentParser(
        prog="python3 -m tools suites", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sources", type=Path, nargs="?", default=Path("build/suites"), help="their sources")
    parser.add_argument("files", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--only", action="append", metavar="PACKAGE", help="the tests of this library")
    parser.add_argument("--tests", type=int, default=300, metavar="N", help="tests of each library (default: 300)")
    parser.add_argument("--seed", type=int, default=0, help="of the choice (default: 0)")
    parser.add_argument(
        "--each", type=float, default=120, metavar="S", help="seconds of processor time for a test (default: 120)"
    )
    parser.add_argument(
        "--memory", type=float, default=8, metavar="G", help="gibibytes of memory for a test (default: 8)"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes at a time (default: 1)")
    parser.add_argument(
        "--within", type=float, default=float("inf"), metavar="S", help="seconds until all is ended (default: no limit)"
    )
    parser.add_argument("--output", type=Path, default=Path("build/suites"), help="folder with a line for each test")
    parser.add_argument("--fetch", action="store_true", help="install the libraries, and unpack their tests")
    parser.add_argument("--values", action="store_true", help="run those that passed, with each launch compared")
    parser.add_argument("--page", action="store_true", help="write docs/internals/suites.md")
    parser.add_argument("--fewer-values", action="store_true", help="with --page: even if it has those of more tests")
    parser.add_argument("--resume", action="store_true", help="leave out the tests that --output has")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--chosen", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--types", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--largest", type=int, default=0, help=argparse.SUPPRESS)
    for hidden in ("--path", "--absent", "--arguments", "--commit", "--first"):
        parser.add_argument(hidden, default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        return run_here(options.sources, options)
    if options.page:
        try:
            text = page(options.output, _PAGE.read_text(encoding="utf-8"), options.fewer_values)
        except ValueError as error:
            sys.exit(str(error))
        _PAGE.write_text(text, encoding="utf-8")
        return 0
    chosen = [suite for suite in SUITES if not options.only or suite.package in options.only]
    if options.fetch:
        for suite in chosen:
            fetch(suite, options.sources)
        return 0
    there = [suite for suite in chosen if (options.sources / suite.folder).is_dir()]
    for suite in chosen:
        if suite not in there:
            print(f"{suite.folder} is not in {options.sources}: python3 -m tools suites --fetch {options.sources}")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background of a shell it would be ignored
    try:
        run(there, options)
    except KeyboardInterrupt:
        print("interrupted: the lines so far are in", options.output)
    right = [report(suite, counted(suite, results(output(suite, options)))) for suite in there]
    return int(not all(right))


if __name__ == "__main__":
    sys.exit(main())
