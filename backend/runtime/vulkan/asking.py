"""Which drivers may be used: each is asked for its devices in a process of its own first.

A driver that crashes or hangs while it is asked would end or stop the process that imports Triton. So a child process
asks all drivers together, and where it fails, each alone; what failed is named and left out. The answer is kept for
each driver, until its library, the machine's graphics cards or the system change; one that failed is asked again after
a day. The child imports neither Triton nor torch, and takes 0.3 s.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from ...system import WINDOWS, ending_of, registry_values
from ..errors import DeviceUnavailable
from ..files import kept_folder, write_whole
from ..once import once_a_process
from .manifests import DISPLAY_ADAPTERS, REPLACING, Manifest, used

_log = logging.getLogger(__name__)

#: Seconds after which a driver hangs. The first process that uses 8 H100s waits for some 10 s for NVIDIA's.
SECONDS = 60.0
_NAP = 0.002
#: Seconds after which a driver that failed is asked again: its answer may have been the machine's fault.
_RETRY = 86400.0
#: The version of what is kept: raised when its meaning changes.
_VERSION = 1
#: What the child prints before its answer: drivers print, too.
_MARK = "triton-spirv devices: "

#: Where libraries with a bare name are looked for, for the time at which they were installed.
_LIBRARY_FOLDERS = (
    *([Path(os.environ.get("SYSTEMROOT", r"C:\Windows")) / "System32"] if WINDOWS else []),
    *(Path(root) / f"{platform.machine()}-linux-gnu" for root in ("/usr/lib", "/lib", "/usr/local/lib")),
    *map(Path, ("/usr/lib64", "/usr/lib", "/lib64", "/lib", "/usr/local/lib")),
)

Fault = str
#: A manifest's path → why its driver is left out.
Faults = dict[Path, Fault]


def ask(drivers: Sequence[Path], seconds: float = SECONDS) -> Fault | None:
    """Has a child ask these drivers together. What went wrong, as the end of a sentence; None: they answered."""
    package = Path(__file__).parents[2]
    program = (
        f"import sys; sys.path.insert(0, {str(package.parent)!r}); "
        f"from {package.name}.runtime.vulkan.asked import answer; answer({_MARK!r})"
    )
    environment = {**os.environ, **_only(drivers)}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(
            [sys.executable, "-c", program], env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=errors
        )
        until = time.monotonic() + seconds
        while child.poll() is None:
            if time.monotonic() > until:
                child.kill()  # and no wait: it may be in a call of the kernel that does not end
                return f"does not answer within {seconds:g} s"
            time.sleep(_NAP)
        out.seek(0)
        errors.seek(0)
        if child.returncode == 0 and _MARK.encode() in out.read():
            return None
        said = errors.read().decode(errors="replace").strip().splitlines()
    if (ended := ending_of(child.returncode)) is not None:
        return f"ends the process that asks it for its devices ({ended})"
    return f"fails when it is asked for its devices: {said[-1] if said else f'status {child.returncode}'}"


def judged(drivers: Sequence[Path], seconds: float = SECONDS) -> Faults:
    """Those that fail, of drivers that are all asked: alone, or beside the others."""
    together = ask(drivers, seconds)
    if together is None:
        return {}
    if len(drivers) == 1:
        return {drivers[0]: together}
    faults = {path: fault for path in drivers if (fault := ask([path], seconds)) is not None}
    left = [path for path in drivers if path not in faults]
    if len(left) < 2 or (together := ask(left, seconds) if faults else together) is None:
        return faults
    for path in reversed(left):
        others = [other for other in left if other != path]
        if ask(others, seconds) is None:
            return {**faults, path: f"beside {', '.join(one.name for one in others)}, it {together}"}
    return {**faults, **dict.fromkeys(left[1:], f"beside {left[0].name}, it {together}")}


@once_a_process
def left_out() -> Faults:
    """The drivers that this process does not use, and why. Asks those of which nothing is kept."""
    manifests = used()
    if not manifests:
        return {}
    records = {manifest.path: _record(manifest) for manifest in manifests}
    kept = {path: _read(record) for path, record in records.items()}
    if None not in kept.values():
        return {path: fault for path, fault in kept.items() if fault}
    try:
        faults = judged(list(records))
    except OSError as error:  # no process can be started
        _log.info("the Vulkan drivers were not asked in a process of their own: %s", error)
        return {}
    for path, record in records.items():
        _write(record, faults.get(path, ""))
    for path, fault in faults.items():
        _log.warning("the Vulkan driver %s is left out: it %s", path, fault)
    return faults


def hint() -> str:
    """A clause for an error about missing devices: the drivers that are left out; "" if none is."""
    return "; ".join(f"the driver {path} is left out: it {fault}" for path, fault in left_out().items())


def record_of(path: Path) -> Path | None:
    """The file that has a driver's answer: without it the driver is asked again. None if there is no such driver."""
    return next((_record(manifest) for manifest in used() if manifest.path == path), None)


def _record(manifest: Manifest) -> Path:
    parts = (_VERSION, str(manifest.path), _identity(manifest), _cards(), platform.release())
    return kept_folder() / f"asked-{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}.json"


def _identity(manifest: Manifest) -> tuple[object, ...]:
    """What changes where another version of a driver is installed."""
    name = manifest.library
    places = [manifest.path.parent / name] if manifest.has_path() else [folder / name for folder in _LIBRARY_FOLDERS]
    return tuple(_stamp(path) for path in (manifest.path, *places))


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _cards() -> tuple[str, ...]:
    """Vendor and device numbers of the machine's graphics cards, in order."""
    if WINDOWS:
        return tuple(str(values.get("MatchingDeviceId")) for values in registry_values(DISPLAY_ADAPTERS, depth=1))
    found = []
    for card in sorted(Path("/sys/class/drm").glob("renderD*/device")):
        try:
            found.append(" ".join((card / name).read_text().strip() for name in ("vendor", "device")))
        except OSError:
            continue
    return tuple(found)


def _read(record: Path) -> Fault | None:
    """What is kept of a driver: "" if it answered; None if nothing is, or it is time to ask again."""
    try:
        fault = json.loads(record.read_text(encoding="utf-8"))["fault"]
        if not isinstance(fault, str) or (fault and time.time() - record.stat().st_mtime > _RETRY):
            return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return fault


def _write(record: Path, fault: Fault) -> None:
    try:
        record.parent.mkdir(parents=True, exist_ok=True)
        write_whole(record, json.dumps({"fault": fault}).encode(), private=True)
    except OSError as error:
        _log.info("what a driver answered was not saved in %s: %s", record, error)


def _only(drivers: Collection[Path]) -> Mapping[str, str]:
    return dict.fromkeys(REPLACING, os.pathsep.join(map(str, drivers)))


@contextmanager
def without(faults: Collection[Path]) -> Iterator[None]:
    """Keeps these drivers from the loader, which reads the environment when an instance is made. Raises
    DeviceUnavailable where no other is left."""
    if not faults:
        yield
        return
    good = [manifest.path for manifest in used() if manifest.path not in faults]
    if not good:
        raise DeviceUnavailable(f"no Vulkan driver can be used: {hint()}")
    kept = {name: os.environ.get(name) for name in REPLACING}
    os.environ.update(_only(good))
    try:
        yield
    finally:
        for name, value in kept.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
