"""Errors of a launch are the same under any driver, and what another driver launches stays the same."""

from __future__ import annotations

from pathlib import Path

from patched_tree import ROOT, run_ok

PRELUDE = """
import triton
import triton.language as tl
from triton.backends import Backend, backends
from triton.runtime.driver import driver
from registered import OpListBackend, OpListDriver, double_kernel

X = triton.MockTensor(tl.float32)
calls = []

class Plain(OpListDriver):
    def launcher_cls(self, src, metadata):
        return lambda *args: calls.append(args[:3])

backends["oplist"] = Backend(OpListBackend, Plain)
driver.set_active(Plain())

def error(grid, *args, **keywords):
    try:
        double_kernel[grid](*args, **keywords)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "none"
"""


def run(code: str, tmp_path: Path) -> str:
    return run_ok(PRELUDE + code, tmp_path / "cache", env={}, path=(ROOT / "examples" / "plugins",))


def test_grids(tmp_path: Path) -> None:
    output = run(
        """
for grid in ((4,), [4, 5], (4, 5, 6), (4, 5, 6, 1), lambda meta: (meta["BLOCK"],)):
    double_kernel[grid](X, BLOCK=256)
print(*calls)
for grid in (None, 4, (), (1, 2, 3, 4)):
    print(error(grid, X, BLOCK=256))
print(len(calls))
""",
        tmp_path,
    )
    assert output.splitlines() == [
        "(4, 1, 1) (4, 5, 1) (4, 5, 6) (4, 5, 6) (256, 1, 1)",
        "TypeError: kernel 'double_kernel': the grid must be a tuple of one to three sizes, or a function that returns "
        "one, not None",
        "TypeError: kernel 'double_kernel': the grid must be a tuple of one to three sizes, or a function that returns "
        "one, not 4: write (4,)",
        "ValueError: kernel 'double_kernel': the grid is empty; it must have one to three sizes",
        "ValueError: kernel 'double_kernel': the grid (1, 2, 3, 4) has 4 axes, and kernels have at most 3: make one "
        "axis of two, and take it apart in the kernel with // and %",
        "5",
    ]
