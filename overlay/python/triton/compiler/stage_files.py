"""Read the file of a stage that upstream's `parse()` does not know, for kernel overrides of any backend."""
from __future__ import annotations

from pathlib import Path

from ..backends import backends


def read_stage(path: str, ext: str) -> bytes | str:
    """What a stage named `ext` would have given: bytes where it is some backend's `binary_ext`, else text."""
    binaries = {getattr(backend.compiler, "binary_ext", None) for backend in backends.values()}
    return Path(path).read_bytes() if ext in binaries else Path(path).read_text()
