"""Where things lie in this repository, and the lock file that names its upstream."""

from __future__ import annotations

import ctypes
import dataclasses
import hashlib
import json
import os
import platform
import sys
import sysconfig
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import ToolError

ROOT = Path(__file__).resolve().parent.parent


def file_sha256(path: Path) -> str:
    """The sha256 of a file's bytes, in hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@dataclass(frozen=True)
class ReleaseWheel:
    """One release wheel of upstream, as the lock names it."""

    python: str
    abi: str
    arch: str
    file: str
    sha256: str

    def serves(self, python: tuple[int, int], free_threaded: bool, arch: str) -> bool:
        """Whether this wheel installs on that interpreter."""
        if arch != self.arch:
            return False
        major, minor = int(self.python[2:3]), int(self.python[3:])
        if self.abi == "abi3":
            return not free_threaded and python >= (major, minor)
        return self.abi == f"cp{python[0]}{python[1]}{'t' if free_threaded else ''}"


@dataclass(frozen=True)
class Lock:
    """The content of upstream.lock.toml."""

    name: str
    version: str
    url: str
    ref: str
    commit: str
    queue: str
    wheels: tuple[ReleaseWheel, ...]
    commit_notes: Mapping[str, str] = field(default_factory=dict)
    """Commit → what is to be known about it. Notes on other commits than `commit` are kept for the way back."""
    shadowed: Mapping[str, str] = field(default_factory=dict)
    """Overlay file that takes the place of a file of upstream → sha256 of the file that it was written against."""

    def wheel_for(self, python: tuple[int, int], free_threaded: bool, arch: str) -> ReleaseWheel:
        """The release wheel of that interpreter; a ToolError names what the lock has if there is none."""
        for wheel in self.wheels:
            if wheel.serves(python, free_threaded, arch):
                return wheel
        known = ", ".join(f"{w.python}-{w.abi}-{w.arch}" for w in self.wheels)
        wanted = f"Python {python[0]}.{python[1]}{' free-threaded' if free_threaded else ''} on {arch}"
        raise ToolError(f"upstream.lock.toml has no release wheel for {wanted}; it has {known}")

    def text(self) -> str:
        """The lock as upstream.lock.toml has it."""
        quoted = json.dumps
        lines = [
            "# The upstream that patches/ and overlay/ are written for. `python3 -m tools check` verifies this file;",
            "# `rebase` and `export` write it.",
            "",
            "[upstream]",
            *(f"{key} = {quoted(getattr(self, key))}" for key in ("name", "version", "url", "ref", "commit")),
        ]
        lines += ["", "# sha256 over series, patches and overlay.", "[queue]", f"sha256 = {quoted(self.queue)}", ""]
        if self.commit_notes:
            lines += ["# Commit of upstream → what is to be known about it.", "[commit_notes]"]
            lines += [f"{commit} = {quoted(text)}" for commit, text in sorted(self.commit_notes.items())] + [""]
        if self.shadowed:
            lines += ["# Overlay files in the place of a file of upstream, with the sha256 of that file.", "[shadowed]"]
            lines += [f"{quoted(path)} = {quoted(digest)}" for path, digest in sorted(self.shadowed.items())] + [""]
        lines += [
            '# The release wheels. One with abi = "abi3" serves its Python and every later one that is not',
            "# free-threaded.",
        ]
        for wheel in self.wheels:
            lines.append("[[wheel]]")
            lines += [f"{key} = {quoted(value)}" for key, value in dataclasses.asdict(wheel).items()] + [""]
        return "\n".join(lines).rstrip("\n") + "\n"

    def wheel_for_this_python(self) -> ReleaseWheel:
        """The release wheel of the running interpreter."""
        return self.wheel_for(sys.version_info[:2], is_free_threaded(), platform.machine())


def is_free_threaded() -> bool:
    """Whether the running interpreter was built without the global lock."""
    return bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def base_interpreter() -> str:
    """The interpreter that the running one's environment was made from, or the running one itself."""
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


@dataclass(frozen=True)
class Project:
    """A checkout of this repository; every path that the tools use hangs off its root."""

    root: Path

    @property
    def lock_file(self) -> Path:
        return self.root / "upstream.lock.toml"

    @property
    def patches(self) -> Path:
        return self.root / "patches"

    @property
    def overlay(self) -> Path:
        return self.root / "overlay"

    @property
    def submodule(self) -> Path:
        return self.root / "upstream"

    @property
    def build(self) -> Path:
        return self.root / "build"

    @property
    def cache(self) -> Path:
        """Downloads and results that are worth keeping between builds."""
        return self.build / "cache"

    @property
    def tree(self) -> Path:
        """The upstream tree of the release form, patched in place."""
        return self.build / "upstream"

    @property
    def dist(self) -> Path:
        return self.root / "dist"

    @property
    def venv(self) -> Path:
        return self.root / ".venv"

    def lock(self) -> Lock:
        """Read upstream.lock.toml; a ToolError says what is wrong with it."""
        try:
            data = tomllib.loads(self.lock_file.read_text())
            upstream = data["upstream"]
            notes = dict(data.get("commit_notes", {}))
            return Lock(
                name=upstream["name"],
                version=upstream["version"],
                url=upstream["url"],
                ref=upstream["ref"],
                commit=upstream["commit"],
                queue=data["queue"]["sha256"],
                wheels=tuple(ReleaseWheel(**wheel) for wheel in data.get("wheel", [])),
                commit_notes=notes,
                shadowed=dict(data.get("shadowed", {})),
            )
        except FileNotFoundError:
            raise ToolError(f"{self.lock_file} is missing") from None
        except tomllib.TOMLDecodeError as error:
            raise ToolError(f"{self.lock_file} is not TOML: {error}") from None
        except (KeyError, TypeError) as error:
            raise ToolError(f"{self.lock_file}: missing or unknown key: {error}") from None

    def settings(self) -> dict[str, Any]:
        """The [tool.triton-spirv] table of pyproject.toml: `version`, `needs-triton`, `release-pythons`,
        `release-windows` and `dependencies`."""
        data = tomllib.loads((self.root / "pyproject.toml").read_text())
        settings: dict[str, Any] = data["tool"]["triton-spirv"]
        return settings


def pip_environment() -> dict[str, str]:
    """The environment for a pip that may be called from within pip's own isolated build."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    return environment


def replace_file(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def exchange(fresh: Path, place: Path, old: Path) -> None:
    """Put a folder in the place of another, in one step where the system can; the other one ends up at `old`."""
    if not place.exists():
        fresh.rename(place)
        return
    if _swap(fresh, place):
        fresh.rename(old)
        return
    place.rename(old)
    fresh.rename(place)


def _swap(one: Path, other: Path) -> bool:
    """Exchange the names of two folders (Linux); False if that is not possible."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    at_cwd, exchange_flag = -100, 2
    return rename is not None and rename(at_cwd, os.fsencode(one), at_cwd, os.fsencode(other), exchange_flag) == 0
