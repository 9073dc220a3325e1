import json

import pytest
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def kernel(out):
    tl.store(out, 1.0)


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
