"""Where a module that was refused is saved for the user to look at."""

from __future__ import annotations

import hashlib
import os
import tempfile

# Digest of a module → the file that holds it.
_saved: dict[bytes, str] = {}


def save_module(name: str, spirv: bytes) -> str:
    """Write a refused module to a new file that only its user can read. Returns its path, '' if that is impossible.

    ``name``: the kernel's. A module is written once in a process, however often it is refused.
    """
    digest = hashlib.sha256(spirv).digest()
    if os.path.isfile(found := _saved.get(digest, "")):
        return found
    plain = "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in name)[:80]
    try:
        handle, path = tempfile.mkstemp(prefix=f"triton-spirv-{plain}-", suffix=".spv")
        with os.fdopen(handle, "wb") as file:
            file.write(spirv)
    except OSError:
        return ""  # the error that the module is saved for matters more
    _saved[digest] = path
    return path
