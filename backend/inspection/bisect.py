"""``triton-spirv bisect script.py``: runs it with TRITON_SPIRV_CHECK_VALUES, and writes what a report needs."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from .. import settings
from ..availability import requested_here
from ..runtime.errors import ValuesDiffer
from ..runtime.files import given_path, write_whole
from .user_programs import add_program, exit_status, named, not_there, run_program


def add_bisect(parser: argparse.ArgumentParser) -> None:
    """The options of ``bisect``."""
    parser.add_argument(
        "-o",
        "--output",
        type=given_path,
        metavar="FILE.json",
        help="the file for a report: the kernel, what it was launched with, options and versions "
        "(default: KERNEL.values.json)",
    )
    parser.add_argument("--data", action="store_true", help="also write the memory of the kernel's arguments there")
    add_program(parser)


@requested_here()
def run_bisect(options: argparse.Namespace) -> int:
    """The script's own exit status where all values are the same; 2 where some differ, which stderr says; 1 where the
    script cannot be run."""
    if wrong := not_there(options):
        print(f"triton-spirv bisect: error: {wrong}", file=sys.stderr)
        return 1
    from ..launching.values import values_launcher as launcher

    name = settings.CHECK_VALUES.name
    before = os.environ.get(name)
    os.environ[name] = "1"
    start, compared = len(launcher.found_here), launcher.compared_here
    try:
        raised = run_program(*named(options))
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before
    found = launcher.found_here[start:]
    if not found:
        compared = launcher.compared_here - compared
        print(f"triton-spirv bisect: launches that were compared: {compared}; no value differs", file=sys.stderr)
        return exit_status(raised)
    for error in {str(one): one for one in found}.values():
        print(error, file=sys.stderr)
    path = options.output or Path(f"{found[0].kernel}.values.json")
    write_whole(path, _text(found[0], options.data).encode())
    print(f"triton-spirv bisect: {path} is for a report", file=sys.stderr)
    return 2


def _text(error: ValuesDiffer, data: bool) -> str:
    told = dict(error.report)
    memory = told.pop("data")
    return json.dumps(told | ({"data": memory()} if data else {}), indent=2, default=str) + "\n"
