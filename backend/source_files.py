"""The files that a kernel's lines come from, and what was in them when it was compiled."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

#: A place in the text of a module, `loc("FILE":LINE:COLUMN)`.
_PLACE = re.compile(r'loc\("([^"\\]+)":\d')


def digest_of(file: str) -> str | None:
    """What tells a file's bytes from others; None for a file that cannot be read."""
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16]
    except OSError:
        return None


def digests(module: str) -> dict[str, str]:
    """Those of the files that the places in a module's text name, by their paths. None of what is no file, as a cell of
    a notebook."""
    found = {file: digest_of(file) for file in dict.fromkeys(_PLACE.findall(module))}
    return {file: digest for file, digest in found.items() if digest is not None}
