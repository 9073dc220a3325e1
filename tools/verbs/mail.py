"""`mail OUT`: write the patches that upstream could take as they are, each with its test, for `git am`.

A patch is taken if it has a folder in patches/tests/, which holds files of upstream's tree. Each is one mail: the patch
alone on the locked upstream, its overlay files and its test in one commit, with DEP-3's fields in the message.
"""

from __future__ import annotations

import subprocess
from email.utils import formatdate
from pathlib import Path

from ..errors import ToolError
from ..hold import hold
from ..project import Project
from ..queue import Patch, load_series, overlay_files, uses_module
from ..repository import UPSTREAM_REF, Repository
from ..upstream import sync


def run(project: Project, arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0].startswith("-"):
        raise ToolError("mail needs a folder to write to")
    out = Path(arguments[0])
    out.mkdir(parents=True, exist_ok=True)
    with hold(project):
        sync(project)
        ready = [patch for patch in load_series(project) if _tests(project, patch).is_dir()]
        for patch in ready:
            path = out / patch.name
            path.write_text(_mail(project, patch))
            print(path)
    return 0


def _tests(project: Project, patch: Patch) -> Path:
    return project.patches / "tests" / patch.name.removesuffix(".patch")


def _mail(project: Project, patch: Patch) -> str:
    text = patch.body + patch.diff
    series = load_series(project)
    queue = series[: [one.name for one in series].index(patch.name) + 1]
    overlay = {path: file for path, file in overlay_files(project).items() if uses_module(text, path)}
    folder = _tests(project, patch)
    tests = {file.relative_to(folder).as_posix(): file for file in sorted(folder.rglob("*.py"))}
    with Repository(project) as repository:
        try:
            single = repository.alone(UPSTREAM_REF, queue)
            commit = repository.build_queue(UPSTREAM_REF, [single], overlay | tests)[-1]
        except ToolError as error:
            raise ToolError(f"{error}: it does not stand alone on {project.lock().version}") from None
        diff = repository.diff_of(UPSTREAM_REF, commit)
    why = patch.header("Why")
    fields = [
        f"Origin: vendor, {patch.author}",
        "Forwarded: no",
        f"Last-Update: {_date(project, patch, '%cs') or formatdate(0)[5:16]}",
        f"Applies-To: {project.lock().name} {project.lock().version}",
    ]
    head = [
        f"From {'0' * 40} Mon Sep 17 00:00:00 2001",
        f"From: {patch.author}",
        f"Date: {_date(project, patch, '%cD') or formatdate(0)}",
        f"Subject: [PATCH] {patch.subject}",
        "",
        f"{why[:1].upper()}{why[1:]}",
        "",
        *fields,
        "---",
        "",
    ]
    return "\n".join(head) + diff + "-- \ntools mail\n"


def _date(project: Project, patch: Patch, form: str) -> str:
    """When the patch was last changed in this repository, '' if it is in none."""
    path = project.patches / patch.name
    command = ["git", "-C", str(project.root), "log", "-1", f"--format={form}", "--", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
