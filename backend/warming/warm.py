"""``triton-spirv warm``: records which kernels a program loads, and compiles them in as many processes as there are
processors, before the program runs."""

from __future__ import annotations

import argparse
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..availability import requested_here
from ..launching.kernel_records import FORMAT
from ..runtime.files import given_path
from ..settings import RECORD_KERNELS
from ..system import usable_processors
from .worker import COMPILED, SKIPPED, THERE

#: Kernels for which another process is worth its start, and the most processes, each of which has torch in memory.
_KERNELS_EACH, _MOST = 4, 16


@dataclass(frozen=True)
class Outcome:
    """What became of a line: ``told`` as a worker says."""

    line: dict[str, Any]
    told: dict[str, Any]


def add_warm(parser: argparse.ArgumentParser) -> None:
    """The options of ``warm``."""
    parser.add_argument(
        "--record", type=given_path, metavar="FILE", help="run COMMAND, and write to FILE what it loads"
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="how many processes compile (default: one a processor)")
    parser.add_argument("what", nargs="+", metavar="FILE", help="what --record wrote; with it `-- COMMAND …`")


@requested_here()
def run_warm(options: argparse.Namespace) -> int:
    """With ``--record`` the command's own exit status, else 1 where no kernel is ready."""
    if options.record is not None:
        return _record(options.record, options.what)
    if options.jobs is not None and options.jobs < 1:
        return _wrong("--jobs must be 1 or more")
    lines: dict[str, dict[str, Any]] = {}
    for name in map(given_path, options.what):
        try:
            lines |= _read(name)
        except OSError as error:
            return _wrong(f"{name} cannot be read: {error.strerror}")
        except ValueError as error:
            return _wrong(f"{name} is no record of `triton-spirv warm --record`: {error}")
    if not lines:
        return _wrong("the record has no kernels")
    return _warm(list(lines.values()), options.jobs)


def _wrong(what: str) -> int:
    print(f"triton-spirv warm: error: {what}", file=sys.stderr)
    return 1


def _record(file: Path, command: list[str]) -> int:
    try:
        file.write_bytes(b"")
    except OSError as error:
        return _wrong(f"{file} cannot be written: {error.strerror}")
    try:
        ended = subprocess.run(command, env={**os.environ, RECORD_KERNELS.name: str(file.absolute())}, check=False)
    except OSError as error:
        return _wrong(f"{command[0]} cannot be run: {error.strerror}")
    found = _read(file)
    for line in found.values():
        if "why_not" in line:
            print(f"{line['kernel']}: not recorded: {line['why_not']}", file=sys.stderr)
    count = sum("why_not" not in line for line in found.values())
    print(f"triton-spirv warm: {_kernels(count)} recorded in {file}", file=sys.stderr)
    return ended.returncode if ended.returncode >= 0 else 128 - ended.returncode


def _kernels(count: int) -> str:
    return f"{count} kernel{'' if count == 1 else 's'}"


def _read(file: Path) -> dict[str, dict[str, Any]]:
    """The lines of a file by the kernels' keys. Raises OSError, and ValueError if it is something else."""
    found = {}
    for number, text in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        try:
            line = json.loads(text)
            found[str(line["key"])] = line
        except (ValueError, TypeError, KeyError):
            raise ValueError(f"line {number}") from None
    return found


def _why_not(line: dict[str, Any]) -> str:
    """Why no worker is asked; "" if one is."""
    if line.get("format") != FORMAT:
        return "another version of triton-spirv recorded it"
    return str(line.get("why_not", ""))


def _warm(lines: list[dict[str, Any]], jobs: int | None) -> int:
    start = time.perf_counter()
    refused = [Outcome(line, {"status": SKIPPED, "why": why}) for line in lines if (why := _why_not(line))]
    asked = [line for line in lines if not _why_not(line)]
    processes = min(jobs or min(usable_processors(), _MOST), -(-len(asked) // (1 if jobs else _KERNELS_EACH)))
    counts: Counter[str] = Counter()
    others = 0
    for number, answer in enumerate(_answers(asked, processes, refused), 1):
        status, told = answer.told["status"], answer.told
        counts[status] += 1
        others += told.get("same") is False
        how = {COMPILED: "compiled", THERE: "was there", SKIPPED: f"skipped: {told.get('why')}"}[status]
        took = f" ({told['seconds']:.1f} s)" if status == COMPILED else ""
        print(f"[{number}/{len(lines)}] {answer.line.get('kernel', '?')}: {how}{took}", flush=True)
    print(
        f"{_kernels(len(lines))}: {counts[COMPILED]} compiled, {counts[THERE]} already there, {counts[SKIPPED]} skipped"
        f"; {time.perf_counter() - start:.1f} s on {processes} process{'' if processes == 1 else 'es'}"
    )
    if others:
        print(
            f"{others} of them got another key than was recorded: the source, or a setting in the environment, has "
            "changed. Record again if the program still compiles kernels."
        )
    return int(not counts[COMPILED] + counts[THERE])


def _answers(lines: list[dict[str, Any]], processes: int, first: Iterable[Outcome]) -> Iterator[Outcome]:
    """``first``, then the workers' answers, as they come."""
    tasks: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
    answers: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
    for line in (*lines, *[None] * processes):
        tasks.put(line)
    threads = [threading.Thread(target=_serve, args=(tasks, answers), daemon=True) for _ in range(processes)]
    for thread in threads:
        thread.start()
    yield from first
    for _ in lines:
        yield answers.get()
    for thread in threads:
        thread.join()  # processes write the driver's cache when they end


def _serve(tasks: queue.SimpleQueue[dict[str, Any] | None], answers: queue.SimpleQueue[Outcome]) -> None:
    """Pass tasks to a process, and start another one where it ended."""
    worker = None
    while (line := tasks.get()) is not None:
        worker = worker or subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert worker.stdin is not None and worker.stdout is not None
        try:
            worker.stdin.write(json.dumps(line) + "\n")
            worker.stdin.flush()
            text = worker.stdout.readline()
        except BrokenPipeError:
            text = ""
        if text:
            answers.put(Outcome(line, json.loads(text)))
        else:
            why = f"the process that compiled it ended with status {worker.wait()}"
            answers.put(Outcome(line, {"status": SKIPPED, "why": why, "seconds": 0.0}))
            worker = None
    if worker is not None:
        worker.communicate()
