"""What a user of torch is told once: that the device is a CPU, and how fast that is."""

import os
import subprocess
import sys

import pytest

_PROGRAM = """
import torch
x = torch.ones(8, device="spirv")
print((x + x).sum().item(), (x * 3).exp().mean().item() > 20)
"""


def run(quiet: str) -> tuple[str, list[str]]:
    """What a program writes to stdout, and its lines on stderr."""
    environment = os.environ | {"TRITON_SPIRV_QUIET": quiet, "TRITON_DEFAULT_FP_FUSION": "1"}
    command = [sys.executable, "-c", _PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout, done.stderr.splitlines()


@pytest.mark.only_on("CPU", "a GPU is no CPU")
def test_a_device_that_is_a_cpu_is_told_of_once() -> None:
    output, lines = run("0")
    assert output == "16.0 True\n"
    told = [line for line in lines if "is a CPU here" in line]
    assert len(told) == 1 and "0.6 to 0.9 of the speed of torch's own CPU code" in told[0], lines
    assert "for writing, testing and debugging kernels" in told[0]
    again, lines = run("1")
    assert again == output and not [line for line in lines if "is a CPU here" in line]
