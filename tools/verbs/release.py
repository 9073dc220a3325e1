"""`release DIST OUT`: check the wheels of a release, and write what is published beside them.

Checked: each wheel of a release is there, with the version of the release and nothing in it that names another. Of this
repository's own release those are the patched triton, the same without the other vendors' backends, and, in any folder
of DIST, the plugin alone, for Windows too; of a vendor's, with the plugins of TRITON_PLUGIN_DIRS, the patched triton.
Written to OUT: SHA256SUMS, each wheel's bill of materials, notes.md, the release's part of each plugin's CHANGELOG.md,
and provenance.json, which says what the wheels were made of.

`release --dry-run OUT` does the same from any commit, for the running interpreter: it builds the wheels into OUT/dist,
with a digest in their versions, writes OUT/release and OUT/site, an index of them, and installs each wheel by its name
and version from that index into an environment of its own, where it launches a kernel.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

from ..errors import ToolError
from ..packaging import plugin_wheel, provenance, sbom, targets, windows
from ..packaging.facts import facts_of, is_own
from ..packaging.metadata import Kind, identity
from ..packaging.plugins import Plugin
from ..packaging.wheel import build_wheel, check_plugins
from ..project import Project, file_sha256
from ..upstream import wheel_path
from . import index
from .try_wheel import try_wheel


def run(project: Project, arguments: list[str]) -> int:
    if len(arguments) != 2:
        raise ToolError("release needs two folders, the one with the wheels and one to write to; or --dry-run and one")
    if arguments[0] == "--dry-run":
        return _dry_run(project, Path(arguments[1]))
    return _describe(project, Path(arguments[0]), Path(arguments[1]))


def _describe(project: Project, dist: Path, out: Path, kind: Kind = Kind.RELEASE) -> int:
    """Check the wheels of DIST, and write OUT; of another kind than a release, those for the running interpreter."""
    wheels = sorted(dist.rglob("*.whl"), key=lambda wheel: wheel.name)
    plugins = check_plugins(project)
    check_wheels(project, plugins, wheels, kind)
    told = notes(project, plugins, dated=kind is Kind.RELEASE)
    digests = {wheel.name: file_sha256(wheel) for wheel in wheels}
    out.mkdir(parents=True, exist_ok=True)
    (out / "notes.md").write_text(told)
    for wheel in wheels:
        (out / f"{wheel.name}.cdx.json").write_bytes(bill_of(wheel))
    (out / "SHA256SUMS").write_text("".join(f"{digest}  {name}\n" for name, digest in digests.items()))
    (out / "provenance.json").write_text(provenance.statement(project, plugins, digests))
    print(f"{len(wheels)} wheels; {out} holds notes.md, SHA256SUMS, provenance.json and their bills of materials")
    return 0


def _dry_run(project: Project, out: Path) -> int:
    """Build, describe, list and try the wheels for the running interpreter."""
    if out.exists() and any(out.iterdir()):
        raise ToolError(f"{out} is not empty: the dry run of a release needs a folder of its own")
    out = out.resolve()
    dist, plugins = out / "dist", check_plugins(project)
    wheels = [build_wheel(project, dist)]
    if plugins:
        wheels.append(build_wheel(project, dist, tuple(plugin.name for plugin in plugins)))
    if len(plugins) == 1 and facts_of(project, plugins[0]).name:
        wheels.append(plugin_wheel.build_wheel(project, dist))
    _describe(project, dist, out / "release", Kind.BUILD)
    index.run(project, [str(out / "site"), f"{dist.as_uri()}={out / 'release/SHA256SUMS'}"])
    # The plugin alone wants stock triton, which is here already.
    stock = wheel_path(project, project.lock().wheel_for_this_python()).parent
    for wheel in wheels:
        page = out / "site" / index.place(wheel.name) / "simple"
        print(f"{wheel.name}: {try_wheel(wheel, page, stock)}", flush=True)
    return 0


def expected_tags(project: Project) -> set[str]:
    """`python-abi-architecture` of every wheel that a release has, as pyproject.toml says.

    A ToolError where the lock has no wheel of upstream for one of them: a lock that lost one must not make a smaller
    release.
    """
    lock, wanted = project.lock(), targets.released(project)
    lost = []
    for target in wanted:
        try:
            target.wheel(lock)
        except ToolError:
            lost.append(target.name)
    if lost:
        raise ToolError(
            f"upstream.lock.toml has no wheel of {lock.name} {lock.version} for {', '.join(lost)}, which "
            "release-pythons of pyproject.toml names"
        )
    return {f"{target.python}-{target.abi}-{target.arch}" for target in wanted}


def windows_tags(project: Project) -> set[str]:
    """`python-abi-architecture` of every wheel of the plugin alone that a release has for Windows."""
    return {f"{name}-{name}-{windows.MACHINE}" for name in project.settings().get("release-windows", ())}


def check_wheels(project: Project, plugins: list[Plugin], wheels: list[Path], kind: Kind = Kind.RELEASE) -> None:
    """A ToolError names the first wheel that is missing or does not belong to the release."""
    whole = kind is Kind.RELEASE
    here = targets.here()
    tags = expected_tags(project) if whole else {f"{here.python}-{here.abi}-{here.arch}"}
    main = identity(project, plugins, kind=kind).stem
    expected = {main: tags}
    if plugins:
        expected[identity(project, plugins, tuple(plugin.name for plugin in plugins), kind).stem] = tags
    if len(plugins) == 1:
        of_windows = windows_tags(project) if whole and is_own(project, plugins[0]) else set()
        alone = tags | of_windows if plugins[0].has_native else {"py3-none-any"}
        expected[plugin_wheel.identity(project, plugins[0], release=whole).stem] = alone
    there: dict[str, set[str]] = {}
    for wheel in wheels:
        name, version, python, abi, platform = wheel.stem.split("-")
        stem = f"{name}-{version}"
        if stem not in expected:
            raise ToolError(f"{wheel.name} is not of the release {main}")
        if whole and platform.startswith("linux_"):
            raise ToolError(f"{wheel.name} is for this machine's Linux only: build it in a manylinux container")
        machines = [arch for arch in targets.ARCHITECTURES if platform.endswith(arch)] or [platform]
        there.setdefault(stem, set()).update(f"{python}-{abi}-{machine}" for machine in machines)
    for stem, wanted in expected.items():
        # A vendor may release the patched triton alone.
        needed = stem == main or stem in there or any(is_own(project, plugin) for plugin in plugins)
        if needed and (missing := sorted(wanted - there.get(stem, set()))):
            raise ToolError(f"the release has no wheel {stem} for {', '.join(missing)}")


def bill_of(wheel: Path) -> bytes:
    """A wheel's bill of materials."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith(f".dist-info/{sbom.NAME}")]
        if len(names) != 1:
            raise ToolError(f"{wheel.name} holds no bill of materials")
        return archive.read(names[0])


