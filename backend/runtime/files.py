"""Files that many processes share: where what is known of devices is kept, and writing as a whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from ..system import replace


def kept_folder() -> Path:
    """Where what drivers compiled, and what was measured of devices, is kept: in TRITON_CACHE_DIR, or where Triton's
    cache is without it."""
    cache = os.environ.get("TRITON_CACHE_DIR", "").strip()
    home = os.environ.get("TRITON_HOME", "").strip() or os.path.expanduser("~")
    return Path(cache or os.path.join(home, ".triton", "cache")) / "spirv-pipelines"


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
