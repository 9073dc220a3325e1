"""Where a kernel's files are kept if the cache folder cannot be used: in a folder of the process, with one warning."""
from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
import warnings

_PROBE = b"\0" * 4096


def folder_of(cache: str, key: str) -> str:
    """The folder of ``key`` in the cache folder ``cache``, which exists then. If nothing can be written there and it has
    none, a folder that is removed when the process ends."""
    folder = os.path.join(cache, key)
    if cache and os.path.isdir(folder) and os.listdir(folder):
        return folder
    folder = os.path.join(cache if _is_usable(cache) else _own(os.getpid()), key)
    os.makedirs(folder, exist_ok=True)
    return folder


@functools.cache
def _is_usable(cache: str) -> bool:
    """Whether files can be written in a folder, which is made if there is none. Warns if not."""
    try:
        if not cache:
            raise ValueError("TRITON_CACHE_DIR is empty")
        os.makedirs(cache, exist_ok=True)
        with tempfile.TemporaryFile(dir=cache) as probe:
            probe.write(_PROBE)
            probe.flush()
        return True
    except (OSError, ValueError) as error:
        warnings.warn(
            f"Triton cannot keep kernels in its cache ({error}): they are compiled again in each process. Set "
            "TRITON_CACHE_DIR to a folder that can be written, with room in it", stacklevel=2)
        return False


@functools.cache
def _own(process: int) -> str:
    folder = tempfile.mkdtemp(prefix="triton-cache-")
    atexit.register(_remove, folder, process)
    return folder


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:  # not a forked child's
        shutil.rmtree(folder, ignore_errors=True)
