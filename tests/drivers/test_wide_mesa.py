"""Subgroups of GPUs on Mesa's CPU driver: WIDE_MESA names the folder of one that was built for them (wide_mesa.py)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from triton.backends.spirv.drivers import DRIVERS

from .checks import assert_tests_pass
from .wide_mesa import build, environment, with_habits

WIDE_MESA = "WIDE_MESA"

#: What differs most between subgroups of 8 and of 32 or 64, and has no test for one size alone.
EXCHANGES = ("tests/device/test_convert_layout.py", "tests/device/test_histogram.py")


def test_a_folder_without_the_driver_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="build the driver first"):
        environment(tmp_path, "nvidia-hopper")


def test_another_source_is_refused_before_anything_is_changed(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"lp_bld_type\.h does not hold .* once: is this the source of Mesa 22\.3"):
        build(tmp_path, tmp_path / "built")
    assert not list(tmp_path.iterdir())


def test_habits_leave_the_drivers_own_arithmetic_and_faults() -> None:
    own, other = DRIVERS["mesa_llvmpipe"], DRIVERS["nvidia_proprietary"]
    both = with_habits(own, other)
    assert (both.faults, both.fused, both.exact_division) == (own.faults, own.fused, own.exact_division)
    assert (both.shared_banks, both.word_bits, both.prefetch) == (other.shared_banks, other.word_bits, other.prefetch)
    assert (both.dot_unroll, both.dot_unroll_registers) == (own.dot_unroll, own.dot_unroll_registers)
    assert both.lanes is None


@pytest.mark.parametrize("profile", ["nvidia-hopper", "amd-rdna3", "qualcomm-adreno7"])
def test_exchanges_between_lanes(profile: str) -> None:
    named = os.environ.get(WIDE_MESA, "")
    if not named:
        pytest.skip(f"{WIDE_MESA} names no folder with Mesa's CPU driver for wide subgroups")
    assert_tests_pass(sys.executable, os.environ | environment(Path(named), profile), *EXCHANGES)
