"""tl.dot_scaled against NumPy in float64: formats, scales that are absent or not a number, long and short K."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl
from triton.backends.spirv import stages
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.planning.cost import Candidate
from triton.backends.spirv.target import target_of
from triton.backends.spirv.transforms.schedule import Schedule
from triton.compiler import ASTSource

from tests.device.helpers import Guarded, to_torch

#: Format → what one of its elements is. Two e2m1 share a byte, the first in the low half.
FORMATS = {
    "e2m1": ml_dtypes.float4_e2m1fn,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "bf16": ml_dtypes.bfloat16,
    "fp16": np.float16,
}
RUN = 32


@triton.jit
def product_kernel(
    a_ptr,
    a_scale_ptr,
    b_ptr,
    b_scale_ptr,
    c_ptr,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    A: tl.constexpr,
    B: tl.constexpr,
    A_SCALED: tl.constexpr,
    B_SCALED: tl.constexpr,
):
    a_width: tl.constexpr = K // 2 if A == "e2m1" else K
    b_width: tl.constexpr = K // 2 if B == "e2m1" else K
    rows, columns, runs = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K // 32)
    a = tl.load(a_ptr + rows[:, None] * a_width + tl.arange(0, a_width)[None, :])
    b = tl.load(b_ptr + tl.arange(0, b_width)[:, None] * N + columns[None, :])
    a_scale, b_scale = None, None
    if A_SCALED:
        a_scale = tl.load(a_scale_ptr + rows[:, None] * (K // 32) + runs[None, :])
    if B_SCALED:
        b_scale = tl.load(b_scale_ptr + columns[:, None] * (K // 32) + runs[None, :])
    c = tl.dot_scaled(a, a_scale, A, b, b_scale, B)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], c)


def _operand(random: np.random.Generator, rows: int, k: int, name: str) -> tuple[np.ndarray, np.ndarray]:
    """What the kernel is given of a random (rows, k) operand, and its values."""
    kind = FORMATS[name]
    if name in ("bf16", "fp16"):
        stored = random.standard_normal((rows, k)).astype(kind)
        return stored, stored.astype(np.float64)
    bits = 4 if name == "e2m1" else 8
    codes = random.integers(0, 1 << bits, (rows, k)).astype(np.uint8)
    values = codes.view(kind).astype(np.float64)
    codes[~np.isfinite(values)] = 0
    values = np.where(np.isfinite(values), values, 0)
    return (codes[:, ::2] | codes[:, 1::2] << 4 if bits == 4 else codes), values


def _product(
    a_format: str,
    b_format: str,
    m: int,
    n: int,
    k: int,
    scaled: tuple[bool, bool] = (True, True),
    not_a_number: bool = False,
    num_warps: int = 4,
) -> None:
    random = np.random.default_rng(k)
    given, values = [], []
    for rows, name, with_scale in ((m, a_format, scaled[0]), (n, b_format, scaled[1])):
        stored, value = _operand(random, rows, k, name)
        scales = random.integers(120, 134, (rows, k // RUN)).astype(np.uint8)
        factor = np.exp2(scales.astype(np.float64) - 127)
        if not_a_number:
            scales[rows // 2, 0], factor[rows // 2, 0] = 255, np.nan
        given += [stored, scales]
        values.append(value * np.repeat(factor, RUN, axis=1) if with_scale else value)
    given[2] = given[2].T
    out = Guarded((m, n), "float32")
    product_kernel[(1,)](*map(to_torch, given), out.tensor, m, n, k, a_format, b_format, *scaled, num_warps=num_warps)
    c = out.values()
    # Every scaled element is a bfloat16 or float16 exactly; k products are added in float32.
    bound = 2.0**-21 * max(1, k / RUN) * (np.abs(values[0]) @ np.abs(values[1]).T)
    with np.errstate(invalid="ignore"):
        expected = values[0] @ values[1].T
        np.testing.assert_array_equal(np.isnan(c), np.isnan(expected))
        assert (np.isnan(expected) | (np.abs(c - expected) <= bound + 1e-30)).all()


@pytest.mark.parametrize("b_format", ["e2m1", "e4m3", "e5m2"])
@pytest.mark.parametrize("a_format", ["e2m1", "e4m3", "e5m2"])
def test_formats(a_format: str, b_format: str) -> None:
    _product(a_format, b_format, 16, 32, 64)


@pytest.mark.parametrize(("m", "n", "k"), [(32, 16, 32), (32, 16, 128), (16, 16, 256)])
def test_long_and_short_sums(m: int, n: int, k: int) -> None:
    _product("e4m3", "e2m1", m, n, k)


@pytest.mark.parametrize("num_warps", [1, 8])
def test_warps(num_warps: int) -> None:
    _product("e2m1", "e5m2", 32, 32, 64, num_warps=num_warps)


@pytest.mark.parametrize("other", ["bf16", "fp16"])
def test_the_other_side_may_be_a_half(other: str) -> None:
    _product("e2m1", other, 16, 16, 64, scaled=(True, False))
    _product(other, "e4m3", 16, 16, 64, scaled=(False, True))


def test_a_scale_may_be_absent() -> None:
    _product("e4m3", "e5m2", 16, 16, 64, scaled=(False, False))


def test_a_scale_that_is_not_a_number() -> None:
    """255 is NaN: it spoils all that it scales, and nothing else."""
    _product("e4m3", "e4m3", 16, 16, 64, not_a_number=True)


@pytest.mark.parametrize(
    ("a_format", "b_format", "scaled", "pieces"),
    [
        ("e2m1", "e2m1", (True, True), 2),
        ("e4m3", "e2m1", (True, True), 4),
        ("e5m2", "e4m3", (True, False), 2),
        ("e2m1", "bf16", (True, False), 4),
        ("fp16", "e4m3", (False, True), 2),
    ],
)
def test_pieces_of_the_sum_make_the_whole(
    a_format: str, b_format: str, scaled: tuple[bool, bool], pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pieces of 32 elements have scales of their own, pieces of 16 share one."""
    cut: list[Any] = []

    def only(facts: Any) -> list[Candidate]:
        cut.append(facts)
        return [Candidate(Schedule(facts.subgroups, pieces=pieces), 1.0)]

    monkeypatch.setattr(stages, "candidates", only)
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    product_kernel.device_caches.clear()
    _product(a_format, b_format, 16, 16, 64, scaled)
    product_kernel.device_caches.clear()
    assert cut


