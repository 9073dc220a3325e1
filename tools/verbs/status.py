"""`status`: what state tree, series and lock are in."""

from __future__ import annotations

from .. import rebase
from ..project import Project
from ..queue import queue_hash, series_names
from ..repository import Repository


def run(project: Project, arguments: list[str]) -> int:
    with project.exclusive():
        return _tell(project)


def _tell(project: Project) -> int:
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
    with Repository(project) as repository:
        status = repository.status()
        commits = repository.commits()
        applied = {repository.patch_of(commit).name for commit in commits if not repository.is_overlay(commit)}
    if status.applied_queue == digest:
        state = "the queue is applied"
    else:
        state = "another queue is applied" if status.applied_queue else "nothing is applied"
    print(f"tree       {project.tree}: {state}")
    for name in series_names(project):
        print(f"patch      {name}: {'applied' if name in applied else 'not applied'}")
    if status.head != status.applied_head:
        print("commits    some are not in patches/: run `python3 -m tools export`")
    for line in status.dirty:
        print(f"changed    {line[3:]}")
    return 0
