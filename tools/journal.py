"""Change several files of the checkout in one step: all of them, or none.

A git repository, build/journal, holds the change: a commit of what is there now, and on top of it one of what is to be.
The folder appears by a rename, and from then on the change is carried out, by this run or, where it is killed, by the
next one. A change that cannot be carried out is taken back: the branch `forward` is deleted, and from then on what was
there is put back, by this run or the next one. Each step may be repeated. This module runs before GitPython is there.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from .errors import ToolError
from .faults import point
from .progress import note
from .project import Project, replace_file
from .submodule import entry_of, pin

# What passes once there is room again; the next run goes on then.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# The commit of what is to be, and whether to go there.
_NEW, _FORWARD = "refs/heads/new", "refs/heads/forward"


@dataclass(frozen=True)
class Change:
    """What is to be changed; paths are relative to the checkout."""

    files: Mapping[str, bytes | None]
    """Path → new content, None for a file that goes."""
    gitlink: str = ""
    """The commit to pin the submodule to in the index, '' to leave it alone."""
    drop: tuple[str, ...] = field(default=())
    """Folders of the checkout that go with the change."""


def _folder(project: Project) -> Path:
    return project.build / "journal"


def commit(project: Project, change: Change) -> None:
    """Carry a change out, or change nothing and raise. Call it with the build folder held (`hold`)."""
    if change.gitlink and not re.fullmatch(r"[0-9a-f]{40}", change.gitlink):
        raise ToolError(f"{change.gitlink!r} is not a full commit id; nothing was changed")
    for path in (*change.files, *change.drop):
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts or not PurePosixPath(path).parts:
            raise ToolError(f"{path!r} is not a path inside the checkout")
    present = {path: project.root / path for path in change.files}
    old = {path: file.read_bytes() for path, file in present.items() if file.exists()}
    new = {path: data for path, data in change.files.items() if data is not None}
    gitlink = entry_of(project.root) if change.gitlink else ""
    scratch = Path(tempfile.mkdtemp(dir=project.build, prefix=".journal-"))
    try:
        _git(scratch, "init", "--quiet", "--bare", "--template=", ".")
        stream = _commit(old, gitlink) + _commit(new, "\n".join((change.gitlink, *change.drop)))
        stream += f"reset {_FORWARD}\nfrom {_NEW}\n".encode()
        _git(scratch, "fast-import", "--quiet", data=stream)
        point("journal-written")
        scratch.rename(_folder(project))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    point("journal-begun")
    recover(project)


def _git(folder: Path, *arguments: str, data: bytes = b"") -> bytes:
    """What git prints there, in the bare repository that the folder is."""
    command = ["git", "--git-dir=.", *arguments]
    try:
        return subprocess.run(command, cwd=folder, input=data, capture_output=True, check=True).stdout
    except subprocess.CalledProcessError as error:
        raise _Unusable(f"git cannot use {folder}: {error.stderr.decode(errors='replace').strip()}") from None


class _Unusable(ToolError):
    """The repository of a change is damaged."""


def _commit(files: Mapping[str, bytes], message: str) -> bytes:
    """A commit of these files alone, in the language of `git fast-import`.

    Its message has the submodule's commit, and then the folders that go with it, each on a line.
    """
    parts = [f"commit {_NEW}\ncommitter tools <tools@localhost> 0 +0000\n".encode(), _data(message.encode())]
    parts.append(b"deleteall\n")
    for path, data in files.items():
        parts += [f"M 100644 inline {json.dumps(path, ensure_ascii=False)}\n".encode(), _data(data)]
    return b"".join(parts)


def _data(content: bytes) -> bytes:
    return b"data %d\n%b\n" % (len(content), content)


def recover(project: Project) -> bool:
    """Finish, or take back, the change that a killed run left half-done. False if there is none."""
    if not is_unfinished(project):
        return False
    try:
        if not _go(project):
            note("a change that could not be carried out was taken back")
            return False
    except (ToolError, OSError) as error:
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            raise
        undo(project)
        raise ToolError(f"{error}; the change was taken back: lock, patches/ and overlay/ are as they were") from None
    return True


def is_unfinished(project: Project) -> bool:
    """Whether a killed run left a change half-done."""
    return _folder(project).is_dir()


def undo(project: Project) -> bool:
    """Take back the change that a killed run left half-done, instead of finishing it. False if there is none."""
    if not is_unfinished(project):
        return False
    try:
        _git(_folder(project), "update-ref", "-d", _FORWARD)
        point("rollback-begun")
        _go(project)
    except _Unusable as error:
        kept = project.build / "journal-unusable"
        shutil.rmtree(kept, ignore_errors=True)
        _folder(project).rename(kept)
        raise ToolError(
            f"{error}; so what it changed cannot be taken back: look at `git status`, and restore what is wrong with "
            f"`git checkout -- upstream.lock.toml patches overlay`; the remains are in {kept}"
        ) from None
    return True


def _go(project: Project) -> bool:
    """Bring the checkout to the goal. False if that is where it came from."""
    folder = _folder(project)
    forward = bool(_git(folder, "for-each-ref", _FORWARD))
    goal = _NEW if forward else f"{_NEW}^"

    def names(*arguments: str) -> list[str]:
        return [os.fsdecode(name) for name in _git(folder, *arguments, "-z", "--name-only").split(b"\0") if name]

    wanted = {path: _git(folder, "cat-file", "blob", f"{goal}:{path}") for path in names("ls-tree", "-r", goal)}
    for path in names("diff-tree", "-r", f"{_NEW}^", _NEW):
        if path in wanted:
            replace_file(project.root / path, wanted[path])
            point("journal-half" if forward else "rollback-half")
        else:
            (project.root / path).unlink(missing_ok=True)
    gitlink, *drop = _git(folder, "show", "-s", "--format=%B", goal).decode().split("\n")
    if gitlink and entry_of(project.root) not in ("", gitlink):  # a checkout may do without the entry
        pin(project, gitlink)
    point("journal-carried-out" if forward else "rollback-put-back")
    gone = [project.root / path for path in drop if path and (project.root / path).exists()]
    for number, place in enumerate([*gone, folder]):
        scratch = project.build / f".journal-{os.getpid()}-{number}"
        place.rename(scratch)
        shutil.rmtree(scratch, ignore_errors=True)
    return forward
