"""Commits on top of upstream as the files of overlay/ and patches/, and what of those changes in the checkout."""

from __future__ import annotations

import dataclasses

from .errors import ToolError
from .project import Lock, Project
from .queue import Patch, overlay_files, parse_patch, queue_digest, refuse_unsafe, series_names, series_text
from .repository import History


def collect(repository: History, head: str = "HEAD") -> tuple[dict[str, bytes], list[Patch]]:
    """The overlay's files and the patches that the commits on top of upstream stand for."""
    overlay: dict[str, bytes] = {}
    patches: list[Patch] = []
    for number, commit in enumerate(repository.commits(head)):
        if repository.is_overlay(commit):
            if number:
                raise ToolError("build/upstream: the overlay's commit must be the first one after upstream's")
            overlay = repository.overlay_of(commit)
            continue
        patch = repository.patch_of(commit)
        if patch.name in {other.name for other in patches}:
            raise ToolError(f"build/upstream: two commits give the patch {patch.name}; give one another subject")
        refuse_unsafe(patch, compiled=True)
        if parse_patch(patch.name, patch.text()) != patch:
            raise ToolError(f"build/upstream: the message of commit {commit[:12]} does not survive as a patch header")
        patches.append(patch)
    return overlay, patches


def changed_files(
    project: Project, overlay: dict[str, bytes], patches: list[Patch], lock: Lock
) -> tuple[dict[str, bytes | None], Lock]:
    """What to write (None: to remove) so that the checkout holds that overlay, series and lock; and the lock, with
    the queue's hash in it."""
    texts = {patch.name: patch.text().encode() for patch in patches}
    lock = dataclasses.replace(lock, queue=queue_digest(texts, overlay))
    wanted: dict[str, bytes] = {f"overlay/{path}": data for path, data in overlay.items()}
    wanted |= {f"patches/{name}": data for name, data in texts.items()}
    files: dict[str, bytes | None] = {
        path: data
        for path, data in wanted.items()
        if not (project.root / path).exists() or (project.root / path).read_bytes() != data
    }
    before = series_names(project)
    if before != list(texts):
        files["patches/series"] = series_text(list(texts))
    if lock != project.lock():
        files[project.lock_file.name] = lock.text().encode()
    gone = [f"overlay/{path}" for path in overlay_files(project)] + [f"patches/{name}" for name in before]
    files |= dict.fromkeys(path for path in gone if path not in wanted)
    return files, lock
