"""`sync`: fetch upstream's release wheel, check it against the lock, lay it out in build/upstream."""

from __future__ import annotations

from ..hold import hold
from ..project import Project
from ..upstream import sync


def run(project: Project, arguments: list[str]) -> int:
    with hold(project):
        release = sync(project)
    print(f"{release.tree}: {project.lock().name} {release.version}")
    return 0
