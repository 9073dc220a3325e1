"""`packages`: the Debian and Ubuntu packages that the tools need and that are not there, on one line.

What is there by another way is left out: an interpreter with its headers, say, which no distribution may have.
"""

from __future__ import annotations

from .. import system
from ..project import Project


def run(project: Project, arguments: list[str]) -> int:
    needs = system.BUILD + system.RUN + system.TEST
    print(" ".join(dict.fromkeys(package for need in needs if not need.present() for package in need.packages)))
    return 0
