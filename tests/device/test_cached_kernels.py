"""``triton-spirv kernels``: what Triton's cache holds."""

import json
import re
import struct
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl
from triton import knobs
from triton.backends.spirv import cli
from triton.backends.spirv.inspection.kernels import CachedKernel, NotInCache, cached, find
from triton.backends.spirv.inspection.speed import module_digest


@triton.jit
def doubles(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i) * 2)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with ``doubles`` compiled for two blocks, and things that are not kernels."""
    monkeypatch.setattr(knobs.cache, "dir", str(tmp_path))
    doubles.device_caches.clear()
    doubles.relaunch = None
    for block in (32, 64):
        doubles[(1,)](torch.ones(64), BLOCK=block)
    doubles.device_caches.clear()
    for name, text in (("damaged", "{"), ("other", "[]")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "k.spv").write_bytes(b"")
        (tmp_path / name / "k.json").write_text(text)
    return tmp_path


def test_a_place_is_written_as_its_file_is_named(tmp_path: Path) -> None:
    kernel = CachedKernel("k", tmp_path, 0.0, {})
    kernel.path("ttir").write_text('#loc = loc("Z:\\\\my \\22kernels\\22\\\\j\\C3\\BCrgen.py":7:0)\n', encoding="utf-8")
    assert kernel.source == 'Z:\\my "kernels"\\jürgen.py:7'


def test_kernels_are_listed(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["kernels"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and lines[0].split() == [
        "key", "compiled", "driver", "warps", "workgroup", "shared", "bytes", "kernel",
    ]  # fmt: skip
    line = doubles.fn.__code__.co_firstlineno + 1  # of "def", after the decorator
    assert all(row.endswith(f"doubles  {__file__}:{line}") for row in lines[1:])
    assert cli.main(["kernels", "doub", "--limit", "1", "--json"]) == 0
    (kernel,) = json.loads(capsys.readouterr().out)
    assert kernel["name"] == "doubles" and kernel["num_warps"] == 4 and (cache / kernel["key"]).is_dir()


def test_none_is_found(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["kernels", "triples"]) == 1
    assert capsys.readouterr().out == f"{cache} has no kernel of this backend named like 'triples'\n"


def test_a_kernel_is_found_by_name_and_key(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    newest, older = cached()
    assert find("doubles").key == newest.key
    assert f"{newest.key[:12]} of 2 kernels named 'doubles', the one that was comp" in capsys.readouterr().err
    launched = module_digest(older.path("spv").read_bytes())
    assert find("doubles", modules={launched}).key == older.key and capsys.readouterr().err == ""
    assert find(older.key[:20].lower()).key == older.key
    with pytest.raises(NotInCache, match="has the name or key 'x!': it has doubles$"):
        find("x!")
    with pytest.raises(NotInCache, match="it is empty"):
        find("doubles", cache / "damaged")


def test_a_module_of_which_a_bit_has_changed_is_compiled_again(cache: Path) -> None:
    """The factor, so that it would be a kernel like any other."""
    pytest.importorskip("triton.compiler.cached_metadata", reason="this triton lacks the patch 'damaged-metadata'")
    constant = re.compile(rb"(\x2b\x00\x04\x00.{8})" + re.escape(struct.pack("<f", 2.0)), re.DOTALL)
    modules = {path: path.read_bytes() for path in cache.glob("*/doubles.spv")}
    for path, module in modules.items():
        changed, count = constant.subn(rb"\1" + struct.pack("<f", 3.0), module)
        assert count == 1
        path.write_bytes(changed)
    x = torch.ones(64)
    for block in (32, 64):
        doubles[(1,)](x, BLOCK=block)
    assert x.tolist() == [4.0] * 32 + [2.0] * 32
    assert {path: path.read_bytes() for path in modules} == modules
