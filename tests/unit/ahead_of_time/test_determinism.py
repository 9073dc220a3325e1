"""Compiling does not depend on Python's hash seed: another process gives the same words."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.example_kernels import KERNELS
from tests.unit.ahead_of_time import words

PROFILE = "nvidia-hopper"
KERNEL = next(entry for entry in KERNELS if entry[0] == "block_scaled_matmul")


@pytest.mark.parametrize("seed", [1, 2])
def test_the_hash_seed_changes_nothing(seed: int, tmp_path: Path) -> None:
    module = tmp_path / "kernel.spv"
    environment = os.environ | {"PYTHONHASHSEED": str(seed), "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    environment |= [words.FUSED]
    command = [sys.executable, "-m", "triton.backends.spirv.cli", *words.arguments(*KERNEL, PROFILE, module)]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    assert words.digest(module.read_bytes()) == words.recorded()[words.key(*KERNEL, PROFILE)]
