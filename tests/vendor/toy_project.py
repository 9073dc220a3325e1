"""A project on a toy upstream: small release wheels, two patches and an overlay file."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import platform
import re
import subprocess
import sys
import zipfile
from pathlib import Path

from vendor_support import ROOT

from tools.packaging.archive import record_digest
from tools.project import Lock, Project, ReleaseWheel, is_free_threaded
from tools.queue import queue_hash

ALPHA = "".join(f"line {number}\n" for number in range(1, 41))
COMMIT = "ab" * 20
TAG = f"cp{sys.version_info[0]}{sys.version_info[1]}"
ABI = f"{TAG}{'t' if is_free_threaded() else ''}"
TAGS = f"{TAG}-{ABI}-linux_{platform.machine()}"

FIRST = """\
From: A Person <a@example.org>
Subject: first: change the second line

Why: the toy needs it.
Upstream-Status: not submitted
---
diff --git a/python/triton/alpha.py b/python/triton/alpha.py
--- a/python/triton/alpha.py
+++ b/python/triton/alpha.py
@@ -1,5 +1,5 @@
 line 1
-line 2
+line two
 line 3
 line 4
 line 5
@@ -35,6 +35,7 @@ line 34
 line 35
 line 36
 line 37
+line 37 and a half
 line 38
 line 39
 line 40
"""

SECOND = """\
From: A Person <a@example.org>
Subject: second: add a file

Why: so does this,
over two lines.
Upstream-Status: not submitted
---
diff --git a/python/triton/gamma.py b/python/triton/gamma.py
new file mode 100644
--- /dev/null
+++ b/python/triton/gamma.py
@@ -0,0 +1 @@
+GAMMA = 3
\\ No newline at end of file
"""


def write_release(
    folder: Path, version: str = "1.0", tags: str = TAGS, library: bytes = b"\x7fELF", **modules: str
) -> ReleaseWheel:
    """Write a toy release wheel; `alpha` and other modules may be given their text, '' leaves one out."""
    name = f"triton-{version}-{tags}.whl"
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        "triton/__init__.py": f"__version__ = '{version}'\n",
        **{f"triton/{module}.py": text for module, text in ({"alpha": ALPHA} | modules).items() if text},
        "triton/_C/libtriton.so": library,
        "triton/include/header.h": "int x;\n",
        f"triton-{version}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: triton\nVersion: {version}\n",
        f"triton-{version}.dist-info/WHEEL": f"Wheel-Version: 1.0\nTag: {tags}\n",
        f"triton-{version}.dist-info/entry_points.txt": "",
    }
    record = f"triton-{version}.dist-info/RECORD"
    with zipfile.ZipFile(folder / name, "w") as archive:
        rows = []
        for path, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            archive.writestr(zipfile.ZipInfo(path), data)
            rows.append(f"{path},sha256={record_digest(hashlib.sha256(data).digest())},{len(data)}\n")
        archive.writestr(zipfile.ZipInfo(record), "".join([*rows, f"{record},,\n"]))
    digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    python, abi, where = tags.split("-")
    return ReleaseWheel(python, abi, where.removeprefix("linux_"), name, digest)


def own_facts(root: Path) -> None:
    """This repository's pyproject.toml, for a backend that any release of the toy is new enough for."""
    facts = (ROOT / "pyproject.toml").read_text()
    (root / "pyproject.toml").write_text(re.sub("needs-triton = .*", 'needs-triton = "1.0"', facts))


def make_project(root: Path, patches: dict[str, str], overlay: dict[str, str], wheel: ReleaseWheel) -> Project:
    """A checkout with that queue, locked to version 1.0 of the toy; its wheel must be in the cache already."""
    project = Project(root)
    root.mkdir(exist_ok=True)
    (root / ".gitmodules").write_text('[submodule "upstream"]\n\tpath = upstream\n\turl = file:///nowhere/t.git\n')
    own_facts(root)
    project.patches.mkdir()
    (project.patches / "series").write_text("".join(f"{name}\n" for name in patches))
    for name, text in patches.items():
        (project.patches / name).write_text(text)
    for path, text in overlay.items():
        target = project.overlay / "python/triton" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    version = wheel.file.split("-")[1]
    lock = Lock("triton", version, "file:///nowhere/t.git", f"v{version}", COMMIT, queue_hash(project), (wheel,))
    project.lock_file.write_text(lock.text())
    return project


def toy_project(root: Path, evil: str = "") -> Project:
    """The project with the two patches and layer.py; its release wheel has a member named `evil` if one is given."""
    wheel = write_release(Project(root).cache / "wheels")
    if evil:
        path = Project(root).cache / "wheels" / wheel.file
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr(zipfile.ZipInfo(evil), "evil")
        wheel = dataclasses.replace(wheel, sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    patches = {"first.patch": FIRST, "second.patch": SECOND}
    return make_project(root, patches, {"layer.py": "LAYER = 1\n"}, wheel)


def relock(project: Project) -> None:
    """Put the present queue's hash in the lock."""
    project.lock_file.write_text(dataclasses.replace(project.lock(), queue=queue_hash(project)).text())


def snapshot(folder: Path, left_out: tuple[str, ...] = ()) -> dict[str, bytes]:
    """Every file but git's own, with its content, and but those below the folders that are left out."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".git" not in path.parts and path.relative_to(folder).parts[0] not in left_out
    }


def sources(project: Project) -> dict[str, bytes]:
    """What a person would commit: everything outside build/ and dist/."""
    return snapshot(project.root, left_out=("build", "dist"))


def git(folder: Path, *arguments: str) -> str:
    """Run git there, with an identity."""
    identity = {f"GIT_{who}_{what}": "me@here" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **identity, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return done.stdout
