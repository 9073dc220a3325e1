"""The git repository made of the upstream tree: one commit for upstream, one for overlay/, one for each patch.

Commits are made with git's plumbing on their own index, so the work tree changes in one step at the end, and
not at all where a patch fails.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import git

from .conflicts import side
from .errors import ToolError
from .faults import point
from .project import Project, replace_file
from .queue import DEFAULT_AUTHOR, TRACKED_SUFFIXES, UNTRACKED_FOLDERS, Patch, load_series, overlay_files, queue_hash
from .syntax import syntax_fault

UPSTREAM_REF = "refs/queue/upstream"
OVERLAY_MARK = "Patch-File: (overlay)"

# Every commit has this date, so that the same queue gives the same commits.
_DATE = "1980-01-01T00:00:00+00:00"

_DIFF_OPTIONS = (
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--no-renames",
    "--unified=3",
    "--inter-hunk-context=0",
    "--diff-algorithm=myers",
    "--src-prefix=a/",
    "--dst-prefix=b/",
)


def _environment(author: str = DEFAULT_AUTHOR) -> dict[str, str]:
    """Settings that make git's answers the same on every machine."""
    name, _, mail = author.partition("<")
    return {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": name.strip() or "unknown",
        "GIT_AUTHOR_EMAIL": mail.rstrip("> ") or "unknown",
        "GIT_AUTHOR_DATE": _DATE,
        "GIT_COMMITTER_NAME": "tools",
        "GIT_COMMITTER_EMAIL": "tools@localhost",
        "GIT_COMMITTER_DATE": _DATE,
        "LC_ALL": "C",
    }


def _open(path: Path) -> git.Repo:
    for variable in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"):
        os.environ.pop(variable, None)
    repo = git.Repo(path)
    repo.git.update_environment(**_environment())
    return repo


def create(path: Path, filtered: bool = True) -> None:
    """Make the repository of a freshly laid out upstream tree, with its files as the first commit.

    With `filtered` only the text files of the release form are tracked.
    """
    for variable in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"):
        os.environ.pop(variable, None)
    with git.Git().custom_environment(**_environment()):
        repo = git.Repo.init(path, b="patched")
    repo.git.update_environment(**_environment())
    with repo.config_writer() as config:
        config.set_value("core", "autocrlf", "false")
        config.set_value("core", "quotepath", "false")
        config.set_value("core", "fsmonitor", "false")
        config.set_value("gc", "auto", "0")
    patterns = ["/*", "!/python/", "/python/*", "!/python/triton/", "/python/triton/**", "!/python/triton/**/"]
    patterns += [f"!/python/triton/**/*{suffix}" for suffix in TRACKED_SUFFIXES]
    patterns += [f"!/python/triton/*{suffix}" for suffix in TRACKED_SUFFIXES]
    patterns += [f"{folder}/" for folder in UNTRACKED_FOLDERS]
    exclude = path / ".git" / "info" / "exclude"
    exclude.parent.mkdir(exist_ok=True)
    exclude.write_text("".join(f"{pattern}\n" for pattern in patterns) if filtered else "")
    repo.git.add("--all")
    repo.git.commit("--allow-empty", "--quiet", "-m", "upstream")
    repo.git.update_ref(UPSTREAM_REF, "HEAD")
    repo.close()


@dataclass(frozen=True)
class Status:
    """What state the tree is in."""

    head: str
    upstream: str
    applied_queue: str
    """Hash of the queue that was applied last, '' where none was."""
    applied_head: str
    """The commit that the last apply ended on; another HEAD means commits of the user's."""
    dirty: tuple[str, ...]
    """`git status` lines of uncommitted changes."""
    ahead: int
    """How many commits HEAD has that the last apply did not make."""
    behind: int
    """How many commits of the last apply HEAD does not have."""


