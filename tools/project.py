"""Where things lie in this repository, and the lock file that names its upstream."""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import sys
import sysconfig
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import ToolError

# Folders in build/ that hold what is being made.
SCRATCH_PREFIXES = (".sync-", ".apply-", ".lib-", ".source-")

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

    def wheel_for(self, python: tuple[int, int], free_threaded: bool, arch: str) -> ReleaseWheel:
        """The release wheel of that interpreter; a ToolError names what the lock has where there is none."""
        for wheel in self.wheels:
            if wheel.serves(python, free_threaded, arch):
                return wheel
        known = ", ".join(f"{w.python}-{w.abi}-{w.arch}" for w in self.wheels)
        wanted = f"Python {python[0]}.{python[1]}{' free-threaded' if free_threaded else ''} on {arch}"
        raise ToolError(f"upstream.lock.toml has no release wheel for {wanted}; it has {known}")

    def wheel_for_this_python(self) -> ReleaseWheel:
        """The release wheel of the running interpreter."""
        return self.wheel_for(sys.version_info[:2], is_free_threaded(), platform.machine())


def is_free_threaded() -> bool:
    """Whether the running interpreter was built without the global lock."""
    return bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


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
            return Lock(
                name=upstream["name"],
                version=upstream["version"],
                url=upstream["url"],
                ref=upstream["ref"],
                commit=upstream["commit"],
                queue=data["queue"]["sha256"],
                wheels=tuple(ReleaseWheel(**wheel) for wheel in data["wheel"]),
            )
        except FileNotFoundError:
            raise ToolError(f"{self.lock_file} is missing") from None
        except tomllib.TOMLDecodeError as error:
            raise ToolError(f"{self.lock_file} is not TOML: {error}") from None
        except (KeyError, TypeError) as error:
            raise ToolError(f"{self.lock_file}: missing or unknown key: {error}") from None

    def write_queue_hash(self, digest: str) -> bool:
        """Put the queue's hash in the lock, leaving the rest of the file alone. True where it changed."""
        text = self.lock_file.read_text()
        new, count = re.subn(r'(\[queue\]\nsha256 = ")[0-9a-f]*(")', rf"\g<1>{digest}\g<2>", text)
        if count != 1:
            raise ToolError(f'{self.lock_file}: no `[queue]` table that starts with `sha256 = "…"`')
        if new == text:
            return False
        replace_file(self.lock_file, new.encode())
        return True

    def settings(self) -> dict[str, Any]:
        """The [tool.triton-spirv] table of pyproject.toml: `version` and `dependencies`."""
        data = tomllib.loads((self.root / "pyproject.toml").read_text())
        settings: dict[str, Any] = data["tool"]["triton-spirv"]
        return settings

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the build folder: a second run of the tools waits until the first is through.

        What a killed run left half-done is removed; each step's result appears under its own name by a rename only.
        """
        self.build.mkdir(parents=True, exist_ok=True)
        with (self.build / ".lock").open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            for prefix in SCRATCH_PREFIXES:
                for leftover in self.build.glob(f"{prefix}*"):
                    shutil.rmtree(leftover, ignore_errors=True)
            yield


def replace_file(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
