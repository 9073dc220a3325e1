"""The submodule entry of upstream/ in the index of the checkout: which commit it names, and how it is written.

A checkout may do without the entry: an unpacked archive, a mirror without submodules, a copy inside another repository.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from .errors import ToolError
from .project import Lock, Project

#: With --checkout it does so although .gitmodules keeps clones from it (update = none).
CHECK_OUT = "git submodule update --init --checkout upstream"
_MODE = "160000"


def has_index(root: Path) -> bool:
    """Whether the checkout is a git repository of its own."""
    return (root / ".git").exists()


def _listing(root: Path) -> list[str]:
    """What the index has at or under upstream/: `<mode> <object> <stage>\\t<path>` a line."""
    if not has_index(root):
        return []
    done = _git(root, "ls-files", "--stage", "--", "upstream")
    if done.returncode:
        raise ToolError(f"git cannot read the index of {root}: {done.stderr.strip()}")
    return done.stdout.splitlines()


def entry_of(root: Path) -> str:
    """The commit that the index pins upstream/ to, '' without an entry; a ToolError where git cannot read the index."""
    words = next((line.split() for line in _listing(root)), [""])
    return words[1] if words[0] == _MODE else ""


def pin(project: Project, commit: str) -> None:
    """Write the entry, whether or not there is one."""
    if not has_index(project.root):
        raise ToolError(
            f"{project.root} is not a git repository of its own, so it has no index for upstream/'s entry: "
            "`--source` and `rebase --to <ref>` also work with a plain clone of upstream in upstream/"
        )
    if any(not line.startswith(_MODE) for line in _listing(project.root)):
        raise ToolError("upstream/ has files in the index: take them out with `git rm -r --cached upstream` first")
    done = _git(project.root, "update-index", "--add", "--cacheinfo", f"{_MODE},{commit},upstream")
    if done.returncode:
        raise ToolError(f"git cannot pin upstream/ to {commit[:12]}: {done.stderr.strip()}")


def how_to_check_out(project: Project, lock: Lock) -> str:
    """The command that checks upstream/ out in this checkout."""
    if not has_index(project.root):
        return f"git clone --branch {lock.ref} {lock.url} upstream"
    return CHECK_OUT if entry_of(project.root) else f"python3 -m tools submodule && {CHECK_OUT}"


def _git(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
