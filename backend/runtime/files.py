"""Files that many processes share: where what is known of devices is kept, and writing as a whole or not at all."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
from pathlib import Path

from ..notices import tell_once
from ..system import replace, writable_by_others

#: The folder of what drivers compiled, in Triton's cache.
_PIPELINES = "spirv-pipelines"

#: What to do about a cache in which others can write.
MAKE_OURS = "Make it yours alone (chown -R, chmod -R go-w), or set TRITON_CACHE_DIR to a folder that is"


def asked_cache() -> str:
    """Triton's cache folder: TRITON_CACHE_DIR, or where it is without it."""
    cache = os.environ.get("TRITON_CACHE_DIR", "").strip()
    home = os.environ.get("TRITON_HOME", "").strip() or os.path.expanduser("~")
    return cache or os.path.join(home, ".triton", "cache")


def kept_folder() -> Path:
    """Where what drivers compiled, and what was measured of devices, is kept: in Triton's cache, if it may be used."""
    return Path(trusted_cache(asked_cache())) / _PIPELINES


def unusable(cache: Path) -> str:
    """Why files cannot be kept in a cache folder, as a clause; "" if they can. It is made, as the first kernel does."""
    if cache.parts[:1] == ("~",):
        return "the home folder is not known"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=cache):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def trusted_cache(cache: str) -> str:
    """Triton's cache folder ``cache`` if nobody else can write there, because what it holds is executed. Otherwise, and
    if the user has no home folder, a folder that is removed when the process ends; that others can write is told
    once."""
    if cache.startswith("~"):
        return _own(os.getpid())
    if why := distrusted(cache):
        tell_once(
            "cache of others", f"{why}: it is not used, and kernels are compiled again in each process. {MAKE_OURS}"
        )
        return _own(os.getpid())
    return cache


def distrusted(cache: str) -> str:
    """Why what a cache folder holds is not executed, as a clause; "" if it is."""
    for folder in (cache, os.path.join(cache, _PIPELINES)):
        if others := writable_by_others(folder):
            return f"Triton's cache {folder} holds code that is executed, and {others}"
    return ""


@functools.cache
def _own(process: int) -> str:
    folder = tempfile.mkdtemp(prefix="triton-spirv-cache-")
    atexit.register(_remove, folder, process)
    return folder


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:  # not a forked child's
        shutil.rmtree(folder, ignore_errors=True)


def given_path(text: str) -> Path:
    """A path of a command line as messages show it. One with ``..`` is written without it, relative to the working
    folder below it. The folders are resolved, because ``link/..`` is the parent of what the link leads to."""
    path = Path(text)
    if ".." not in path.parts:
        return path
    path = path.resolve() if path.name == ".." else path.parent.resolve() / path.name
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def write_whole(path: Path, data: bytes, private: bool = False) -> None:
    """Writes ``data`` to ``path``. Raises OSError; what was there before stays then. ``private``: for this user."""
    written = written_beside(path, data, private)
    try:
        replace(written, path)
    except BaseException:
        written.unlink(missing_ok=True)
        raise


def written_beside(path: Path, data: bytes, private: bool = False) -> Path:
    """A new file in the folder of ``path``, with ``data``. Raises OSError."""
    descriptor, name = tempfile.mkstemp(prefix=".triton-spirv.", dir=path.absolute().parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        if not private:
            os.chmod(name, 0o666 & ~_umask())
    except BaseException:
        os.unlink(name)
        raise
    return Path(name)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
