"""A backend's own kernels and arrays while kernels are interpreted, in a process of its own: what @triton.jit makes
depends on TRITON_INTERPRET."""

import os
import subprocess
import sys

import pytest

PROGRAM = '''
import sys
import types
import numpy as np
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.interpreter import InterpretedFunction


def program(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i) + tl.cdiv(tl.sum(i, 0), 4) + i.max(0))


class Storage:
    def __init__(self, values):
        self.values = values

    def data_ptr(self):
        return self.values.ctypes.data

    def cpu(self):
        return Storage(self.values.copy())

    def copy_(self, other):
        self.values[:] = other.values


class View:
    def __init__(self, array, storage):
        self.array, self.storage, self.dtype = array, storage, "float32"

    def untyped_storage(self):
        return self.storage

    def storage_offset(self):
        return 0

    def size(self):
        return self.array.values.shape

    def stride(self):
        return (1,)

    def new_empty(self, *_, device):
        return View(self.array, self.storage)

    def set_(self, storage, *_):
        self.storage = storage

    def data_ptr(self):
        return self.storage.data_ptr()


class Array:
    """Not torch's: a driver's."""

    def __init__(self, values):
        self.values, self.dtype = values, "float32"

    def data_ptr(self):
        raise AssertionError("the device's memory is not the interpreter's")

    def interpreted(self):
        return View(self, Storage(self.values))


def compiled():
    own = types.FunctionType(program.__code__, globals(), "program")
    own.__module__, own.__annotations__ = "triton.backends.some.kernels", dict(program.__annotations__)
    kernel = triton.jit(own)
    assert not isinstance(kernel, InterpretedFunction)
    source = ASTSource(kernel, {"x": "*fp32", "out": "*fp32", "N": "constexpr"}, {"N": 16})
    return "tt.reduce" in triton.compile(source, target=GPUTarget("cuda", 80, 32)).asm["ttir"]


if sys.argv[1] == "array":
    x, out = Array(np.ones(16, np.float32)), Array(np.zeros(16, np.float32))
    triton.jit(program)[(1,)](x, out, 16)
    assert (out.values == 1 + 30 + 15).all(), out.values
assert compiled()
'''


@pytest.mark.parametrize("what", ["kernel", "array"])
def test_a_backend_is_not_interpreted(what, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "TRITON_INTERPRET": "1", "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, str(program), what], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
