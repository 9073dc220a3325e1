"""A zip writer that takes over compressed streams as they are.

A wheel of 300 MB differs from upstream's in a few files. Members that are unchanged are copied in their compressed
form, so that a wheel is written at the speed of the disk.
"""

from __future__ import annotations

import base64
import hashlib
import struct
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self

_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_UTF8_NAME = 0x800
_LIMIT = 0xFFFFFFFF
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Stream:
    """A member's raw-deflate data, whole in a file or a slice of one."""

    path: Path
    offset: int
    compressed_size: int
    size: int
    crc: int
    sha256: str
    """Of the uncompressed data, in the urlsafe base64 of RECORD."""
    method: int = zipfile.ZIP_DEFLATED


def record_digest(digest: bytes) -> str:
    """A digest as RECORD writes it."""
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def stream_of_member(wheel: Path, info: zipfile.ZipInfo, sha256: str) -> Stream:
    """The compressed data of a zip member, where it lies in the zip."""
    with wheel.open("rb") as handle:
        handle.seek(info.header_offset)
        header = _LOCAL.unpack(handle.read(_LOCAL.size))
    offset = info.header_offset + _LOCAL.size + header[-2] + header[-1]
    return Stream(wheel, offset, info.compress_size, info.file_size, info.CRC, sha256, info.compress_type)


def compress_to(source: Path, target: Path, level: int) -> Stream:
    """Deflate a file into another file."""
    packer = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
    digest = hashlib.sha256()
    crc = size = 0
    with source.open("rb") as reader, target.open("wb") as writer:
        while chunk := reader.read(_CHUNK):
            digest.update(chunk)
            crc = zlib.crc32(chunk, crc)
            size += len(chunk)
            writer.write(packer.compress(chunk))
        writer.write(packer.flush())
        packed = writer.tell()
    return Stream(target, 0, packed, size, crc, record_digest(digest.digest()))


def stored(source: Path) -> Stream:
    """A file as a member that is not compressed."""
    digest = hashlib.sha256()
    crc = 0
    with source.open("rb") as reader:
        while chunk := reader.read(_CHUNK):
            digest.update(chunk)
            crc = zlib.crc32(chunk, crc)
    size = source.stat().st_size
    return Stream(source, 0, size, size, crc, record_digest(digest.digest()), zipfile.ZIP_STORED)


class Archive:
    """Writes a zip file member by member; each has the same time stamp and plain permissions."""

    def __init__(self, handle: BinaryIO, timestamp: tuple[int, int, int, int, int, int]) -> None:
        year, month, day, hour, minute, second = timestamp
        self._handle = handle
        self._date = (year - 1980) << 9 | month << 5 | day
        self._time = hour << 11 | minute << 5 | second // 2
        self._central: list[bytes] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._finish()

    def add_bytes(self, name: str, data: bytes, executable: bool = False) -> tuple[str, int]:
        """Add a small member; returns its RECORD digest and size."""
        packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
        packed = packer.compress(data) + packer.flush()
        self._header(name, zipfile.ZIP_DEFLATED, zlib.crc32(data), len(packed), len(data), executable)
        self._handle.write(packed)
        return record_digest(hashlib.sha256(data).digest()), len(data)

    def add_stream(self, name: str, stream: Stream, executable: bool) -> tuple[str, int]:
        """Add a member that is compressed already; returns its RECORD digest and size."""
        self._header(name, stream.method, stream.crc, stream.compressed_size, stream.size, executable)
        with stream.path.open("rb") as source:
            source.seek(stream.offset)
            left = stream.compressed_size
            while left:
                chunk = source.read(min(left, _CHUNK))
                if not chunk:
                    raise EOFError(f"{stream.path} ends {left} bytes early")
                self._handle.write(chunk)
                left -= len(chunk)
        return stream.sha256, stream.size

    def _header(self, name: str, method: int, crc: int, packed: int, size: int, executable: bool) -> None:
        offset = self._handle.tell()
        if max(offset, packed, size) >= _LIMIT:
            raise ValueError(f"{name}: the archive would need zip64")
        raw = name.encode()
        flags = 0 if name.isascii() else _UTF8_NAME
        common = (flags, method, self._time, self._date, crc, packed, size)
        self._handle.write(_LOCAL.pack(b"PK\3\4", 20, *common, len(raw), 0) + raw)
        attributes = (0o100755 if executable else 0o100644) << 16
        made_by_unix = 3 << 8 | 20
        head = _CENTRAL.pack(b"PK\1\2", made_by_unix, 20, *common, len(raw), 0, 0, 0, 0, attributes, offset)
        self._central.append(head + raw)

    def _finish(self) -> None:
        start = self._handle.tell()
        for entry in self._central:
            self._handle.write(entry)
        size = self._handle.tell() - start
        count = len(self._central)
        self._handle.write(_END.pack(b"PK\5\6", 0, 0, count, count, size, start, 0))
