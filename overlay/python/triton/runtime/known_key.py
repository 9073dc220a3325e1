"""triton_key() of files that have not changed is read from the cache: computing it reads all of Triton, 200 MB."""
from __future__ import annotations

import functools
import hashlib
import os
import sys
from collections.abc import Callable, Iterator

from triton import __version__

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
#: The folders that triton_key() reads modules of, and one with more than the file that it reads.
_FOLDERS = ("_C", "backends", "compiler", "language", "runtime")
_FILE = "triton_key"


def known(compute: Callable[[], str]) -> Callable[[], str]:
    """``compute``, whose result is kept in the cache for the next processes, until one of the files changes."""

    @functools.wraps(compute)
    def key() -> str:
        from .cache import get_cache_manager

        manager = get_cache_manager(_signature())
        found = manager.get_file(_FILE)
        if found is not None:
            with open(found) as file:
                return file.read()
        made = compute()
        manager.put(made, _FILE, binary=False)
        return made

    return key


def _signature() -> str:
    """A digest of the places, sizes and times of all files. Times of changes are among them, which no tool sets: an
    archive that is unpacked with the times of its files is another one."""
    digest = hashlib.sha256(f"{__version__} {sys.version} {_ROOT}".encode())
    for folder in _FOLDERS:
        for path in _files(os.path.join(_ROOT, folder)):
            about = os.stat(path)
            digest.update(f"\0{path}\0{about.st_size} {about.st_mtime_ns} {about.st_ctime_ns} {about.st_ino}".encode())
    return digest.hexdigest()


def _files(folder: str) -> Iterator[str]:
    """The modules in a folder, in order. Linked folders are followed: a backend may be one."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _files(entry.path)
        elif entry.name.endswith((".py", ".so", ".pyd")):
            yield entry.path
