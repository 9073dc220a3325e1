"""Runs tests that public kernel libraries carry on CPU tensors, and says what became of them.

    packages="$(python -m benchmarks.library_tests --packages)"
    pip install transformers einops && pip install --no-deps $packages
    pip download --no-deps --no-binary :all: -d sources $packages
    python -m benchmarks.library_tests sources [--sample 12] [--each 120] [--output results.jsonl]

From each file so many tests are chosen at random, each with a time limit. A test's result is a word of
outcomes.py; it is ``wrong`` if one of the test's assertions fails. Failures that are the library's or
the test's fault have a reason in suites.py. The exit status is 1 if a result is wrong without a reason. Autotuned
kernels run in the first configuration that fits.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from benchmarks.outcomes import FAILURES, KNOWN, NOT_ENDED, PASSED, SKIPPED, WRONG

from .suites import SUITES, Suite


def unpacked(suite: Suite, sources: Path, folder: Path) -> Path | None:
    """The source distribution in ``folder``, with its tests made for CPU tensors; None if ``sources`` has it not."""
    name = f"{suite.package.replace('-', '_')}-{suite.version}"
    archive = sources / f"{name}.tar.gz"
    if not archive.is_file():
        return None
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    for file in (folder / name).glob(suite.files):
        text = file.read_text(encoding="utf-8")
        for before, after in suite.replaced:
            text = text.replace(before, after)
        file.write_text(text, encoding="utf-8")
    return folder / name


def _files(suite: Suite, root: Path) -> list[str]:
    found = sorted(root.glob(suite.files))
    return [str(file.relative_to(root)) for file in found if file.stem.removeprefix("test_") not in suite.without]


def run_here(root: Path, options: argparse.Namespace) -> int:
    """Runs the files ``options.files`` of an unpacked library in this process."""
    import pytest

    from benchmarks.libraries import take_first_configurations

    from .recorder import Recorder

    take_first_configurations()
    os.chdir(root)
    sys.path.insert(0, str(root))
    recorder = Recorder(options.output, options.sample, options.seed, options.each)
    # Without the library's own settings of pytest, some of which need plugins.
    settings = ["-c", os.devnull, "--rootdir", str(root), "-p", "no:cacheprovider", "--continue-on-collection-errors"]
    return int(pytest.main([*settings, "-q", "--no-header", "--tb=no", *options.files], plugins=[recorder]))


def results(output: Path) -> dict[str, dict[str, Any]]:
    """The last line of each test."""
    return {row["test"]: row for row in map(json.loads, output.read_text(encoding="utf-8").splitlines())}


def run(suite: Suite, root: Path, options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Runs a library's tests, in a new process after one that did not end."""
    output = options.output.with_name(f"{options.output.stem}.{suite.package}{options.output.suffix}").resolve()
    if not options.resume:
        output.unlink(missing_ok=True)
    output.touch()
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.library_tests", str(root), *_files(suite, root)]
    command += ["--here", "--output", str(output), "--sample", str(options.sample), "--seed", str(options.seed)]
    command += ["--each", str(options.each)]
    while True:
        before = output.read_text(encoding="utf-8")
        ended = subprocess.run(command, check=False, capture_output=True, text=True)
        rows = results(output)
        if output.read_text(encoding="utf-8") == before or (rows and list(rows.values())[-1]["outcome"] != NOT_ENDED):
            if not rows:
                print(f"{suite.package}: pytest ended before any test:\n{ended.stdout}{ended.stderr}")
            return rows


def report(suite: Suite, rows: dict[str, dict[str, Any]]) -> bool:
    """Prints a row of the table, and failures by their reason; whether no result is wrong without one."""
    counts: Counter[str] = Counter()
    reasons: dict[str, list[str]] = defaultdict(list)
    unknown: list[str] = []
    for test, row in rows.items():
        outcome = row["outcome"]
        if outcome in FAILURES:
            said = f"{test}: {row['message']}"
            reason = next((reason for pattern, reason in suite.known if re.search(pattern, said)), "")
            if reason:
                reasons[reason].append(test)
                outcome = KNOWN
            else:
                unknown.append(f"{outcome}: {said}")
        counts[outcome] += 1
    total = sum(counts.values()) - counts[SKIPPED]
    names = (PASSED, KNOWN, *FAILURES, SKIPPED)
    print(f"{suite.package} {suite.version}: {total} run:", ", ".join(f"{counts[name]} {name}" for name in names))
    for reason, tests in sorted(reasons.items()):
        print(f"    {len(tests)} × {reason}, as in {tests[0]}")
    for line in sorted(unknown):
        print(f"    {line}")
    return not counts[WRONG]


def main() -> int:
    """The command line: see above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=Path, nargs="?", default=Path("sources"), help="their source distributions")
    parser.add_argument("files", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--only", action="append", metavar="PACKAGE", help="the tests of this library")
    parser.add_argument("--sample", type=int, default=12, metavar="N", help="tests of each file (default: 12)")
    parser.add_argument("--seed", type=int, default=0, help="of the choice (default: 0)")
    parser.add_argument(
        "--each", type=float, default=120, metavar="S", help="seconds of processor time for a test (default: 120)"
    )
    parser.add_argument("--output", type=Path, default=Path("library_tests.jsonl"), help="a line for each test")
    parser.add_argument("--packages", action="store_true", help="print what pip has to download")
    parser.add_argument("--resume", action="store_true", help="leave out the tests that --output has")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.packages:
        print(*(f"{suite.package}=={suite.version}" for suite in SUITES))
        return 0
    if options.here:
        return run_here(options.sources, options)
    right = True
    for suite in SUITES:
        if options.only and suite.package not in options.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            root = unpacked(suite, options.sources, Path(folder))
            if root is None:
                print(f"{suite.package} {suite.version} is not in {options.sources}")
                continue
            right &= report(suite, run(suite, root, options))
    return int(not right)


if __name__ == "__main__":
    sys.exit(main())
