"""Strip debug information from upstream's libraries, once: the result is cached, with its compressed form where a wheel
has needed it."""

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
from ..project import replace_file
from .archive import Stream, compress_to, stored

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


def stripped(
    cache: Path, source: Path, source_digest: str, program: str = "", packed: bool = True
) -> tuple[Path, Stream]:
    """The stripped copy of a library and its form in a wheel, from the cache where they are there.

    `source_digest` is the RECORD digest of the library: what the cache is keyed by. If not `packed`, the wheel gets it
    as it is, which takes a tenth of the time of compressing it.
    """
    folder = cache / "stripped" / f"{source.name}-{source_digest}"
    library, facts = folder / source.name, folder / ("stream.json" if packed else "stored.json")
    if not facts.exists():
        program = program or find_strip()
        folder.parent.mkdir(parents=True, exist_ok=True)
        with step(f"strip {source.name}"), tempfile.TemporaryDirectory(dir=folder.parent, prefix=".strip-") as scratch:
            work = Path(scratch) / "result"
            if not library.exists():
                work.mkdir()
                command = [program, "-o", str(work / source.name), str(source)]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode:
                    raise ToolError(f"{program} failed on {source}: {done.stderr.strip()}")
                (work / source.name).chmod(0o755)
                shutil.rmtree(folder, ignore_errors=True)
                os.replace(work, folder)
            if packed:
                stream = compress_to(library, Path(scratch) / "stream", _LEVEL)
                os.replace(stream.path, folder / "stream")
            else:
                stream = stored(library)
            fields = {**dataclasses.asdict(stream), "path": "stream" if packed else source.name}
            replace_file(facts, json.dumps(fields).encode())
    fields = json.loads(facts.read_text())
    return library, Stream(**{**fields, "path": folder / fields["path"]})
