"""`python3 -m tools <verb>`: starts on the standard library alone and goes on in the repository's .venv."""

from __future__ import annotations

import errno
import os
import signal
import sys

if sys.version_info < (3, 11):  # noqa: UP036 (this is where an older Python learns of it)
    raise SystemExit("error: Python 3.11 or newer is needed, this is " + sys.version.split()[0])

import difflib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from backend.settings import SettingError

from .errors import ToolError
from .project import ROOT, Project
from .venv import enter

# verb → (what it does, the requirements it runs with)
VERBS = {
    "demo": ("set up, build and install the wheel, run the example kernels", "run"),
    "test": (
        "set up, build and install the wheel, run linters and the test suite "
        "[--fast|--whole|--for FILE] [pytest arguments]",
        "test",
    ),
    "dev": ("set up .venv for changing this checkout: its Python files are used where they lie [--native]", "test"),
    "fuzz": ("run random kernels against upstream's interpreter, float64 and torch [--seeds A:B]", "test"),
    "upstream-tests": ("run upstream's own tests on this backend, and print the rate [FOLDER…]", "test"),
    "suites": ("run kernel libraries' own tests for CUDA, as they are [SOURCES --fetch --page --only LIBRARY]", "test"),
    "sync": ("fetch upstream's release wheel and lay it out in build/upstream", "build"),
    "apply": ("apply overlay/ and patches/ to build/upstream", "build"),
    "status": ("tell what state tree, series and lock are in", "build"),
    "export": ("write the commits of build/upstream back to patches/ and overlay/", "build"),
    "mail": ("write the patches that upstream could take, each with its test, for `git am` [OUT]", "build"),
    "rebase": ("move the queue onto another upstream [--to VERSION|REF --report --continue --skip --abort]", "build"),
    "recover": ("undo the last step that was not finished: a change of patches/, an apply, a rebase", "build"),
    "check": ("verify that lock, series and tree agree: one line and a reason code for each fault", "build"),
    "submodule": ("have the index pin upstream/ to the lock's commit, in a checkout without that entry", ""),
    "new-plugin": ("write a plugin that builds, with its test [NAME FOLDER]", ""),
    "windows": ("build the plugin for Windows, and run it under Wine [--torch] [FOLDER of what is fetched]", "build"),
    "triton-ext": ("write the backend in the form that triton-ext takes [FOLDER, a checkout of it]", "build"),
    "packages": ("print the apt packages that all this needs and the system lacks", ""),
    "try-wheel": ("install wheels into environments of their own, and launch a kernel with each [WHEEL…]", "build"),
    "audit": ("have auditwheel check what platform wheels run on [WHEEL…]", "release"),
    "index": ("write the pages of a package index for releases' wheels [OUT URL=SHA256SUMS…]", ""),
    "release": (
        "check a release's wheels, and write what is published beside them [DIST OUT, --dry-run OUT]",
        "release",
    ),
    "wheel": ("build the wheel into dist/ [setup.py bdist_wheel arguments]", "build"),
}


# Those that explain their arguments themselves.
_EXPLAINS_ITSELF = ("demo", "fuzz", "rebase", "suites", "upstream-tests", "wheel")

# Those without arguments.
ALONE = ("packages", "sync", "apply", "status", "export", "recover", "check", "submodule")


def usage() -> str:
    width = max(map(len, VERBS))
    lines = [f"  {verb:<{width}}  {what}" for verb, (what, _) in VERBS.items()]
    return "usage: python3 -m tools [--root DIR] <verb> [arguments]\n\n" + "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Run one verb; returns the exit status: 0 done, 1 failed, 2 wrong usage."""
    root = ROOT
    if arguments[:1] == ["--root"] and len(arguments) > 1:
        root, rest = Path(arguments[1]).resolve(), arguments[2:]
    else:
        rest = arguments
    if not rest or rest[0] in ("-h", "--help", "help"):
        print(usage())
        return 0 if rest else 2
    verb = rest[0]
    if verb not in VERBS:
        close = difflib.get_close_matches(verb, VERBS, 1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        print(f"error: there is no verb {verb!r}: {hint}`python3 -m tools help` lists them", file=sys.stderr)
        return 2
    if {"-h", "--help"} & set(rest[1:]) and verb not in _EXPLAINS_ITSELF:
        print(f"usage: python3 -m tools {verb}: {VERBS[verb][0]}")
        return 0
    if rest[1:] and verb in ALONE:
        print(f"error: {verb} has no argument {rest[1]!r}", file=sys.stderr)
        return 2

    def run() -> int:
        enter(Project(ROOT), VERBS[verb][1], arguments)
        status: int = import_module(f".verbs.{verb.replace('-', '_')}", __package__).run(Project(root), rest[1:])
        return status

    return reported(run)


def reported(run: Callable[[], int]) -> int:
    """Run something; an error that a person can act on is one line, with exit status 1."""
    try:
        status = run()
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Whoever read the output has gone, as in `tools status | head`: nothing more can be said to them.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except (ToolError, SettingError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        what = _OF_THE_SYSTEM.get(error.errno or 0)
        if what is None:
            raise
        print(f"error: {what.format(error=error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


_NO_ROOM = "no room on the disk ({error}): make some and run it again"
_NOT_WRITABLE = (
    "{error}: build/, dist/ and .venv lie in the checkout, so it must be writable: copy it to a folder of your own"
)
_OF_THE_SYSTEM = dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), _NO_ROOM)
_OF_THE_SYSTEM |= dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), _NOT_WRITABLE)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
