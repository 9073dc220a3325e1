"""The wheel's dist-info: upstream's own, with our name, version, dependencies, entry points and licences."""

from __future__ import annotations

import configparser
import io
import os
import re
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from ..errors import ToolError
from ..project import Project
from .facts import facts_of, is_own, release_version
from .inputs import source_digest
from .plugins import Plugin

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_LOCAL = re.compile(r"[a-z0-9]+(\.[a-z0-9]+)*")


class Kind(Enum):
    """What a wheel is for; the value takes the digest's place in its version."""

    BUILD = "build"
    RELEASE = ""
    EDITABLE = "editable"


@dataclass(frozen=True)
class Identity:
    """Name and version of the distribution."""

    name: str
    version: str

    @property
    def stem(self) -> str:
        """`name-version` as file names have it."""
        return f"{re.sub(r'[-_.]+', '_', self.name).lower()}-{self.version}"

    @property
    def dist_info(self) -> str:
        return f"{self.stem}.dist-info"


def local_suffix(before: str, after: str = "") -> str:
    """TRITON_WHEEL_VERSION_SUFFIX as a part of a local version, between two others, in normal form.

    A version holds one `+` only, so that of a suffix such as `+cpu` becomes a dot.
    """
    suffix = os.environ.get("TRITON_WHEEL_VERSION_SUFFIX", "")
    parts = [part for part in (before, suffix.replace("+", ".").strip("."), after) if part]
    local = re.sub(r"[-_]", ".", ".".join(parts).lower())
    if local and not _LOCAL.fullmatch(local):
        raise ToolError(f"TRITON_WHEEL_VERSION_SUFFIX={suffix!r} gives {local!r}, which is not a version (PEP 440)")
    return local


def identity(
    project: Project, plugins: list[Plugin], backends: tuple[str, ...] = (), kind: Kind = Kind.BUILD
) -> Identity:
    """Upstream's version, with what was put into it as local version, such as `3.9.0+spirv.0.1.0.h1f0c22a9`.

    The local version names the plugins with their versions, the `backends` where only some are in the wheel,
    TRITON_WHEEL_VERSION_SUFFIX, and a digest of all sources: pip replaces a wheel by one of another version only. A
    release has no digest, and an editable installation says what it is in its place.
    """
    name = os.environ.get("TRITON_WHEEL_NAME") or "triton"
    if not _NAME.fullmatch(name):
        raise ToolError(f"TRITON_WHEEL_NAME={name!r} is not a distribution name")
    own = [_part(project, plugin, kind) for plugin in plugins if is_own(project, plugin)]
    others = sorted(_part(project, plugin, kind) for plugin in plugins if not is_own(project, plugin))
    what = ".".join([*own, *others]) or "patched"
    only = ".".join(["only", *sorted(backends)]) if backends else ""
    last = digest_part(project, plugins) if kind is Kind.BUILD else kind.value
    local = local_suffix(".".join(filter(None, [what, only])), last)
    return Identity(name, f"{project.lock().version}+{local}")


def _part(project: Project, plugin: Plugin, kind: Kind) -> str:
    """A plugin's name and version as a part of a local version; a release has the version of each."""
    version = release_version(project, plugin) if kind is Kind.RELEASE else facts_of(project, plugin).version
    return ".".join(filter(None, [plugin.name, re.sub(r"[^A-Za-z0-9]+", ".", version).strip(".")]))


def digest_part(project: Project, plugins: list[Plugin]) -> str:
    """The digest of the sources as a part of a local version. The letter keeps it from being read as a number."""
    return f"h{source_digest(project, plugins)[:8]}"


def metadata_text(upstream: str, who: Identity, dependencies: list[str], licences: list[str]) -> str:
    """Upstream's METADATA with what is ours changed or added."""
    head, separator, body = upstream.partition("\n\n")
    lines: list[str] = []
    for line in head.splitlines():
        if line.startswith("Name:"):
            line = f"Name: {who.name}"
        elif line.startswith("Version:"):
            line = f"Version: {who.version}"
        lines.append(line)
    lines += [f"License-File: {name}" for name in licences]
    lines += [f"Requires-Dist: {requirement}" for requirement in dependencies]
    return "\n".join(lines) + (f"{separator}{body}" if separator else "\n")


def entry_points_text(upstream: str, plugins: list[Plugin], left_out: frozenset[str] = frozenset()) -> str:
    """Upstream's entry points less the backends `left_out`, one for each plugin, the command of a cli.py, and
    those of its modules outside of triton."""
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(upstream)
    if not parser.has_section("triton.backends"):
        parser.add_section("triton.backends")
    for plugin in plugins:
        parser.set("triton.backends", plugin.name, f"triton.backends.{plugin.name}")
        if (plugin.folder / "backend" / "cli.py").is_file():
            if not parser.has_section("console_scripts"):
                parser.add_section("console_scripts")
            parser.set("console_scripts", f"triton-{plugin.name}", f"triton.backends.{plugin.name}.cli:main")
        for group, point in plugin.entry_points.items():
            if not parser.has_section(group):
                parser.add_section(group)
            parser.set(group, plugin.name, point)
    for name in left_out:
        parser.remove_option("triton.backends", name)
    out = io.StringIO()
    parser.write(out)
    return out.getvalue()


def dist_info_files(
    source: Path,
    who: Identity,
    plugins: list[Plugin],
    dependencies: list[str],
    tags: list[str],
    left_out: frozenset[str] = frozenset(),
) -> dict[str, bytes]:
    """Name in dist-info → content, all but RECORD."""
    licences = {f"{plugin.name}/{path.name}": path for plugin in plugins for path in plugin.licences}
    files = {
        path.relative_to(source).as_posix(): path.read_bytes()
        for path in sorted(source.rglob("*"))
        if path.is_file() and path.name not in ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")
    }
    metadata = metadata_text(files["METADATA"].decode(), who, dependencies, sorted(licences))
    files["METADATA"] = metadata.encode()
    files["entry_points.txt"] = entry_points_text(files["entry_points.txt"].decode(), plugins, left_out).encode()
    wheel = ["Wheel-Version: 1.0", "Generator: triton-spirv tools", "Root-Is-Purelib: false"]
    files["WHEEL"] = "".join(f"{line}\n" for line in [*wheel, *(f"Tag: {tag}" for tag in tags)]).encode()
    files |= {f"licenses/{name}": path.read_bytes() for name, path in licences.items()}
    return files
