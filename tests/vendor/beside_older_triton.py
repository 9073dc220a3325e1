"""The device's tests with the plugin beside stock Triton: 3.8.0, which is what Windows has, or another release.

    .venv/bin/python tests/vendor/beside_older_triton.py FOLDER [VERSION [FILE …]]

Makes an environment in the folder, with that Triton of the package registry, the plugin's wheel of this checkout, and
the other packages of the environment that runs this. The tests are those of FILES or of the list below, on the CPU
device. The exit status is 1 if a test fails that LACKS does not name, or passes that it does: only 3.8.0 lacks
anything.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from vendor_support import ROOT, Venv, build_wheel

OLDER = "3.8.0"
FILES = (
    "test_atomic_access test_atomics test_bounds test_calls test_control_flow test_descriptors test_dot "
    "test_elementwise test_gather test_hints test_memory test_reduce test_scan"
).split()

#: Tests that fail with Triton 3.8, by what it lacks. docs/windows.md has the same in words.
LACKS = {
    "tl.atomic_load, tl.atomic_store and tl.atomic_poll": (
        r"test_atomic_access\.py::test_(copy|every_invocation_gets_a_scalar|poll_\w+|timeout_is_refused)"
        r"|test_bounds\.py::test_(atomic_operations\[(load|store)-|poll_does_not_wait)"
    ),
    "a sign of zeros that tl.full() makes": r"test_elementwise\.py::test_negative_zero_constant_keeps_its_sign",
    "the removal of block pointers": r"test_descriptors\.py::test_block_pointers_are_gone_upstream",
}


def environment(folder: Path, triton: str, plugin: Path) -> Venv:
    """A virtual environment with these two wheels, which sees the packages of this one behind its own."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    made = Venv(folder)
    made.pip("install", "--no-deps", triton)
    made.pip("install", "--no-deps", str(plugin))
    (made.site_packages / "behind.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return made


def outcomes(venv: Venv, folder: Path, files: list[str]) -> tuple[int, list[str]]:
    """How many tests of these files of tests/device passed, and which failed."""
    report = folder / "report.xml"
    paths = [f"tests/device/{name}.py" for name in files]
    settings = {"TRITON_DEFAULT_BACKEND": "spirv", "TRITON_SPIRV_DEVICE": "cpu"}
    command = [str(venv.python), "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junit-xml={report}", *paths]
    subprocess.run(command, cwd=ROOT, env=os.environ | settings, check=False)
    passed, failed = 0, []
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(f"{case.get('classname', '').rpartition('.')[2]}.py::{case.get('name')}")
        else:
            passed += case.find("skipped") is None
    return passed, failed


def disagreements(files: list[str], failed: list[str], version: str = OLDER) -> list[str]:
    """Where LACKS is wrong about the tests of these files."""
    lacks = LACKS if version == OLDER else {}
    wrong = [f"{name} failed" for name in failed if not any(re.match(row, name) for row in lacks.values())]
    for what, row in lacks.items():
        if any(f"{name}\\.py" in row for name in files) and not any(re.match(row, name) for name in failed):
            wrong.append(f"no test failed for the want of {what}")
    return wrong


def main(arguments: list[str]) -> int:
    folder, version, files = Path(arguments[0]).absolute(), (arguments[1:] or [OLDER])[0], arguments[2:] or FILES
    venv = environment(folder / "venv", f"triton=={version}", build_wheel(folder / "dist", "--plugin-only"))
    passed, failed = outcomes(venv, folder, files)
    wrong = disagreements(files, failed, version)
    print("\n".join([*wrong, f"triton {version}: {passed} passed, {len(failed)} failed, as LACKS says: {not wrong}"]))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
