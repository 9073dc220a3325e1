"""Libraries with their own list of devices: one warning tells of accelerate's choice of the CPU. first_uses.py has
safetensors."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.device.forks import Run, torch_server

#: What accelerate 1.15 does in a process without other accelerators. It was run itself, too; the tests do without it.
STATE = """
import os
import torch

class PartialState:
    def __init__(self, cpu=False):
        self._cpu = cpu
        named = os.environ.get("ACCELERATE_TORCH_DEVICE")
        self.device = torch.device(named) if named else None
        self.set_device()

    def set_device(self):
        if self.device is not None:
            return
        self.device = torch.device("cpu")
"""
PROGRAM = """
import sys, warnings
import torch
sys.path.insert(0, {folder!r})
{first}
from accelerate.state import PartialState
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    devices = [PartialState({arguments}).device.type for _ in range(3)]
print(devices, [str(one.message) for one in told])
"""
TOLD = (
    "accelerate does not know the device 'spirv', and trains on the CPU. Set the environment variable "
    "ACCELERATE_TORCH_DEVICE=spirv to train on 'spirv', or pass cpu=True to mean the CPU."
)


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    with torch_server() as run_in_fork:
        yield run_in_fork


@pytest.mark.parametrize(
    ("first", "arguments", "environment", "expected"),
    [
        ("torch.zeros(1, device='spirv')", "", {}, (["cpu"] * 3, [TOLD])),
        ("torch.zeros(1, device='spirv')", "cpu=True", {}, (["cpu"] * 3, [])),
        ("torch.zeros(1, device='spirv')", "", {"ACCELERATE_TORCH_DEVICE": "spirv"}, (["spirv"] * 3, [])),
        ("", "", {"TRITON_SPIRV_BACKEND": "1"}, (["cpu"] * 3, [TOLD])),
    ],
)
def test_the_cpu_is_told_of_once(
    run: Run,
    tmp_path: Path,
    first: str,
    arguments: str,
    environment: dict[str, str],
    expected: tuple[list[str], list[str]],
) -> None:
    (tmp_path / "accelerate").mkdir()
    (tmp_path / "accelerate" / "__init__.py").touch()
    (tmp_path / "accelerate" / "state.py").write_text(STATE, encoding="utf-8")
    program = PROGRAM.format(folder=str(tmp_path), first=first, arguments=arguments)
    done = run(program, **environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"{expected[0]} {expected[1]}"
