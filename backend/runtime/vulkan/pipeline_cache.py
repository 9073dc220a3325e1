"""What a driver compiled, kept on disk next to Triton's cache for the next process.

A file belongs to one device and driver; its name says which. It is replaced as a whole, so that many processes can
share it; one that is damaged, or of another driver, is ignored and replaced.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..files import write_whole
from .loader import check, new, vulkan

_MAGIC = b"triton-spirv pipelines 1\n"
_DIGEST_BYTES = hashlib.sha256().digest_size
_SECONDS_BETWEEN_SAVES = 5.0

_log = logging.getLogger(__name__)


def folder() -> Path:
    """Where the files are: in TRITON_CACHE_DIR, or where Triton's cache is without it."""
    cache = os.environ.get("TRITON_CACHE_DIR", "").strip()
    home = os.environ.get("TRITON_HOME", "").strip() or os.path.expanduser("~")
    return Path(cache or os.path.join(home, ".triton", "cache")) / "spirv-pipelines"


def pack(data: bytes) -> bytes:
    """A file's contents for a driver's data."""
    return _MAGIC + hashlib.sha256(data).digest() + data


def unpack(contents: bytes) -> bytes:
    """The driver's data in a file's contents. Raises ValueError if they are damaged or something else."""
    start = len(_MAGIC) + _DIGEST_BYTES
    if len(contents) < start or not contents.startswith(_MAGIC):
        raise ValueError("not a pipeline cache")
    data = contents[start:]
    if hashlib.sha256(data).digest() != contents[len(_MAGIC) : start]:
        raise ValueError("damaged")
    return data


@contextmanager
def _one_process_at_a_time(folder: Path) -> Iterator[None]:
    """Without it a process that reads what is there while another one writes would drop what that adds."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


class PipelineCache:
    """A VkPipelineCache, filled from ``path`` and saved there; None: it is of this process alone. ``handle`` is what
    pipelines are created with."""

    def __init__(self, device: Any, path: Path | None = None) -> None:
        self.path = path
        self._device = device
        self.handle = self._create(self._read())
        self._saved_bytes = self._size()
        self._saved_at = time.monotonic()

    def _read(self) -> bytes:
        if self.path is None:
            return b""
        try:
            if stat.S_ISREG(self.path.stat().st_mode):  # reading anything else may not end
                return unpack(self.path.read_bytes())
            raise ValueError("it is not a file")
        except FileNotFoundError:
            return b""
        except (OSError, ValueError) as error:
            _log.info("the pipeline cache %s is ignored: %s", self.path, error)
            return b""

    def _create(self, data: bytes) -> Any:
        vk = vulkan()
        info = new("VkPipelineCacheCreateInfo")
        buffer = vk.ffi.from_buffer(data)
        info.initialDataSize, info.pInitialData = len(data), buffer if data else vk.ffi.NULL
        out = vk.ffi.new("VkPipelineCache*")
        result = vk.lib.vkCreatePipelineCache(self._device, info, vk.ffi.NULL, out)
        if result and data:  # the driver does not want it
            return self._create(b"")
        check(result, "vkCreatePipelineCache")
        return out[0]

    def _size(self, cache: Any = None) -> int:
        vk = vulkan()
        size = vk.ffi.new("size_t*")
        check(
            vk.lib.vkGetPipelineCacheData(self._device, cache or self.handle, size, vk.ffi.NULL),
            "vkGetPipelineCacheData",
        )
        return int(size[0])

    def data(self, cache: Any = None) -> bytes:
        """What the driver has in it, or in ``cache``; b"" if another thread adds to it meanwhile."""
        vk = vulkan()
        size = vk.ffi.new("size_t*", self._size(cache))
        data = vk.ffi.new("char[]", max(1, size[0]))
        result = vk.lib.vkGetPipelineCacheData(self._device, cache or self.handle, size, data)
        return bytes(vk.ffi.buffer(data, size[0])) if result == 0 else b""  # VK_INCOMPLETE

    def save_sometimes(self) -> None:
        """Save if it grew, but not more often than every few seconds."""
        if time.monotonic() - self._saved_at >= _SECONDS_BETWEEN_SAVES:
            self.save()

    def save(self) -> None:
        """Write the file, with what other processes added to it since, if there is anything new. Does not raise."""
        self._saved_at = time.monotonic()
        if self.path is None:
            return
        try:
            size = self._size()
            if size == self._saved_bytes:
                return
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with _one_process_at_a_time(self.path.parent):
                data = self._merged(self._read())
                if not data:
                    return
                write_whole(self.path, pack(data), private=True)
            self._saved_bytes = size
        except (OSError, RuntimeError) as error:
            _log.info("the pipeline cache %s was not saved: %s", self.path, error)

    def _merged(self, data: bytes) -> bytes:
        """What the cache holds, with ``data`` of another process. Both are merged into a third: no other thread may use
        a cache while others are merged into it."""
        if not data:
            return self.data()
        vk = vulkan()
        caches = [self._create(data)]
        try:
            caches.append(self._create(b""))
            check(
                vk.lib.vkMergePipelineCaches(
                    self._device, caches[1], 2, vk.ffi.new("VkPipelineCache[]", [self.handle, caches[0]])
                ),
                "vkMergePipelineCaches",
            )
            return self.data(caches[1])
        finally:
            for cache in caches:
                vk.lib.vkDestroyPipelineCache(self._device, cache, vk.ffi.NULL)

    def destroy(self) -> None:
        """Destroy the Vulkan object."""
        vk = vulkan()
        vk.lib.vkDestroyPipelineCache(self._device, self.handle, vk.ffi.NULL)
