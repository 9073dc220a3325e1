"""The CPU device under programs in Python: each is a process of its own, whose kernels are Triton's."""

from __future__ import annotations

import os

import pytest

from .programs import run


def test_host_memory_is_copied_where_it_is_not_used_in_place() -> None:
    """As on a GPU: TRITON_SPIRV_HOST_MEMORY=staged finds kernels that write more than they say."""
    made = run(
        """
import torch, triton, triton.language as tl
from triton.backends.spirv.runtime.context import current
from tests.unit.runtime_cpu.doubled import doubled
x, out = torch.arange(1000.0), torch.full((1100,), -1.0)
for _ in range(3):
    doubled[(4,)](x, out, 1000, BLOCK=256)
context = current()
print(context.host_memory, context.native.host_addresses, (out[:1000] == 2 * x).all().item(), out[1000:].max().item())
""",
        TRITON_SPIRV_DEVICE="cpu",
        TRITON_SPIRV_HOST_MEMORY="staged",
    )
    assert made.stdout == "staged False True -1.0\n", made.stderr


def test_a_wild_access_of_a_kernel_in_python_has_its_line() -> None:
    made = run(
        """
import torch
from triton.backends.spirv.runtime.native_module import native
from tests.unit.runtime_cpu.doubled import doubled, unmasked
x, out = torch.arange(4096.0), torch.zeros(4096)
try:
    unmasked[(4,)](x, out, 1 << 24, BLOCK=1024)
except RuntimeError as error:
    print(type(error).__name__, str(error).partition(" address")[0])
doubled[(4,)](x, out, 4096, BLOCK=1024)
print((out == 2 * x).all().item())
""",
        TRITON_SPIRV_DEVICE="cpu",
    )
    line = next(
        number
        for number, text in enumerate(open(os.path.join(os.path.dirname(__file__), "doubled.py")), 1)
        if "100000" in text
    )
    assert made.stdout.splitlines() == [f"KernelFault doubled.py:{line}: kernel 'unmasked' wrote to", "True"], (
        made.stderr
    )


@pytest.mark.parametrize("ends", ["time limit", "Ctrl-C"])
def test_an_endless_kernel_in_python_is_stopped(ends: str) -> None:
    made = run(
        f"""
import torch
from tests.unit.runtime_cpu.doubled import doubled, endless
flag, out = torch.ones(1, dtype=torch.int32), torch.zeros(100)
endless[(2,)](flag, BLOCK=16)
flag.zero_()
try:
    if {ends == "Ctrl-C"}:
        threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    endless[(2,)](flag, BLOCK=16)
except KeyboardInterrupt:
    print("interrupted")
except RuntimeError as error:
    print(error)
doubled[(1,)](torch.arange(100.0), out, 100, BLOCK=128)
print((out == 2 * torch.arange(100.0)).all().item())
""",
        TRITON_SPIRV_DEVICE="cpu",
        **({} if ends == "Ctrl-C" else {"TRITON_SPIRV_TIMEOUT": "0.5"}),
    )
    said, good = made.stdout.splitlines()
    assert good == "True", made.stderr
    if ends == "Ctrl-C":
        assert said == "interrupted"
    else:
        assert "kernel 'endless' did not end within the time limit of 500 ms" in said and "was stopped" in said


def test_a_forked_child_of_a_program_in_python_goes_on() -> None:
    """With arrays in place, device memory and torch's device. Sizes are small: torch's own threads do not survive."""
    made = run(
        """
import torch
from tests.unit.runtime_cpu.doubled import doubled
from triton.backends.spirv import runtime
def work(seed):
    x, out = torch.arange(20000.0) + seed, torch.zeros(20000)
    doubled[(20,)](x, out, 20000, BLOCK=1024)
    given, found = runtime.from_numpy(np.ones(1000, np.float32)), runtime.empty(1000, "float32")
    doubled[(1,)](given, found, 1000, BLOCK=1024)
    y = torch.ones(5000, device="spirv")
    z = torch.empty_like(y)
    doubled[(5,)](y, z, 5000, BLOCK=1024)
    print((out == 2 * x).all().item(), found.to_numpy().sum(), z.sum().item(), flush=True)
work(0)
for seed in (1, 2):
    if os.fork() == 0:
        work(seed)
        sys.exit()
    os.wait()
work(3)
""",
        TRITON_SPIRV_DEVICE="cpu",
    )
    assert made.stdout.splitlines() == ["True 2000.0 10000.0"] * 4, made.stderr
