"""`apply`: bring build/upstream to upstream + overlay/ + patches/, one commit a patch."""

from __future__ import annotations

from ..hold import hold
from ..project import Project
from ..queue import series_names
from ..repository import Repository
from ..upstream import sync


def run(project: Project, arguments: list[str]) -> int:
    with hold(project):
        sync(project)
        with Repository(project) as repository:
            changed = repository.apply()
    count = len(series_names(project))
    print(f"applied overlay/ and {count} patches" if changed else f"nothing to do: {count} patches are applied")
    return 0
