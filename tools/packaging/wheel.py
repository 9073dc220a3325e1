"""Put the patched upstream tree and the plugins together, as build/lib or as a wheel."""

from __future__ import annotations

import csv
import io
import os
import shutil
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

from ..errors import ToolError
from ..faults import point
from ..hold import hold
from ..progress import note, step
from ..project import Project, exchange
from ..queue import is_tracked, load_series
from ..repository import UPSTREAM_REF, Repository
from ..upstream import Release, fetch, prepare, wheel_path
from . import sbom
from .archive import Archive, Stream, stream_of_member
from .editable import stubs
from .facts import check_release, check_upstream, facts_of, is_own
from .metadata import Identity, Kind, dist_info_files, identity
from .native import building, native_folder, native_parts
from .plugin_check import check_classes
from .plugins import Plugin, load_plugins, plugin_folders
from .strip import STRIPPED, find_strip, find_strip_for, stripped
from .tags import platform_tag, python_tag
from .targets import Target, here, refusal

# Files from this size on are linked into build/lib, not copied.
_LINK_FROM = 1 << 20
UNFINISHED = ".triton-spirv-"


@dataclass(frozen=True)
class Entry:
    """One file of the wheel: where it is on disk, and its compressed form, if any."""

    source: Path
    executable: bool
    stream: Stream | None = None
    data: bytes | None = None
    """The content where it is made up here, instead of the file."""

    def read(self) -> bytes:
        return self.data if self.data is not None else self.source.read_bytes()


@dataclass(frozen=True)
class Content:
    """Everything that goes into the wheel."""

    who: Identity
    tags: tuple[str, str, str]
    entries: dict[str, Entry]
    dist_info: dict[str, bytes]

    @property
    def file_name(self) -> str:
        return f"{self.who.stem}-{'-'.join(self.tags)}.whl"


def _record_digests(release: Release) -> dict[str, str]:
    """Path in upstream's wheel → its sha256 as RECORD has it."""
    with (release.dist_info / "RECORD").open(newline="") as handle:
        return {row[0]: row[1].removeprefix("sha256=") for row in csv.reader(handle) if row[1]}


def _upstream_entries(project: Project, release: Release, arch: str, packed: bool) -> dict[str, Entry]:
    """The patched text files of the tree, and the rest of the release wheel as it is, with libraries stripped, and
    compressed again if `packed`."""
    entries: dict[str, Entry] = {}
    python = project.tree / "python"
    foreign = release.tree != project.tree
    with zipfile.ZipFile(release.wheel) as archive:
        members = [info for info in archive.infolist() if info.filename.startswith("triton/") and not info.is_dir()]
        with Repository(project) as repository:
            if foreign:
                _refuse_other_text(release, archive, members, repository)
            for path in repository.paths("HEAD"):
                name = path.removeprefix("python/")
                source = python / name
                entries[name] = Entry(source, os.access(source, os.X_OK))
        digests = _record_digests(release)
        for info in members:
            name = info.filename
            if is_tracked(f"python/{name}"):
                continue
            program = find_strip_for(arch) if name in STRIPPED else None
            if program:
                source = Path(archive.extract(info, release.tree / "python")) if foreign else python / name
                library, stream = stripped(project.cache, source, digests[name], program, packed)
                entries[name] = Entry(library, True, stream)
            else:
                stream = stream_of_member(release.wheel, info, digests[name])
                entries[name] = Entry(python / name, bool(info.external_attr >> 16 & 0o111), stream)
    return entries


def _refuse_other_text(
    release: Release, archive: zipfile.ZipFile, members: list[zipfile.ZipInfo], repository: Repository
) -> None:
    """Refuse a release wheel whose text files are not those that the patches were applied to."""
    theirs = {f"python/{info.filename}": info for info in members if is_tracked(f"python/{info.filename}")}
    ours = repository.files_of(UPSTREAM_REF)
    for path in sorted(theirs.keys() | ours.keys()):
        if path not in theirs or path not in ours or archive.read(theirs[path]) != ours[path]:
            raise ToolError(
                f"{release.wheel.name}: {path} differs from {release.version} here: build that wheel with its own "
                "interpreter"
            )


def check_plugins(project: Project, in_tree: frozenset[str] = frozenset({"nvidia", "amd"})) -> list[Plugin]:
    """The plugins that TRITON_PLUGIN_DIRS names, checked against the contract."""
    return load_plugins(plugin_folders(os.environ, project.root), in_tree)


