"""Zstandard frames (RFC 8878), by the system's library. Python has no module for them before 3.14."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from functools import cache

from ..system import INSTALL_ZSTANDARD, ZSTANDARD

#: How a frame begins: 0xFD2FB528, little-endian.
_MAGIC = b"\x28\xb5\x2f\xfd"
#: ZSTD_getFrameContentSize: not told, and not a frame.
_NOT_TOLD = 2**64 - 2


class NoZstandard(RuntimeError):
    """The library is not there. The message says what to do."""


def _loaded(name: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


@cache
def _library() -> ctypes.CDLL:
    library = next(filter(None, map(_loaded, ZSTANDARD)), None)
    if library is None:
        raise NoZstandard(f"{ZSTANDARD[0]}, which unpacks it, is not there: {INSTALL_ZSTANDARD}")
    library.ZSTD_findFrameCompressedSize.argtypes = (ctypes.c_char_p, ctypes.c_size_t)
    library.ZSTD_findFrameCompressedSize.restype = ctypes.c_size_t
    library.ZSTD_getFrameContentSize.argtypes = (ctypes.c_char_p, ctypes.c_size_t)
    library.ZSTD_getFrameContentSize.restype = ctypes.c_ulonglong
    library.ZSTD_decompress.argtypes = (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)
    library.ZSTD_decompress.restype = ctypes.c_size_t
    library.ZSTD_isError.argtypes = (ctypes.c_size_t,)
    return library


def frames(data: bytes) -> Iterator[bytes]:
    """The contents of each frame in ``data``, wherever it lies. Frames that are damaged, cut off, or do not tell the
    size of their contents are passed over. Raises NoZstandard."""
    at = data.find(_MAGIC)
    while at >= 0:
        rest = data[at:]
        length, contents = _contents(rest)
        if contents is not None:
            yield contents
        at = data.find(_MAGIC, at + max(length, 1))


def _contents(data: bytes) -> tuple[int, bytes | None]:
    """(length, contents) of the frame that ``data`` begins with; (0, None) where it cannot be read."""
    library = _library()
    length = library.ZSTD_findFrameCompressedSize(data, len(data))
    size = library.ZSTD_getFrameContentSize(data, len(data))
    if library.ZSTD_isError(length) or size >= _NOT_TOLD:
        return 0, None
    buffer = ctypes.create_string_buffer(max(1, size))
    written = library.ZSTD_decompress(buffer, size, data, length)
    if library.ZSTD_isError(written) or written != size:
        return 0, None
    return length, buffer.raw[:size]