class History:
    """A git repository with upstream's tree as one commit, and a queue as commits on top of it."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        self.folder = folder
        self._scratch = scratch
        self._repo = _open(folder)
        self.git = self._repo.git

    def close(self) -> None:
        self._repo.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def commit_tree(self, parent: str, message: str, author: str, index: dict[str, str] | None = None) -> str:
        """Commit what is in an index (the work tree's unless another is given) on top of a commit."""
        with self.git.custom_environment(**(index or {}), **_environment(author)):
            tree = self.git.write_tree()
            commit: str = self.git.commit_tree(tree, "-p", parent, "-m", message)
        return commit

    def build_queue(self, base: str, patches: list[Patch], overlay: dict[str, Path]) -> list[str]:
        """Make the commits of an overlay and a series on top of a commit, without touching the work tree.

        Returns their ids, the overlay's first. A ToolError names the patch, file and hunk that do not apply.
        """
        with tempfile.TemporaryDirectory(dir=self._scratch, prefix=".apply-") as scratch:
            index = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
            with self.git.custom_environment(**index):
                self.git.read_tree(base)
                for relative, path in overlay.items():
                    blob = self.git.hash_object("-w", "--no-filters", "--", str(path))
                    mode = "100755" if os.access(path, os.X_OK) else "100644"
                    self.git.update_index("--add", "--cacheinfo", f"{mode},{blob},{relative}")
            parent = self.git.rev_parse(base)
            commits = [self.commit_tree(parent, f"overlay\n\n{OVERLAY_MARK}\n", DEFAULT_AUTHOR, index)]
            for patch in patches:
                diff = Path(scratch) / "diff"
                diff.write_text(patch.diff)
                with self.git.custom_environment(**index):
                    try:
                        self.git.apply("--cached", "--whitespace=nowarn", str(diff))
                    except git.GitCommandError as error:
                        told = _conflict(patch, str(error.stderr), lambda path: self.git.show(f":{path}"))
                        raise ToolError(told) from None
                commits.append(self.commit_tree(commits[-1], patch.message(), patch.author, index))
        return commits

    def alone(self, base: str, patch: Patch, before: str, after: str) -> Patch:
        """A patch, from one commit of its queue to the next, with its lines merged into the base alone.

        Raises ToolError if it changes lines that patches before it change.
        """
        with tempfile.TemporaryDirectory(dir=self._scratch, prefix=".alone-") as scratch:
            index = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
            with self.git.custom_environment(**index):
                self.git.read_tree(base)
                for number, path in enumerate(self.git.diff("--name-only", before, after).splitlines()):
                    files = [Path(scratch) / f"{number}.{side}" for side in ("base", "before", "after")]
                    for file, commit in zip(files, (base, before, after), strict=True):
                        file.write_bytes(self._blob(commit, path))
                    try:
                        self.git.merge_file(*map(str, files))
                    except git.GitCommandError:
                        raise ToolError(f"patch {patch.name} changes lines of {path} that others change") from None
                    blob = self.git.hash_object("-w", "--no-filters", "--", str(files[0]))
                    self.git.update_index("--cacheinfo", f"100644,{blob},{path}")
            commit = self.commit_tree(self.git.rev_parse(base), patch.message(), patch.author, index)
        return replace(patch, diff=self.diff_of(base, commit))

    def commits(self, head: str = "HEAD") -> list[str]:
        """The commits on top of upstream, oldest first."""
        return self.git.rev_list("--reverse", f"{UPSTREAM_REF}..{head}").split()

    def is_overlay(self, commit: str) -> bool:
        return OVERLAY_MARK in self.git.show("-s", "--format=%B", commit)

    def overlay_of(self, commit: str) -> dict[str, bytes]:
        """Path → content of the files that an overlay commit lays over upstream."""
        names = self.git.diff("--name-only", "-z", "--no-renames", "--diff-filter=d", f"{commit}^", commit)
        return {path: self._blob(commit, path) for path in names.split("\0") if path}

    def paths(self, commit: str) -> list[str]:
        """The paths of a commit's files."""
        return [path for path in self.git.ls_tree("-r", "-z", "--name-only", commit).split("\0") if path]

    def files_of(self, commit: str) -> dict[str, bytes]:
        """Path → content of a commit's files."""
        return {path: self._blob(commit, path) for path in self.paths(commit)}

    def _blob(self, commit: str, path: str) -> bytes:
        return self._bytes("cat-file", "blob", f"{commit}:{path}")

    def _bytes(self, *arguments: str) -> bytes:
        """What a git command prints, byte for byte."""
        command = ["git", *arguments]
        data = self.git.execute(command, strip_newline_in_stdout=False, stdout_as_string=False)
        assert isinstance(data, bytes)
        return data

    def text_at(self, commit: str, path: str) -> str:
        """A file of a commit as text, '' if it has none."""
        try:
            return self._blob(commit, path).decode(errors="replace")
        except git.GitCommandError:
            return ""

    def patch_of(self, commit: str) -> Patch:
        """A commit as a patch; its file name is the one it came from, or made of its subject."""
        message = self.git.show("-s", "--format=%B", commit).strip("\n")
        author = self.git.show("-s", "--format=%an <%ae>", commit)
        named = re.search(r"^Patch-File: (\S+)$", message, re.MULTILINE)
        message = re.sub(r"\n*^Patch-File: .*$\n*", "", message, flags=re.MULTILINE)
        subject, _, body = message.partition("\n")
        slug = re.sub(r"[^a-z0-9]+", "-", subject.lower()).strip("-")
        diff = self._bytes("diff", *_DIFF_OPTIONS, f"{commit}^", commit).decode()
        text = re.sub(r"^index [0-9a-f]+\.\.[0-9a-f]+.*\n", "", diff, flags=re.MULTILINE)
        return Patch(named.group(1) if named else f"{slug}.patch", author, subject, body.strip("\n"), text)

    def syntax_fault(self, base: str, head: str) -> str:
        """Where the first Python file that changes between two trees no longer compiles, '' if all do."""
        names = self.git.diff("--name-only", "-z", "--no-renames", "--diff-filter=d", base, head, "--", "*.py")
        before = set(self.paths(base))
        for path in filter(None, names.split("\0")):
            old = self._blob(base, path) if path in before else None
            if fault := syntax_fault(path, old, self._blob(head, path)):
                return fault
        return ""

    def refuse_syntax_errors(self, commits: Iterable[str]) -> None:
        """Refuse commits of the queue that leave a Python file which does not compile."""
        for commit in commits:
            if fault := self.syntax_fault(f"{commit}^", commit):
                what = "overlay/" if self.is_overlay(commit) else f"patch {self.patch_of(commit).name}"
                raise ToolError(f"{what}: {fault}")

    def diff_of(self, base: str, head: str) -> str:
        """The change between two commits, in the form that patches have."""
        return self._bytes("diff", *_DIFF_OPTIONS, base, head).decode()

    def shadowed(self, overlay: Iterable[str], base: str = UPSTREAM_REF) -> dict[str, str]:
        """Overlay path → sha256 of upstream's file of that path, for those that upstream has."""
        both = sorted(set(self.paths(base)) & set(overlay))
        return {path: hashlib.sha256(self._blob(base, path)).hexdigest() for path in both}


class Repository(History):
    """The git side of build/upstream."""

    def __init__(self, project: Project, recover: bool = True) -> None:
        self.project = project
        if not (project.tree / ".git").is_dir():
            raise ToolError("there is no upstream tree yet: run `python3 -m tools sync`")
        super().__init__(project.tree, project.build)
        self._state_file = project.tree / ".git" / "queue.json"
        if recover:
            self._recover()

    # -- state -------------------------------------------------------------------------------------------------

    def _state(self) -> dict[str, str]:
        if self._state_file.exists():
            state: dict[str, str] = json.loads(self._state_file.read_text())
            return state
        return {}

    def _write_state(self, **state: str) -> None:
        replace_file(self._state_file, json.dumps(state).encode())

    def _recover(self) -> None:
        """Finish an apply that was killed while it changed the work tree."""
        target = self._state().get("moving_to")
        if target:
            (self.project.tree / ".git" / "index.lock").unlink(missing_ok=True)
            self._move(target, self._state()["queue"])

    def is_moving(self) -> bool:
        """Whether an apply was killed while it changed the work tree."""
        return bool(self._state().get("moving_to"))

    def undo_move(self) -> bool:
        """Put the tree back to where it was before an apply that was killed. False if none was."""
        state = self._state()
        if not state.get("moving_to"):
            return False
        (self.project.tree / ".git" / "index.lock").unlink(missing_ok=True)
        self._move(state.get("from_head") or self.git.rev_parse(UPSTREAM_REF), state.get("from_queue", ""))
        return True

    def _move(self, commit: str, queue: str) -> None:
        before = self._state()
        if before.get("moving_to"):  # an apply that was killed: what counts is where that one came from
            before = {"head": before.get("from_head", ""), "queue": before.get("from_queue", "")}
        origin = {"from_head": before.get("head", ""), "from_queue": before.get("queue", "")}
        self._write_state(moving_to=commit, queue=queue, head=commit, **origin)
        point("apply-moving")
        self.git.reset("--hard", "--quiet", commit)
        point("apply-reset")
        self._write_state(queue=queue, head=commit)

    def status(self) -> Status:
        """The tree's present state."""
        state = self._state()
        upstream = self.git.rev_parse(UPSTREAM_REF)
        dirty = self.git.status("--porcelain", "--untracked-files=all")
        applied = state.get("head", upstream)
        ahead, behind = self.git.rev_list("--left-right", "--count", f"HEAD...{applied}").split()
        return Status(
            head=self.git.rev_parse("HEAD"),
            upstream=upstream,
            applied_queue=state.get("queue", ""),
            applied_head=applied,
            dirty=tuple(dirty.splitlines()),
            ahead=int(ahead),
            behind=int(behind),
        )

    def refuse_unsaved(self) -> None:
        """Refuse a tree whose work would be lost: uncommitted changes, or commits that were not exported."""
        status = self.status()
        where = self.project.tree
        if status.dirty:
            some = ", ".join(line[3:] for line in status.dirty[:3]) + (" …" if len(status.dirty) > 3 else "")
            raise ToolError(
                f"{where} has uncommitted changes ({some}): commit them there and run `python3 -m tools export`, "
                f"or throw them away with `git -C {where} reset --hard && git -C {where} clean -fd`"
            )
        if status.ahead:
            raise ToolError(
                f"{where} has commits that are not in patches/: run `python3 -m tools export`, "
                f"or throw them away with `git -C {where} reset --hard {status.applied_head[:12]}`"
            )

    def commit_queue(self) -> list[str]:
        """`build_queue` of the project's series and overlay on top of upstream."""
        return self.build_queue(UPSTREAM_REF, load_series(self.project), overlay_files(self.project))

    def apply(self) -> bool:
        """Bring the tree to upstream + overlay + series. False if it is there already."""
        wanted = queue_hash(self.project)
        self.refuse_unsaved()
        status = self.status()
        if status.applied_queue == wanted and not status.behind:
            return False
        commits = self.commit_queue()
        self.refuse_syntax_errors(commits)
        point("apply-committed")
        self._move(commits[-1], wanted)
        return True

    def adopt(self, queue: str) -> None:
        """Note that HEAD is what the queue with that hash gives (after an export)."""
        self._write_state(queue=queue, head=self.git.rev_parse("HEAD"))


_MERGE_HINT = (
    "Where upstream changed these lines: with the version that the patches were written for in upstream.lock.toml, "
    "`python3 -m tools rebase --to VERSION` merges them three-way."
)


def _conflict(patch: Patch, stderr: str, read: Callable[[str], str]) -> str:
    """Say which file and hunk of a patch do not apply, from what `git apply` printed: what it expects, what is there.

    `read` gives the text of a file that the patch is applied to.
    """
    hunks = patch.hunks()
    for path, line in re.findall(r"error: patch failed: (.*):(\d+)", stderr):
        of_file = hunks.get(path, [])
        for number, (start, header) in enumerate(of_file, 1):
            if start == int(line):
                what = f"patch {patch.name} does not apply: {path}, hunk {number} of {len(of_file)}: {header}"
                expected = patch.old_lines(path, header)
                found = tuple(read(path).splitlines()[start - 1 : start - 1 + len(expected)])
                sides = [*side("the patch expects:", expected), *side(f"found at line {start}:", found)]
                return "\n".join([what, *sides, _MERGE_HINT])
        return f"patch {patch.name} does not apply: {path}, line {line}"
    for path, reason in re.findall(r"error: (.*): (does not exist in index|already exists in index)", stderr):
        return f"patch {patch.name} does not apply: {path} {reason.replace(' in index', ' in the tree')}"
    lines = [line for line in stderr.splitlines() if "error:" in line]
    detail = lines[0].split("error:", 1)[1].strip(" '") if lines else stderr.strip()
    return f"patch {patch.name} does not apply: {detail}"
