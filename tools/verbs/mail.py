"""`mail OUT`: write the patches that upstream could take as they are, each with its test, for `git am`.

A patch is taken if it has a folder in patches/tests/, which holds files of upstream's tree. Each is one mail: the patch
alone on the locked upstream, its overlay files and its test in one commit, with a subject and a body in upstream's
form. The files are numbered in the order in which they are best sent. DEP-3's fields stand below the message.
"""

from __future__ import annotations

import re
import subprocess
from email.utils import formatdate
from pathlib import Path

from ..errors import ToolError
from ..hold import hold
from ..project import Project
from ..queue import Patch, load_series, overlay_files, uses_module
from ..repository import UPSTREAM_REF, Repository
from ..upstream import sync

#: Patch → its subject there, which begins with upstream's word for the part. Wrong values come first, then what fails
#: or misleads, then what a backend can have from upstream alone, then what serves backends in other ways.
SUBJECTS = {
    "equal-constants": "[RUNTIME] Give constants that compare equal kernels of their own",
    "bf16-constants": "[FRONTEND] Make bfloat16 constants as precise as the type",
    "unsigned-loops": "[FRONTEND] Compare bounds of unsigned ranges as unsigned numbers",
    "loop-carries": "[FRONTEND] Carry each name that enters a loop with a shared value",
    "whole-loads": "[RUNTIME] Load a kernel in one thread, and set its launcher last",
    "damaged-metadata": "[RUNTIME] Compile a kernel again whose cached metadata are damaged",
    "interpreted-floats": "[INTERPRETER] Compute bfloat16 and fp8 with their values",
    "interpreted-numbers": "[INTERPRETER] Give numbers of loops and arguments their types",
    "load-masks": "[FRONTEND] Refuse a mask of tl.load that is not boolean",
    "warmup": "[RUNTIME] Leave out configurations in warmup that the device has no room for",
    "untimed-configurations": "[AUTOTUNER] Say that no configuration could be timed",
    "cache-folder": "[RUNTIME] Run kernels where the cache folder cannot be used",
    "binary-stages": "[RUNTIME] Store and read any backend's binary",
    "early-return": "[RUNTIME] Return early from a launch that no driver here may make",
    "relaunch": "[RUNTIME] Let a driver repeat a launch by a shorter way",
    "known-key": "[RUNTIME] Read the key of an unchanged Triton from the cache",
    "run-time-backends": "[BACKEND] Let programs add a backend while they run",
    "asm-views": "[RUNTIME] Show a kernel's code in forms that its backend makes",
    "graph-benchmarks": "[TESTING] Time do_bench_cudagraph with the graphs of the active driver",
    "autotune-store": "[AUTOTUNER] Let a driver keep choices outside of the process",
    "interpreted-backends": "[INTERPRETER] Compile a backend's own kernels, and take its arrays",
}


def run(project: Project, arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0].startswith("-"):
        raise ToolError("mail needs a folder to write to")
    out = Path(arguments[0])
    out.mkdir(parents=True, exist_ok=True)
    with hold(project):
        sync(project)
        series = load_series(project)
        places = {patch.name.removesuffix(".patch"): place for place, patch in enumerate(series)}
        places = {name: place for name, place in places.items() if _tests(project, series[place]).is_dir()}
        if unknown := sorted(places.keys() - SUBJECTS.keys()):
            raise ToolError(f"tools/verbs/mail.py has no subject for {', '.join(unknown)}")
        with Repository(project) as repository:
            commits = repository.build_queue(UPSTREAM_REF, series, {})
            for number, name in enumerate([name for name in SUBJECTS if name in places], 1):
                path, place = out / f"{number:04}-{name}.patch", places[name]
                change = commits[place], commits[place + 1]
                path.write_text(_mail(project, repository, series[place], change, SUBJECTS[name]))
                print(path)
    return 0


def _tests(project: Project, patch: Patch) -> Path:
    return project.patches / "tests" / patch.name.removesuffix(".patch")


def _mail(project: Project, repository: Repository, patch: Patch, change: tuple[str, str], subject: str) -> str:
    text = patch.body + patch.diff
    overlay = {path: file for path, file in overlay_files(project).items() if uses_module(text, path)}
    folder = _tests(project, patch)
    tests = {file.relative_to(folder).as_posix(): file for file in sorted(folder.rglob("*.py"))}
    try:
        single = repository.alone(UPSTREAM_REF, patch, *change)
        commit = repository.build_queue(UPSTREAM_REF, [single], overlay | tests)[-1]
    except ToolError as error:
        raise ToolError(f"{error}: it does not stand alone on {project.lock().version}") from None
    diff = repository.diff_of(UPSTREAM_REF, commit)
    why = re.sub(r"\ban overlay(\s+)module", r"a new\1module", patch.header("Why"))
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
        f"Subject: [PATCH] {subject}",
        "",
        f"{why[:1].upper()}{why[1:]}",
        "---",
        *fields,
        "",
    ]
    return "\n".join(head) + diff + "-- \ntools mail\n"


def _date(project: Project, patch: Patch, form: str) -> str:
    """When the patch was last changed in this repository, '' if it is in none."""
    path = project.patches / patch.name
    command = ["git", "-C", str(project.root), "log", "-1", f"--format={form}", "--", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
