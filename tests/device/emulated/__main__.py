"""Runs the device tests on an emulated device:

    python -m tests.device.emulated amd-rdna3 -n0 -q [FILES]

What stands after the profile goes to pytest. Without files they are those of KERNEL_TESTS."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.device.emulated.files import KERNEL_TESTS

_CHECKOUT = Path(__file__).parents[3]


def environment(profile: str) -> dict[str, str]:
    """Of a process whose kernels run on the profile's device."""
    return os.environ | {"TRITON_SPIRV_BACKEND": "1", "TRITON_SPIRV_DEVICE": f"emulate:{profile}"}


def main(profile: str, *arguments: str) -> int:
    """The exit status of pytest."""
    named = any(argument.startswith("tests/") for argument in arguments)
    files = () if named else tuple(f"tests/device/{name}" for name in KERNEL_TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "tests.device.emulated.refusals", *arguments, *files]
    return subprocess.run(command, env=environment(profile), cwd=_CHECKOUT, check=False).returncode


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
