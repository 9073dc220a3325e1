"""``triton-spirv report``: what a device and its driver do with kernels, as one JSON file for an issue.

It has what ``doctor`` and ``info`` say, what the self-test found, and for each case of known_results.py whether it is
right and how long it takes. It names no user, machine or card: homes and names are replaced, UUIDs left out. Kernels
run in a process of their own, in which a line begins each case and another ends it:

    python -m triton.backends.spirv.inspection.device_report NAME ...
"""

from __future__ import annotations

import argparse
import getpass
import json
import os
import platform
import re
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..capabilities import NotAReport, read_profile, reported_profile
from ..runtime.context import current
from ..runtime.errors import DeviceUnavailable
from ..runtime.files import given_path, write_whole
from ..runtime.measuring.trust import LEFT_OUT, faults_of, spoken
from .doctor import CHECKS

#: The version of the file: raised when its meaning changes.
FORMAT = 1
#: Seconds that a case may take, compiling included.
SECONDS = 120.0


def add_report(parser: argparse.ArgumentParser) -> None:
    """The verb's options."""
    parser.add_argument(
        "-o",
        "--output",
        type=given_path,
        default=Path("triton-spirv-report.json"),
        metavar="FILE",
        help="the file to write",
    )


def run_report(output: Path, information: Callable[[], dict[str, Any]]) -> int:
    """Writes the report. ``information``: what ``info --json`` prints. Status 1 if kernels do not run or are wrong."""
    known = report(information, lambda text: print(text, file=sys.stderr, flush=True))
    try:
        write_whole(output, (json.dumps(known, indent=1, ensure_ascii=False) + "\n").encode())
    except OSError as error:
        print(f"triton-spirv: {output} cannot be written: {error.strerror}", file=sys.stderr)
        return 1
    wrong = [one["name"] for one in known["kernels"] if not one.get("right") and not one.get("skipped")]
    told = f"wrong: {', '.join(wrong)}" if wrong else "all that ran are right"
    print(f"{output}: {len(known['kernels'])} kernels, {told}")
    return int(bool(wrong) or not known["kernels"])


def report(information: Callable[[], dict[str, Any]], tell: Callable[[str], None]) -> dict[str, Any]:
    """What is in the file. ``tell`` is told what is done."""
    tell("asking the drivers")
    found = [{"state": finding.state, "what": finding.what} for check in CHECKS for finding in check() if finding.state]
    known: dict[str, Any] = {
        "format": FORMAT,
        "system": {"linux": platform.release(), "machine": platform.machine(), "python": platform.python_version()},
        "doctor": found,
        "info": information(),
        "self_test": {},
        "kernels": [],
    }
    try:
        device = current().device
    except (DeviceUnavailable, ValueError, RuntimeError) as error:
        known["error"] = str(error)
        return without_persons(known)
    tell(f"testing {device.name}")
    faults = faults_of(device)
    known["self_test"] = {group: faults.get(group, "right") for group in LEFT_OUT}
    known["kernels"] = list(kernels(tell))
    return without_persons(known)


def kernels(tell: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """What became of each case."""
    from .known_results import cases

    command = [sys.executable, "-m", __name__]
    left = [case.name for case in cases()]
    while left:
        tell(f"running {len(left)} kernels")
        said, ending = spoken([*command, *left], {"TRITON_SPIRV_BACKEND": "1", "TRITON_SPIRV_SELF_TEST": "0"}, SECONDS)
        for line in said:
            with suppress(ValueError):
                one = json.loads(line)
                if one["name"] in left and "begin" not in one:
                    left.remove(one["name"])
                    yield one
        if left:
            yield {"name": left.pop(0), "right": False, "error": ending or "the process ended without a word"}
            if not said:
                return


def main(names: Sequence[str]) -> None:
    """In the child: runs the cases of these names."""
    from .known_results import cases

    has = current().capabilities.has
    for case in cases():
        if case.name not in names:
            continue
        print(json.dumps({"name": case.name, "begin": True}), flush=True)
        told: dict[str, Any] = {"name": case.name}
        if case.needs and not has(case.needs):
            told["skipped"] = f"the device lacks {case.needs}"
        else:
            try:
                result = case.run()
                told |= {"right": result.right, "error": _number(result.error), "seconds": result.seconds}
            except Exception as error:  # whatever a driver or the compiler makes of it
                told |= {"right": False, "error": f"{type(error).__name__}: {error}"}
        print(json.dumps(told), flush=True)


def _number(value: float) -> float | str:
    return value if value == value and abs(value) != float("inf") else str(value)


def without_persons(known: Any) -> Any:
    """What is known, without homes, the names of the user and of the machine, and UUIDs."""
    personal = [(str(Path.home()), "~")]
    with suppress(OSError, KeyError):
        personal.append((getpass.getuser(), "USER"))
    personal.append((socket.gethostname(), "MACHINE"))
    patterns = [
        (re.compile(rf"(?<![\w]){re.escape(text)}(?![\w])"), instead)
        for text, instead in personal
        if len(text) > 1 and text not in ("root", "localhost")
    ]

    def cleaned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: cleaned(one) for key, one in value.items() if key not in ("uuid", "luid")}
        if isinstance(value, list):
            return [cleaned(one) for one in value]
        if isinstance(value, str):
            for pattern, instead in patterns:
                value = pattern.sub(instead, value)
        return value

    return cleaned(known)


def profile_of(path: Path) -> dict[str, Any]:
    """The profile of the device that a report is about. Raises OSError, NotAReport."""
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise NotAReport(f"{path} is no report of a device that runs kernels: {error}") from None
    return reported_profile(path, known)


def run_profile_of(path: Path, output: Path) -> int:
    """``triton-spirv profiles --from REPORT -o PROFILE.json``: writes the profile of a report's device."""
    try:
        write_whole(output, (json.dumps(profile_of(path), indent=2, ensure_ascii=False) + "\n").encode())
        profile = read_profile(output)
    except OSError as error:
        print(f"triton-spirv: {error.filename or path}: {error.strerror}", file=sys.stderr)
        return 1
    except ValueError as error:
        print(f"triton-spirv: {error}", file=sys.stderr)
        return 1
    print(f"{output}: {profile.description}; compile for it with --target {output}")
    return 0


if __name__ == "__main__":
    os.environ.setdefault("TRITON_SPIRV_SELF_TEST", "0")
    main(sys.argv[1:])
