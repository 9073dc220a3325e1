"""A kernel whose metadata in the cache are damaged is compiled again, and so is one whose code there is not what it was."""
from __future__ import annotations

import hashlib
import json
from pathlib import Path


#: Files beside the metadata that are read as text.
_TEXTS = (".source", ".ttir", ".ttgir")


def whole(metadata: str | None) -> str | None:
    """The path of a kernel's metadata in the cache; None where it, or a file that it has a digest of (`sha256`, a dict
    from extensions), was cut off or damaged, as by a full disk, or where text beside it is not UTF-8."""
    if metadata is None:
        return None
    try:
        with open(metadata, encoding="utf-8") as file:
            known = json.load(file)
        for extension, digest in known.get("sha256", {}).items():
            if hashlib.sha256(Path(metadata).with_suffix(f".{extension}").read_bytes()).hexdigest() != digest:
                return None
        for extension in _TEXTS:
            path = Path(metadata).with_suffix(extension)
            if path.exists():
                path.read_bytes().decode("utf-8")
        return metadata if "target" in known else None
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return None
