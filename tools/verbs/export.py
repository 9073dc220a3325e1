"""`export`: write the commits of build/upstream back to overlay/ and patches/, and the queue's hash to the lock.

A commit that came from a patch keeps that patch's file name; another gets one made of its subject.
"""

from __future__ import annotations

from ..errors import ToolError
from ..project import Project, replace_file
from ..queue import Patch, overlay_files, parse_patch, queue_hash, refuse_unsafe, series_names
from ..repository import Repository


def collect(repository: Repository) -> tuple[dict[str, bytes], list[Patch]]:
    """The overlay's files and the patches that the tree's commits stand for."""
    overlay: dict[str, bytes] = {}
    patches: list[Patch] = []
    for number, commit in enumerate(repository.commits()):
        if repository.is_overlay(commit):
            if number:
                raise ToolError("build/upstream: the overlay's commit must be the first one after upstream's")
            overlay = repository.overlay_of(commit)
            continue
        patch = repository.patch_of(commit)
        if patch.name in {other.name for other in patches}:
            raise ToolError(f"build/upstream: two commits give the patch {patch.name}; give one another subject")
        refuse_unsafe(patch)
        if parse_patch(patch.name, patch.text()) != patch:
            raise ToolError(f"build/upstream: the message of commit {commit[:12]} does not survive as a patch header")
        patches.append(patch)
    return overlay, patches


def run(project: Project, arguments: list[str]) -> int:
    with project.exclusive(), Repository(project) as repository:
        dirty = repository.status().dirty
        if dirty:
            raise ToolError(f"{project.tree} has uncommitted changes ({dirty[0][3:]}): commit them there first")
        status = repository.status()
        if status.applied_head == status.head and status.applied_queue != queue_hash(project):
            # patches/ was edited since the last apply and the tree was not: the tree holds the older state.
            raise ToolError("patches/ or overlay/ changed since the last apply: run `python3 -m tools apply` first")
        overlay, patches = collect(repository)
        written = _write(project, overlay, patches)
        digest = queue_hash(project)
        if project.write_queue_hash(digest):
            written.append(project.lock_file.name)
        repository.adopt(digest)
    for name in written:
        print(f"wrote {name}")
    if not written:
        print("nothing to do: patches/ and overlay/ are what the tree gives")
    return 0


def _write(project: Project, overlay: dict[str, bytes], patches: list[Patch]) -> list[str]:
    """Write what differs, drop what is gone, the series last. Returns the names that changed."""
    changed: list[str] = []
    for path, data in overlay.items():
        target = project.overlay / path
        if not target.exists() or target.read_bytes() != data:
            replace_file(target, data)
            changed.append(f"overlay/{path}")
    for path, old in overlay_files(project).items():
        if path not in overlay:
            old.unlink()
            changed.append(f"overlay/{path} (removed)")
    before = series_names(project)
    for patch in patches:
        target = project.patches / patch.name
        data = patch.text().encode()
        if not target.exists() or target.read_bytes() != data:
            replace_file(target, data)
            changed.append(f"patches/{patch.name}")
    names = [patch.name for patch in patches]
    if names != before:
        replace_file(project.patches / "series", "".join(f"{name}\n" for name in names).encode())
        changed.append("patches/series")
    for name in before:
        if name not in names:
            (project.patches / name).unlink(missing_ok=True)
            changed.append(f"patches/{name} (removed)")
    return changed
