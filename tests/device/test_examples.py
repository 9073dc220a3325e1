"""Every example runs as a program of its own and is right on the device that the tests run on."""
from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import examples

ROOT = Path(examples.__file__).parents[1]

#: Modules of the package that are no examples of kernels.
OTHERS = {"harness", "plugins"}
EXAMPLES = sorted({module.name for module in pkgutil.iter_modules(examples.__path__)} - OTHERS)


def test_examples_are_found() -> None:
    assert {"demo", "vector_add", "flash_attention", "block_scaled_matmul"} <= set(EXAMPLES)


@pytest.mark.parametrize("example", EXAMPLES)
def test_example(example: str) -> None:
    """Run as a user runs it: the exit status is 0 only where every result is within its tolerance."""
    run = subprocess.run([sys.executable, "-m", f"examples.{example}"], cwd=ROOT, env=dict(os.environ), check=False,
                         capture_output=True, text=True)
    assert run.returncode == 0, f"{run.stdout}\n{run.stderr}"
    assert "max error" in run.stdout and "WRONG" not in run.stdout
