"""Numbers of loops and arguments in the interpreter, in a process of its own: what @triton.jit makes depends on
TRITON_INTERPRET."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys
import torch
import triton
import triton.language as tl


@triton.jit
def loop(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a, acc = tl.load(x + i), tl.zeros((N,), tl.int32)
    for j in range(300):
        acc += (a + j) // 2
    for j in tl.range(300):
        acc += (a + j) // 2
    tl.store(out + i, acc)


@triton.jit
def arguments(x, out, scale, large, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i) * scale.to(tl.float32))
    tl.store(out + N + i, (large * 4).to(tl.float32) + i)


@triton.jit
def masks(x, out, n, N: "tl.constexpr"):
    row = tl.program_id(0)
    i = row * N + tl.arange(0, N)
    tl.store(out + i, tl.load(x + i, mask=row < n, other=-1), mask=row > 0)


if sys.argv[1] == "loop":
    out = torch.zeros(16, dtype=torch.int32)
    loop[(1,)](torch.full((16,), 100, dtype=torch.int8), out, 16)
    assert (out == 2 * sum((100 + j) // 2 for j in range(300))).all(), out
elif sys.argv[1] == "masks":
    x, out = torch.arange(48.0), torch.zeros(48)
    masks[[3]](x, out, 2, 16)
    assert (out.reshape(3, 16) == torch.stack([torch.zeros(16), x[16:32], torch.full((16,), -1.0)])).all(), out
else:
    out = torch.zeros(32)
    arguments[(1,)](torch.full((16,), 60000, dtype=torch.float16), out, 2.0, 3_000_000_000, 16)
    assert (out[:16] == 120000).all(), out  # as float16s these would be infinite
    assert out[16] == 12e9, out
"""


@pytest.mark.parametrize("what", ["loop", "arguments", "masks"])
def test_numbers_have_the_types_of_compiled_kernels(what, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, str(program), what], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
