"""`export`: write the commits of build/upstream back to overlay/ and patches/, and the queue's hash to the lock.

A commit that came from a patch keeps that patch's file name; another gets one made of its subject.
"""

from __future__ import annotations

import dataclasses

from .. import journal
from ..errors import ToolError
from ..hold import hold
from ..project import Project
from ..queue import queue_hash, refuse_unsafe
from ..queue_files import changed_files, collect
from ..repository import Repository


def run(project: Project, arguments: list[str]) -> int:
    with hold(project), Repository(project) as repository:
        dirty = repository.status().dirty
        if dirty:
            raise ToolError(f"{project.tree} has uncommitted changes ({dirty[0][3:]}): commit them there first")
        status = repository.status()
        if status.applied_head == status.head and status.applied_queue != queue_hash(project):
            # patches/ was edited since the last apply and the tree was not: the tree holds the older state.
            raise ToolError("patches/ or overlay/ changed since the last apply: run `python3 -m tools apply` first")
        repository.refuse_syntax_errors(repository.commits())
        overlay, patches = collect(repository)
        for patch in patches:
            refuse_unsafe(patch)
            if missing := patch.missing_headers():
                lacks = " and ".join(f"`{key}:`" for key in missing)
                raise ToolError(
                    f"the commit {patch.subject!r} has no {lacks} in its message: say why the patch is there and what "
                    f"upstream thinks of it, with `git -C {project.tree} commit --amend` (or `rebase -i`)"
                )
        lock = dataclasses.replace(project.lock(), shadowed=repository.shadowed(overlay))
        files, lock = changed_files(project, overlay, patches, lock)
        if files:
            journal.commit(project, journal.Change(files))
        repository.adopt(lock.queue)
    for name, data in files.items():
        print(f"wrote {name}" if data is not None else f"removed {name}")
    if not files:
        print("nothing to do: patches/ and overlay/ are what the tree gives")
    return 0
