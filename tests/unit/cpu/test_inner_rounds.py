"""Loops over strips around the rounds of a loop: sums of rows stay as they are to the bit."""

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.cpu.objects import make

from tests.unit.cpu.kernels import block_of, compiled, launch

REWRITE = "put rounds into loops over strips"
GUARD = 99.0


@triton.jit
def two_sums(w, x, out, last, n, k, stride, ROWS: tl.constexpr, K: tl.constexpr):
    row, step = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, K)
    total, most = tl.zeros((ROWS, K), tl.float32), tl.full((ROWS, K), -1e30, tl.float32)
    for first in range(0, k, K):
        mask = (row[:, None] < n) & ((first + step)[None, :] < k)
        left = tl.load(w + row[:, None] * stride + (first + step)[None, :], mask=mask, other=0.0).to(tl.float32)
        right = tl.load(x + first + step, mask=first + step < k, other=0.0)[None, :]
        most = tl.maximum(most, left)
        total += left * right
    tl.store(out + row, tl.sum(total, 1), mask=row < n)
    tl.store(last + row, tl.max(most, 1), mask=row < n)


@pytest.mark.parametrize(
    ("n", "k", "rows", "block"), [(37, 131, 16, 64), (16, 0, 16, 64), (5, 64, 4, 256), (70, 999, 32, 32)]
)
def test_sums_of_rows(profile: str, n: int, k: int, rows: int, block: int) -> None:
    random, stride = np.random.default_rng(k), k + 3
    w, x = random.standard_normal((n + 1, stride)).astype(np.float32), random.standard_normal(k + 1).astype(np.float32)
    w[:, k:], w[n:], x[k:] = np.nan, np.nan, np.nan
    results, modules = [], []
    for without in ((), (REWRITE,)):
        out, last = (np.full(n + 200, GUARD, np.float32) for _ in range(2))
        arguments, constants = [w, x, out, last, n, k, stride], {"ROWS": rows, "K": block}
        found = compiled(profile, two_sums, arguments, constants, without=without)
        code = make(found.asm["spv"], PROFILES[profile].subgroup_size, PROFILES[profile].processor)
        launch(code.code, code.scratch, found.metadata.name, block_of(arguments), (-(-n // rows),))
        results.append((out, last))
        modules.append(bytes(found.asm["spv"]))
    wide = w[:n, :k].astype(float)
    bound = np.abs(wide) @ np.abs(x[:k]) * (k + 1) * np.finfo(np.float32).eps
    assert (np.abs(results[0][0][:n] - wide @ x[:k].astype(float)) <= bound).all()
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_array_equal(ours, theirs)
        assert (ours[n:] == GUARD).all()
    assert modules[0] != modules[1] or rows < 16, "strips are of columns there"
