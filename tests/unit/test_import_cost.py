"""What ``import triton`` and ``import torch`` import of this backend: the list is short, so that both stay quick.

``benchmarks/import_time.py`` measures the time.
"""

from __future__ import annotations

import subprocess
import sys

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
