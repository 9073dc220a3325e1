"""The compiled kernels in Triton's cache: ``triton-spirv kernels``, and finding one by its name or key."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..runtime.files import kept_folder
from ..ttgir.lexer import unescape
from .speed import module_digest

#: Stages of a kernel that the cache keeps, in order: file suffixes.
STAGES = ("source", "ttir", "ttgir", "spv")

#: Where TTIR says that a function begins: its module-level location, ``#loc = loc("file":line:column)``.
_PLACE = re.compile(r'^#loc = loc\(("(?:[^"\\]|\\.)*"):(\d+):\d+\)', re.MULTILINE)
_DRIVER = re.compile(r"driver=([^;]*)")


class NotInCache(Exception):
    """No kernel, or more than one, is what the user asked for. The message says what there is."""


class NotPlannable(ValueError):
    """A kernel of the cache that this version cannot plan as it was planned. The message names it."""


@dataclass(frozen=True)
class CachedKernel:
    """A kernel in the cache. ``key``: its folder's name; ``modified``: seconds since 1970."""

    name: str
    folder: Path
    modified: float
    metadata: Mapping[str, Any]

    @property
    def key(self) -> str:
        """What tells it from other kernels of the same name."""
        return self.folder.name

    def path(self, stage: str) -> Path:
        """The file of one of STAGES."""
        return self.folder / f"{self.name}.{stage}"

    def text(self, stage: str) -> str:
        """One of STAGES but the module. Raises NotInCache if the cache does not have it."""
        try:
            return self.path(stage).read_text(encoding="utf-8")
        except OSError:
            there = ", ".join(name for name in STAGES if self.path(name).exists())
            raise NotInCache(f"the cache has no stage {stage!r} of kernel {self.name}, only {there}") from None

    @cached_property
    def source(self) -> str:
        """Where the kernel was written, as ``file:line``; "" if the cache does not say."""
        try:
            place = _PLACE.search(self.path("ttir").read_text(encoding="utf-8", errors="replace"))
        except OSError:
            return ""
        return f"{unescape(place[1])}:{place[2]}" if place else ""

    @property
    def driver(self) -> str:
        """The driver, or profile, that it was compiled for."""
        found = _DRIVER.search(str(self.metadata.get("target", {}).get("arch", "")))
        return found[1] if found else "?"

    def described(self) -> dict[str, Any]:
        """What ``kernels --json`` prints."""
        facts = {name: self.metadata.get(name) for name in ("num_warps", "num_stages", "workgroup_size", "shared")}
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.modified))
        size = self.path("spv").stat().st_size
        return {"key": self.key, "name": self.name, "compiled": when, "driver": self.driver, **facts} | {
            "spv_bytes": size,
            "source": self.source,
            "folder": str(self.folder),
        }


def cache_folder() -> Path:
    """Triton's cache."""
    return kept_folder().parent


def _read(path: Path) -> CachedKernel | None:
    """The kernel of a ``.spv`` file; None if its metadata are missing, damaged, or another backend's."""
    try:
        metadata = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        modified = path.stat().st_mtime
    except (OSError, ValueError):
        return None  # being written, or not a kernel
    if not isinstance(metadata, dict) or not isinstance(metadata.get("target"), dict):
        return None
    return CachedKernel(path.stem, path.parent, modified, metadata)


def cached(folder: Path | None = None) -> list[CachedKernel]:
    """Every kernel of this backend in Triton's cache, the newest first."""
    paths = (folder or cache_folder()).glob("*/*.spv")
    found = [_read(path) for path in paths if path.parent.name != kept_folder().name]
    return sorted(filter(None, found), key=lambda kernel: -kernel.modified)


def find(wanted: str, folder: Path | None = None, modules: Collection[str] = ()) -> CachedKernel:
    """The kernel with the name ``wanted``, or a key that begins with it. Of several it is one whose module's digest is
    in ``modules``, else the newest, as a line on stderr says. Raises NotInCache, also if several files have them."""
    kernels = cached(folder)
    named = [kernel for kernel in kernels if kernel.name == wanted]
    if modules:
        named = [one for one in named if module_digest(one.path("spv").read_bytes()) in modules] or named
    files = {kernel.source.rpartition(":")[0]: kernel for kernel in reversed(named) if kernel.source}
    if len(files) > 1:
        listed = ", ".join(f"{kernel.key[:12]} {kernel.source}" for kernel in files.values())
        raise NotInCache(f"kernels named {wanted!r} come from {len(files)} files; choose one by its key: {listed}")
    if named:
        if len(named) > 1:
            this = f"{named[0].key[:12]} of {len(named)} kernels named {wanted!r}, the one that was compiled last"
            print(f"triton-spirv: {this}; `triton-spirv kernels {wanted}` lists all, with keys", file=sys.stderr)
        return named[0]
    keyed = [kernel for kernel in kernels if kernel.key.lower().startswith(wanted.lower())] if wanted else []
    if len(keyed) == 1:
        return keyed[0]
    where = folder or cache_folder()
    if keyed:
        listed = ", ".join(f"{kernel.key[:12]} ({kernel.name})" for kernel in keyed[:5])
        raise NotInCache(f"{len(keyed)} kernels in {where} have keys that begin with {wanted!r}: {listed}")
    names = sorted({kernel.name for kernel in kernels})
    there = f"it has {', '.join(names[:10])}{' …' if len(names) > 10 else ''}" if names else "it is empty"
    raise NotInCache(f"no kernel in {where} has the name or key {wanted!r}: {there}")


_ROW = "{key:12} {compiled:19} {driver:16} {num_warps!s:>5} {workgroup_size!s:>9} {shared!s:>6} {spv_bytes:>8}  {name}"
_TITLES = {name: name for name in ("key", "compiled", "driver", "shared")}
_TITLES |= {"num_warps": "warps", "workgroup_size": "workgroup", "spv_bytes": "bytes", "name": "kernel"}


def run_kernels(name: str | None, limit: int, as_json: bool) -> int:
    """Prints the kernels in the cache, the newest first. Status 1 if there is none."""
    kernels = [kernel for kernel in cached() if name is None or name in kernel.name]
    shown = kernels[:limit] if limit else kernels
    if as_json:
        print(json.dumps([kernel.described() for kernel in shown], indent=2, ensure_ascii=False))
        return int(not kernels)
    if not kernels:
        print(f"{cache_folder()} has no kernel of this backend{f' named like {name!r}' if name else ''}")
        return 1
    print(_ROW.format(**_TITLES))
    for kernel in shown:
        row = kernel.described() | {"key": kernel.key[:12]}
        print(_ROW.format(**row) + (f"  {row['source']}" if row["source"] else ""))
    if len(shown) < len(kernels):
        print(f"… and {len(kernels) - len(shown)} older: --limit 0 shows all")
    return 0
