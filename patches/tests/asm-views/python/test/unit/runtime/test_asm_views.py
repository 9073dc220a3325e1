import pytest
import triton
import triton.language as tl
from triton.backends import backends
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def kernel(out):
    tl.store(out, 1.0)


def test_a_backend_makes_forms_of_its_binary(monkeypatch):
    views = {"length": lambda binary: str(len(binary))}
    nvidia = backends["nvidia"].compiler
    monkeypatch.setattr(nvidia, "asm_views", views, raising=False)
    monkeypatch.setattr(nvidia, "binary_ext", "cubin", raising=False)
    compiled = triton.compile(ASTSource(kernel, {"out": "*fp32"}), target=GPUTarget("cuda", 80, 32))
    assert compiled.asm["length"] == str(len(compiled.asm["cubin"]))
    with pytest.raises(KeyError):
        compiled.asm["width"]
