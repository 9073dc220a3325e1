"""What ``import triton`` imports of this backend: not what compiles kernels."""

from __future__ import annotations

import subprocess
import sys

_LATER = (
    "analysis",
    "inspection",
    "layouts",
    "lowering",
    "passes",
    "planning",
    "stages",
    "torch_ops",
    "transforms",
    "ttgir",
)


def test_the_compiler_is_imported_when_a_kernel_is_compiled() -> None:
    names = tuple(f"triton.backends.spirv.{room}" for room in _LATER)
    script = f"import sys, triton; print(sorted(name for name in sys.modules if name.startswith({names!r})))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "[]\n", done.stdout + done.stderr
