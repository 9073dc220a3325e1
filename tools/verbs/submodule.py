"""`submodule`: have the index pin upstream/ to the lock's commit."""

from __future__ import annotations

from .. import submodule
from ..hold import hold
from ..project import Project


def run(project: Project, arguments: list[str]) -> int:
    with hold(project):
        lock = project.lock()
        submodule.pin(project, lock.commit)
        # Without the folder, git would call the submodule deleted.
        project.submodule.mkdir(exist_ok=True)
    print(f"the index pins upstream/ to {lock.ref}, commit {lock.commit}; `{submodule.CHECK_OUT}` fetches it")
    return 0
