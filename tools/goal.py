"""Where a rebase goes: a release of upstream, a wheel, a folder or a ref of the submodule, checked before anything
changes."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

from .errors import ToolError
from .packaging.source_form import submodule_version
from .progress import note
from .project import Lock, Project
from .submodule import how_to_check_out

_VERSION = re.compile(r"\d+(\.\d+)+((a|b|rc)\d+)?(\.post\d+)?")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_LOOK_UP_SECONDS = 60
#: In the lock where no commit is known: git's own id of nothing. `tools check` reports it.
NO_COMMIT = "0" * 40


@dataclass(frozen=True)
class Goal:
    """The upstream to move to."""

    name: str
    """As it was asked for: a version or a ref."""
    form: str
    """`release`: from release wheels; `source`: in the submodule."""
    version: str
    ref: str
    commit: str
    note: str = ""
    """What the lock is to say of the commit: that it was not checked."""
    place: str = ""
    """The wheel file or folder that was named, which the registry does not vouch for."""

    @property
    def wheel_file(self) -> Path | None:
        """The wheel file that was named."""
        return Path(self.place) if self.place and Path(self.place).is_file() else None


# How a note begins that a rebase wrote by itself, and takes away again.
_UNCHECKED = "not checked: "


def commit_notes(lock: Lock, goal: Goal) -> dict[str, str]:
    """The lock's notes once it names the goal's commit. What people wrote stays."""
    notes = {commit: text for commit, text in lock.commit_notes.items() if not text.startswith(_UNCHECKED)}
    if goal.note:
        notes.setdefault(goal.commit, goal.note)
    return notes


def is_commit(text: str) -> bool:
    """Whether a text is a full commit id."""
    return bool(_COMMIT.fullmatch(text))


def release_goal(project: Project, version: str, commit: str, needs_commit: bool) -> Goal:
    """A release of upstream, with the commit of its tag.

    The commit is looked up at the lock's URL. One that is given as well must be the same; where the look-up is not
    possible, it is taken as it is, with a warning.
    """
    if commit and not is_commit(commit):
        raise ToolError(f"--commit {commit!r} is not a full commit id (40 hexadecimal digits, in lower case)")
    text = ""
    if needs_commit:
        url = project.lock().url
        found, why = _tag_commit(url, version)
        if found and commit and found != commit:
            raise ToolError(f"v{version} at {url} is commit {found}, --commit names {commit}: leave --commit out")
        if not found and not commit:
            raise ToolError(
                f"the commit of v{version} could not be looked up at {url} ({why}): give it as --commit; "
                f"`git ls-remote {url} 'v{version}*'` prints it on a machine that reaches that address, in the line "
                "that ends with ^{} if there is one"
            )
        if not found:
            text = f"{_UNCHECKED}v{version} could not be looked up at {url} ({why})"
            note(f"--commit {commit[:12]} is {text}")
        commit = found or commit
    return Goal(version, "release", version, f"v{version}", commit, text)


def _tag_commit(url: str, version: str) -> tuple[str, str]:
    """(commit of the tag v<version>, ''), or ('', why it could not be looked up)."""
    command = ["git", "ls-remote", url, f"refs/tags/v{version}", f"refs/tags/v{version}^{{}}"]
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=_LOOK_UP_SECONDS
        )
    except subprocess.TimeoutExpired:
        return "", f"no answer in {_LOOK_UP_SECONDS} s"
    lines = done.stdout.split("\n")
    found = [line.split("\t")[0] for line in sorted(lines, key=len) if "\t" in line]
    if found:
        return found[-1], ""  # the `^{}` line, where the tag is its own object
    lines = done.stderr.strip().splitlines()
    return "", f"it has no tag v{version}" if not done.returncode else lines[-1] if lines else "git failed"


def source_goal(project: Project, ref: str) -> Goal:
    """A ref of the submodule, fetched where the submodule does not know it."""
    where = project.submodule
    if not (where / ".git").exists():
        raise ToolError(
            "upstream/ is not checked out, which a rebase to a ref needs: run "
            f"`{how_to_check_out(project, project.lock())}`; a release can be named by its version, such as 3.9.0"
        )

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", "-C", str(where), *arguments], capture_output=True, text=True, check=False)

    if run("status", "--porcelain", "--untracked-files=no").stdout.strip():
        raise ToolError("upstream/ has uncommitted changes: undo them with `git -C upstream reset --hard`")
    depth = ["--depth=1"] if run("rev-parse", "--is-shallow-repository").stdout.strip() == "true" else []
    fetched = not run("fetch", "--quiet", *depth, "origin", ref).returncode
    # Where the origin cannot be reached, what was fetched from it before has to do.
    names = ["FETCH_HEAD"] if fetched else [f"origin/{ref}", ref]
    found = (run("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").stdout.strip() for name in names)
    commit = next(filter(None, found), "")
    if not commit:
        raise ToolError(f"upstream/ has no ref {ref}, and it could not be fetched from its origin")
    version = submodule_version(run("show", f"{commit}:setup.py").stdout)
    if not version:
        raise ToolError(f"upstream/: setup.py of {ref} states no TRITON_VERSION")
    return Goal(ref, "source", version, ref, commit)


def python_folder(place: Path) -> Path:
    """The folder of a checkout, or of a wheel that was unpacked, in which the package lies. Raises ToolError."""
    for folder in (place / "python", place):
        if (folder / "triton/__init__.py").is_file():
            return folder
    raise ToolError(f"--to {place}: the folder has neither python/triton/ nor triton/")


def local_goal(project: Project, name: str, commit: str, needs_commit: bool) -> Goal:
    """A wheel file, the folder of a checkout or of an unpacked wheel, or `FOLDER@REVISION`, a commit of a checkout that
    need not be checked out; ``commit`` is that of a wheel, if it is known.

    Raises ToolError, which says what the name is not. With ``needs_commit`` a checkout must be as it was committed.
    """
    place, (checkout, _, revision) = Path(name), name.rpartition("@")
    folder = Path(checkout)
    if checkout and not place.exists() and folder.is_dir():
        there = _git(folder, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
        if not there:
            raise ToolError(f"--to {name}: {folder} has no commit {revision}")
        if commit not in ("", there):
            raise ToolError(f"--to {name}: that is commit {there}, --commit names {commit}")
        goal = local_goal(project, str(_laid_out(project, folder, there)), there, needs_commit)
        ref = f"{folder.absolute().name}@{revision}"
        return replace(goal, ref=ref, note=goal.note.replace(there, ref))
    if commit and not is_commit(commit):
        raise ToolError(f"--commit {commit!r} is not a full commit id (40 hexadecimal digits, in lower case)")
    if place.is_dir():
        text = (python_folder(place) / "triton/__init__.py").read_text(encoding="utf-8")
    elif not place.is_file():
        raise ToolError(f"--to {name}: there is no such file or folder")
    else:
        try:
            with zipfile.ZipFile(place) as archive:
                text = archive.read("triton/__init__.py").decode()
        except (zipfile.BadZipFile, KeyError):
            raise ToolError(f"--to {name}: the file is not a wheel of triton") from None
    found = re.search(r"^__version__ = ['\"]([^'\"]+)", text, re.MULTILINE)
    if not found:
        raise ToolError(f"--to {name}: triton/__init__.py there states no __version__")
    version, ref = found[1], place.absolute().name
    if place.is_file() and place.name.startswith(f"{project.lock().name}-{version}+"):
        version = place.name.split("-")[1]  # a build of a commit between releases
    if place.is_dir() and (head := _head(place)):
        if commit and commit != head:
            raise ToolError(f"--to {name}: commit {head} is checked out there, --commit names {commit}")
        if needs_commit and _git(place, "status", "--porcelain", "--untracked-files=no"):
            raise ToolError(f"--to {name}: the checkout has changes that are not committed: commit them, or undo them")
        commit = head
    said = f"{_UNCHECKED}{ref}: " + ("not looked up in upstream's repository" if commit else "none is known")
    return Goal(version, "release", version, ref, commit or NO_COMMIT, said, str(place.absolute()))


def _laid_out(project: Project, checkout: Path, commit: str) -> Path:
    """The files of a commit, in the cache: the checkout stays as it is."""
    place = project.cache / "checkouts" / commit
    if not place.is_dir():
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent, prefix=".commit-") as scratch:
            fresh, packed = Path(scratch, "tree"), Path(scratch, "tree.tar")
            fresh.mkdir()
            _git(checkout, "archive", "--output", str(packed), commit)
            unpack = ["tar", "-xf", str(packed), "-C", str(fresh)]  # Debian 12's tarfile has no filters yet
            done = subprocess.run(unpack, capture_output=True, text=True, check=False)
            if done.returncode:
                raise ToolError(f"the files of commit {commit} cannot be laid out: {done.stderr.strip()}")
            fresh.rename(place)
    return place


def _head(folder: Path) -> str:
    """The commit that is checked out in a folder, '' if it is not the top of a git repository."""
    return _git(folder, "rev-parse", "--verify", "--quiet", "HEAD^{commit}") if (folder / ".git").exists() else ""


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def goal_of(project: Project, name: str, commit: str = "", needs_commit: bool = True) -> Goal:
    """What `--to NAME` means: a version is a release, a path a wheel or a folder, anything else a ref of the
    submodule. A path begins with `/`, `./` or `../`, or ends with `.whl`; `@REVISION` may follow a checkout's."""
    if name.startswith("-") or not name.strip():
        raise ToolError(f"--to {name!r} is neither a version, a path nor a ref")
    if name.endswith(".whl") or name.startswith(("/", "./", "../")) or name in (".", ".."):
        return local_goal(project, name, commit, needs_commit)
    if _VERSION.fullmatch(name):
        return release_goal(project, name, commit, needs_commit)
    if commit:
        raise ToolError(f"--commit goes with a release or a wheel; {name!r} is a ref, which names its own commit")
    return source_goal(project, name)
