import pytest
import triton
import triton.language as tl
from triton.backends import Backend, backends
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler.compiler import parse


@triton.jit
def kernel(out):
    tl.store(out, 1.0)


@pytest.fixture
def target(monkeypatch):
    nvidia = backends["nvidia"].compiler

    class Other(nvidia):
        binary_ext = "words"
        supports_target = staticmethod(lambda target: target.backend == "other")

        def __init__(self, target):
            super().__init__(target)
            self.binary_ext = "words"

        def add_stages(self, stages, options, language):

            def words(module, metadata):
                metadata.update(name="kernel", shared=0)
                return b"\xff words"

            stages["ttir"] = lambda module, metadata: self.make_ttir(module, metadata, options, 80)
            stages["words"] = words

    monkeypatch.setitem(backends, "other", Backend(Other, backends["nvidia"].driver))
    return GPUTarget("other", 80, 32)


def test_any_backend_s_binary_is_stored(target, tmp_path, monkeypatch):
    monkeypatch.setattr(triton.knobs.cache, "dir", str(tmp_path))
    monkeypatch.setattr(triton.knobs.compilation, "store_binary_only", True)
    compiled = triton.compile(ASTSource(kernel, {"out": "*fp32"}), target=target)
    assert compiled.asm["words"] == b"\xff words"
    stored = {path.suffix for path in tmp_path.glob("*/kernel.*")}
    assert ".words" in stored and ".ttir" not in stored


def test_any_stage_is_read_from_a_file(target, tmp_path):
    path = tmp_path / "kernel.words"
    path.write_bytes(b"\xff mine")
    assert parse(str(path), "words", None) == b"\xff mine"


def test_known_stages_are_read_as_before(tmp_path):
    for stage, content, expected in (("ptx", b"text", "text"), ("cubin", b"\xff", b"\xff")):
        path = tmp_path / f"kernel.{stage}"
        path.write_bytes(content)
        assert parse(str(path), stage, None) == expected
