"""``triton-spirv verdict script.py``: whether a wrong result is the kernel's fault or the compiler's, by the order of
docs/debugging.md.

The script runs in a process of its own for each check. A process writes what it found as JSON: errors of this backend,
whatever the script makes of them, and how it ended. What the script prints is compared at last with what it prints
under Triton's interpreter.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import settings
from ..availability import requested_here
from ..runtime.device_choice import selected
from ..runtime.errors import DeviceUnavailable
from .user_programs import add_program, named, not_there, run_program

#: How far numbers that are printed may be apart, relative to each other: they are rounded otherwise in other orders.
_NEAR = 1e-3
#: How far they may be apart as they are: scripts print errors of rounding, which differ by any factor.
_TINY = 1e-4

#: Errors that decide something → whose fault it is.
_KERNEL, _COMPILER = "The fault is the kernel's.", "The fault is the compiler's."
_FAULTS = {
    "OutOfBounds": (_KERNEL, "Mend the mask, the stride or the size in that line."),
    "ProgramRace": (_KERNEL, "Use an atomic operation, or let each program write elements of its own."),
    "SharedMemoryRace": (_COMPILER, "A barrier is missing. Please report it with the kernel."),
    "KernelFault": (_KERNEL, "It accesses memory that is not there, or divides by zero, in that line."),
}


@dataclass(frozen=True)
class Ran:
    """How a process ended: the exit ``status``, what it ``printed``, the ``last`` line on stderr, and ``found``, the
    errors of this backend, each with its ``type``, ``message`` and ``items``."""

    status: int
    printed: str
    last: str
    found: tuple[dict[str, Any], ...]


def add_verdict(parser: argparse.ArgumentParser) -> None:
    """The options of ``verdict``."""
    add_program(parser)


@requested_here()
def run_verdict(options: argparse.Namespace) -> int:
    """Prints one paragraph: 0 where it says whose fault it is, 2 where that could not be decided, 1 where the script is
    not there."""
    if wrong := not_there(options):
        print(f"triton-spirv verdict: error: {wrong}", file=sys.stderr)
        return 1
    program, arguments = named(options)
    decided, text = _verdict(program, arguments)
    print(textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False))
    return 0 if decided else 2


def _verdict(program: Path | str, arguments: list[str]) -> tuple[bool, str]:
    usual = _run("as it is", {}, program, arguments)
    if fault := _fault(usual):
        return True, fault
    by_reference = {settings.REFERENCE.name: "1"}
    only_usual = ""  # an access or a race that the kernel has only as it is optimised
    for name, words in ((settings.CHECK_BOUNDS.name, "1"), (settings.CHECK_RACES.name, _races())):
        checked = _run(f"{name}={words}", {name: words}, program, arguments)
        if fault := _fault(checked):
            title = f"{name}={words} {settings.REFERENCE.name}=1"
            reference = _run(title, {name: words, **by_reference}, program, arguments)
            if _fault(reference) or reference.status not in (0, usual.status):  # as is its compiling that failed
                return True, fault
            only_usual = next(str(error["message"]) for error in checked.found if error["type"] in _FAULTS)
            break
        if checked.status != usual.status:
            return False, _failed(f"{name}={words}", checked)
    name = settings.CHECK_VALUES.name
    compared = _run(f"{name}=1", {name: "1"}, program, arguments)
    for error in compared.found:
        if error["type"] == "ValuesDiffer" and error["items"]:
            return True, (
                f"{_COMPILER} {error['message']}. `triton-spirv bisect` with the same arguments writes what a report "
                "needs."
            )
        if error["type"] == "ValuesDiffer":
            return False, f"This could not be decided: {error['message']}."
    if only_usual:
        return True, (
            f"{_COMPILER} {only_usual}. The same kernel without optional passes does no such thing, so one of those is "
            "wrong. Launch with `reference=True` meanwhile, and report it with the kernel."
        )
    if compared.status != usual.status:
        return False, _failed(f"{name}=1", compared)
    interpreted = _run("TRITON_INTERPRET=1", {"TRITON_INTERPRET": "1"}, program, arguments)
    if usual.status != interpreted.status:
        return bool(usual.status), _other_end(usual, interpreted)
    difference = _difference(usual.printed, interpreted.printed)
    checks = "No access is outside a tensor, no race was found, and no optional pass changes a value."
    if not usual.printed.strip() and not usual.status:
        return False, (
            "This could not be decided: the script prints nothing, so that it cannot be compared with the "
            f"interpreter. {checks} Have it print its result, or end with an error if that is wrong."
        )
    if difference is None:
        same = "print the same" if usual.printed.strip() else "end in the same way"
        return True, (
            f"If the result is wrong, the fault is the kernel's or the script's. {checks} The usual code and the "
            f"interpreter {same}, so the kernel computes what it says. Print values in it (tl.device_print), and make "
            "it smaller."
        )
    if _difference(usual.printed, _run("as it is, again", {}, program, arguments).printed):
        return False, (
            f"This could not be decided: the script prints other numbers each time it runs. {checks} Seed its random "
            "numbers, and leave out what it prints of time, so that it can be compared with the interpreter."
        )
    mine, other = difference
    return True, (
        f"The fault is the compiler's or the interpreter's. {checks} But the script prints {mine!r}, and {other!r} "
        "under the interpreter, and the same each time it runs. A mandatory part of the compiler is wrong: the "
        "lowering of an operation, LLVM or the driver. Make the kernel smaller, and report it with both results."
    )


def _fault(ran: Ran) -> str:
    """What an error of this backend says; empty if there was none that decides."""
    for error in ran.found:
        if error["type"] in _FAULTS:
            whose, advice = _FAULTS[error["type"]]
            return f"{whose} {error['message']}. {advice}"
    return ""


def _failed(check: str, ran: Ran) -> str:
    return (
        f"This could not be decided: with {check} the script ends with status {ran.status} ({ran.last!r}), and in "
        "another way without it."
    )


def _other_end(usual: Ran, interpreted: Ran) -> str:
    if usual.status:
        return (
            f"The fault is the compiler's or the interpreter's: the script ends with status {usual.status} "
            f"({usual.last!r}) as it is, and without an error under the interpreter. No access is outside a tensor, no "
            "race was found, and no optional pass changes a value. A mandatory part of the compiler is most likely "
            "wrong: make the kernel smaller, and report it with both results."
        )
    return (
        f"This could not be decided: the script ends with status {interpreted.status} under the interpreter "
        f"({interpreted.last!r}), and without an error as it is. No access is outside a tensor, no race was found, and "
        "no optional pass changes a value."
    )


def _races() -> str:
    """What can be checked on the device in use: races between programs on a processor alone."""
    try:
        device = selected()
    except (DeviceUnavailable, ValueError):
        return "1"
    return settings.ALL if device.api in ("CPU", "emulated") else "1"


def _difference(usual: str, interpreted: str) -> tuple[str, str] | None:
    """The first pair of lines that differ by more than rounding."""
    lines = [text.strip().splitlines() for text in (usual, interpreted)]
    for mine, other in zip(*lines, strict=False):
        words = mine.split(), other.split()
        if len(words[0]) != len(words[1]) or not all(map(_alike, *words)):
            return mine, other
    if len(lines[0]) == len(lines[1]):
        return None
    at = min(map(len, lines))
    mine, other = (one[at] if at < len(one) else "nothing more" for one in lines)
    return mine, other


def _alike(one: str, other: str) -> bool:
    if one == other:
        return True
    try:
        numbers = [float(word.strip("()[]{},;:=")) for word in (one, other)]
    except ValueError:
        return False
    return math.isclose(*numbers, rel_tol=_NEAR, abs_tol=_TINY)


def _run(title: str, environment: dict[str, str], program: Path | str, arguments: Sequence[str]) -> Ran:
    """Runs the script in a process with these variables, and tells on stderr what runs."""
    print(f"triton-spirv verdict: {title} …", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="triton-spirv-") as folder:
        told = Path(folder) / "found.json"
        which = ["script", str(program)] if isinstance(program, Path) else ["module", program]
        done = subprocess.run(
            [sys.executable, "-m", __spec__.name if __spec__ else __name__, str(told), *which, *arguments],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        found = json.loads(told.read_text(encoding="utf-8")) if told.exists() else []
    last = (done.stderr.strip().splitlines() or [""])[-1]
    return Ran(done.returncode, done.stdout, last, tuple(found))


def _child(told: Path, sort: str, program: str, arguments: list[str]) -> int:
    """The process: runs the script, writes its errors, and ends as it did."""
    raised = run_program(Path(program) if sort == "script" else program, arguments)
    found: list[BaseException] = []
    error = raised
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    values = sys.modules.get(f"{__package__.rpartition('.')[0]}.launching.values.values_launcher")
    for one in values.found_here if values is not None else ():
        if one not in found:
            found.append(one)
    told.write_text(
        json.dumps(
            [
                {"type": type(one).__name__, "message": str(one), "items": getattr(one, "items", ())}
                for one in found
                if not isinstance(one, SystemExit)
            ],
            default=str,
        ),
        encoding="utf-8",
    )
    if isinstance(raised, SystemExit):
        return raised.code if isinstance(raised.code, int) else int(raised.code is not None)
    if raised is not None:
        raise raised
    return 0


if __name__ == "__main__":
    sys.exit(_child(Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]))
