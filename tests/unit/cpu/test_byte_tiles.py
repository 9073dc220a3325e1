"""Programs whose int8 products are by tiles of registers where the system permits that, beside torch's own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .kernels import FEATURES_HERE

_PROGRAM = """
import ctypes, sys
from concurrent.futures import ThreadPoolExecutor

memory = ctypes.create_string_buffer(4096)
if sys.argv[1] == "small stack":  # start, flags, size
    stack = (ctypes.c_size_t * 3)(ctypes.addressof(memory), 0, len(memory))
    assert ctypes.CDLL(None).sigaltstack(stack, None) == 0

import numpy as np, torch, triton, triton.language as tl
from triton.backends.spirv.runtime.native_module import native

@triton.jit
def product(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    row, column = tl.program_id(0) * M + tl.arange(0, M), tl.program_id(1) * N + tl.arange(0, N)
    total = tl.zeros((M, N), tl.int32)
    for first in range(0, k, K):
        at = first + tl.arange(0, K)
        left = tl.load(a + row[:, None] * k + at, mask=(row[:, None] < m) & (at < k), other=0)
        right = tl.load(b + at[:, None] * n + column, mask=(at[:, None] < k) & (column < n), other=0)
        total = tl.dot(left, right, total)
    tl.store(c + row[:, None] * n + column, total, mask=(row[:, None] < m) & (column < n))

def check(seed):
    rng = np.random.default_rng(seed)
    m, n, k = rng.integers(1, 300, 3).tolist()
    a, b = (rng.choice(np.array([-128, 127, 3, -1], np.int8), shape) for shape in ((m, k), (k, n)))
    for M, N, K in ((64, 64, 64), (16, 32, 128)):
        whole = torch.full((m * n + 64,), 7, dtype=torch.int32)
        product[(-(-m // M), -(-n // N))](torch.from_numpy(a), torch.from_numpy(b), whole[32:], m, n, k, M, N, K)
        np.testing.assert_array_equal(whole[32:-32].reshape(m, n), a.astype(np.int64) @ b.astype(np.int64))
        assert (whole[:32] == 7).all() and (whole[-32:] == 7).all()
        one, other = (torch.from_numpy(rng.integers(-128, 128, (96, 96)).astype(np.int8)) for _ in range(2))
        assert torch.equal(torch._int_mm(one, other), one.int() @ other.int())

check(0)
with ThreadPoolExecutor(4) as threads:
    list(threads.map(check, range(1, 13)))
print(native().processor_level())
"""


@pytest.mark.parametrize("stack", ["usual stack", "small stack"])
def test_products_are_exact_beside_those_of_torch(stack: str, tmp_path: Path) -> None:
    """Linux permits tiles to no process that has a stack for signals which is too small for them."""
    (file := tmp_path / "program.py").write_text(_PROGRAM, encoding="utf-8")
    environment = {**os.environ, "TRITON_SPIRV_DEVICE": "cpu", "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    environment |= {"TRITON_SPIRV_BACKEND": "1"}
    done = subprocess.run(
        [sys.executable, str(file), stack], capture_output=True, text=True, env=environment, timeout=300, check=False
    )
    assert not done.returncode, done.stderr
    assert done.stdout.strip().endswith("+amx-int8") == (stack == "usual stack" and "amx-int8" in FEATURES_HERE)
