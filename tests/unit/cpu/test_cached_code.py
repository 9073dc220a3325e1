"""Files of machine code in the cache: what is damaged, of another key, or in a folder of others is not executed."""

import logging
import os
import struct
from pathlib import Path

import pytest
import triton
import triton.language as tl
from triton import knobs
from triton.backends.spirv import notices
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.cpu.objects import MachineCode, machine_code
from triton.backends.spirv.runtime import files
from triton.backends.spirv.runtime.files import kept_folder, trusted_cache
from triton.backends.spirv.system import WINDOWS

from tests.unit.cpu.kernels import PROFILES_HERE, compiled

PROFILE = PROFILES_HERE[0]


@triton.jit
def sums(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.cumsum(tl.load(x + i), 0))


def module(size: int) -> bytes:
    import numpy as np

    spirv = bytes(compiled(PROFILE, sums, [np.zeros(1, np.float32)] * 2, {"B": size}).asm["spv"])
    for path in Path(knobs.cache.dir).glob("*/kernel.o"):  # it has lines of the source
        path.unlink()
    return spirv


def made(spirv: bytes) -> MachineCode:
    return machine_code(spirv, PROFILES[PROFILE].subgroup_size, PROFILES[PROFILE].processor)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setattr(knobs.cache, "dir", str(folder))
    monkeypatch.setattr(notices, "_told", set())
    monkeypatch.delenv("TRITON_SPIRV_QUIET", raising=False)
    return folder


def test_every_damaged_byte_is_seen(cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    spirv = module(64)
    right = made(spirv)
    (path,) = cache.glob("*/kernel.o")
    whole = path.read_bytes()
    assert made(spirv) == right and path.read_bytes() == whole
    # In the digest, in the scratch size, and in the object.
    flipped = [
        whole[:at] + bytes([whole[at] ^ 2]) + whole[at + 1 :] for at in (*range(0, 64, 5), *range(64, len(whole), 997))
    ]
    start = len(whole) - len(right.code)
    scratch = whole[: start - 8] + struct.pack("<Q", 1 << 40) + whole[start:]
    damaged = [*flipped, scratch, whole[: len(whole) // 2], whole[:20], b"", bytes(len(whole)), whole + b"\0"]
    caplog.set_level(logging.DEBUG, "triton.backends.spirv.cpu.objects")
    for contents in damaged:
        path.write_bytes(contents)
        assert made(spirv) == right and path.read_bytes() == whole
    assert [record.levelno for record in caplog.records] == [logging.DEBUG] * len(damaged)


def test_the_file_of_another_kernel_is_not_taken(cache: Path) -> None:
    small, large = module(32), module(256)
    made(small)
    (first,) = cache.glob("*/kernel.o")
    right = made(large)
    (second,) = set(cache.glob("*/kernel.o")) - {first}
    second.write_bytes(first.read_bytes())
    assert made(large) == right


def give_away(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() == 0:
        os.chown(folder, 54321, 54321)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 54321)


@pytest.mark.skipif(WINDOWS, reason="rights of folders have another form on Windows")
@pytest.mark.parametrize(
    ("mode", "others"),
    [
        (0o700, "it belongs to user"),
        (0o777, "everybody can write"),
        (0o1777, "everybody can write"),
        (0o775, "group 54321 can write"),
    ],
)
def test_a_cache_that_others_can_write_is_not_used(
    cache: Path, mode: int, others: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    right = made(module(64))
    before = {path: path.stat().st_mtime_ns for path in cache.rglob("*")}
    if mode == 0o775:
        if os.geteuid() != 0:
            pytest.skip("only root can give a folder to a group of others")
        os.chown(cache, 0, 54321)
    elif mode == 0o700:
        give_away(cache, monkeypatch)
    os.chmod(cache, mode)
    try:
        for _ in range(2):
            again = made(module(64))
            assert again == right and knobs.cache.dir != str(cache)
            assert kept_folder().parent == Path(knobs.cache.dir)
        assert {path: path.stat().st_mtime_ns for path in cache.rglob("*")} == before
    finally:
        files._own.cache_clear()
    (message,) = (record.getMessage() for record in caplog.records if "is executed" in record.getMessage())
    assert str(cache) in message and others in message and "chmod -R go-w" in message


def test_a_cache_that_only_we_or_root_can_write_is_used(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for mode in (0o700, 0o755, 0o555):
        os.chmod(cache, mode)
        assert trusted_cache(str(cache)) == str(cache)
    assert trusted_cache(str(cache / "not there yet")) == str(cache / "not there yet")
    assert trusted_cache("/") == "/"  # root's


@pytest.mark.skipif(WINDOWS, reason="rights of folders have another form on Windows")
def test_a_group_of_nobody_else_is_we(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import grp
    import pwd
    from types import SimpleNamespace

    from triton.backends.spirv import system

    system._is_private.cache_clear()
    me = SimpleNamespace(pw_name="me", pw_gid=4242)
    others = [me]
    members: list[str] = []
    monkeypatch.setattr(grp, "getgrgid", lambda number: SimpleNamespace(gr_mem=members))
    monkeypatch.setattr(pwd, "getpwuid", lambda number: me)
    monkeypatch.setattr(pwd, "getpwall", lambda: others)
    assert system._is_private(4242, 1)
    system._is_private.cache_clear()
    members.append("other")
    assert not system._is_private(4242, 1)
    system._is_private.cache_clear()
    members[:] = ["me"]
    others.append(SimpleNamespace(pw_name="other", pw_gid=4242))
    assert not system._is_private(4242, 1)
    system._is_private.cache_clear()
