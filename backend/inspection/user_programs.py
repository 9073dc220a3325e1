"""Running a user's script or module as ``__main__``, for verbs that look at what it launches."""

from __future__ import annotations

import argparse
import importlib.util
import runpy
import sys
from pathlib import Path

from ..runtime.files import given_path


def add_program(parser: argparse.ArgumentParser) -> None:
    """The options that name the program. They come last, behind the verb's own."""
    parser.set_defaults(own_options=frozenset(parser._option_string_actions))
    parser.add_argument(
        "-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE …", help="run a module, as python -m does"
    )
    parser.add_argument(
        "script", type=given_path, nargs="?", metavar="SCRIPT.py", help="the script, which is run as it is"
    )
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="…", help="its arguments")


def _misplaced(own: frozenset[str], arguments: list[str], program: str) -> str:
    """What is wrong with a program's own arguments: one of them is an option of the verb. Behind ``--``, which argparse
    takes away, all are the program's."""
    for argument in () if "--" in sys.argv else arguments:
        if argument.startswith("--") and argument.partition("=")[0] in own - {"--help"}:
            return (
                f"{argument} stands behind {program}, whose own arguments begin there: write it before, or `--` before "
                "the program's arguments if it is one of them"
            )
    return ""


def not_there(options: argparse.Namespace) -> str:
    """What is wrong with the program that was asked for; "" if nothing is."""
    if not options.module:
        if options.script is None:
            return "name a script, or a module with -m"
        if not options.script.is_file():
            return f"there is no file {options.script}"
        return _misplaced(options.own_options, options.arguments, str(options.script))
    name, before = options.module[0], sys.path[0]
    sys.path[0] = str(Path.cwd())
    try:
        found = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        found = None
    finally:
        sys.path[0] = before
    if found is None:
        return f"there is no module {name}"
    return _misplaced(options.own_options, options.module[1:], f"-m {name}")


def named(options: argparse.Namespace) -> tuple[Path | str, list[str]]:
    """The script, or the name of the module, and its arguments."""
    return (options.module[0], options.module[1:]) if options.module else (options.script, options.arguments)


def run_program(program: Path | str, arguments: list[str]) -> BaseException | None:
    """Runs a script, or a module by its name, as ``__main__``; what it raised, SystemExit included."""
    saved = sys.argv, sys.path[0]
    folder = program.resolve().parent if isinstance(program, Path) else Path.cwd()
    sys.argv, sys.path[0] = [str(program), *arguments], str(folder)
    try:
        if isinstance(program, Path):
            runpy.run_path(str(program.absolute()), run_name="__main__")  # its kernels are found from other folders
        else:
            runpy.run_module(program, run_name="__main__", alter_sys=True)
    except BaseException as error:  # what was seen up to here is worth showing, whatever ended the program
        return error
    finally:
        sys.argv, sys.path[0] = saved
    return None


def exit_status(raised: BaseException | None) -> int:
    """The program's own exit status. Raises what it raised, but for SystemExit."""
    if isinstance(raised, SystemExit):
        return raised.code if isinstance(raised.code, int) else int(raised.code is not None)
    if raised is not None:
        raise raised
    return 0
