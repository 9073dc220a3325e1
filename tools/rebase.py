"""Move the queue onto another upstream: three-way, one patch at a time, in its own repository (build/rebase/tree).

git holds how far it is: the message of the new upstream's commit is the goal, a note on each commit of the queue says
what became of it and which commit came of it, and a ref names the one that is left to the user. The checkout stays as
it was until the last patch is through; then everything changes in one step (journal.py).
"""

from __future__ import annotations

import dataclasses
import json
import platform
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import git

from . import conflicts, dialects, journal, registry, upstream
from .errors import ToolError
from .faults import point
from .goal import NO_COMMIT, Goal, commit_notes, python_folder
from .progress import note, step
from .project import Lock, Project, ReleaseWheel, file_sha256
from .queue import Patch, is_tracked, load_series, overlay_files, refuse_unsafe, uses_module
from .queue_files import changed_files, collect
from .repository import UPSTREAM_REF, History, create
from .simple_index import File
from .submodule import CHECK_OUT

OLD_REF = "refs/queue/old"
_SERIES = f"{OLD_REF}..refs/queue/series"
_STOPPED = "refs/queue/stopped"
_OVERLAY = "overlay/"
_MERGE = ("merge.conflictStyle=diff3", "merge.renames=true", "core.hooksPath=/dev/null", "rerere.enabled=true")


@dataclass
class State:
    """How far a rebase is."""

    goal: Goal
    old: str
    """Version that the queue was written for."""
    todo: list[tuple[str, str]]
    """(commit, patch name) of the overlay and each patch."""
    done: list[tuple[str, str, str]]
    """(patch name, what became of it, explanation)."""
    head: str
    """The last commit on the new upstream."""
    stopped: bool
    """Whether the next one in `todo` is in conflict and was left to the user."""


# What becomes of a patch → what is said of it.
OUTCOMES = {
    "moved": "moved",
    "smaller": "moved; upstream has taken a part of it",
    "taken": "dropped: upstream has taken it",
    "resolved": "moved, its conflict resolved by hand",
    "remembered": "moved, its conflict resolved as it was before",
    "skipped": "skipped",
    "conflict": "conflict",
    "empty": "nothing in it",
}


def folder(project: Project) -> Path:
    """Where a rebase is carried out."""
    return project.build / "rebase"


# -- the repository that it happens in -------------------------------------------------------------------------


def _lay_out(wheel: Path, tree: Path) -> None:
    """Put the text files of a release wheel, or of a folder, into a folder, instead of those that are there."""
    shutil.rmtree(tree / "python", ignore_errors=True)
    if wheel.is_dir():
        top = python_folder(wheel)
        for source in sorted((top / "triton").rglob("*")):
            path = f"python/{source.relative_to(top).as_posix()}"
            if source.is_file() and is_tracked(path):
                (tree / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, tree / path)
        return
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            path = f"python/{member.filename}"
            if member.is_dir() or not member.filename.startswith("triton/") or not is_tracked(path):
                continue
            if ".." in Path(path).parts:
                raise ToolError(f"{wheel.name}: unexpected member {member.filename}")
            target = tree / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(archive.read(member))
            target.chmod(0o755 if member.external_attr >> 16 & 0o111 else 0o644)


def _fetch(project: Project, lock: Lock, version: str) -> Path:
    """The release wheel of a version for this Python: the lock's, or one that the registry vouches for."""
    if version == lock.version:
        return upstream.fetch(project, lock, lock.wheel_for_this_python())
    wheel = registry.wheel_for_this_python(lock.name, version, platform.machine())
    return upstream.fetch(project, dataclasses.replace(lock, version=version), wheel)


def _wheels_of(project: Project, goal: Goal) -> tuple[Path, Path]:
    """The release wheels of the lock and of a goal; its own file or folder, where it names one."""
    lock = project.lock()
    old = _fetch(project, lock, lock.version)
    return old, Path(goal.place) if goal.place else _fetch(project, lock, goal.version)


def _release_repository(project: Project, goal: Goal, tree: Path) -> None:
    old, new = _wheels_of(project, goal)
    tree.mkdir()
    _lay_out(old, tree)
    create(tree)
    with History(tree, project.build) as history:
        history.git.update_ref(OLD_REF, "HEAD")
        _lay_out(new, tree)
        history.git.add("--all")
        history.git.commit("--allow-empty", "--quiet", "-m", _message(goal))
        history.git.update_ref(UPSTREAM_REF, "HEAD")


