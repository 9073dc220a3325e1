import gc
import json

import pytest
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, CompiledKernel


@triton.jit
def kernel(out):
    tl.store(out, 1.0)


@pytest.mark.parametrize("extension", ["source", "ttir", "ttgir"])
def test_text_that_is_not_text_is_written_again(extension, tmp_path, monkeypatch):
    monkeypatch.setattr(triton.knobs.cache, "dir", str(tmp_path))

    def compiled():
        return triton.compile(ASTSource(kernel, {"out": "*fp32"}), target=GPUTarget("cuda", 80, 32))

    text = compiled().asm[extension]
    (path,) = tmp_path.glob(f"*/kernel.{extension}")
    path.write_bytes(b"\xff\xfe" + path.read_bytes())
    assert compiled().asm[extension] == text


def test_an_object_whose_init_ended_in_an_error_is_deleted_silently(monkeypatch):
    seen = []
    monkeypatch.setattr("sys.unraisablehook", seen.append)
    with pytest.raises(StopIteration):
        CompiledKernel(None, {}, "")
    gc.collect()
    assert seen == []


@pytest.mark.parametrize("left", [0, 40, -1])
def test_damaged_metadata_are_written_again(left, tmp_path, monkeypatch):
    monkeypatch.setattr(triton.knobs.cache, "dir", str(tmp_path))

    def compiled():
        return triton.compile(ASTSource(kernel, {"out": "*fp32"}), target=GPUTarget("cuda", 80, 32))

    ptx = compiled().asm["ptx"]
    (path,) = [one for one in tmp_path.glob("*/kernel.json") if not one.name.startswith("__grp__")]
    whole = path.read_text()
    path.write_text(whole[:left])
    assert compiled().asm["ptx"] == ptx
    assert json.loads(path.read_text()) == json.loads(whole)