def notes(project: Project, plugins: list[Plugin], dated: bool = True) -> str:
    """The part of each plugin's CHANGELOG.md that is about its present version; of this repository's where none is.

    If `dated`, a version that the file calls unreleased is refused.
    """
    folders = {plugin.folder: facts_of(project, plugin).version for plugin in plugins}
    folders = folders or {project.root: str(project.settings()["version"])}
    parts = {folder.name: _notes(folder / "CHANGELOG.md", version, dated) for folder, version in folders.items()}
    if len(parts) == 1:
        return next(iter(parts.values()))
    return "\n".join(f"## {name}\n\n{text}" for name, text in parts.items())


def _notes(changelog: Path, version: str, dated: bool) -> str:
    if not changelog.is_file():
        raise ToolError(f"{changelog} is missing: it says what is new in a release")
    found = re.search(rf"^## {re.escape(version)}(?=\s|$)[^\n]*\n(.*?)(?=^## |\Z)", changelog.read_text(), re.M | re.S)
    if not found or not found.group(1).strip():
        raise ToolError(f"{changelog} says nothing of {version}")
    if dated and "unreleased" in found.group(0).splitlines()[0]:
        raise ToolError(f"{changelog} calls {version} unreleased: put the date there")
    return found.group(1).strip() + "\n"
