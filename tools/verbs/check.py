"""`check`: verify that lock, series and tree agree. One line for each fault, its reason code first; exit status 1."""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterator

from ..errors import ToolError
from ..goal import NO_COMMIT
from ..hold import hold
from ..packaging.source_form import submodule_version
from ..project import Lock, Project
from ..queue import load_series, overlay_files, parse_patch, queue_hash, series_names
from ..repository import Repository
from ..submodule import entry_of, has_index
from ..upstream import other_release

Fault = tuple[str, str]


def check_lock(lock: Lock) -> Iterator[Fault]:
    """What the lock says for itself: commit, hashes, the version in each file name."""
    if not re.fullmatch(r"[0-9a-f]{40}", lock.commit):
        yield "lock-commit", f"upstream.lock.toml: {lock.commit!r} is not a full commit id"
    if lock.commit == NO_COMMIT:
        yield "lock-commit", f"upstream.lock.toml: {lock.commit_notes.get(lock.commit, 'no commit')}"
    for wheel in lock.wheels:
        if not re.fullmatch(r"[0-9a-f]{64}", wheel.sha256):
            yield "lock-sha256", f"upstream.lock.toml: {wheel.file}: {wheel.sha256!r} is not a sha256"
        if not wheel.file.startswith(f"{lock.name}-{lock.version}-{wheel.python}-{wheel.abi}-"):
            yield "lock-file-name", f"upstream.lock.toml: {wheel.file} is not {lock.name} {lock.version} for its tags"


def check_submodule(project: Project, lock: Lock) -> Iterator[Fault]:
    """That .gitmodules and the submodule entry, where the index has it, name the lock's repository and commit."""
    modules = configparser.ConfigParser()
    modules.read(project.root / ".gitmodules")
    url = modules.get('submodule "upstream"', "url", fallback=None)
    if url != lock.url:
        yield "submodule-url", f".gitmodules has {url}, upstream.lock.toml has {lock.url}"
    try:
        entry = entry_of(project.root)
    except ToolError as error:
        yield "submodule-unreadable", str(error)
        return
    if entry not in ("", lock.commit):
        yield "submodule-commit", f"upstream/ is pinned to {entry[:12]}, upstream.lock.toml to {lock.commit[:12]}"
    setup = project.submodule / "setup.py"
    if setup.is_file() and (found := submodule_version(setup.read_text())) != lock.version:
        yield "submodule-version", f"upstream/ is version {found or 'unknown'}, upstream.lock.toml says {lock.version}"


def check_series(project: Project) -> Iterator[Fault]:
    """That each patch file is listed, whole, in order, and says why it is there."""
    names = series_names(project)
    for path in sorted(project.patches.glob("*.patch")):
        if path.name not in names:
            yield "patch-unlisted", f"patches/{path.name} is not in patches/series"
    for name in names:
        path = project.patches / name
        if not path.is_file():
            yield "patch-missing", f"patches/series names {name}, which is not in patches/"
            continue
        try:
            patch = parse_patch(name, path.read_text())
        except ToolError as error:
            yield "patch-malformed", str(error)
            continue
        for key in patch.missing_headers():
            yield f"patch-no-{key.lower()}", f"patches/{name} has no `{key}:` in its header"
    try:
        load_series(project)
        digest = queue_hash(project)
    except ToolError as error:
        yield "series-unusable", str(error)
        return
    lock = project.lock()
    if digest != lock.queue:
        yield "queue-hash", f"the queue's hash is {digest}, upstream.lock.toml has {lock.queue}: run `tools export`"


def check_tree(project: Project, lock: Lock) -> Iterator[Fault]:
    """That the series applies to the locked upstream, exports to the same bytes, and is what the tree holds."""
    if not (project.tree / ".git").is_dir():
        yield "tree-missing", "there is no build/upstream: run `python3 -m tools apply`"
        return
    if reason := other_release(project, lock):
        # Whether the patches apply to another release says nothing of the locked one.
        yield "tree-version", reason
        return
    with Repository(project) as repository:
        try:
            commits = repository.commit_queue()
        except ToolError as error:
            yield "patch-conflict", str(error)
            return
        try:
            repository.refuse_syntax_errors(commits)
        except ToolError as error:
            yield "patch-syntax", str(error)
        patches = [repository.patch_of(commit) for commit in commits[1:]]
        for patch in patches:
            if patch.text().encode() != (project.patches / patch.name).read_bytes():
                yield "export-differs", f"patches/{patch.name} is not what export would write: run `tools export`"
        yield from check_overlay(project, lock, repository)
        status = repository.status()
        if status.dirty:
            yield "tree-dirty", f"build/upstream has uncommitted changes: {status.dirty[0][3:]}"
        if status.ahead:
            yield "tree-ahead", "build/upstream has commits that are not in patches/: run `tools export`"
        elif status.behind:
            yield (
                "tree-behind",
                (
                    f"build/upstream lacks {status.behind} of the commits that were applied: run `tools apply` to have "
                    "them again, or `tools export` to drop their patches"
                ),
            )
        elif status.applied_queue != queue_hash(project):
            yield "tree-stale", "build/upstream does not hold the present queue: run `python3 -m tools apply`"


def check_overlay(project: Project, lock: Lock, repository: Repository) -> Iterator[Fault]:
    """That no overlay file takes the place of a file of upstream which it was not written against."""
    files = overlay_files(project)
    found = repository.shadowed(files)
    for path, digest in found.items():
        if path not in lock.shadowed:
            yield "overlay-shadows", f"overlay/{path} hides a file of upstream: merge them, then run `tools export`"
        elif lock.shadowed[path] != digest:
            yield "overlay-outdated", f"overlay/{path} hides a file that upstream changed since: merge that change"
    for path in sorted(lock.shadowed.keys() - found.keys()):
        yield "lock-shadowed", f"upstream.lock.toml: overlay/{path} hides no file of upstream: run `tools export`"


def faults(project: Project) -> list[Fault]:
    """All faults, as (reason code, explanation)."""
    try:
        lock = project.lock()
    except ToolError as error:
        return [("lock-unusable", str(error))]
    found = [*check_lock(lock), *check_submodule(project, lock)]
    series = list(check_series(project))
    found += series
    if all(code in ("queue-hash", "patch-unlisted") or code.startswith("patch-no-") for code, _ in series):
        found += check_tree(project, lock)
    return found


def _lacks_entry(project: Project) -> bool:
    """Whether the index could have the submodule entry and does not, which is no fault."""
    try:
        return has_index(project.root) and not entry_of(project.root)
    except ToolError:
        return False


def run(project: Project, arguments: list[str]) -> int:
    with hold(project):
        found = faults(project)
        lacks_entry = _lacks_entry(project)
    if lacks_entry:
        print("note: the index has no submodule entry for upstream/: `python3 -m tools submodule` adds it")
    for code, explanation in found:
        print(f"{code}: {explanation}")
    if not found:
        print("ok: lock, series and tree agree")
    return 1 if found else 0
