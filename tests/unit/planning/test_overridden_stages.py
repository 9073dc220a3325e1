"""A stage of a kernel that a user has put in the place of the compiler's."""

from dataclasses import replace
from pathlib import Path

import pytest
import triton
import triton.language as tl
from triton import knobs
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.target import target_of
from triton.compiler import ASTSource
from triton.runtime.errors import OutOfResources


@triton.jit
def product(a, b, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    at = i[:, None] * SIZE + i[None, :]
    tl.store(out + at, tl.dot(tl.load(a + at), tl.load(b + at)))


def compiled(size: int, shared_bytes: int = 0, **options: object) -> triton.compiler.CompiledKernel:
    capabilities = PROFILES["intel-xe"]
    capabilities = replace(capabilities, shared_bytes=shared_bytes or capabilities.shared_bytes)
    source = ASTSource(product, dict.fromkeys(("a", "b", "out"), "*fp32") | {"SIZE": "constexpr"}, {(3,): size})
    target = target_of(capabilities)
    return triton.compile(source, target=target, options={"matrix_units": "0"} | options)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knobs.cache, "dir", str(tmp_path / "cache"))


def test_ttgir_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    """Another layout would be of the kernel that was overridden: nothing of the user's would be left in it."""
    original, whole = compiled(128), compiled(128, 1 << 20)
    assert original.metadata.layout["pieces"] and not whole.metadata.layout["pieces"]
    path = tmp_path / "product.ttgir"
    path.write_text(whole.asm["ttgir"])
    with pytest.raises(OutOfResources, match=f"kernel 'product'.*{PROFILES['intel-xe'].shared_bytes}"):
        compiled(128, ir_override=str(path))
    assert compiled(128).asm["spv"] == original.asm["spv"], "the kernel itself is still compiled"


def test_the_ttgir_that_is_kept_is_the_one_that_was_emitted(tmp_path: Path) -> None:
    """Not the first that was tried."""
    original = compiled(128)
    assert [one["schedule"] for one in original.metadata.tried] and original.asm["ttgir"].count("tt.dot ") == 2
    path = tmp_path / "product.ttgir"
    path.write_text(original.asm["ttgir"])
    assert compiled(128, ir_override=str(path)).asm["spv"] == original.asm["spv"]


def test_ttgir_that_fits_is_compiled(tmp_path: Path) -> None:
    original = compiled(32)
    same, changed = tmp_path / "same.ttgir", tmp_path / "changed.ttgir"
    same.write_text(original.asm["ttgir"])
    changed.write_text(original.asm["ttgir"].replace("dense<0.000000e+00>", "dense<1.000000e+00>"))
    assert changed.read_text() != same.read_text()
    assert compiled(32, ir_override=str(same)).asm["spv"] == original.asm["spv"]
    assert compiled(32, ir_override=str(changed)).asm["spv"] != original.asm["spv"]
