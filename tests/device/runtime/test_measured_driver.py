"""What kernels find of the device's driver is what driver_quirks.py says, and counts where that says nothing."""

import sys
from dataclasses import replace
from pathlib import Path

from triton.backends.spirv.driver_quirks import DRIVERS, OTHER, fact_of
from triton.backends.spirv.runtime.context import current
from triton.backends.spirv.runtime.measuring import driver_probe, measured, probing

from tests.device import processes

_DRIVER = current().device.driver


def test_the_table_agrees_with_kernels() -> None:
    """Otherwise the table is out of date: a driver that it knows needs no correction."""
    assert measured.ask(current()) == frozenset()


def test_what_the_table_does_not_say_is_found() -> None:
    """A fault of which a table without the driver knows nothing, and what the driver does better than that promises."""
    has, data = current().capabilities.has, driver_probe.probe_data(current().capabilities.has)
    probing.run(current(), driver_probe.probe_module(current().capabilities.subgroup_size, has), data)
    known = {"mesa_llvmpipe": {"folds_zeros", "narrows_comparisons"}, "cpu": {"fused"}}
    found = driver_probe.judged(data, has, replace(OTHER, exact_division=True))
    assert found >= known.get(_DRIVER, set())
    traits = current().capabilities.traits
    assert all(fact_of(traits, text.removeprefix("-")) is not text.startswith("-") for text in found)


_PROGRAM = """
import dataclasses
import sys
import numpy as np
from triton.backends.spirv import driver_quirks
name = sys.argv[1]
driver_quirks.DRIVERS[name] = dataclasses.replace(
    driver_quirks.DRIVERS[name], faults=dataclasses.replace(driver_quirks.DRIVERS[name].faults, folds_zeros=False)
)
import triton, triton.language as tl
from triton.backends.spirv.runtime import from_numpy

@triton.jit
def kernel(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i) * 0.0)

x = np.full(64, np.nan, np.float32)
out = from_numpy(np.ones(64, np.float32))
kernel[(1,)](from_numpy(x), out, 64)
assert np.isnan(out.to_numpy()).all(), out.to_numpy()
arch = triton.runtime.driver.active.get_current_target().arch
print("corrections=folds_zeros" in arch)
"""


def test_kernels_go_by_what_was_found(tmp_path: Path) -> None:
    """A driver that the table says nothing bad of, as of a new version: the fault is found, and kernels are right."""
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM)
    done = processes.run([sys.executable, str(program), _DRIVER], TRITON_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(DRIVERS.get(_DRIVER, OTHER).faults.folds_zeros)]
