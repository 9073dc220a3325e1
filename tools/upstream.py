"""Fetch upstream's release wheel and lay it out as a source tree (the release form of upstream)."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from .errors import ToolError
from .faults import point
from .progress import note, step
from .project import Lock, Project, ReleaseWheel, exchange, file_sha256, is_free_threaded, pip_environment, replace_file

_MARK = "release.json"


@dataclass(frozen=True)
class Release:
    """An upstream release that is laid out: its wheel file and its tree."""

    wheel: Path
    tree: Path
    version: str

    @property
    def dist_info(self) -> Path:
        """The wheel's own metadata, kept beside the tree."""
        return self.tree / "dist-info"


def wheel_path(project: Project, wheel: ReleaseWheel) -> Path:
    """Where a release wheel is kept."""
    return project.cache / "wheels" / wheel.file


def _verify(path: Path, wheel: ReleaseWheel) -> None:
    found = file_sha256(path)
    if found != wheel.sha256:
        raise ToolError(f"{path}: sha256 is {found}, upstream.lock.toml says {wheel.sha256}; the file was not used")


def fetch(project: Project, lock: Lock, wheel: ReleaseWheel, choice: Sequence[str] = ()) -> Path:
    """The release wheel, downloaded with pip where it is not there yet, and checked against the lock either way.

    `choice`: pip's options for an interpreter that is not the running one.
    """
    target = wheel_path(project, wheel)
    if target.exists():
        _verify(target, wheel)
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    if not sys.stderr.isatty():
        command += ["--quiet", "--progress-bar=off"]
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".download-") as scratch:
        with step(f"fetch {wheel.file}", quiet_child=False):
            command += [*choice, "--dest", scratch, f"{lock.name}=={lock.version}"]
            done = subprocess.run(command, env=pip_environment(), stdout=sys.stderr, check=False)
        if done.returncode:
            raise ToolError(f"pip could not download {lock.name}=={lock.version}: see its message above")
        found = Path(scratch) / wheel.file
        if not found.exists():
            names = ", ".join(path.name for path in Path(scratch).iterdir()) or "nothing"
            raise ToolError(f"pip downloaded {names} where upstream.lock.toml expects {wheel.file}")
        _verify(found, wheel)
        point("fetch-downloaded")
        os.replace(found, target)
    return target


def keep(project: Project, file: Path, wheels: Sequence[ReleaseWheel]) -> Path:
    """A wheel file that was named, copied to where downloaded ones are; ``wheels`` is what it is, none or one.

    Raises ToolError if it is not for the running interpreter, or has the name of another one there.
    """
    python, arch = sys.version_info[:2], platform.machine()
    if not any(wheel.serves(python, is_free_threaded(), arch) for wheel in wheels):
        ours = f"Python {python[0]}.{python[1]}{' free-threaded' if is_free_threaded() else ''} on {arch}"
        raise ToolError(f"{file.name} is, by its name, no wheel for {ours}, which the tree is laid out for")
    target = wheel_path(project, wheels[0])
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, file.read_bytes())
    elif file_sha256(target) != wheels[0].sha256:
        raise ToolError(f"{target} is another wheel of that name: give {file} another version, or remove that one")
    return target


def _unpack(wheel: Path, lock: Lock, tree: Path) -> None:
    """Lay a wheel out as a source tree: its package under python/, its metadata in dist-info/."""
    metadata = f"{lock.name}-{lock.version}.dist-info"  # of the file's name: PEP 427
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            top, _, rest = member.filename.partition("/")
            if top not in (lock.name, metadata) or ".." in PurePosixPath(member.filename).parts:
                raise ToolError(f"{wheel.name}: unexpected member {member.filename}")
            target = tree / ("dist-info" if top == metadata else f"python/{top}") / rest
            if member.is_dir():
                target.mkdir(parents=True, exist_ok=True)
                continue
            mode = member.external_attr >> 16
            if stat.S_ISLNK(mode):
                raise ToolError(f"{wheel.name}: {member.filename} is a link")
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(member) as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink, 1 << 20)
            target.chmod(0o755 if mode & 0o111 else 0o644)


def sync(project: Project) -> Release:
    """Lay the locked release out in build/upstream, as the first commit of a git repository.

    Does nothing where it is there already. The new tree replaces an older one by a rename, and only where the older
    one holds no work that is not in patches/.
    """
    from . import repository

    lock = project.lock()
    wheel = lock.wheel_for_this_python()
    release = Release(wheel_path(project, wheel), project.tree, lock.version)
    mark = project.tree / _MARK
    wanted = {"file": wheel.file, "sha256": wheel.sha256}
    if mark.exists() and json.loads(mark.read_text()) == wanted and release.wheel.exists():
        return release
    fetch(project, lock, wheel)
    if mark.exists() and json.loads(mark.read_text()) == wanted:
        return release
    if (project.tree / ".git").is_dir():
        with repository.Repository(project) as old:
            old.refuse_unsaved()
    scratch = Path(tempfile.mkdtemp(dir=project.build, prefix=".sync-"))
    try:
        fresh = scratch / "upstream"
        with step(f"lay out {lock.name} {lock.version}"):
            _unpack(release.wheel, lock, fresh)
            point("sync-unpacked")
            repository.create(fresh)
            (fresh / _MARK).write_text(json.dumps(wanted))
        point("sync-created")
        exchange(fresh, project.tree, scratch / "old")
        point("sync-exchanged")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return release


def other_release(project: Project, lock: Lock) -> str:
    """Why build/upstream is not the locked release for this Python, '' if it is."""
    mark = project.tree / _MARK
    try:
        wheel = lock.wheel_for_this_python()
    except ToolError as error:
        return str(error)
    held = json.loads(mark.read_text()) if mark.exists() else {}
    version = re.search(
        r"^__version__ = ['\"]([^'\"]+)", (project.tree / "python/triton/__init__.py").read_text(), re.MULTILINE
    )
    if not version or version.group(1) != lock.version.partition("+")[0]:
        return f"build/upstream is version {version.group(1) if version else 'unknown'}, the lock says {lock.version}"
    if held == {"file": wheel.file, "sha256": wheel.sha256}:
        return ""
    return (
        f"build/upstream is {held.get('file', 'of no known release')}, upstream.lock.toml names {wheel.file}: run "
        "`python3 -m tools apply`"
    )


def prepare(project: Project) -> Release:
    """Sync and apply: the patched tree that everything else builds from."""
    from .repository import Repository

    project.build.mkdir(parents=True, exist_ok=True)
    release = sync(project)
    with Repository(project) as repository:
        if repository.apply():
            note(f"applied overlay/ and patches/ to {lock_name(project)}")
    return release


def lock_name(project: Project) -> str:
    """`name version` of the locked upstream."""
    lock = project.lock()
    return f"{lock.name} {lock.version}"
