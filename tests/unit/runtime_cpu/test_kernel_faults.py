"""Faults of kernels on the CPU device, as a user meets them: each is an exception with the kernel, the line and what to
do, and the process and the device go on. Each program is a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

KERNELS = """
import os, signal, sys, threading, time
import numpy as np, torch, triton, triton.language as tl
from triton.backends.spirv.runtime import Graph, from_numpy

@triton.jit
def store_at(address, wrong, out):
    n = tl.program_id(0)
    at = tl.arange(0, 64)
    to = tl.where(n == wrong, 4096, address.to(tl.int64)).to(tl.pointer_type(tl.int32))
    tl.store(to + at, at)  # wild
    tl.store(out + n, n)

@triton.jit
def load_at(address, out):
    tl.store(out, tl.load(address.to(tl.int64).to(tl.pointer_type(tl.int32))))  # read

@triton.jit
def divide(x, y, out):
    at = tl.arange(0, 64)
    tl.store(out + at, tl.load(x + at) // tl.load(y + at))

@triton.jit
def wait(flag):  # endless
    while tl.load(flag, volatile=True) == 0:
        pass

@triton.jit
def good(out):
    at = tl.arange(0, 64)
    tl.store(out + at, at)

def goes_on():
    x = torch.zeros(64, dtype=torch.int32)
    good[(1,)](x)
    assert (x == torch.arange(64)).all()
    on_device = from_numpy(np.zeros(64, np.int32))
    good[(1,)](on_device)
    assert (on_device.to_numpy() == np.arange(64)).all()

def fails(call):
    try:
        call()
    except BaseException as error:
        print(f"{type(error).__name__}: {error}")
    else:
        raise SystemExit("nothing was raised")
    goes_on()

room, out = torch.zeros(64, dtype=torch.int32), torch.zeros(1 << 16, dtype=torch.int32)
there = room.data_ptr()
goes_on()
"""


def line_of(comment: str) -> int:
    (number,) = (n for n, line in enumerate(KERNELS.splitlines(), 1) if line.endswith(f"# {comment}"))
    return number


def run(tmp_path: Path, program: str, **environment: str) -> list[str]:
    """The lines that a program prints, which ends well."""
    path = tmp_path / "program.py"
    path.write_text(KERNELS + program)
    settings = os.environ | {"TRITON_SPIRV_DEVICE": "cpu", "TRITON_DEFAULT_FP_FUSION": "1"} | environment
    command = [sys.executable, str(path)]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


WILD = (
    f"KernelFault: program.py:{line_of('wild')}: kernel 'store_at' wrote to address 0x1000, which is no memory of this "
    "process (SIGSEGV); run it with TRITON_SPIRV_CHECK_BOUNDS=1, which names the tensor, or look for a missing mask"
)
READ = (
    f"KernelFault: program.py:{line_of('read')}: kernel 'load_at' accessed an address that no process can have "
    "(SIGSEGV); run it with TRITON_SPIRV_CHECK_BOUNDS=1, which names the tensor, or look for a missing mask"
)


def test_wild_accesses(tmp_path: Path) -> None:
    program = """
for _ in range(3):
    fails(lambda: store_at[(1,)](there, 0, out))
    fails(lambda: load_at[(1,)](1 << 60, out))
"""
    assert run(tmp_path, program) == [WILD, READ] * 3


@pytest.mark.parametrize("wrong", [0, 1, 40_000, 65_535])
def test_a_fault_of_a_program_that_any_thread_may_run(tmp_path: Path, wrong: int) -> None:
    program = f"""
store_at[(1 << 16,)](there, -1, out)
assert (out == torch.arange(1 << 16)).all()
for _ in range(5):
    fails(lambda: store_at[(1 << 16,)](there, {wrong}, out))
    store_at[(1 << 16,)](there, -1, out)
"""
    assert run(tmp_path, program, TRITON_SPIRV_CPU_THREADS="4") == [WILD] * 5


def test_a_fault_of_a_launch_that_nobody_waits_for(tmp_path: Path) -> None:
    program = """
on_device = from_numpy(np.zeros(1 << 16, np.int32))
def later():
    store_at[(1 << 16,)](there, 60_000, on_device)
    print("launched")
    on_device.to_numpy()
fails(later)
y = torch.zeros(64, dtype=torch.int32, device="spirv")
def of_torch():
    store_at[(1,)](there, 0, y)
    y.cpu()
fails(of_torch)
good[(1,)](y)
assert (y.cpu() == torch.arange(64)).all()
"""
    assert run(tmp_path, program) == ["launched", WILD, WILD]


def test_a_fault_of_a_replayed_graph(tmp_path: Path) -> None:
    program = """
flag, target = from_numpy(np.zeros(1, np.int32)), from_numpy(np.zeros(64, np.int32))

@triton.jit
def store_if(flag, out):
    wrong = tl.load(flag) != 0
    to = tl.where(wrong, 4096, out.to(tl.int64)).to(tl.pointer_type(tl.int32))
    tl.store(to + tl.arange(0, 64), tl.arange(0, 64))

store_if[(1,)](flag, target)
graph = Graph()
with graph.capture():
    good[(1,)](target)
    store_if[(1,)](flag, target)
graph.replay()
target.to_numpy()
def replayed():
    graph.replay()
    target.to_numpy()
for _ in range(2):
    flag.copy_from(np.ones(1, np.int32))
    fails(replayed)
    flag.copy_from(np.zeros(1, np.int32))
    replayed()
    assert (target.to_numpy() == np.arange(64)).all()
"""
    lines = run(tmp_path, program)
    assert len(lines) == 2
    for line in lines:
        assert line.startswith("KernelFault: program.py:") and "kernel 'store_if' wrote to address 0x1000" in line


def test_quotients_that_a_processor_traps_are_numbers(tmp_path: Path) -> None:
    program = """
smallest = -2**31
x, y = torch.full((64,), smallest, dtype=torch.int32), torch.zeros(64, dtype=torch.int32)
y[1::2] = -1
y[2] = 7
divide[(1,)](x, y, out)
print(out[2].item() == -(2**31 // 7))
goes_on()
"""
    assert run(tmp_path, program) == ["True"]


@pytest.mark.parametrize("programs", [1, 1000])
def test_the_time_limit(tmp_path: Path, programs: int) -> None:
    program = f"""
flag = torch.zeros(1, dtype=torch.int32)
fails(lambda: wait[({programs},)](flag))
fails(lambda: wait[({programs},)](flag))
"""
    expected = (
        f"DeviceError: program.py:{line_of('endless') - 1}: kernel 'wait' did not end within the time limit of 500 ms "
        "(TRITON_SPIRV_TIMEOUT, in seconds) and was stopped: what it wrote is incomplete"
    )
    assert run(tmp_path, program, TRITON_SPIRV_TIMEOUT="0.5", TRITON_SPIRV_CPU_THREADS="3") == [expected] * 2


@pytest.mark.parametrize("programs", [1, 1000])
def test_ctrl_c(tmp_path: Path, programs: int) -> None:
    program = f"""
flag = torch.zeros(1, dtype=torch.int32)
wait.warmup(flag, grid=({programs},))
def endless():
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    wait[({programs},)](flag)
fails(endless)
fails(endless)
"""
    assert run(tmp_path, program, TRITON_SPIRV_CPU_THREADS="3") == ["KeyboardInterrupt: "] * 2
