"""`recover`: undo the last step that was not finished, instead of finishing it as every other verb does."""

from __future__ import annotations

import shutil

from .. import journal, rebase
from ..hold import hold
from ..project import Project
from ..repository import Repository


def run(project: Project, arguments: list[str]) -> int:
    with hold(project, recover=False):
        if journal.undo(project):
            print("taken back: lock, patches/ and overlay/ are as they were before the change that was not finished")
            return 0
        if (project.tree / ".git").is_dir():
            with Repository(project, recover=False) as repository:
                if repository.undo_move():
                    print("taken back: build/upstream is as it was before the apply that was not finished")
                    return 0
        if rebase.folder(project).exists():
            give_up(project)
            return 0
    print("nothing is unfinished")
    return 0


def give_up(project: Project) -> None:
    """Drop the rebase that is going on."""
    scratch = project.build / ".rebase-aborted"
    rebase.folder(project).rename(scratch)
    shutil.rmtree(scratch)
    print("the rebase is given up; patches/, overlay/ and the lock are as they were")
