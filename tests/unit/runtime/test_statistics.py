"""Which of a driver's figures are a kernel's registers and spills."""

from __future__ import annotations

import pytest
from triton.backends.spirv.runtime.statistics import Executable, Statistic, registers_and_spills


@pytest.mark.parametrize(
    ("driver", "figures", "expected"),
    [
        ("mesa_radv", {"SGPRs": 128, "VGPRs": 24, "Spilled SGPRs": 2, "Spilled VGPRs": 5}, (24, 7)),
        ("mesa_radv", {"VGPRs": 24, "Spilled SGPRs": 0, "Spilled VGPRs": 0}, (24, 0)),
        ("nvidia_proprietary", {"Register Count": 40, "Binary Size": 1000}, (40, None)),
        ("intel_open_source_mesa", {"Spill Count": 3, "Max live registers": 54}, (None, 3)),
        ("mesa_llvmpipe", {}, (None, None)),
        ("a driver of tomorrow", {"VGPRs": 24}, (None, None)),
    ],
)
def test_registers_and_spills(driver: str, figures: dict[str, int], expected: tuple[int | None, int | None]) -> None:
    executable = Executable("main", 32, tuple(Statistic(name, value) for name, value in figures.items()))
    assert registers_and_spills(driver, [executable]) == expected
