"""Which of a driver's figures are a kernel's registers and spills."""

import pytest
from triton.backends.spirv.runtime.vulkan.statistics import Executable, Statistic, plausible, registers_and_spills


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


@pytest.mark.parametrize(
    ("driver", "size", "shown"),
    [
        ("nvidia_proprietary", 68719476736, False),  # 580.159 on an H200, of a kernel without spills
        ("nvidia_proprietary", 96, True),
        ("mesa_nvk", 68719476736, True),
    ],
)
def test_a_figure_that_cannot_be_is_left_out(driver: str, size: int, shown: bool) -> None:
    rows = (Statistic("Register Count", 40), Statistic("Local Memory Size", size), Statistic("Exact", True))
    (executable,) = plausible(driver, [Executable("main", 32, rows)])
    assert executable.statistics == (rows if shown else (rows[0], rows[2]))
