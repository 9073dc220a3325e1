"""Strip debug information from upstream's libraries, once: the result is cached with its compressed form."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

from ..errors import ToolError
from ..progress import step
from .archive import Stream, compress_to

STRIPPED = ("triton/_C/libtriton.so", "triton/_C/libproton.so")
_LEVEL = 6


def find_strip() -> str:
    """The strip program; a ToolError says how to get one."""
    for name in ("strip", "llvm-strip"):
        if found := shutil.which(name):
            return found
    raise ToolError("neither strip nor llvm-strip is on PATH: install binutils (apt-get install binutils)")


def find_strip_for(arch: str) -> str | None:
    """A strip program that handles another machine's libraries, None if there is none."""
    if arch == platform.machine():
        return find_strip()
    return shutil.which(f"{arch}-linux-gnu-strip") or shutil.which("llvm-strip")


def stripped(cache: Path, source: Path, source_digest: str, program: str = "") -> tuple[Path, Stream]:
    """The stripped copy of a library and its compressed form, from the cache where they are there.

    `source_digest` is the RECORD digest of the library: what the cache is keyed by.
    """
    folder = cache / "stripped" / f"{source.name}-{source_digest}"
    if not (folder / "stream.json").exists():
        program = program or find_strip()
        folder.parent.mkdir(parents=True, exist_ok=True)
        with step(f"strip {source.name}"), tempfile.TemporaryDirectory(dir=folder.parent, prefix=".strip-") as scratch:
            work = Path(scratch) / "result"
            work.mkdir()
            library = work / source.name
            command = [program, "-o", str(library), str(source)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise ToolError(f"{program} failed on {source}: {done.stderr.strip()}")
            library.chmod(0o755)
            stream = compress_to(library, work / "stream", _LEVEL)
            fields = {**dataclasses.asdict(stream), "path": "stream"}
            (work / "stream.json").write_text(json.dumps(fields))
            shutil.rmtree(folder, ignore_errors=True)
            os.replace(work, folder)
    fields = json.loads((folder / "stream.json").read_text())
    return folder / source.name, Stream(**{**fields, "path": folder / "stream"})
