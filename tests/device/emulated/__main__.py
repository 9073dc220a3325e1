"""Runs the device tests on emulated devices:

    python -m tests.device.emulated amd-rdna3 -n0 -q [FILES]
    python -m tests.device.emulated all -n auto -q
    python -m tests.device.emulated quick -q

``all`` is each profile of EVERY_TIME in turn, and ``quick`` the same with its files of that list, which every run of
the test suite has. What stands behind goes to pytest. Without files they are those of KERNEL_TESTS."""

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.device.emulated.files import EVERY_TIME, KERNEL_TESTS

_CHECKOUT = Path(__file__).parents[3]


def environment(profile: str) -> dict[str, str]:
    """Of a process whose kernels run on the profile's device."""
    return os.environ | {"TRITON_SPIRV_BACKEND": "1", "TRITON_SPIRV_DEVICE": f"emulate:{profile}"}


def tests_of(profile: str, arguments: tuple[str, ...], listed: tuple[str, ...] = KERNEL_TESTS) -> int:
    """The exit status of pytest on a profile's device, of the ``listed`` files unless the arguments name others."""
    named = any(argument.startswith("tests/") for argument in arguments)
    files = () if named else tuple(f"tests/device/{name}" for name in listed)
    command = [sys.executable, "-m", "pytest", "-p", "tests.device.emulated.refusals", *arguments, *files]
    return subprocess.run(command, env=environment(profile), cwd=_CHECKOUT, check=False).returncode


def main(which: str, *arguments: str) -> int:
    """0 where the tests pass on every device that is asked for."""
    if which not in ("all", "quick"):
        return tests_of(which, arguments)
    said = []
    for profile, few in EVERY_TIME.items():
        began = time.monotonic()
        status = tests_of(profile, arguments, few if which == "quick" else KERNEL_TESTS)
        said.append((status, f"{profile}: {'failed' if status else 'passed'} in {time.monotonic() - began:.0f} s"))
    print("\n".join(line for _, line in said))
    return int(any(status for status, _ in said))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