def choose_backends(plugins: list[Plugin], in_tree: frozenset[str], wanted: tuple[str, ...]) -> frozenset[str]:
    """The backends to leave out where some are `wanted` only (none named: all are)."""
    known = in_tree | {plugin.name for plugin in plugins}
    unknown = sorted(set(wanted) - known)
    if unknown:
        raise ToolError(f"--backends names {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    return frozenset(known - set(wanted)) if wanted else frozenset()


def collect(
    project: Project,
    backends: tuple[str, ...] = (),
    target: Target | None = None,
    kind: Kind = Kind.BUILD,
    strict: bool = False,
) -> Content:
    """Work out the wheel's content: patched tree, plugins, native parts, metadata.

    Plugins and settings are checked first, so that a mistake there stops the run before anything is fetched or built.
    Plugins are compiled while upstream is fetched, laid out and stripped.
    Where `backends` are named, the others are left out, with their tool chains. With a `target` it is for that
    interpreter, not the running one; refused with the reason where that cannot be. If `strict`, a plugin that cannot be
    imported here is refused, too.
    """
    target = target or here()
    plugins = check_plugins(project)
    if reason := refusal(target, project.lock(), plugins):
        raise ToolError(f"a wheel for {target.name} cannot be built here: {reason}")
    check_upstream(project, plugins)
    who = identity(project, plugins, backends, kind)
    find_strip()
    wanted = [plugin for plugin in plugins if not backends or plugin.name in backends]
    with building(wanted, project.build) as native_of:
        upstream_release = prepare(project)
        if target != here():
            upstream_release = _other_release(project, target)
        in_tree = frozenset(
            path.parent.name for path in (project.tree / "python/triton/backends").glob("*/compiler.py")
        )
        plugins = check_plugins(project, in_tree)
        left_out = choose_backends(plugins, in_tree, backends)
        plugins = [plugin for plugin in plugins if plugin.name not in left_out]
        gone = tuple(f"triton/backends/{name}/" for name in left_out)
        theirs = _upstream_entries(project, upstream_release, target.arch, packed=kind is not Kind.EDITABLE)
        entries = {name: entry for name, entry in theirs.items() if not name.startswith(gone)}
        upstream = _describe(project, upstream_release, entries)
        built: dict[str, Path] = {}
        for plugin in plugins:
            native = native_of(plugin)
            built |= native
            if kind is Kind.EDITABLE and is_own(project, plugin):
                texts = stubs(project, plugin, native_folder(plugin, project.build))
                of_plugin = {name: Entry(plugin.folder, False, data=text.encode()) for name, text in texts.items()}
            else:
                check_classes(project, plugin, native, strict)
                files = {**plugin.files(), **native}
                of_plugin = {name: Entry(path, os.access(path, os.X_OK)) for name, path in files.items()}
            for name, entry in of_plugin.items():
                if name in entries:
                    raise ToolError(f"plugin {plugin.folder}: {name} is a file of upstream")
                entries[name] = entry
    upstream_platform = upstream_release.wheel.stem.split("-", 4)[4]
    python, abi = python_tag() if target == here() else (target.python, target.abi)
    tags = (python, abi, platform_tag(upstream_platform, list(built.values())))
    expanded = [f"{python}-{abi}-{plat}" for plat in tags[2].split(".")]
    facts = {plugin.name: facts_of(project, plugin) for plugin in plugins}
    dependencies = list(dict.fromkeys(one for fact in facts.values() for one in fact.dependencies))
    dist_info = dist_info_files(upstream_release.dist_info, who, plugins, dependencies, expanded, left_out)
    parts = [sbom.Part(f"backend {name}", fact.version) for name, fact in facts.items()]
    parts += [*native_parts(built), *map(sbom.requirement_part, dependencies)]
    dist_info[sbom.NAME] = sbom.bill(who.name, who.version, upstream, parts)
    return Content(who, tags, dict(sorted(entries.items())), dist_info)


def _other_release(project: Project, target: Target) -> Release:
    """Upstream's wheel for another target, with its metadata laid out in a scratch folder of build/."""
    lock = project.lock()
    wheel = fetch(project, lock, target.wheel(lock), target.pip_choice())
    tree = project.build / f".target-{target.name}"
    with zipfile.ZipFile(wheel) as archive:
        prefix = f"{lock.name}-{lock.version}.dist-info/"
        for info in archive.infolist():
            if info.filename.startswith(prefix) and not info.is_dir() and ".." not in info.filename.split("/"):
                place = tree / "dist-info" / info.filename.removeprefix(prefix)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(archive.read(info))
    return Release(wheel, tree, lock.version)


def _describe(project: Project, release: Release, entries: dict[str, Entry]) -> sbom.Upstream:
    """Upstream's part of the bill of materials."""
    lock = project.lock()
    binaries = [
        (name, entry.stream.sha256)
        for name, entry in sorted(entries.items())
        if entry.stream is not None and sbom.is_binary(name, entry.executable)
    ]
    patches = [(patch.name, patch.subject) for patch in load_series(project)]
    sha256 = next(wheel.sha256 for wheel in lock.wheels if wheel.file == release.wheel.name)
    url = f"{lock.url}@{lock.commit}"
    return sbom.Upstream(lock.name, lock.version, release.wheel.name, sha256, url, tuple(patches), tuple(binaries))


def _timestamp() -> tuple[int, int, int, int, int, int]:
    """The time stamp of every member: SOURCE_DATE_EPOCH, or the start of 1980."""
    epoch = max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), 315532800)
    return time.gmtime(epoch)[:6]


