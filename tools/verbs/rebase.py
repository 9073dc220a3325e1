"""`rebase`: move the queue onto another upstream.

rebase --to VERSION|REF|WHEEL|FOLDER[@REVISION] [--commit SHA] [--no-test | --report]
rebase --continue | --skip | --abort
"""

from __future__ import annotations

import argparse
import importlib.util
import platform
import subprocess
import sys

from .. import goal as goals
from .. import rebase, registry
from ..errors import ToolError
from ..hold import hold
from ..packaging.facts import too_old
from ..progress import note
from ..project import Project
from ..repository import Repository
from ..upstream import prepare
from .recover import give_up

CONTRACT_TESTS = "tests/vendor/test_contract.py"


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python3 -m tools rebase", allow_abbrev=False)
    what = parser.add_mutually_exclusive_group(required=True)
    names = "a release, `newest`, a wheel file, a folder, a checkout@revision, or a ref of the submodule"
    what.add_argument("--to", metavar="VERSION|REF|PATH", help=names)
    what.add_argument("--continue", dest="go_on", action="store_true", help="the conflict is resolved in build/rebase")
    what.add_argument("--skip", action="store_true", help="go on without the patch that is in conflict")
    what.add_argument("--abort", action="store_true", help="give the rebase up; nothing has changed")
    parser.add_argument("--report", action="store_true", help="only tell what would happen; status 1 on a conflict")
    parser.add_argument("--commit", default="", metavar="SHA", help="commit of the release's tag, if offline")
    parser.add_argument("--no-test", action="store_true", help="do not build the tree and run the contract tests")
    return parser.parse_args(arguments)


def run(project: Project, arguments: list[str]) -> int:
    options = parse(arguments)
    with hold(project):
        if options.abort:
            return _abort(project)
        if options.report:
            if not options.to:
                raise ToolError("--report goes with --to")
            goal = goals.goal_of(project, _name(project, options.to), options.commit, needs_commit=False)
            return 0 if rebase.report(project, goal, print) else 1
        if options.to:
            _refuse_unsaved(project)
            goal = goals.goal_of(project, _name(project, options.to), options.commit)
            state = rebase.start(project, goal)
            mover = rebase.Mover(project, rebase.folder(project), state)
        else:
            state = rebase.load(project)
            mover = rebase.Mover(project, rebase.folder(project), state)
            mover.skip() if options.skip else mover.resolve()
        if not mover.run(_stop):
            return 1
        rebase.tell_outcomes(state, print)
        for path, name in rebase.unused_overlay(project, state).items():
            print(
                f"overlay/{path} is left: only {name}, which was skipped, used it; remove it, or bring the patch back"
            )
        rebase.finish(project, state)
        print(f"the queue is on {project.lock().name} {state.goal.version} ({state.goal.ref}) now")
        if (project.root / "backend/name.conf").is_file() and (reason := too_old(project)):
            note(f"no wheel with this backend in it can be built from here: {reason}")
        if options.no_test:
            return 0
        if project.lock().wheels:
            prepare(project)
    return _contract_tests(project)


def _name(project: Project, name: str) -> str:
    return registry.newest(project.lock().name, platform.machine()) if name == "newest" else name


def _stop(name: str, lines: list[str]) -> bool:
    for line in lines:
        print(line)
    print(
        "resolve it in build/rebase/tree and run `python3 -m tools rebase --continue`; "
        "--skip goes on without it, --abort gives up"
    )
    return False


def _refuse_unsaved(project: Project) -> None:
    if rebase.folder(project).exists():
        raise ToolError("a rebase is going on: finish it with --continue or --skip, or give it up with --abort")
    if (project.tree / ".git").is_dir():
        with Repository(project) as repository:
            repository.refuse_unsaved()


def _abort(project: Project) -> int:
    if not rebase.folder(project).exists():
        raise ToolError("no rebase is going on")
    give_up(project)
    return 0


def _contract_tests(project: Project) -> int:
    """Run the tests of the plugin contract against the new upstream."""
    if not (project.root / CONTRACT_TESTS).is_file():
        return 0
    if importlib.util.find_spec("pytest") is None:
        note(f"pytest is not installed here: run `python3 -m tools test {CONTRACT_TESTS}`")
        return 0
    command = [sys.executable, "-m", "pytest", "-q", CONTRACT_TESTS]
    return subprocess.run(command, cwd=project.root, check=False).returncode
