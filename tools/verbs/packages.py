"""`packages`: the Debian and Ubuntu packages that the tools need, for a machine that is set up before they run."""

from __future__ import annotations

from .. import system
from ..project import Project


def run(project: Project, arguments: list[str]) -> int:
    needs = system.BUILD + system.RUN + system.TEST
    print(" ".join(dict.fromkeys(package for need in needs for package in need.packages)))
    return 0
