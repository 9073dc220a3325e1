"""Change several files of the checkout in one step: all of them, or none.

The new contents, and what is there now, are written to build/journal first; that folder appears by a rename, and from
then on the change is carried out, by this run or, where it is killed, by the next one. A change that cannot be carried
out is taken back: the folder is renamed to build/rollback, and from then on what was there is put back, by this run or
the next one. Each step may be repeated.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from .errors import ToolError
from .faults import point
from .progress import note
from .project import Project, replace_file
from .submodule import entry_of, pin

# What passes once there is room again; the next run goes on then.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_OLD = "old-"


@dataclass(frozen=True)
class Change:
    """What is to be changed; paths are relative to the checkout."""

    files: Mapping[str, bytes | None]
    """Path → new content, None for a file that goes."""
    gitlink: str = ""
    """The commit to pin the submodule to in the index, '' to leave it alone."""
    drop: tuple[str, ...] = field(default=())
    """Folders in build/ that go with the change."""


def _inside(path: str) -> str:
    where = PurePosixPath(path)
    if where.is_absolute() or ".." in where.parts or not where.parts:
        raise ToolError(f"{path!r} is not a path inside the checkout")
    return path


def _folder(project: Project) -> Path:
    return project.build / "journal"


def _rollback_folder(project: Project) -> Path:
    return project.build / "rollback"


def _pin(project: Project, commit: str) -> None:
    """Move the submodule entry of the index to a commit, in a checkout that has the entry."""
    if commit and entry_of(project.root) not in ("", commit):
        pin(project, commit)


def commit(project: Project, change: Change) -> None:
    """Carry a change out, or change nothing and raise. Call it with the build folder held (`Project.exclusive`)."""
    if change.gitlink and not re.fullmatch(r"[0-9a-f]{40}", change.gitlink):
        raise ToolError(f"{change.gitlink!r} is not a full commit id; nothing was changed")
    scratch = Path(tempfile.mkdtemp(dir=project.build, prefix=".journal-"))
    try:
        writes: dict[str, str] = {}
        olds: dict[str, str] = {}
        for number, (path, data) in enumerate(change.files.items()):
            present = project.root / _inside(path)
            if present.exists():
                olds[path] = f"{_OLD}{number}"
                (scratch / olds[path]).write_bytes(present.read_bytes())
            if data is not None:
                writes[path] = str(number)
                (scratch / str(number)).write_bytes(data)
        manifest = {
            "writes": writes,
            "removals": [path for path, data in change.files.items() if data is None],
            "olds": olds,
            "gitlink": change.gitlink,
            "old_gitlink": entry_of(project.root) if change.gitlink else "",
            "drop": [_inside(path) for path in change.drop],
        }
        (scratch / "manifest.json").write_text(json.dumps(manifest, indent=1))
        point("journal-written")
        scratch.rename(_folder(project))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    point("journal-begun")
    recover(project)


def recover(project: Project) -> bool:
    """Finish, or take back, the change that a killed run left half-done. False if there is none."""
    if _rollback_folder(project).is_dir():
        _put_back(project)
        note("a change that could not be carried out was taken back")
    folder = _folder(project)
    if not folder.is_dir():
        return False
    try:
        manifest = _manifest(folder)
        _carry_out(project, folder, manifest)
        for number, path in enumerate(manifest["drop"]):
            if (project.root / path).exists():
                os.replace(project.root / path, project.build / f".journal-dropped-{os.getpid()}-{number}")
    except (ToolError, OSError) as error:
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            raise
        undo(project)
        raise ToolError(f"{error}; the change was taken back: lock, patches/ and overlay/ are as they were") from None
    _finished(project, folder)
    return True


def is_unfinished(project: Project) -> bool:
    """Whether a killed run left a change half-done."""
    return _folder(project).is_dir() or _rollback_folder(project).is_dir()


def undo(project: Project) -> bool:
    """Take back the change that a killed run left half-done, instead of finishing it. False if there is none."""
    if not _rollback_folder(project).is_dir():
        if not _folder(project).is_dir():
            return False
        _folder(project).rename(_rollback_folder(project))
        point("rollback-begun")
    _put_back(project)
    return True


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
        _ = [manifest[key] for key in ("writes", "removals", "olds", "gitlink", "old_gitlink", "drop")]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ToolError(f"{folder}/manifest.json cannot be used ({error!r})") from None
    return manifest


def _carry_out(project: Project, folder: Path, manifest: dict[str, Any]) -> None:
    for path, name in manifest["writes"].items():
        replace_file(project.root / path, (folder / name).read_bytes())
        point("journal-half")
    for path in manifest["removals"]:
        (project.root / path).unlink(missing_ok=True)
    _pin(project, manifest["gitlink"])
    point("journal-carried-out")


def _put_back(project: Project) -> None:
    """What was there before: repeated by the next run where this one is killed."""
    folder = _rollback_folder(project)
    try:
        manifest = _manifest(folder)
    except ToolError as error:
        kept = project.build / "journal-unusable"
        shutil.rmtree(kept, ignore_errors=True)
        folder.rename(kept)
        raise ToolError(
            f"{error}, so what it changed cannot be taken back: look at `git status`, and restore what is wrong with "
            f"`git checkout -- upstream.lock.toml patches overlay`; the remains are in {kept}"
        ) from None
    for path, name in manifest["olds"].items():
        replace_file(project.root / path, (folder / name).read_bytes())
        point("rollback-half")
    for path in manifest["writes"].keys() - manifest["olds"].keys():
        (project.root / path).unlink(missing_ok=True)
    if manifest["gitlink"]:
        _pin(project, manifest["old_gitlink"])
    point("rollback-put-back")
    _finished(project, folder)


def _finished(project: Project, folder: Path) -> None:
    gone = project.build / f".journal-{os.getpid()}"
    folder.rename(gone)
    for leftover in (gone, *project.build.glob(f".journal-dropped-{os.getpid()}-*")):
        shutil.rmtree(leftover, ignore_errors=True)
