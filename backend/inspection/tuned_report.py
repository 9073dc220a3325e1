"""``triton-spirv tuned``: shows, checks and merges files of choices of autotuning (TRITON_SPIRV_TUNED)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from importlib.metadata import version

from ..launching.tuned_file import TunedConfig, TunedFileError, merged, read, write
from ..runtime.device_choice import installed
from ..runtime.errors import DeviceUnavailable
from ..runtime.files import given_path


def add_tuned(parser: argparse.ArgumentParser) -> None:
    """The options of the verb."""
    parser.add_argument("files", type=given_path, nargs="+", metavar="FILE", help="files of TRITON_SPIRV_TUNED")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--check",
        action="store_true",
        help="say what is of no use here: choices of another version, and those of no device of this machine; the exit "
        "status is 1 if there is any, or if a file cannot be read",
    )
    what.add_argument(
        "-o",
        "--output",
        type=given_path,
        metavar="FILE",
        help="write the choices of all files into one; of two choices for the same, the later file's counts",
    )


def run_tuned(options: argparse.Namespace) -> int:
    """Prints the choices, one a line; 1 where a file cannot be read or written, or a check finds something."""
    try:
        if missing := [path for path in options.files if not path.is_file()]:
            raise TunedFileError(f"there is no file {missing[0]}")
        choices = sorted(merged(*map(read, options.files)), key=lambda one: one.subject)
        if options.output is not None:
            write(options.output, choices)
    except (TunedFileError, OSError) as error:
        print(f"triton-spirv tuned: error: {error}", file=sys.stderr)
        return 1
    shown = list(_remarks(choices)) if options.check else [str(one) for one in choices]
    print(*shown, sep="\n")
    return int(options.check and bool(shown))


def _remarks(choices: list[TunedConfig]) -> Iterator[str]:
    """What is of no use here."""
    here = version("triton")
    try:
        devices = {device.name for device in installed()}
    except DeviceUnavailable:
        devices = set()
    for one in choices:
        if one.device not in devices:
            yield f"{one}: no device of this machine"
        elif one.versions.get("triton") != here:
            yield f"{one}: measured with triton {one.versions.get('triton')}, here is {here}"
