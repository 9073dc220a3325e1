"""Change several files of the checkout in one step: all of them, or none.

The new contents are written to build/journal first; that folder appears by a rename, and from then on the change is
carried out, by this run or, where it is killed, by the next one. Each step may be repeated.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from .errors import ToolError
from .faults import point
from .project import Project, replace_file


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


def has_submodule(root: Path) -> bool:
    """Whether the checkout is a git repository with a submodule entry for upstream/."""
    if not (root / ".git").exists():
        return False
    command = ["git", "-C", str(root), "ls-files", "--stage", "--", "upstream"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stdout.startswith("160000 ")


def commit(project: Project, change: Change) -> None:
    """Carry a change out. Call it with the build folder held (`Project.exclusive`)."""
    scratch = Path(tempfile.mkdtemp(dir=project.build, prefix=".journal-"))
    try:
        writes: dict[str, str] = {}
        for number, (path, data) in enumerate(change.files.items()):
            if data is not None:
                writes[_inside(path)] = str(number)
                (scratch / str(number)).write_bytes(data)
        removals = [_inside(path) for path, data in change.files.items() if data is None]
        manifest = {
            "writes": writes,
            "removals": removals,
            "gitlink": change.gitlink,
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
    """Finish the change that a killed run left half-done. False where there is none."""
    folder = _folder(project)
    if not folder.is_dir():
        return False
    manifest = json.loads((folder / "manifest.json").read_text())
    for path, name in manifest["writes"].items():
        replace_file(project.root / path, (folder / name).read_bytes())
        point("journal-half")
    for path in manifest["removals"]:
        (project.root / path).unlink(missing_ok=True)
    if manifest["gitlink"] and has_submodule(project.root):
        entry = f"160000,{manifest['gitlink']},upstream"
        command = ["git", "-C", str(project.root), "update-index", "--cacheinfo", entry]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ToolError(f"git cannot pin upstream/ to {manifest['gitlink'][:12]}: {done.stderr.strip()}; run again")
    point("journal-carried-out")
    for number, path in enumerate(manifest["drop"]):
        if (project.root / path).exists():
            os.replace(project.root / path, project.build / f".journal-dropped-{os.getpid()}-{number}")
    gone = project.build / f".journal-{os.getpid()}"
    folder.rename(gone)
    for leftover in (gone, *project.build.glob(f".journal-dropped-{os.getpid()}-*")):
        shutil.rmtree(leftover, ignore_errors=True)
    return True
