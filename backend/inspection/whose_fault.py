"""``triton-spirv verdict script.py``: whether a wrong result is the kernel's fault or the compiler's, by the order of
docs/debugging.md.

The script runs in a process of its own for each check. A process writes what it found as JSON: errors of this backend,
whatever the script makes of them, and how it ended. Its launches are recorded, and at last compared with what they do
under Triton's interpreter, and so is what the script prints.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import textwrap
import traceback
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .. import settings
from ..availability import requested_here
from ..runtime.device_choice import selected
from ..runtime.errors import DeviceUnavailable
from ..runtime.files import given_path, write_whole
from .recorded_launches import DifferentLaunch, LaunchRecorder, Recording, first_difference
from .user_programs import add_program, exit_status, named, not_there, run_program

#: How far numbers that are printed may be apart, relative to each other: they are rounded otherwise in other orders.
_NEAR = 1e-3
#: How far they may be apart as they are: scripts print errors of rounding, which differ by any factor.
_TINY = 1e-4

#: Exit statuses: nothing is wrong as far as that can be seen; a fault was found; nothing could be decided.
RIGHT, FOUND, UNDECIDED = 0, 2, 3

#: Errors that decide something → whose fault it is.
_KERNEL, _COMPILER = "The fault is the kernel's.", "The fault is the compiler's."
_FAULTS = {
    "OutOfBounds": (_KERNEL, "Mend the mask, the stride or the size in that line."),
    "ProgramRace": (_KERNEL, "Use an atomic operation, or let each program write elements of its own."),
    "SharedMemoryRace": (_COMPILER, "A barrier is missing."),
    "KernelFault": (_KERNEL, "It accesses memory that is not there, or divides by zero, in that line."),
}
_CHECKED = "No access is outside a tensor, no race was found, and no optional pass changes a value."
#: Kinds of devices that are this processor.
_PROCESSORS = ("CPU", "emulated")


@dataclass(frozen=True)
class Ran:
    """How a process ended: the exit ``status``, what it ``printed``, the ``last`` line on stderr, ``found``, the
    errors of this backend, each with its ``type``, ``message``, ``items`` and ``report``, and its launches."""

    status: int
    printed: str
    last: str
    found: tuple[dict[str, Any], ...]
    recording: Recording


@dataclass(frozen=True)
class Verdict:
    """``status``: RIGHT, FOUND or UNDECIDED. ``report``: what whoever mends the compiler needs; None where it is not
    the compiler's fault. ``kernel``: whose it is."""

    status: int
    text: str
    report: dict[str, Any] | None = None
    kernel: str = "kernel"


def add_verdict(parser: argparse.ArgumentParser) -> None:
    """The options of ``verdict``."""
    parser.add_argument(
        "-o",
        "--output",
        type=given_path,
        metavar="FILE.json",
        help="the file for a report, where the compiler is at fault (default: KERNEL.verdict.json)",
    )
    add_program(parser)


@requested_here()
def run_verdict(options: argparse.Namespace) -> int:
    """Prints one paragraph: 0 where nothing was found, 2 where it says whose fault it is, 3 where that could not be
    decided, 1 where the script is not there."""
    if wrong := not_there(options):
        print(f"triton-spirv verdict: error: {wrong}", file=sys.stderr)
        return 1
    program, arguments = named(options)
    with tempfile.TemporaryDirectory(prefix="triton-spirv-") as folder:
        found = _Inquiry(program, arguments, Path(folder)).verdict()
    text = found.text
    if found.report is not None:
        path = options.output or Path(f"{found.kernel}.verdict.json")
        versions = {"triton": version("triton"), "python": platform.python_version(), "os": platform.platform()}
        told = {"format": 1, "verdict": text, "device": _device_name(), "versions": versions, **found.report}
        write_whole(path, (json.dumps(told, indent=2, default=str) + "\n").encode())
        text += f" To report it, send {path} and the script to whoever gave you this wheel."
    print(textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False))
    return found.status


