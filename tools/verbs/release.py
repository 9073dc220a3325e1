"""`release DIST OUT`: check the wheels of a release, and write what is published beside them.

Checked: each wheel of a release is there, with the version of the release and nothing in it that names another. Written
to OUT: SHA256SUMS, each wheel's bill of materials, and notes.md, the release's part of CHANGELOG.md.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

from ..errors import ToolError
from ..packaging import sbom, targets
from ..packaging.metadata import Kind, identity
from ..packaging.wheel import check_plugins
from ..project import Project, file_sha256
from ..registry import ARCHITECTURES


def run(project: Project, arguments: list[str]) -> int:
    if len(arguments) != 2:
        raise ToolError("release needs two folders: that of the wheels, and one to write to")
    wheels = sorted(Path(arguments[0]).glob("*.whl"))
    check_wheels(project, wheels)
    out = Path(arguments[1])
    out.mkdir(parents=True, exist_ok=True)
    (out / "notes.md").write_text(notes(project))
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


def check_wheels(project: Project, wheels: list[Path]) -> None:
    """A ToolError names the first wheel that is missing or does not belong to the release."""
    who = identity(project, check_plugins(project), kind=Kind.RELEASE)
    there: set[str] = set()
    for wheel in wheels:
        name, version, python, abi, platform = wheel.stem.split("-")
        if f"{name}-{version}" != who.stem:
            raise ToolError(f"{wheel.name} is not of the release {who.stem}")
        if platform.startswith("linux_"):
            raise ToolError(f"{wheel.name} is for this machine's Linux only: build it in a manylinux container")
        there |= {f"{python}-{abi}-{arch}" for arch in ARCHITECTURES if platform.endswith(arch)}
    if missing := sorted(expected_tags(project) - there):
        raise ToolError(f"the release has no wheel for {', '.join(missing)}")


def bill_of(wheel: Path) -> bytes:
    """A wheel's bill of materials."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith(f".dist-info/{sbom.NAME}")]
        if len(names) != 1:
            raise ToolError(f"{wheel.name} holds no bill of materials")
        return archive.read(names[0])


def notes(project: Project) -> str:
    """The part of CHANGELOG.md that is about the present version."""
    version = str(project.settings()["version"])
    text = (project.root / "CHANGELOG.md").read_text()
    found = re.search(rf"^## {re.escape(version)}\b[^\n]*\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if not found or not found.group(1).strip():
        raise ToolError(f"CHANGELOG.md says nothing of {version}")
    if "unreleased" in found.group(0).splitlines()[0]:
        raise ToolError(f"CHANGELOG.md calls {version} unreleased: put the date there")
    return found.group(1).strip() + "\n"