def _source_repository(project: Project, goal: Goal, tree: Path) -> None:
    def inside(*arguments: str) -> str:
        command = ["git", "-C", str(project.submodule), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    objects = Path(inside("rev-parse", "--path-format=absolute", "--git-common-dir")) / "objects"
    old = project.lock().commit
    try:
        inside("cat-file", "-e", f"{old}^{{commit}}")
    except subprocess.CalledProcessError:
        raise ToolError(
            f"upstream/ does not have the lock's commit {old[:12]}: run `git -C upstream fetch origin {old}`"
        ) from None
    tree.mkdir()
    create(tree, filtered=False)
    with History(tree, project.build) as history:
        alternates = tree / ".git/objects/info/alternates"
        alternates.parent.mkdir(exist_ok=True)
        alternates.write_text(f"{objects}\n")
        # Commits without parents: the submodule may be a shallow clone.
        for ref, commit in ((OLD_REF, old), (UPSTREAM_REF, goal.commit)):
            history.git.update_ref(ref, history.git.commit_tree(f"{commit}^{{tree}}", "-m", _message(goal)))
        history.git.reset("--hard", "--quiet", UPSTREAM_REF)


def begin(project: Project, goal: Goal, where: Path, trace: bool = True) -> State:
    """Make the repository: both upstreams, the queue on the old one, the new one checked out.

    Without `trace` nothing outside of `where` remembers what is resolved there.
    """
    lock = project.lock()
    compiled = goal.form == "source"
    patches = load_series(project, compiled)
    tree = where / "tree"
    (_source_repository if compiled else _release_repository)(project, goal, tree)
    # Resolutions outlive the rebase that they were made in (git rerere); a report only reads them.
    memory = project.cache / "resolutions"
    if trace:
        memory.mkdir(parents=True, exist_ok=True)
        (tree / ".git/rr-cache").symlink_to(memory)
    elif memory.is_dir():
        shutil.copytree(memory, tree / ".git/rr-cache")
    with History(tree, project.build) as history:
        # The commits must outlive a garbage collection.
        history.git.update_ref("refs/queue/series", history.build_queue(OLD_REF, patches, overlay_files(project))[-1])
        return _read(history, lock.version)


def _message(goal: Goal) -> str:
    return json.dumps(dataclasses.asdict(goal))


def _read(history: History, old: str) -> State:
    """What the repository of a rebase says of it."""
    goal = Goal(**json.loads(history.git.show("-s", "--format=%B", UPSTREAM_REF)))
    state = State(goal, old, [], [], history.git.rev_parse(UPSTREAM_REF), stopped=False)
    entries = history.git.log("--reverse", "-z", "--notes=outcomes", "--format=%H%n%N", _SERIES).split("\0")
    for commit, _, outcome in (entry.partition("\n") for entry in entries if entry):
        name = _OVERLAY if history.is_overlay(commit) else history.patch_of(commit).name
        if outcome.strip():
            kind, text, state.head = json.loads(outcome)
            state.done.append((name, kind, text))
        else:
            state.todo.append((commit, name))
    stopped = history.git.for_each_ref("--format=%(objectname)", _STOPPED)
    state.stopped = bool(stopped) and stopped in dict(state.todo)
    return state


def load(project: Project) -> State:
    """The state of the rebase that is going on; a ToolError where none is."""
    if not folder(project).exists():
        raise ToolError("no rebase is going on: start one with `python3 -m tools rebase --to VERSION`")
    with History(folder(project) / "tree", project.build) as history:
        return _read(history, project.lock().version)


# -- one patch at a time ---------------------------------------------------------------------------------------


class Mover:
    """Carries patches over, in the repository of a rebase."""

    def __init__(self, project: Project, where: Path, state: State) -> None:
        self.project = project
        self.state = state
        self.tree = where / "tree"

    def _open(self) -> History:
        return History(self.tree, self.project.build)

    def run(self, on_conflict: Callable[[str, list[str]], bool]) -> bool:
        """Carry over what is left. `on_conflict(patch, lines)` says whether to go on without that patch.

        False if it stopped at a conflict, which is then in the work tree.
        """
        with self._open() as history:
            self._clean(history)
            while self.state.todo:
                commit, name = self.state.todo[0]
                lines = self._pick(history, commit, name)
                point("rebase-picked")
                if not lines:
                    continue
                if not on_conflict(name, lines):
                    history.git.update_ref(_STOPPED, commit)
                    return False
                self._clean(history)
                self._settle(history, "conflict", self.state.head, lines[0].removeprefix("conflict: "))
        return True

    def _clean(self, history: History) -> None:
        """Bring the work tree to the last finished commit, whatever a killed run left in it."""
        for lock in (self.tree / ".git").rglob("*.lock"):
            lock.unlink()
        history.git.reset("--hard", "--quiet", self.state.head)
        history.git.clean("-fdq")

    def _settle(self, history: History, kind: str, head: str, text: str = "") -> None:
        """Note what became of the next patch, and the commit that came of it."""
        (commit, name) = self.state.todo.pop(0)
        outcome = (kind, text or OUTCOMES[kind], head)
        history.git.notes("--ref=outcomes", "add", "--force", "-m", json.dumps(outcome), commit)
        history.git.update_ref("-d", _STOPPED)
        self.state.done.append((name, *outcome[:2]))
        self.state.head = head
        self.state.stopped = False

    def _pick(self, history: History, commit: str, name: str) -> list[str]:
        """Merge one commit's change into the work tree and commit it; the lines that tell a conflict, if it has one."""
        kind = "moved"
        try:
            _merge_git(history, "cherry-pick", "--no-commit", commit)
        except git.GitCommandError as error:
            unmerged = self._unmerged(history)
            if not unmerged:
                raise ToolError(f"git could not carry {name} over: {str(error.stderr).strip()}") from None
            if _merge_git(history, "rerere", "remaining"):
                return self._tell(history, commit, name, unmerged)
            kind = "remembered"
            history.git.add("--all")
        if fault := history.syntax_fault(self.state.head, history.git.write_tree()):
            what = name if history.is_overlay(commit) else f"patch {name}"
            return [f"conflict: {what}, {fault} (in what the merge gives)"]
        self._commit(history, commit, name, kind)
        return []

    @staticmethod
    def _unmerged(history: History) -> list[str]:
        listing = history.git.ls_files("--unmerged", "-z")
        return list(dict.fromkeys(entry.split("\t", 1)[1] for entry in listing.split("\0") if entry))

    def _commit(self, history: History, commit: str, name: str, kind: str) -> None:
        is_overlay = history.is_overlay(commit)
        patch = history.patch_of(commit)
        tree = history.git.write_tree()
        empty = tree == history.git.rev_parse(f"{self.state.head}^{{tree}}")
        if empty and not is_overlay:
            self._settle(history, "taken" if patch.diff else "empty", self.state.head)
            return
        message = history.git.show("-s", "--format=%B", commit)
        author = history.git.show("-s", "--format=%an <%ae>", commit)
        head = history.commit_tree(self.state.head, message, author)
        history.git.reset("--soft", head)
        point("rebase-committed")
        if is_overlay and not patch.diff:
            kind = "empty"
        elif kind == "moved" and _size(history.patch_of(head)) < _size(patch):
            kind = "smaller"
        self._settle(history, kind, head)

    def resolve(self) -> None:
        """Take the work tree as the resolution of the conflict that it stopped at."""
        if not self.state.stopped:
            return  # a killed run: the next patch is carried over anew
        commit, name = self.state.todo[0]
        with self._open() as history:
            for path in history.git.diff("--name-only", "-z", self.state.head).split("\0"):
                file = self.tree / path
                if path and file.is_file() and conflicts.has_marks(file.read_text(errors="replace")):
                    raise ToolError(f"{file} still has conflict marks: resolve them first (or --skip, --abort)")
            history.git.add("--all")
            if fault := history.syntax_fault(self.state.head, history.git.write_tree()):
                raise ToolError(f"{self.tree}/{fault}: mend it first (or --skip, --abort)")
            _merge_git(history, "rerere")
            self._commit(history, commit, name, "resolved")

    def skip(self) -> None:
        """Go on without the patch that it stopped at; of overlay/ only the files in conflict are dropped."""
        if not self.state.stopped:
            raise ToolError("the rebase did not stop at a conflict: go on with --continue")
        commit, name = self.state.todo[0]
        with self._open() as history:
            if history.is_overlay(commit):
                for path in self._unmerged(history):
                    history.git.checkout(self.state.head, "--", path)
                self._commit(history, commit, name, "resolved")
                return
            self._clean(history)
            self._settle(history, "skipped", self.state.head)

    def _tell(self, history: History, commit: str, name: str, unmerged: list[str]) -> list[str]:
        """What is in conflict: patch, file, hunk and both sides."""
        patch = history.patch_of(commit)
        what = name if history.is_overlay(commit) else f"patch {name}"
        goal, old = self.state.goal.name, self.state.old
        lines: list[str] = []
        for path in unmerged:
            stages = {entry.split()[2] for entry in history.git.ls_files("--unmerged", "--", path).splitlines()}
            file = self.tree / path
            if "2" not in stages or "3" not in stages:
                gone, other = (goal, "the patch changes") if "2" not in stages else ("the patch", f"{goal} changed")
                lines.append(f"conflict: {what}, {path}: {other} it, {gone} no longer has it")
                lines += conflicts.side("the patch:", tuple(_part(patch, path))) if "2" not in stages else []
                continue
            # Added on both sides means that there is no patched file of the old upstream to count lines in.
            patched = history.text_at(commit, path)
            for region in conflicts.regions(file.read_text(errors="replace")):
                hunk = conflicts.hunk_of(region, patch, path, patched)
                place = f", hunk {hunk[0]} of {hunk[1]}: {hunk[2]}" if hunk else ""
                lines.append(f"conflict: {what}, {path}{place}")
                lines += conflicts.side(f"upstream {goal}:", region.upstream)
                lines += conflicts.side(f"upstream {old}, which the patch was written for:", region.base)
                lines += conflicts.side("the patch:", region.patch)
        return lines or [f"conflict: {what}, {', '.join(unmerged)}"]


def _merge_git(history: History, *arguments: str) -> str:
    """Run git with the settings that merges are made with; what it prints."""
    options = [word for option in _MERGE for word in ("-c", option)]
    return str(history.git.execute(["git", *options, *arguments]))


def _size(patch: Patch) -> int:
    return sum(line[:1] in "+-" and line[:3] not in ("+++", "---") for line in patch.diff.splitlines() if line)


def _part(patch: Patch, path: str) -> list[str]:
    """The hunks of one file."""
    for section in re.split(r"^(?=diff --git )", patch.diff, flags=re.MULTILINE):
        if section.startswith(f"diff --git a/{path} "):
            lines = section.splitlines()
            start = next((number for number, line in enumerate(lines) if line.startswith("@@")), 0)
            return lines[start:]
    return []


# -- start and end ---------------------------------------------------------------------------------------------


def start(project: Project, goal: Goal) -> State:
    """Begin a rebase in build/rebase. A wheel file is kept beside the downloaded ones."""
    if file := goal.wheel_file:
        lock = project.lock()
        if not file.name.startswith(f"{lock.name}-{goal.version}-"):
            raise ToolError(f"{file.name}: its package is {lock.name} {goal.version}, which its name does not say")
        goal = dataclasses.replace(goal, place=str(upstream.keep(project, file, _wheels(lock, goal))))
    scratch = Path(tempfile.mkdtemp(dir=project.build, prefix=".rebase-"))
    try:
        with step(f"lay out {project.lock().version} and {goal.name}"):
            state = begin(project, goal, scratch)
        point("rebase-prepared")
        scratch.rename(folder(project))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    point("rebase-started")
    return state


def finish(project: Project, state: State) -> None:
    """Write the moved queue and the new lock in one step, and drop the rebase."""
    goal, lock = state.goal, project.lock()
    with History(folder(project) / "tree", project.build) as history:
        # The last commit is kept by name only.
        overlay, patches = collect(history, state.head)
        for patch in patches:
            refuse_unsafe(patch, compiled=goal.form == "source")
        shadowed = history.shadowed(overlay)
    wheels = _wheels(lock, goal)
    if goal.place:
        note(f"the lock names {goal.ref} alone: move onto the release as soon as it is there")
    for lost in _lost(lock, wheels) if not goal.place else []:
        note(f"{lock.name} {goal.version} has no wheel for {lost}, and {lock.version} had one")
    moved = dataclasses.replace(
        lock,
        version=goal.version,
        ref=goal.ref,
        commit=goal.commit,
        wheels=wheels,
        shadowed=shadowed,
        commit_notes=commit_notes(lock, goal),
    )
    files, _ = changed_files(project, overlay, patches, moved)
    place = folder(project).relative_to(project.root).as_posix()
    journal.commit(project, journal.Change(files, goal.commit.replace(NO_COMMIT, ""), (place,)))
    point("rebase-finished")
    if goal.form == "source":
        command = ["git", "-C", str(project.submodule), "checkout", "--quiet", "--detach", goal.commit]
        if subprocess.run(command, check=False).returncode:
            note(f"upstream/ could not be checked out at {goal.commit[:12]}: run `{CHECK_OUT}`")


def unused_overlay(project: Project, state: State) -> dict[str, str]:
    """Overlay file that nothing of the moved queue uses → the skipped patch that did."""
    skipped = [name for name, kind, _ in state.done if kind == "skipped"]
    if not skipped:
        return {}
    with History(folder(project) / "tree", project.build) as history:
        overlay, patches = collect(history, state.head)
        commits = history.git.rev_list("--reverse", _SERIES).split()
        before = {patch.name: patch for patch in map(history.patch_of, commits)}
    users = [patch.body + patch.diff for patch in patches]
    found: dict[str, str] = {}
    for path in overlay:
        texts = [*users, *(data.decode(errors="replace") for other, data in overlay.items() if other != path)]
        owner = next((name for name in skipped if uses_module(before[name].body + before[name].diff, path)), "")
        if owner and not any(uses_module(text, path) for text in texts):
            found[path] = owner
    return found


def _wheels(lock: Lock, goal: Goal) -> tuple[ReleaseWheel, ...]:
    if goal.place:
        return registry.served_by([File(file.name, file_sha256(file))]) if (file := goal.wheel_file) else ()
    if goal.version == lock.version and goal.form == "release":
        return lock.wheels
    wheels = registry.release_wheels(lock.name, goal.version)
    if not wheels and goal.form == "release":
        raise ToolError(f"the registry has no wheels of {lock.name} {goal.version}")
    if not wheels:
        note(f"{lock.name} {goal.version} is not released: only the source form can be built from {goal.name}")
    return wheels


def _lost(lock: Lock, wheels: tuple[ReleaseWheel, ...]) -> list[str]:
    """The interpreters and machines that the lock has a wheel for, and the new upstream has not."""
    targets = [(minor, threads, arch) for minor, threads in registry.PYTHONS for arch in registry.ARCHITECTURES]
    return [
        f"cp3{minor}{'t' if threads else ''}-{arch}"
        for minor, threads, arch in targets
        if any(wheel.serves((3, minor), threads, arch) for wheel in lock.wheels)
        and not any(wheel.serves((3, minor), threads, arch) for wheel in wheels)
    ]


def report(project: Project, goal: Goal, tell: Callable[[str], None]) -> bool:
    """Try a rebase and tell what would become of each patch, leaving no trace. True if none is in conflict."""
    scratch = Path(tempfile.mkdtemp(dir=project.build, prefix=".rebase-"))
    try:
        state = begin(project, goal, scratch, trace=False)

        def go_on(name: str, lines: list[str]) -> bool:
            for line in lines:
                tell(line)
            return True

        Mover(project, scratch, state).run(go_on)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    tell_outcomes(state, tell)
    if goal.form == "release" and (project.root / dialects.TABLE).is_dir():
        for line in dialects.compare(project, *_wheels_of(project, goal)):
            tell(line)
    return all(kind != "conflict" for _, kind, _ in state.done)


def tell_outcomes(state: State, tell: Callable[[str], None]) -> None:
    """One line a patch."""
    width = max(len(name) for name, _, _ in state.done)
    for name, kind, text in state.done:
        if not (kind == "empty" and name == _OVERLAY):
            tell(f"{name:<{width}}  {OUTCOMES['conflict'] if kind == 'conflict' else text}")
