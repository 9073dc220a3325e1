"""What a driver compiled, kept on disk next to Triton's cache for the next process.

Each module has a file of its own in a folder of the device and the driver's version. Processes never wait for each
other: a file is replaced as a whole, and whichever process writes it writes the same. A file that is damaged, or of
another driver, is ignored and replaced.
"""

from __future__ import annotations

import hashlib
import logging
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..files import write_whole
from .loader import check, new, vulkan

_MAGIC = b"triton-spirv pipelines 1\n"
_DIGEST_BYTES = hashlib.sha256().digest_size

_log = logging.getLogger(__name__)


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


class PipelineCache:
    """A VkPipelineCache for one module, filled from ``path`` and saved there; None: it is of this process alone.
    ``handle`` is what pipelines are created with."""

    def __init__(self, device: Any, path: Path | None = None) -> None:
        self.path = path
        self._device = device
        self.handle = self._create(self._read())
        self._saved_bytes = self._size()

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

    def _size(self) -> int:
        vk = vulkan()
        size = vk.ffi.new("size_t*")
        check(vk.lib.vkGetPipelineCacheData(self._device, self.handle, size, vk.ffi.NULL), "vkGetPipelineCacheData")
        return int(size[0])

    def data(self) -> bytes:
        """What the driver has in it; b"" if another thread adds to it meanwhile."""
        vk = vulkan()
        size = vk.ffi.new("size_t*", self._size())
        data = vk.ffi.new("char[]", max(1, size[0]))
        result = vk.lib.vkGetPipelineCacheData(self._device, self.handle, size, data)
        return bytes(vk.ffi.buffer(data, size[0])) if result == 0 else b""  # VK_INCOMPLETE

    def save(self) -> None:
        """Write the file if the driver added something. Does not raise."""
        if self.path is None:
            return
        try:
            size = self._size()
            if size == self._saved_bytes:
                return
            data = self.data()
            if data:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                write_whole(self.path, pack(data), private=True)
                self._saved_bytes = size
        except (OSError, RuntimeError) as error:
            _log.info("the pipeline cache %s was not saved: %s", self.path, error)

    def destroy(self) -> None:
        """Destroy the Vulkan object."""
        vk = vulkan()
        vk.lib.vkDestroyPipelineCache(self._device, self.handle, vk.ffi.NULL)


@contextmanager
def cache_of(device: Any, kept: Path, spirv: bytes) -> Iterator[PipelineCache]:
    """The cache of a module on a VkDevice, whose file is in the folder ``kept``; saved after the block, unless that
    raises."""
    cache = PipelineCache(device, kept / f"{hashlib.sha256(spirv).hexdigest()}.bin")
    try:
        yield cache
        cache.save()
    finally:
        cache.destroy()
