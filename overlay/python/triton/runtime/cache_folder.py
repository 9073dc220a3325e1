"""Where a kernel's files are kept if the cache folder cannot be used: in a folder of the process, with one warning."""
from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
import warnings

_PROBE = b"\0" * 4096

#: Cache folders in which writing failed after all.
_failed: set[str] = set()


def folder_of(cache: str, key: str) -> str:
    """The folder of ``key`` in the cache folder ``cache``, which exists then. If nothing can be written there and it has
    none, a folder that is removed when the process ends."""
    folder = os.path.join(cache, key)
    if cache and os.path.isdir(folder) and os.listdir(folder):
        return folder
    return _made(cache if cache not in _failed and _is_usable(cache) else _own(os.getpid()), key)


def _made(cache: str, key: str) -> str:
    folder = os.path.join(cache, key)
    os.makedirs(folder, exist_ok=True)
    return folder


def folder_after(error: OSError, part: str, cache: str) -> str:
    """Where a kernel's next files go, that of ``part`` included, which could not be written: not in ``cache`` any more.
    Raises ``error`` if it is of another folder, such as one for dumps. What there is of ``part`` is removed."""
    shutil.rmtree(part, ignore_errors=True)
    folder, key = os.path.split(os.path.dirname(part))
    if folder != cache.rstrip(os.sep):
        raise error
    if cache not in _failed:
        _failed.add(cache)
        _warn(error)
    return _made(_own(os.getpid()), key)


@functools.cache
def _is_usable(cache: str) -> bool:
    """Whether files can be written in a folder, which is made if there is none. Warns if not."""
    try:
        if not cache:
            raise ValueError("TRITON_CACHE_DIR is empty")
        if cache.startswith("~"):
            raise ValueError(f"{cache!r} is in a home folder that is not known")
        os.makedirs(cache, exist_ok=True)
        with tempfile.TemporaryFile(dir=cache) as probe:
            probe.write(_PROBE)
            probe.flush()
        return True
    except (OSError, ValueError) as error:
        _warn(error)
        return False


def _warn(error: Exception) -> None:
    warnings.warn(
        f"Triton cannot keep kernels in its cache ({error}): they are compiled again in each process. Set "
        "TRITON_CACHE_DIR to a folder that can be written, with room in it", stacklevel=3)


@functools.cache
def _own(process: int) -> str:
    folder = tempfile.mkdtemp(prefix="triton-cache-")
    atexit.register(_remove, folder, process)
    return folder


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:  # not a forked child's
        shutil.rmtree(folder, ignore_errors=True)
