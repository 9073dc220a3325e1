"""What ``import triton`` and ``import torch`` import of this backend: the list is short, so that both stay quick.

``benchmarks/import_time.py`` measures the time.
"""

import subprocess
import sys
from pathlib import Path

import pytest

#: The two classes that Triton asks for by name, and the device library that kernels name.
WITH_TRITON = {
    "triton.backends.spirv",
    "triton.backends.spirv.availability",
    "triton.backends.spirv.compiler",
    "triton.backends.spirv.driver",
    "triton.language.extra.spirv",
    "triton.language.extra.spirv.libdevice",
}

KERNEL = """
import numpy as np
import triton
import triton.language as tl
from triton.backends.spirv import runtime

@triton.jit
def double(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, 2 * tl.load(x + i))

x = runtime.from_numpy(np.ones(64, np.float32))
double[(1,)](x, BLOCK=64)
assert (x.to_numpy() == 2).all()
"""


def modules_after(statements: str) -> set[str]:
    """The modules that a new process has imported after ``statements``."""
    script = f"import sys\n{statements}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_import_triton_imports_two_classes_and_a_device_library() -> None:
    found = {name for name in modules_after("import triton") if "spirv" in name}
    assert "triton.backends.spirv.compiler" in found
    assert found <= WITH_TRITON, f"import {sorted(found - WITH_TRITON)} where they are used"


@pytest.mark.parametrize("use", ["", "torch.device('spirv')", "torch.manual_seed(1)"])
def test_import_torch_imports_nothing_of_triton_before_the_device_is_used(use: str) -> None:
    pytest.importorskip("torch")
    found = {
        name for name in modules_after(f"import torch\n{use}") if name.partition(".")[0] == "triton" or "spirv" in name
    }
    assert {name.partition(".")[0] for name in found - {"torch.spirv"}} <= {"triton_spirv_autoload"}, found


def test_the_key_of_tritons_cache_imports_neither_torch_nor_pytest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Triton imports every package of a backend for it, once for a cache: torch would cost seconds, pytest 0.2 s."""
    pytest.importorskip("torch")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    found = modules_after("from triton.runtime.cache import triton_key\ntriton_key()")
    assert "triton.backends.spirv.torch.ops" in found, "the key is made in another way: is this test needed?"
    assert found.isdisjoint({"torch", "_pytest"})


def test_a_kernel_without_torch_imports_no_torch(tmp_path: Path) -> None:
    """Neither the choice of the driver nor the compiler imports it, though it is installed."""
    pytest.importorskip("torch")
    kernel = tmp_path / "kernel.py"
    kernel.write_text(KERNEL)
    assert "torch" not in modules_after(f"import runpy\nrunpy.run_path({str(kernel)!r})")


def test_operations_of_torchs_device_import_neither_torchs_compiler_nor_sympy() -> None:
    """The first took 1.6 s of the first operation's 4.2 s of processor time, the second 0.4 s of 1.1."""
    pytest.importorskip("torch")
    step = "torch.nn.Linear(8, 8, device='spirv')(torch.ones(2, 8, device='spirv')).softmax(-1).mul(2).sum().backward()"
    found = modules_after(f"import torch\n{step}")
    assert "triton.backends.spirv.torch.ops" in found and found.isdisjoint({"torch._dynamo", "sympy"})