_POINTERS = {"e2m1": "*u8", "e4m3": "*u8", "e5m2": "*u8", "bf16": "*bf16", "fp16": "*fp16"}


@pytest.mark.parametrize("profile", [name for name in sorted(PROFILES) if not PROFILES[name].processor])
@pytest.mark.parametrize(
    ("a_format", "b_format", "m", "n", "k"),
    [("e2m1", "bf16", 128, 256, 256), ("e4m3", "e5m2", 128, 128, 256), ("fp16", "e2m1", 256, 128, 128)],
)
def test_large_tiles_fit_on_every_device(profile: str, a_format: str, b_format: str, m: int, n: int, k: int) -> None:
    scaled = tuple(name not in ("bf16", "fp16") for name in (a_format, b_format))
    constants = dict(zip("M N K A B A_SCALED B_SCALED".split(), (m, n, k, a_format, b_format, *scaled), strict=True))
    signature = {
        "a_ptr": _POINTERS[a_format],
        "a_scale_ptr": "*u8",
        "b_ptr": _POINTERS[b_format],
        "b_scale_ptr": "*u8",
        "c_ptr": "*fp32",
        **dict.fromkeys(constants, "constexpr"),
    }
    divisible = {(index,): [["tt.divisibility", 16]] for index in range(5)}
    source = ASTSource(product_kernel, signature, constants, divisible)
    device = PROFILES[profile]
    compiled = triton.compile(source, target=target_of(device))
    assert compiled.metadata.shared <= device.shared_bytes
    if profile == "nvidia-hopper":
        # On an H200 100,000 words take 8 s in the driver's compiler, and 250,000 50 s.
        assert len(compiled.asm["spv"]) // 4 < 120_000


@pytest.mark.slow
@pytest.mark.parametrize("num_warps", [4, 8])
def test_large_tiles(num_warps: int) -> None:
    """Numbers are unpacked and scaled in loops over registers, where drivers are not to have them all in a row."""
    _product("e4m3", "e2m1", 128, 128, 128, num_warps=num_warps)
    _product("fp16", "e4m3", 64, 128, 256, scaled=(False, True), num_warps=num_warps)
