"""Which tests run on a Vulkan device as well as on the CPU device (tests/kinds.py)."""

import os
import subprocess
import sys
from pathlib import Path

from tests.kinds import ROOT

#: Both marks, a fixture of Vulkan's, and a test that is for any device.
TESTS = """
import pytest
from triton.backends.spirv.runtime.device_choice import selected

@pytest.mark.only_on("Vulkan", "its drivers have that")
def test_of_vulkan():
    assert selected().api == "Vulkan"

@pytest.mark.only_on("CPU", "emulated", "there is one subgroup")
def test_of_the_processor():
    assert selected().api == "CPU"

@pytest.mark.only_on("Vulkan", "its layouts are such", subgroup_size=64)
def test_of_wide_subgroups():
    raise AssertionError("no driver of a processor has them")

@pytest.mark.only_on("Vulkan", "its layouts are such", subgroup_size=8)
def test_of_narrow_subgroups(): pass

@pytest.fixture
def faulty_layer():
    assert selected().api == "Vulkan"

def test_with_a_layer(faulty_layer): pass

def test_of_any(): pass
"""


def _run(folder: Path, device: str, *arguments: str) -> str:
    (folder / "test_some.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-p", "tests.conftest"]
    done = subprocess.run(
        [*command, "-c", str(ROOT / "pyproject.toml"), f"--rootdir={ROOT}", *arguments, str(folder)],
        env={**os.environ, "TRITON_SPIRV_DEVICE": device},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_each_kind_of_device_runs_its_own_tests(tmp_path: Path) -> None:
    on_cpu = _run(tmp_path, "cpu")
    assert "2 passed, 4 skipped" in on_cpu
    assert "only on a device of kind Vulkan: its drivers have that" in on_cpu
    (tmp_path / "test_not_imported.py").write_text("raise AssertionError('it says nothing of a kind of device')\n")
    again = _run(tmp_path, "llvmpipe", "--vulkan-part")
    assert "3 passed, 1 skipped, 2 deselected" in again
    assert "only on a device with subgroups of 64: its layouts are such" in again
