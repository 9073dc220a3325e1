"""`status`: what state tree, series and lock are in. What a killed run left half-done is told, not finished."""

from __future__ import annotations

from .. import journal, rebase
from ..errors import ToolError
from ..hold import hold
from ..project import Project
from ..queue import queue_hash, series_names
from ..repository import Repository
from ..upstream import other_release


def run(project: Project, arguments: list[str]) -> int:
    with hold(project, recover=False):
        return _tell(project)


def _tell(project: Project) -> int:
    if journal.is_unfinished(project):
        _tell_unfinished("a change of patches/, overlay/ and the lock")
        return 0
    lock = project.lock()
    digest = queue_hash(project)
    print(f"upstream   {lock.name} {lock.version} ({lock.ref}, {lock.commit[:12]})")
    agrees = "as in the lock" if digest == lock.queue else f"the lock has {lock.queue[:12]}"
    print(f"queue      {digest[:12]}, {agrees}")
    if rebase.folder(project).exists():
        going = rebase.load(project)
        where = f"stopped at {going.todo[0][1]}" if going.todo else "all patches are through"
        print(f"rebase     onto {going.goal.name}, {where}: go on with --continue, --skip or --abort")
    if not (project.tree / ".git").is_dir():
        print("tree       none yet: run `python3 -m tools sync`")
        return 0
    if reason := other_release(project, lock):
        print(f"tree       {reason}")
        return 0
    with Repository(project, recover=False) as repository:
        if repository.is_moving():
            _tell_unfinished("an apply")
            return 0
        status = repository.status()
        commits = [commit for commit in repository.commits() if not repository.is_overlay(commit)]
        held = {patch.name: patch.text() for patch in map(repository.patch_of, commits)}
        trouble = _trouble(repository)
    if status.applied_queue == digest and not status.behind:
        state = "the queue is applied"
    else:
        state = "another queue is applied" if status.applied_queue else "nothing is applied"
    print(f"tree       {project.tree}: {state}")
    for name in series_names(project):
        print(f"patch      {name}: {_state_of(project, name, held, trouble)}")
    if status.ahead:
        print("commits    some are not in patches/: run `python3 -m tools export`")
    if status.behind:
        print(f"commits    {status.behind} applied ones are gone: `tools apply` has them again, `export` drops them")
    for line in status.dirty:
        print(f"changed    {line[3:]}")
    return 0


def _tell_unfinished(what: str) -> None:
    print(f"unfinished {what}: the next `tools apply` finishes it, `recover` takes it back")


def _trouble(repository: Repository) -> str:
    """Why the series on disk does not apply, '' if it does."""
    try:
        repository.commit_queue()
    except ToolError as error:
        return str(error).splitlines()[0]
    return ""


def _state_of(project: Project, name: str, held: dict[str, str], trouble: str) -> str:
    path = project.patches / name
    if trouble.startswith(f"patch {name} does not apply"):
        return trouble.removeprefix(f"patch {name} ")
    if not path.is_file():
        return "is not in patches/"
    if name not in held:
        return "not applied"
    return "applied" if path.read_text() == held[name] else "changed since it was applied"
