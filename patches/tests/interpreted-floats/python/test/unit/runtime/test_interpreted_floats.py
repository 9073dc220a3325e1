"""bfloat16 and fp8 in the interpreter, in a process of its own: what @triton.jit makes depends on TRITON_INTERPRET."""

import json
import os
import subprocess
import sys

import pytest

PROGRAM = """
import json
import sys
import torch
import triton
import triton.language as tl


@triton.jit
def cast(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i).to(out.dtype.element_ty))


@triton.jit
def dot(a, b, c, N: tl.constexpr):
    i = tl.arange(0, N)
    p = i[:, None] * N + i[None, :]
    tl.store(c + p, tl.dot(tl.load(a + p), tl.load(b + p)))


@triton.jit
def add(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i) + tl.load(y + i))


@triton.jit
def sums(x, total, running, largest, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(total, tl.sum(a, 0))
    tl.store(running + i, tl.cumsum(a, 0))
    tl.store(largest, tl.argmax(a, 0))


@triton.jit
def count(out, N: tl.constexpr):
    one = tl.full((N,), 1.0, tl.bfloat16)
    tl.atomic_add(out + tl.arange(0, N) // N, one)


@triton.jit
def plus(a, b):
    return a + b


@triton.jit
def along_last(x, totals, running, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i[:, None] * N + i[None, :])
    tl.store(totals + i, tl.reduce(v, -1, plus))
    tl.store(running + i[:, None] * N + i[None, :], tl.associative_scan(v, -1, plus))


@triton.jit
def exchange(x, old, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(old + i, tl.atomic_xchg(x + i, -1.5))


@triton.jit
def least(x, out, N: tl.constexpr):
    tl.store(out, tl.min(tl.load(x + tl.arange(0, N)), 0))


bf16 = torch.bfloat16


def check(what):
    if what == "axis":
        x, totals, running = torch.arange(16.0).view(4, 4), torch.zeros(4), torch.zeros(4, 4)
        along_last[(1,)](x, totals, running, 4)
        assert torch.equal(totals, x.sum(1)) and torch.equal(running, x.cumsum(1)), (totals, running)
    elif what == "exchange":
        x, old = torch.arange(16.0), torch.zeros(16)
        exchange[(1,)](x, old, 16)
        assert torch.equal(old, torch.arange(16.0)) and (x == -1.5).all(), (old, x)
    elif what == "signalling":
        bits = torch.arange(16.0).view(torch.int32)
        bits[5], bits[10] = torch.tensor([-5.0]).view(torch.int32), 0x7FA00000
        out = torch.zeros(1)
        least[(1,)](bits.view(torch.float32), out, 16)
        assert out.item() == -5, out
    elif what == "dot":
        a, c = torch.full((16, 16), 2.0, dtype=bf16), torch.zeros(16, 16)
        dot[(1,)](a, a, c, 16)
        assert (c == 64).all(), c
    elif what == "integer":
        out = torch.zeros(16, dtype=bf16)
        cast[(1,)](torch.full((16,), 3, dtype=torch.int32), out, 16)
        assert (out == 3).all(), out
    elif what == "rounding":
        x, out = torch.linspace(-3.0, 3.0, 1024), torch.zeros(1024, dtype=bf16)
        cast[(1,)](x, out, 1024)
        assert torch.equal(out, x.to(bf16))
    elif what == "fp8":
        x, out = torch.linspace(-400.0, 400.0, 1024), torch.zeros(1024, dtype=torch.float8_e4m3fn)
        cast[(1,)](x, out, 1024)
        assert torch.equal(out.float(), x.to(torch.float8_e4m3fn).float())
    elif what == "add":
        x, y, out = torch.full((16,), 1.5, dtype=bf16), torch.full((16,), -4.0, dtype=bf16), torch.zeros(16, dtype=bf16)
        add[(1,)](x, y, out, 16)
        assert (out == -2.5).all(), out
    elif what == "sums":
        x = torch.tensor([1.0, -3.0, 2.0, -1.0], dtype=bf16)
        total, running = torch.zeros(1, dtype=bf16), torch.zeros(4, dtype=bf16)
        largest = torch.zeros(1, dtype=torch.int32)
        sums[(1,)](x, total, running, largest, 4)
        assert total.item() == -1 and largest.item() == 2, (total, largest)
        assert running.tolist() == [1, -2, 0, -1], running
    elif what == "atomic":
        out = torch.zeros(1, dtype=bf16)
        count[(1,)](out, 16)
        assert out.item() == 16, out


failed = {}
for what in sys.argv[1:]:
    try:
        check(what)
    except Exception as error:
        failed[what] = repr(error)
print(json.dumps(failed))
"""

WHAT = "dot integer rounding fp8 add sums atomic axis exchange signalling".split()


@pytest.fixture(scope="module")
def failed(tmp_path_factory):
    program = tmp_path_factory.mktemp("interpreted") / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, str(program), *WHAT], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("what", WHAT)
def test_narrow_floats_compute_with_their_values(what, failed):
    assert what not in failed, failed[what]