@dataclass
class _Inquiry:
    """The runs of one script."""

    program: Path | str
    arguments: list[str]
    folder: Path
    runs: int = 0

    def verdict(self) -> Verdict:
        """What the checks say, in their order."""
        usual = self.run("as it is", {})
        if error := _deciding(usual):
            return _of_error(error)
        return self._of_accesses(usual) or self._of_interpreter(usual)

    def _of_accesses(self, usual: Ran) -> Verdict | None:
        """What checks of bounds, races and values say; None if they find nothing."""
        only_usual: dict[str, Any] | None = None  # an access or a race that the kernel has only as it is optimised
        for name, words in ((settings.CHECK_BOUNDS.name, "1"), (settings.CHECK_RACES.name, _races())):
            checked = self.run(f"{name}={words}", {name: words})
            if error := _deciding(checked):
                title = f"{name}={words} {settings.REFERENCE.name}=1"
                reference = self.run(title, {name: words, settings.REFERENCE.name: "1"})
                if _deciding(reference) or reference.status not in (0, usual.status):  # as is its compiling that failed
                    return _of_error(error)
                only_usual = error
                break
            if checked.status != usual.status:
                return _failed(f"{name}={words}", checked)
        if only_usual is None and _api() not in _PROCESSORS:  # which sees more than a GPU, but no CUDA tensors
            there = {settings.CHECK_RACES.name: settings.ALL, settings.DEVICE.name: "cpu"}
            if error := _deciding(self.run(f"{settings.CHECK_RACES.name}={settings.ALL} on the CPU", there)):
                return _of_error(error)
        name = settings.CHECK_VALUES.name
        compared = self.run(f"{name}=1", {name: "1"})
        for error in compared.found:
            if error["type"] == "ValuesDiffer" and error["items"]:
                return _compilers(f"{_message(error)}.", error)
            if error["type"] == "ValuesDiffer":
                return Verdict(UNDECIDED, f"This could not be decided: {_message(error)}.")
        if only_usual is not None:
            return _compilers(
                f"{_message(only_usual)}. The same kernel without optional passes does no such thing, so one of those "
                "is wrong. Launch with `reference=True` meanwhile.",
                only_usual,
            )
        return _failed(f"{name}=1", compared) if compared.status != usual.status else None

    def _of_interpreter(self, usual: Ran) -> Verdict:
        """What the interpreter decides, launch by launch, or by what the script prints."""
        interpreted = self.run("TRITON_INTERPRET=1", {"TRITON_INTERPRET": "1"})
        launch = first_difference(usual.recording, interpreted.recording)
        if isinstance(launch, DifferentLaunch):
            return self._of_launch(launch, usual, interpreted)
        for error in interpreted.found:
            if error["type"] == "InterpreterError" and "AssertionError" in error["message"]:
                what = "tl.assume() or an assertion" if "Assume" in error["message"] else "an assertion"
                return Verdict(
                    FOUND,
                    f"{_KERNEL} {error['place']}: {what} of the kernel is false, as the interpreter says: "
                    f"{error['message']}. Without `debug=True` compiled code does not check it, and it may compute "
                    f"anything from a false tl.assume(). {_CHECKED}",
                )
        kernels = _kernels(usual.recording)
        if not kernels:
            how = f"ends with {usual.last!r}" if usual.status else "ends without an error"
            return Verdict(UNDECIDED, f"This could not be decided: the script launches no kernel, and {how}.")
        if usual.status != interpreted.status:
            as_it_is, there = (
                f"with status {one.status} ({one.last!r})" if one.status else "without an error"
                for one in (usual, interpreted)
            )
            return Verdict(
                UNDECIDED,
                f"This could not be decided: the script ends {as_it_is} as it is, and {there} under the interpreter. "
                f"{_CHECKED}",
            )
        if isinstance(launch, str):
            return Verdict(
                UNDECIDED,
                f"This could not be decided: {launch}. {_CHECKED} Have the script do the same each time (seed its "
                "random numbers), so that it can be compared with the interpreter.",
            )
        if difference := _difference(usual.printed, interpreted.printed):
            return Verdict(
                UNDECIDED,
                f"This could not be decided: the script prints {difference[0]!r}, and {difference[1]!r} under the "
                f"interpreter, though every launch leaves the same in its arguments. {_CHECKED} Leave out what it "
                "prints of time, and seed its random numbers.",
            )
        unwritten = usual.recording.unwritten()
        hint = (
            f" {unwritten}: is the mask, the grid or the block right, or was it to be filled before?"
            if unwritten
            else ""
        )
        ends = f" It ends with {usual.last!r} in both." if usual.status else ""
        return Verdict(
            RIGHT,
            f"If the result is wrong, the fault is the kernel's or the script's.{hint} {_CHECKED} As compiled and "
            f"under the interpreter, each launch leaves the same values: {kernels}.{ends} So the kernel computes what "
            "it says. Print values in it (tl.device_print), and make it smaller.",
        )

    def _of_launch(self, launch: DifferentLaunch, usual: Ran, interpreted: Ran) -> Verdict:
        """The verdict on a launch that leaves other values under the interpreter."""
        if launch.depends:
            return Verdict(UNDECIDED, f"This could not be decided: {launch}. But {launch.depends}. {_CHECKED}")
        again = first_difference(usual.recording, self.run("as it is, again", {}).recording)
        if again is not None:
            what = f"two runs as it is differ, too ({again})".replace("under the interpreter", "in the other run")
            return Verdict(UNDECIDED, f"This could not be decided: {launch}; {what}. {_CHECKED}")
        second = "emulate:nvidia-hopper" if _api() == "CPU" else "cpu"
        other = self.run(f"{settings.DEVICE.name}={second}", {settings.DEVICE.name: second})
        where = ""
        if len(other.recording.launches) == len(usual.recording.launches):
            if first_difference(usual.recording, other.recording) is None:
                where = f" On {second} the value is the same, so it is no fault of one device's code."
            elif first_difference(interpreted.recording, other.recording) is None:
                where = f" On {second} the value is the interpreter's, so what only this device's code has is wrong."
        text = (
            f"The fault is the compiler's or the interpreter's. {launch}. {_CHECKED} So what every compilation needs "
            f"is wrong: the lowering of an operation, LLVM or the driver.{where} Make the kernel smaller."
        )
        return Verdict(FOUND, text, {"launch": launch.facts}, launch.kernel)

    def run(self, title: str, environment: dict[str, str]) -> Ran:
        """Runs the script in a process with these variables, and tells on stderr what runs."""
        print(f"triton-spirv verdict: {title} …", file=sys.stderr, flush=True)
        self.runs += 1
        folder = self.folder / str(self.runs)
        folder.mkdir()
        which = ["script", str(self.program)] if isinstance(self.program, Path) else ["module", self.program]
        done = subprocess.run(
            [sys.executable, "-m", __spec__.name if __spec__ else __name__, str(folder), *which, *self.arguments],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        told = folder / "found.json"
        found = json.loads(told.read_text(encoding="utf-8")) if told.exists() else []
        last = (done.stderr.strip().splitlines() or [""])[-1]
        return Ran(done.returncode, done.stdout, last, tuple(found), Recording(folder / "launches"))


def _message(error: dict[str, Any]) -> str:
    return str(error["message"]).replace("\n", "; ")


def _compilers(text: str, error: dict[str, Any]) -> Verdict:
    return Verdict(FOUND, f"{_COMPILER} {text}", {"found": [error]}, error.get("kernel") or "kernel")


def _deciding(ran: Ran) -> dict[str, Any] | None:
    """An error of this backend that decides; None if there was none."""
    return next((error for error in ran.found if error["type"] in _FAULTS), None)


def _of_error(error: dict[str, Any]) -> Verdict:
    whose, advice = _FAULTS[error["type"]]
    if whose == _COMPILER:
        return _compilers(f"{_message(error)}. {advice}", error)
    return Verdict(FOUND, f"{whose} {_message(error)}. {advice}")


def _kernels(recording: Recording) -> str:
    """The kernels that were launched, with their places."""
    named = dict.fromkeys(f"{one['kernel']} ({one['place']})" for one in recording.launches)
    return ", ".join(list(named)[:4]) + (f" and {len(named) - 4} more" if len(named) > 4 else "")


def _failed(check: str, ran: Ran) -> Verdict:
    return Verdict(
        UNDECIDED,
        f"This could not be decided: with {check} the script ends with status {ran.status} ({ran.last!r}), and in "
        "another way without it.",
    )


def _device_name() -> str:
    """What TRITON_SPIRV_DEVICE says."""
    return os.environ.get(settings.DEVICE.name, "")


def _api() -> str:
    """What kind of device is in use: "CPU", "emulated", "Vulkan"; empty if there is none."""
    try:
        return selected().api
    except (DeviceUnavailable, ValueError):
        return ""


def _races() -> str:
    """What can be checked on the device in use: races between programs on a processor alone."""
    return settings.ALL if _api() in _PROCESSORS else "1"


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


def _child(folder: Path, sort: str, program: str, arguments: list[str]) -> int:
    """The process: runs the script, writes its errors and launches, and ends as it did."""
    recorder = LaunchRecorder(folder / "launches")
    recorder.start()
    raised = run_program(Path(program) if sort == "script" else program, arguments)
    recorder.write()
    found: list[BaseException] = []
    error = raised
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    values = sys.modules.get(f"{__package__.rpartition('.')[0]}.launching.values.values_launcher")
    for one in values.found_here if values is not None else ():
        if one not in found:
            found.append(one)
    (folder / "found.json").write_text(
        json.dumps([_told(one) for one in found if not isinstance(one, SystemExit)], default=str), encoding="utf-8"
    )
    return exit_status(raised)


def _place(error: BaseException) -> str:
    """FILE:LINE of the innermost frame that is no package's."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _of_a_package(frame.filename)]
    inner = _place(error.__cause__) if error.__cause__ is not None else ""
    return inner or (f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "")


def _of_a_package(file: str) -> bool:
    import triton  # a runtime alone does without it

    own = str(Path(triton.__file__).parent), str(Path(__file__).parents[1])  # anywhere, by pip install --target
    return file.startswith(("<", *own)) or any(
        part in ("site-packages", "dist-packages", f"python{sys.version_info[0]}.{sys.version_info[1]}")
        for part in Path(file).parts
    )


def _told(error: BaseException) -> dict[str, Any]:
    report = {key: value for key, value in getattr(error, "report", {}).items() if key != "data"}
    told = {"type": type(error).__name__, "message": str(error), "report": report, "place": _place(error)}
    return told | {name: getattr(error, name, default) for name, default in (("items", ()), ("kernel", ""))}


if __name__ == "__main__":
    sys.exit(_child(Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]))
