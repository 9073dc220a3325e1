"""Kernels in LLVM IR that tests of the CPU device launch, and programs in processes of their own that do."""

import os
import subprocess
import sys
from typing import Any

import numpy as np
from triton.backends.spirv.runtime.native_module import native

from .objects import block, compiled, program_loop

NATIVE = native()
FOREVER = 2**64 - 1

#: out[program] = program² + value, with the arguments out, value.
SQUARES = program_loop("""
  %out = load ptr, ptr %block
  %v = getelementptr i64, ptr %block, i64 1
  %value = load i64, ptr %v
  %at = getelementptr i64, ptr %out, i64 %program
  %square = mul i64 %program, %program
  %sum = add i64 %square, %value
  store i64 %sum, ptr %at
  br label %next""")

#: Some 100 µs, once in a program.
DELAY = """  br label %delay
delay:
  %turn = phi i64 [ 0, %body ], [ %later, %delay ]
  %later = add i64 %turn, 1
  call void asm sideeffect "", ""()
  %again = icmp ult i64 %later, 100000
  br i1 %again, label %delay, label %after
after:"""

#: out[program] += 1, with a loop of some 100 µs.
SLOW = program_loop(f"""
  %out = load ptr, ptr %block
{DELAY}
  %at = getelementptr i64, ptr %out, i64 %program
  %old = load i64, ptr %at
  %new = add i64 %old, 1
  store i64 %new, ptr %at
  br label %next""")

ENDLESS = program_loop("""
  br label %spin
spin:
  call void asm sideeffect "", ""()
  br label %spin""")

#: Waits while *flag is 0: an argument decides whether it is endless.
UNTIL = program_loop("""
  %flag = load ptr, ptr %block
  br label %spin
spin:
  %value = load atomic i64, ptr %flag monotonic, align 8
  %done = icmp ne i64 %value, 0
  br i1 %done, label %next, label %spin""")

DIVIDE = program_loop("""
  %out = load ptr, ptr %block
  %v = getelementptr i64, ptr %block, i64 1
  %value = load i64, ptr %v
  %quotient = sdiv i64 1000, %value
  store i64 %quotient, ptr %out
  br label %next""")

#: Writes value to scratch at a distance of 64 bytes, and says whether scratch is aligned.
SCRATCH = program_loop("""
  %out = load ptr, ptr %block
  %number = ptrtoint ptr %scratch to i64
  %rest = and i64 %number, 63
  %far = getelementptr i8, ptr %scratch, i64 199992
  store i64 %program, ptr %far
  %back = load i64, ptr %far
  %sum = add i64 %back, %rest
  %at = getelementptr i64, ptr %out, i64 %program
  store i64 %sum, ptr %at
  br label %next""")


class Kernel:
    """A kernel of the IR's function k."""

    def __init__(self, ir: str, scratch: int = 0) -> None:
        self.object = NATIVE.CpuObject(compiled(ir))
        self.native = NATIVE.CpuKernel(self.object, "k", scratch)

    def launch(self, device: Any, values: tuple, grid: tuple[int, int, int], waits: bool = True) -> int:
        return device.launch(self.native, block(*values), grid, name="add.py:7: kernel 'k'", waits=waits)


def address(array: np.ndarray) -> int:
    return array.ctypes.data


def run(code: str, *, timeout: float = 120, **environment: str) -> subprocess.CompletedProcess[str]:
    """A program in a process of its own, with what this file has."""
    prelude = (
        "import ctypes, faulthandler, os, signal, sys, threading, time\nimport numpy as np\n"
        "from tests.unit.runtime_cpu.programs import *\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background jobs ignore it
    )
    return subprocess.run(
        [sys.executable, "-c", prelude + code],
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd=os.path.join(os.path.dirname(__file__), *[os.pardir] * 3),
        env={**os.environ, **environment},
    )
