"""What the package registry knows about upstream's releases, asked through pip, so that pip's settings hold."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from urllib.parse import unquote

from .errors import ToolError
from .progress import step
from .project import ReleaseWheel, is_free_threaded, pip_environment

ARCHITECTURES = ("x86_64", "aarch64")
# (minor version of Python 3, free-threaded) that a release may have wheels for.
PYTHONS = tuple((minor, threads) for minor in range(11, 16) for threads in (False, True) if not threads or minor > 12)
_FIRST_ABI3 = 12
_GLIBCS = range(17, 43)
_LOOK_UPS_AT_ONCE = 4


def _pip(arguments: list[str], where: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", *arguments]
    done = subprocess.run(
        command, env=pip_environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode and "No matching distribution" not in done.stderr:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or [done.stderr.strip()]
        raise ToolError(f"pip could not look up {where}: {lines[-1]}")
    return done


def newest(name: str) -> str:
    """The newest release that this Python can install."""
    with tempfile.TemporaryDirectory() as scratch:
        report = _report(name, "", [], scratch)
    if report is None:
        raise ToolError(f"the registry has no {name} for this Python")
    return str(report["metadata"]["version"])


def pip_choice(minor: int, free_threaded: bool, arch: str) -> list[str]:
    """The options that make pip choose for another interpreter and machine."""
    threads = "t" if free_threaded else ""
    choice = ["--python-version", f"3.{minor}", "--implementation", "cp", "--abi", f"cp3{minor}{threads}"]
    choice += [] if free_threaded else ["--abi", "abi3"]
    for glibc in _GLIBCS:
        choice += ["--platform", f"manylinux_2_{glibc}_{arch}"]
    return [*choice, "--platform", f"manylinux2014_{arch}", "--platform", f"linux_{arch}"]


def release_wheel(name: str, version: str, minor: int, free_threaded: bool, arch: str) -> ReleaseWheel | None:
    """The wheel of a release for one kind of interpreter, with the hash that the registry gives; None without one."""
    with tempfile.TemporaryDirectory() as scratch:
        choice = [*pip_choice(minor, free_threaded, arch), "--target", scratch]
        report = _report(name, version, choice, scratch)
    wheel = None if report is None else _parse(report, arch)
    # pip takes an abi3 wheel for a free-threaded interpreter of another machine, which cannot load it.
    return wheel if wheel is not None and wheel.serves((3, minor), free_threaded, arch) else None


def wheel_for_this_python(name: str, version: str, arch: str) -> ReleaseWheel:
    """The wheel of a release for the running interpreter."""
    wheel = release_wheel(name, version, sys.version_info[1], is_free_threaded(), arch)
    if wheel is None:
        raise ToolError(f"the registry has no {name} {version} for this Python on {arch}")
    return wheel


def release_wheels(name: str, version: str) -> tuple[ReleaseWheel, ...]:
    """All wheels of a release for the interpreters and machines that the tools know; looked up side by side."""
    targets = [(minor, threads, arch) for minor, threads in PYTHONS for arch in ARCHITECTURES]
    found: dict[str, ReleaseWheel] = {}
    # One abi3 wheel serves several Pythons, so those that may have one are asked for first.
    first = [target for target in targets if target[1] or target[0] <= _FIRST_ABI3]
    with step(f"look up the wheels of {name} {version}") as progress, ThreadPoolExecutor(_LOOK_UPS_AT_ONCE) as pool:
        for wave in (first, [target for target in targets if target not in first]):
            served = found.values()
            open_ones = [
                (minor, threads, arch)
                for minor, threads, arch in wave
                if not any(wheel.serves((3, minor), threads, arch) for wheel in served)
            ]
            jobs = [pool.submit(release_wheel, name, version, *target) for target in open_ones]
            for number, job in enumerate(as_completed(jobs), 1):
                progress.at(number, len(jobs))
                if wheel := job.result():
                    found[wheel.file] = wheel
    return tuple(sorted(found.values(), key=lambda wheel: (wheel.python, wheel.abi, ARCHITECTURES.index(wheel.arch))))


def _report(name: str, version: str, choice: list[str], scratch: str) -> dict[str, dict[str, str]] | None:
    requirement = f"{name}=={version}" if version else name
    arguments = ["install", "--quiet", "--dry-run", "--ignore-installed", "--no-deps", "--only-binary=:all:"]
    # Reads the metadata at the end of a wheel, where the registry serves ranges, and not the whole 0.3 GB.
    arguments += ["--use-feature=fast-deps"]
    path = f"{scratch}/report.json"
    done = _pip([*arguments, "--report", path, *choice, requirement], requirement)
    if done.returncode:
        return None
    with open(path) as stream:
        (install,) = json.load(stream)["install"]
    result: dict[str, dict[str, str]] = install
    return result


def _parse(report: dict[str, dict[str, str]], arch: str) -> ReleaseWheel:
    info = report["download_info"]
    file = unquote(info["url"].rsplit("/", 1)[-1])
    archive: dict[str, dict[str, str]] = info["archive_info"]  # type: ignore[assignment]
    digest = archive.get("hashes", {}).get("sha256", "")
    if not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise ToolError(f"the registry gives no sha256 for {file}")
    python, abi = file.removesuffix(".whl").split("-")[-3:-1]
    return ReleaseWheel(python, abi, arch, file, digest)
