"""What others report of drivers: the decision of each row, for a faked driver, version and device."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from backend.compile_time import CompilingPart, Seconds
from backend.driver_quirks import DRIVERS, OTHER
from backend.field_reports import NO_CARE, RAN_HERE, ROWS, Facts, care_for, kernel_version, rows_for, table, version_of
from backend.matrices import MATRIX_FEATURES
from backend.runtime.vulkan.compilations import Compilations

#: Row → a device for which it holds, one for which it does not hold (what changes), and what it asks for.
CASES: list[tuple[int, Facts, dict[str, Any], dict[str, Any]]] = [
    (1, Facts("mesa_radv", kernel=(7, 0)), {"kernel": (6, 19)}, {"job_seconds": 1.0}),
    (1, Facts("amd_open_source", kernel=(8, 1)), {"driver": "mesa_nvk"}, {"job_seconds": 1.0}),
    (2, Facts("nvidia_proprietary", system="Windows"), {"system": "Linux"}, {"job_seconds": 1.0}),
    (2, Facts("mesa_nvk", system="Windows"), {"kind": "cpu"}, {"job_seconds": 1.0}),
    (
        3,
        Facts("amd_proprietary", (26, 3, 1), "AMD Radeon 860M", "integrated", 0x1002, "Windows"),
        {"kind": "discrete"},
        {"asks_matrices": False, "left_out": MATRIX_FEATURES},
    ),
    (
        4,
        Facts("amd_open_source", name="AMD Radeon RX 6800", least_lanes=32, most_lanes=64, mixed_dots=False),
        {"mixed_dots": True},
        {"left_out": MATRIX_FEATURES},
    ),
    (5, Facts("amd_proprietary"), {"driver": "mesa_radv"}, {}),
    (6, Facts("intel_proprietary_windows", system="Windows"), {"system": "Linux"}, {}),
    (
        7,
        Facts("intel_proprietary_windows", name="Intel(R) Arc(TM) A770 Graphics", least_lanes=8),
        {"least_lanes": 16},
        {"left_out": MATRIX_FEATURES},
    ),
    (
        8,
        Facts("intel_proprietary_windows", (101, 8826), "Intel(R) Arc(TM) Pro B70 Graphics", least_lanes=16),
        {"version": (101, 8827)},
        {"left_out": MATRIX_FEATURES},
    ),
    (
        9,
        Facts("intel_proprietary_windows", (101, 8509)),
        {"version": (101, 8508)},
        {"verified": frozenset({"subgroups"})},
    ),
    (
        9,
        Facts("intel_proprietary_windows", (101, 8860)),
        {"version": (101, 8861)},
        {"verified": frozenset({"subgroups"})},
    ),
    (10, Facts("intel_open_source_mesa"), {"driver": "mesa_radv"}, {"verified": frozenset({"float16"})}),
    (
        11,
        Facts("intel_proprietary_windows", least_lanes=16),
        {"driver": "intel_open_source_mesa"},
        {"left_out": {"bfloat16_matrices"}},
    ),
    (12, Facts("intel_open_source_mesa"), {"driver": "mesa_radv"}, {}),
    (13, Facts("mesa_radv"), {"driver": "nvidia_proprietary"}, {"asks_budget": True}),
    (14, Facts("amd_proprietary"), {"driver": "nvidia_proprietary"}, {"holds_allocations": True}),
    (15, Facts("mesa_radv", kind="integrated"), {"kind": "discrete"}, {}),
    (
        16,
        Facts("mesa_radv", (25, 0, 7), "AMD Radeon RX 6800 XT (RADV NAVI21)"),
        {"version": (25, 0, 8)},
        {"one_pipeline": True},
    ),
    (16, Facts("mesa_radv", (), "AMD Radeon (RADV NAVI21)"), {"name": "AMD (RADV NAVI31)"}, {"one_pipeline": True}),
    (
        17,
        Facts("amd_proprietary", (22, 3, 2), "Radeon RX 580"),
        {"features": frozenset({"int16"})},
        {"left_out": {"explicit_workgroup_layout"}},
    ),
    (17, Facts("amd_proprietary", (22, 5)), {"version": (22, 3, 1)}, {"left_out": {"explicit_workgroup_layout"}}),
    (
        18,
        Facts("nvidia_proprietary", (580, 159), "NVIDIA GeForce RTX 2080", unit_threads=1024),
        {"unit_threads": 2048},
        {"left_out": MATRIX_FEATURES},
    ),
    (19, Facts("qualcomm_proprietary", name="Adreno (TM) 750"), {"driver": "mesa_turnip"}, {}),
    (20, Facts("mesa_v3dv", least_lanes=16, most_lanes=16), {"driver": "mesa_turnip"}, {"job_seconds": 0.25}),
    (21, Facts("moltenvk", vendor=0x1002, most_lanes=64), {"vendor": 0x106B}, {"most_lanes": 32}),
    (21, Facts("moltenvk", vendor=0x106B), {"driver": "mesa_kosmickrisp"}, {"drains": True, "imports_host": False}),
    (22, Facts("mesa_honeykrisp"), {"driver": "mesa_turnip"}, {}),
    (23, Facts("mesa_dozen"), {"driver": "mesa_radv"}, {"last": True}),
    (24, Facts("mesa_radv"), {"driver": "mesa_nvk"}, {"compute_only": True}),
]


def _holding(facts: Facts) -> list[int]:
    return [row.number for row in rows_for(facts)]


@pytest.mark.parametrize(("number", "facts", "change", "asked"), CASES)
def test_decision(number: int, facts: Facts, change: dict[str, Any], asked: dict[str, Any]) -> None:
    other = Facts(**{**vars(facts), **change})
    assert _holding(facts).count(number) == _holding(other).count(number) + 1
    care = care_for(facts)
    for name, value in asked.items():
        found = getattr(care, name)
        assert found >= value if isinstance(value, (frozenset, set)) else found == value, name


def test_every_row_has_a_case_a_source_and_an_effect() -> None:
    assert {row.number for row in ROWS} == {case[0] for case in CASES} == set(range(1, 25))
    for row in ROWS:
        assert row.source and row.symptom and (row.care != NO_CARE or row.instead), row.number
        assert row.condition or row.where(Facts("")) is True


def test_what_rows_leave_to_the_table_of_drivers_is_there() -> None:
    """Rows 5, 9, 11, 19 and 22, beside a driver of which nothing is known."""
    assert DRIVERS["amd_proprietary"].small_matrix_tiles and not OTHER.small_matrix_tiles
    assert DRIVERS["intel_proprietary_windows"].most_shuffles == 0 and OTHER.most_shuffles is None
    assert not DRIVERS["intel_proprietary_windows"].matrix_loads and OTHER.matrix_loads
    qualcomm = DRIVERS["qualcomm_proprietary"]
    assert qualcomm.dot_unroll < OTHER.dot_unroll and qualcomm.unrolled_instructions < OTHER.unrolled_instructions
    assert DRIVERS["mesa_honeykrisp"].rolls_dot_loops and not OTHER.rolls_dot_loops


def test_the_strictest_counts() -> None:
    windows = Facts("amd_proprietary", (26, 3, 1), "AMD Radeon 860M", "integrated", 0x1002, "Windows", ())
    care = care_for(windows)
    assert care.job_seconds == 1.0 and care.holds_allocations and not care.asks_matrices
    assert care.left_out == MATRIX_FEATURES | {"explicit_workgroup_layout"}
    assert care_for(Facts("mesa_v3dv", system="Windows")).job_seconds == 0.25


@pytest.mark.parametrize("driver", sorted(RAN_HERE))
def test_what_ran_here_needs_no_care(driver: str) -> None:
    """An H100 has 64 warps of 32 a multiprocessor."""
    assert care_for(Facts(driver, (580, 159), "NVIDIA H100", kernel=(7, 1), unit_threads=2048)) == NO_CARE


@pytest.mark.parametrize(
    ("driver", "number", "text", "version"),
    [
        ("nvidia_proprietary", 580 << 22 | 159 << 14 | 3 << 6, "580.159.03", (580, 159, 3)),
        ("intel_proprietary_windows", 101 << 14 | 8826, "Intel driver", (101, 8826)),
        ("mesa_radv", 25 << 22 | 7, "Mesa 25.0.7-2+deb13u1", (25, 0, 7)),
        ("amd_proprietary", 2 << 22 | 310, "26.3.1 (AMD proprietary shader compiler)", (26, 3, 1)),
        ("qualcomm_proprietary", 512 << 22 | 676 << 12, "Driver Build: 0a1b", (512, 676, 0)),
        ("moltenvk", 10211, "1.2.11", (1, 2, 11)),
        ("unknown", 0, "", ()),
    ],
)
def test_versions(driver: str, number: int, text: str, version: tuple[int, ...]) -> None:
    assert version_of(driver, number, text) == version


@pytest.mark.parametrize(("release", "version"), [("7.0.3-arch1", (7, 0)), ("6.12.0+deb13", (6, 12)), ("", ())])
def test_versions_of_linux(release: str, version: tuple[int, ...]) -> None:
    assert kernel_version(release) == version


@pytest.mark.parametrize("one_at_a_time", [False, True])
def test_pipelines_one_at_a_time(one_at_a_time: bool) -> None:
    """Two threads that compile meet where they may, and only there."""
    compilations = Compilations(one_at_a_time)
    meeting = threading.Barrier(2, timeout=0.5 if one_at_a_time else 60)

    def make(_: object) -> bool:
        try:
            meeting.wait()
        except threading.BrokenBarrierError:
            return False
        return True

    def compiled(module: bytes) -> bool:
        part = CompilingPart("kernel", "a driver", lambda: "")
        return bool(compilations.wait(module, make, part, Seconds(60, 60)))

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(compiled, (b"a", b"b"))) == [not one_at_a_time] * 2


def test_docs_have_the_rows() -> None:
    """``python -m docs.generate_devices`` writes them."""
    page = Path(__file__).parents[3] / "docs/devices.md"
    assert table() in page.read_text(encoding="utf-8")
