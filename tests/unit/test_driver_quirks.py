"""The table of drivers: what nobody reads, or no test shows, is not in it."""

import re
from dataclasses import fields
from pathlib import Path

import pytest
from triton.backends.spirv import driver_quirks
from triton.backends.spirv.driver_quirks import Driver, Faults

_ROOT = Path(driver_quirks.__file__).parent
_TESTS = Path(__file__).parents[1]
_FIELDS = [entry.name for entry in (*fields(Faults), *fields(Driver))]

#: Fields that no test names: the test that shows what each does.
_SHOWN = {
    "max_nesting": "lowering/test_control_flow.py::test_nesting_that_the_driver_does_not_follow_is_refused",
    "unmasked_loads": "lowering/text/memory.ttgir::A load inside control flow has an address of its own in each lane",
    "spare_shared": "unit/planning/test_scratch_places.py::test_what_a_kernel_may_take",
    "stored_bytes": "unit/transforms/gpu/test_store_lanes.py::test_rows_of_64_bytes_are_stored_without_conflicts",
    "prefetch_behind_barrier": (
        "unit/transforms/text/prefetch.ttgir::Behind the barrier the next tile is loaded into the registers of this one"
    ),
    "carries_matrices": "lowering/test_matrix_dot.py::test_a_loop_that_computes_with_its_sums_carries_matrices",
    "matrix_lanes": "lowering/test_driver_habits.py::test_matrix_units_have_subgroups_of_their_own_size",
    "updated": "unit/cpu/test_atomic_sums.py::test_registers_that_are_added_are_in_a_loop_over_strips",
    "counter_copies": "unit/cpu/test_atomic_sums.py::test_neighbouring_lanes_have_counters_of_their_own",
    "register_statistics": "unit/runtime/test_statistics.py::test_registers_and_spills",
    "spill_statistics": "unit/runtime/test_statistics.py::test_registers_and_spills",
}


@pytest.fixture(scope="module")
def sources() -> str:
    """The backend without the table."""
    return "\n".join(
        path.read_text(encoding="utf-8") for path in _ROOT.rglob("*.py") if path.name != "driver_quirks.py"
    )


@pytest.fixture(scope="module")
def tests() -> str:
    """The tests of the suite, without those of fields as such."""
    files = [
        path for path in _TESTS.rglob("test_*.py") if path.name not in ("test_driver_quirks.py", "test_driver_probe.py")
    ]
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


@pytest.mark.parametrize("name", _FIELDS)
def test_every_field_is_read(name: str, sources: str) -> None:
    assert re.search(rf"\.{name}\b", sources)


def test_a_field_that_nobody_reads_is_noticed(sources: str) -> None:
    assert not re.search(r"\.likes_tea\b", sources)


@pytest.mark.parametrize("name", _FIELDS)
def test_every_field_has_a_test(name: str, tests: str) -> None:
    named = re.search(rf"[.]{name}\b|\b{name}=", tests)
    if shown := _SHOWN.get(name):
        assert not named, "a test names it: it needs no row"
        file, _, test = shown.partition("::")
        wanted = f"\ndef {test}(" if file.endswith(".py") else f"// {test}\n"
        assert wanted in (_TESTS / file).read_text(encoding="utf-8")
    else:
        assert named


def test_a_field_without_a_test_is_noticed(tests: str) -> None:
    assert not re.search(r"[.]likes_tea\b|\blikes_coffee=", tests)
