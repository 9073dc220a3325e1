"""Files that are no bundles of kernels, or damaged ones, are refused with one error."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from triton.backends.spirv.runtime import IncompatibleModule, load_bundle
from triton.backends.spirv.runtime.compiled.bundle import MAGIC, VERSION

NESTED = b"[" * 100_000


def bundle(text: bytes, version: int = VERSION, magic: bytes = MAGIC, length: int | None = None) -> bytes:
    return struct.pack("<8sII", magic, version, len(text) if length is None else length) + text


def entries(*given: Any) -> bytes:
    return json.dumps({"variants": [*given]}).encode()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no bundle of kernels"),
        (bundle(entries(), magic=b"TSPIRVX\0"), "no bundle of kernels"),
        (
            bundle(entries(), VERSION + 1),
            rf"has version {VERSION + 1}, this runtime reads bundles of version {VERSION}",
        ),
        (bundle(entries())[:-1], "is damaged"),
        (bundle(NESTED), "is damaged: RecursionError"),
        (bundle(b'{"variants": ' + NESTED), "is damaged: RecursionError"),
        (bundle(b'{"variants": "\xff"}'), "is damaged: UnicodeDecodeError"),
        (bundle(b"{}"), "is damaged: KeyError"),
        (bundle(entries(1)), "is damaged: TypeError"),
        (bundle(entries({"name": "add", "offset": -4, "bytes": 4, "abi": {}})), "is damaged: its entry 'add'"),
        (bundle(entries({"name": "add", "offset": True, "bytes": 4, "abi": {}})), "is damaged: its entry 'add'"),
        (bundle(entries({"name": 1, "offset": 0, "bytes": 4, "abi": {}})), "is damaged: its entry 1"),
        (bundle(entries({"name": "add", "offset": 0, "bytes": 4, "abi": []})), "its format is not"),
        (bundle(entries(), length=2**32 - 1) + b"x", "is damaged"),
    ],
)
def test_what_is_no_bundle(data: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "kernels.tsb"
    path.write_bytes(data)
    with pytest.raises(IncompatibleModule, match=message) as found:
        load_bundle(path)
    assert str(path) in str(found.value)


def test_an_empty_bundle_has_no_kernels(tmp_path: Path) -> None:
    path = tmp_path / "kernels.tsb"
    path.write_bytes(bundle(entries()))
    assert load_bundle(path).names == []
