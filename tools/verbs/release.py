"""`release DIST OUT`: check the wheels of a release, and write what is published beside them.

Checked: each wheel of a release is there, with the version of the release and nothing in it that names another. Of this
repository's own release those are the patched triton and, in any folder of DIST, the plugin alone, for Windows too; of
a vendor's, with the plugins of TRITON_PLUGIN_DIRS, the patched triton. Written to OUT: SHA256SUMS, each wheel's bill of
materials, and notes.md, the release's part of each plugin's CHANGELOG.md.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

from ..errors import ToolError
from ..packaging import plugin_wheel, sbom, targets, windows
from ..packaging.facts import facts_of, is_own
from ..packaging.metadata import Kind, identity
from ..packaging.plugins import Plugin
from ..packaging.wheel import check_plugins
from ..project import Project, file_sha256


def run(project: Project, arguments: list[str]) -> int:
    if len(arguments) != 2:
        raise ToolError("release needs two folders: the one with the wheels, and one to write to")
    wheels = sorted(Path(arguments[0]).rglob("*.whl"), key=lambda wheel: wheel.name)
    plugins = check_plugins(project)
    check_wheels(project, plugins, wheels)
    told = notes(project, plugins)
    out = Path(arguments[1])
    out.mkdir(parents=True, exist_ok=True)
    (out / "notes.md").write_text(told)
    for wheel in wheels:
        (out / f"{wheel.name}.cdx.json").write_bytes(bill_of(wheel))
    (out / "SHA256SUMS").write_text("".join(f"{file_sha256(wheel)}  {wheel.name}\n" for wheel in wheels))
    print(f"{len(wheels)} wheels; {out} holds notes.md, SHA256SUMS and their bills of materials")
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


def check_wheels(project: Project, plugins: list[Plugin], wheels: list[Path]) -> None:
    """A ToolError names the first wheel that is missing or does not belong to the release."""
    tags = expected_tags(project)
    main = identity(project, plugins, kind=Kind.RELEASE).stem
    expected = {main: tags}
    if len(plugins) == 1:
        of_windows = windows_tags(project) if is_own(project, plugins[0]) else set()
        alone = tags | of_windows if plugins[0].has_native else {"py3-none-any"}
        expected[plugin_wheel.identity(project, plugins[0], release=True).stem] = alone
    there: dict[str, set[str]] = {}
    for wheel in wheels:
        name, version, python, abi, platform = wheel.stem.split("-")
        stem = f"{name}-{version}"
        if stem not in expected:
            raise ToolError(f"{wheel.name} is not of the release {main}")
        if platform.startswith("linux_"):
            raise ToolError(f"{wheel.name} is for this machine's Linux only: build it in a manylinux container")
        machines = [arch for arch in targets.ARCHITECTURES if platform.endswith(arch)] or [platform]
        there.setdefault(stem, set()).update(f"{python}-{abi}-{machine}" for machine in machines)
    for stem, wanted in expected.items():
        # A vendor's plugin may go without its own wheel.
        needed = stem == main or stem in there or is_own(project, plugins[0])
        if needed and (missing := sorted(wanted - there.get(stem, set()))):
            raise ToolError(f"the release has no wheel {stem} for {', '.join(missing)}")


def bill_of(wheel: Path) -> bytes:
    """A wheel's bill of materials."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith(f".dist-info/{sbom.NAME}")]
        if len(names) != 1:
            raise ToolError(f"{wheel.name} holds no bill of materials")
        return archive.read(names[0])


def notes(project: Project, plugins: list[Plugin]) -> str:
    """The part of each plugin's CHANGELOG.md that is about its present version; of this repository's where none is."""
    folders = {plugin.folder: facts_of(project, plugin).version for plugin in plugins}
    folders = folders or {project.root: str(project.settings()["version"])}
    parts = {folder.name: _notes(folder / "CHANGELOG.md", version) for folder, version in folders.items()}
    if len(parts) == 1:
        return next(iter(parts.values()))
    return "\n".join(f"## {name}\n\n{text}" for name, text in parts.items())


def _notes(changelog: Path, version: str) -> str:
    if not changelog.is_file():
        raise ToolError(f"{changelog} is missing: it says what is new in a release")
    found = re.search(rf"^## {re.escape(version)}(?=\s|$)[^\n]*\n(.*?)(?=^## |\Z)", changelog.read_text(), re.M | re.S)
    if not found or not found.group(1).strip():
        raise ToolError(f"{changelog} says nothing of {version}")
    if "unreleased" in found.group(0).splitlines()[0]:
        raise ToolError(f"{changelog} calls {version} unreleased: put the date there")
    return found.group(1).strip() + "\n"