def write_wheel(content: Content, folder: Path) -> Path:
    """Write the wheel; the same content gives the same bytes. It appears whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / content.file_name
    record: list[tuple[str, str, str]] = []
    for leftover in folder.glob(f"{UNFINISHED}*"):
        leftover.unlink(missing_ok=True)  # of a run that was killed
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=UNFINISHED)
    try:
        with step(f"write {content.file_name}"), os.fdopen(handle, "wb") as out, Archive(out, _timestamp()) as archive:
            for name, entry in content.entries.items():
                if entry.stream is not None:
                    digest, size = archive.add_stream(name, entry.stream, entry.executable)
                else:
                    digest, size = archive.add_bytes(name, entry.read(), entry.executable)
                record.append((name, f"sha256={digest}", str(size)))
                point("wheel-member")
            for relative, data in sorted(content.dist_info.items()):
                name = f"{content.who.dist_info}/{relative}"
                digest, size = archive.add_bytes(name, data)
                record.append((name, f"sha256={digest}", str(size)))
            name = f"{content.who.dist_info}/RECORD"
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerows([*record, (name, "", "")])
            archive.add_bytes(name, text.getvalue().encode())
        point("wheel-written")
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
        point("wheel-named")
    finally:
        Path(temporary).unlink(missing_ok=True)
    return target


def write_tree(content: Content, folder: Path) -> Path:
    """Lay the content out as an importable tree, with its metadata, so that entry points are found from there."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".lib-"))
    try:
        fresh = scratch / "lib"
        with step(f"lay out {folder}"):
            for name, entry in content.entries.items():
                target = fresh / name
                target.parent.mkdir(parents=True, exist_ok=True)
                if entry.source.stat().st_size >= _LINK_FROM:
                    try:
                        os.link(entry.source, target)
                        continue
                    except OSError:
                        pass  # another file system: copy
                shutil.copyfile(entry.source, target)
                target.chmod(0o755 if entry.executable else 0o644)
            for relative, data in content.dist_info.items():
                target = fresh / content.who.dist_info / relative
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
        point("tree-laid-out")
        exchange(fresh, folder, scratch / "old")
        point("tree-exchanged")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return folder


def build_tree(project: Project, folder: Path | None = None) -> Path:
    """`setup.py build`: the importable tree under build/lib."""
    with hold(project):
        return write_tree(collect(project), folder or project.build / "lib")


def build_wheel(
    project: Project,
    folder: Path | None = None,
    backends: tuple[str, ...] = (),
    target: Target | None = None,
    kind: Kind = Kind.BUILD,
    strict: bool = False,
) -> Path:
    """`setup.py bdist_wheel`: the wheel, in dist/ unless told otherwise."""
    start = time.monotonic()
    if kind is Kind.RELEASE:
        check_release(project, check_plugins(project))
    with hold(project):
        wheel = write_wheel(collect(project, backends, target, kind, strict), folder or project.dist)
        upstream = wheel_path(project, (target or here()).wheel(project.lock())).stat().st_size
    note(
        f"{wheel}: {wheel.stat().st_size / 1e6:.0f} MB (upstream's: {upstream / 1e6:.0f} MB), "
        f"in {time.monotonic() - start:.0f} s"
    )
    return wheel
