"""What the package registry has of upstream's releases: which wheel serves which interpreter, with its hash."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from .errors import ToolError
from .progress import step
from .project import ReleaseWheel, is_free_threaded
from .simple_index import File, files_of, pip_sources

ARCHITECTURES = ("x86_64", "aarch64")
# (minor version of Python 3, free-threaded) that a release may have wheels for.
PYTHONS = tuple((minor, threads) for minor in range(11, 16) for threads in (False, True) if not threads or minor > 12)
_GLIBCS = range(17, 43)


def pip_choice(minor: int, free_threaded: bool, arch: str) -> list[str]:
    """The options that make pip choose for another interpreter and machine."""
    threads = "t" if free_threaded else ""
    choice = ["--python-version", f"3.{minor}", "--implementation", "cp", "--abi", f"cp3{minor}{threads}"]
    choice += [] if free_threaded else ["--abi", "abi3"]
    for platform in _platforms(arch):
        choice += ["--platform", platform]
    return choice


def _platforms(arch: str) -> list[str]:
    """The platform tags of Linux with glibc, those that more systems have first."""
    return [*(f"manylinux_2_{glibc}_{arch}" for glibc in _GLIBCS), f"manylinux2014_{arch}", f"linux_{arch}"]


def _listed(name: str) -> list[File]:
    with step(f"ask the registry for {name}"):
        return files_of(name, pip_sources())


def newest(name: str, arch: str) -> str:
    """The newest release that this Python can install; a pre-release if there is no other."""
    python = ".".join(map(str, sys.version_info[:3]))
    found: set[Version] = set()
    for file in _listed(name):
        version = _version_of(file, name)
        if version is None or file.yanked or not _takes(file.requires_python, python):
            continue
        if _choose([file], sys.version_info[1], is_free_threaded(), arch):
            found.add(version)
    finals = {version for version in found if not version.is_prerelease}
    if not found:
        raise ToolError(f"the registry has no {name} for this Python")
    return str(max(finals or found))


def wheel_for_this_python(name: str, version: str, arch: str) -> ReleaseWheel:
    """The wheel of a release for the running interpreter."""
    wheel = _choose(_of_release(name, version), sys.version_info[1], is_free_threaded(), arch)
    if wheel is None:
        raise ToolError(f"the registry has no {name} {version} for this Python on {arch}")
    return wheel


def release_wheels(name: str, version: str) -> tuple[ReleaseWheel, ...]:
    """All wheels of a release for the interpreters and machines that the tools know, from one look at the registry."""
    return served_by(_of_release(name, version))


def served_by(files: list[File]) -> tuple[ReleaseWheel, ...]:
    """Those of the files that are the wheel for an interpreter and a machine that the tools know."""
    targets = [(minor, threads, arch) for minor, threads in PYTHONS for arch in ARCHITECTURES]
    found = {wheel.file: wheel for target in targets if (wheel := _choose(files, *target))}
    return tuple(sorted(found.values(), key=lambda wheel: (wheel.python, wheel.abi, ARCHITECTURES.index(wheel.arch))))


def _of_release(name: str, version: str) -> list[File]:
    wanted = Version(version)
    return [file for file in _listed(name) if _version_of(file, name) == wanted]


def _version_of(file: File, name: str) -> Version | None:
    """The version of a wheel of that distribution, None for any other file."""
    try:
        distribution, version, _, _ = parse_wheel_filename(file.name)
    except (InvalidWheelFilename, InvalidVersion):
        return None
    return version if distribution == re.sub(r"[-_.]+", "-", name).lower() else None


def _takes(specifier: str, python: str) -> bool:
    try:
        return SpecifierSet(specifier).contains(python, prereleases=True)
    except InvalidSpecifier:
        return True  # as pip takes it


def _choose(files: Iterable[File], minor: int, free_threaded: bool, arch: str) -> ReleaseWheel | None:
    """The wheel for an interpreter: made for it alone before abi3, of a later Python before an earlier one, then the
    platform that more systems have."""
    platforms = _platforms(arch)
    ranked: list[tuple[tuple[bool, int, int], File, str, str]] = []
    for file in files:
        python, abi, tags = file.name.removesuffix(".whl").split("-")[-3:]
        fits = [platforms.index(tag) for tag in tags.split(".") if tag in platforms]
        if not fits or not re.fullmatch(r"cp3\d+", python):
            continue
        if ReleaseWheel(python, abi, arch, file.name, "").serves((3, minor), free_threaded, arch):
            ranked.append(((abi == "abi3", -int(python[3:]), min(fits)), file, python, abi))
    if not ranked:
        return None
    _, file, python, abi = min(ranked, key=lambda entry: entry[0])
    if not re.fullmatch(r"[0-9a-f]{64}", file.sha256):
        raise ToolError(f"the registry gives no sha256 for {file.name}")
    return ReleaseWheel(python, abi, arch, file.name, file.sha256)
