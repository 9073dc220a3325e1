"""A kernel has matrix units for all of its dots or for none: one dot that a device has none for decides."""

from pathlib import Path

import pytest
import triton
import triton.language as tl
from triton import knobs
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.target import target_of
from triton.compiler import ASTSource

#: Profiles of GPUs with matrix units and float64.
GPUS = sorted(
    name for name, one in PROFILES.items() if one.matrices and "float64" in one.features and not name.startswith("lava")
)


@triton.jit
def two_dots_kernel(x_ptr, y_ptr, z_ptr, WIDE: tl.constexpr):
    rows, columns = tl.arange(0, 32)[:, None], tl.arange(0, 32)[None, :]
    x = tl.load(x_ptr + rows * 32 + columns)
    y = tl.load(y_ptr + rows * 32 + columns)
    first = tl.dot(x, x)
    second = tl.dot(y.to(WIDE), y.to(WIDE))
    tl.store(z_ptr + rows * 32 + columns, first + second.to(tl.float32))


@pytest.mark.parametrize("profile", GPUS)
@pytest.mark.parametrize(("wide", "on_units"), [(tl.float16, True), (tl.float64, False)], ids=["half", "double"])
def test_matrix_units_for_all_dots_or_none(
    profile: str, wide: tl.dtype, on_units: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(knobs.cache, "dir", str(tmp_path))
    capabilities = PROFILES[profile]
    signature = {"x_ptr": "*fp16", "y_ptr": "*fp32", "z_ptr": "*fp32", "WIDE": "constexpr"}
    aligned = {(number,): [["tt.divisibility", 16]] for number in range(3)}
    source = ASTSource(two_dots_kernel, signature, {(3,): wide}, aligned)
    target = target_of(capabilities)
    compiled = triton.compile(source, target=target, options={"num_warps": 4})
    assert bool(compiled.metadata.layout["matrices"]) == on_units
