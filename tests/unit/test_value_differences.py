"""What counts as the same value, by its type."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from triton.backends.spirv.launching.values import differences
from triton.backends.spirv.launching.values.differences import (
    Difference,
    difference,
    movement,
    nudged,
    tolerance,
    worst,
)
from triton.backends.spirv.launching.values.host_copies import Pointer

DTYPES = {
    "fp64": np.float64, "fp32": np.float32, "fp16": np.float16, "bf16": ml_dtypes.bfloat16,
    "fp8e4nv": ml_dtypes.float8_e4m3fn, "fp8e5": ml_dtypes.float8_e5m2, "i32": np.int32, "u8": np.uint8, "i1": np.bool_,
}  # fmt: skip


def _compare(
    pointee: str, usual: Any, reference: Any, before: Any = None, start: int = 0, computed: Any = ()
) -> Difference | None:
    arrays = [np.asarray(one, DTYPES[pointee]) for one in (usual, reference)]
    first = np.full_like(arrays[0], 77) if before is None else np.asarray(before, DTYPES[pointee])
    storages = [[one.view(np.uint8)] for one in (first, *arrays)]
    return difference([Pointer("out", pointee, 0, start, 0)], *storages, set(computed))


@pytest.mark.parametrize("pointee", ["fp64", "fp32", "fp16", "bf16", "fp8e4nv", "fp8e5"])
def test_floats_are_the_same_as_far_as_rounding_goes(pointee: str) -> None:
    allowed = tolerance(pointee)
    number = 4.0
    assert _compare(pointee, [number * (1 + allowed / 2)], [number]) is None
    found = _compare(pointee, [number * (1 + allowed * 2)], [number])
    assert found is not None and found.reference == number and found.usual != number
    assert (found.index, found.count, found.written) == (0, 1, 1)


@pytest.mark.parametrize("pointee", ["fp32", "bf16", "fp8e5", "i32"])
def test_slices_are_compared_as_the_whole(pointee: str, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    values = [(random.standard_normal(1001) * 40).astype(DTYPES[pointee]) for _ in range(3)]
    before, usual, reference = storages = [[one.view(np.uint8)] for one in values]
    pointer = Pointer("out", pointee, 0, 16, 0)

    def all_of() -> tuple[Any, ...]:
        moved = nudged([pointer], before, {"f32"}, 3)
        found = difference([pointer], *storages, set(), [moved])
        return moved[0].tobytes(), found, worst([pointer], usual, reference)

    whole = all_of()
    monkeypatch.setattr(differences, "_SLICE", 7)
    assert all_of() == whole and whole[1] is not None


def test_what_is_left_of_a_sum_is_measured_by_the_largest_result() -> None:
    assert _compare("fp32", [1000.0, 2e-4], [1000.0, 1e-4]) is None
    assert _compare("fp32", [1.0, 2e-4], [1.0, 1e-4]) is not None
    # Not by what no kernel wrote.
    assert _compare("fp32", [1e9, 2e-4], [1e9, 1e-4], before=[1e9, 0.0]) is not None


def test_what_the_reference_is_uncertain_of_is_the_same() -> None:
    def compare(usual: list[float], reference: list[float], *near: list[float]) -> Difference | None:
        arrays = [[np.float32(one).view(np.uint8)] for one in ([9.0, 9.0], usual, reference, *near)]
        return difference([Pointer("out", "fp32", 0, 0, 0)], arrays[0], arrays[1], arrays[2], set(), arrays[3:])

    assert compare([1.0, 2.5], [1.0, 2.0], [1.0, 2.1]) is not None
    assert compare([1.0, 2.5], [1.0, 2.0], [1.0, 2.1], [1.0, 1.85]) is None
    assert compare([3.0, 2.5], [1.0, 2.0], [1.0, 3.0]) is not None
    for wrong in (np.nan, np.inf):
        assert compare([wrong, 2.0], [1.0, 2.0], [wrong, 2.0]) is not None
        assert compare([1.5, 2.0], [1.0, 2.0], [wrong, 2.0]) is not None


@pytest.mark.parametrize(
    ("pointee", "computed", "bits"), [("fp32", "f32", 23), ("fp32", "bf16", 7), ("fp16", "f32", 10), ("bf16", "f16", 7)]
)
def test_floats_are_nudged_by_a_unit_in_the_last_place(pointee: str, computed: str, bits: int) -> None:
    numbers = np.array([1.25, -1.75, 1e-3, 0.0, -0.0, 1.0, 300.0, np.nan, -np.inf], DTYPES[pointee])
    pointers = [Pointer("x", pointee, 0, 0, 0), Pointer("of", "i32", 1, 0, 1)]
    before, seen = [numbers.view(np.uint8), np.arange(3, dtype=np.int32).view(np.uint8)], set()
    for seed in range(9):
        x, of = nudged(pointers, before, {computed}, seed)
        found = x.view(DTYPES[pointee])
        steps = (found[:3].astype(np.float64) / numbers[:3].astype(np.float64) - 1) * 2.0**bits
        assert (np.abs(steps) > 0.49).all() and (np.abs(steps) < 1.01).all()
        assert (found[3:].view(np.uint8) == numbers[3:].view(np.uint8)).all() and (of == before[1]).all()
        seen |= set(np.sign(steps))
    assert seen == {-1, 1}
    several = [pointers[0], Pointer("same", "i32", 0, 0, 2)]
    assert (nudged(several, before, {computed}, 0)[0] == before[0]).all()


@pytest.mark.parametrize(("pointee", "unit"), [("bf16", 2.0**-7), ("fp16", 2.0**-10), ("fp8e5", 0.25)])
def test_what_is_rounded_as_it_is_stored_may_be_a_unit_apart(pointee: str, unit: float) -> None:
    for usual, same in ((1 + unit, True), (1 + 2 * unit, False), (1 - unit, True), (1 - 1.5 * unit, False)):
        found = _compare(pointee, [usual, 1.0], [1.0, 1.0], computed={"f32"})
        assert (found is None) == same, usual
        assert _compare(pointee, [usual, 1.0], [1.0, 1.0], computed={"f32", "bf16", "f8E5M2"}) is None
    tiny = 2.0 ** {"bf16": -133, "fp16": -24, "fp8e5": -16}[pointee]
    assert _compare(pointee, [tiny], [0.0], computed={"f32"}) is None
    assert _compare(pointee, [np.inf], [1.0], computed={"f32"}) is not None


def test_nudges_of_coarse_arguments_count_as_what_a_kernel_computes_in() -> None:
    x, y, of = (
        Pointer(name, pointee, at, 0, at)
        for at, (name, pointee) in enumerate(zip("xyz", ("bf16", "fp32", "i8"), strict=True))
    )
    assert movement([x, y, of], {"f32"}, True) == ({"f32", "bf16"}, 4 * 2.0**-13)
    assert movement([x, y, of], {"f32"}, False) == movement([y, of], {"f32"}, True) == ({"f32"}, 16)
    assert movement([x, y], {"f32", "bf16"}, True) == ({"f32", "bf16"}, 4)


def test_infinities_and_nan() -> None:
    special = [np.inf, -np.inf, np.nan, 1.0]
    assert _compare("fp32", special, special) is None
    for wrong in ([-np.inf, -np.inf, np.nan, 1], [np.inf, -np.inf, 0, 1], [np.inf, 3.4e38, np.nan, 1]):
        assert _compare("fp32", wrong, special) is not None
    assert _compare("fp32", [np.nan], [0.0]) is not None and _compare("fp32", [np.inf], [1.0]) is not None


def test_nan_of_other_bits_and_zeros_of_other_signs_are_the_same() -> None:
    usual = np.array([0x7FC00001, 0x80000000], np.uint32).view(np.float32)
    reference = np.array([0x7FC00000, 0], np.uint32).view(np.float32)
    assert _compare("fp32", usual, reference) is None


@pytest.mark.parametrize(("pointee", "usual"), [("i32", 1_000_001), ("u8", 7), ("i1", 1)])
def test_integers_are_compared_bit_by_bit(pointee: str, usual: int) -> None:
    found = _compare(pointee, [0, usual], [0, usual - 1])
    assert found is not None and (found.index, found.usual, found.reference) == (1, usual, usual - 1)


def test_negative_integers_are_shown_as_such() -> None:
    found = _compare("i32", [-5], [3])
    assert found is not None and (found.usual, found.reference) == (-5, 3)


def test_what_a_kernel_computes_in_counts() -> None:
    assert _compare("fp32", [1.001], [1.0]) is not None
    assert _compare("fp32", [1.001], [1.0], computed={"f32", "f16"}) is None
    assert _compare("fp32", [1.001], [1.0], computed={"tf32"}) is None
    assert tolerance("i32", {"bf16"}) == 0


def test_the_index_is_the_arguments() -> None:
    usual, reference = [1.0, 5.0, 1.0, 6.0], [1.0, 1.0, 1.0, 1.0]
    found = _compare("fp32", usual, reference, start=8)
    assert found is not None and (found.index, found.usual, found.count) == (1, 6.0, 2)
    found = _compare("fp32", usual[:3], reference[:3], start=8)
    assert found is not None and found.index == -1


def test_the_worst_difference_is_measured_as_a_tolerance_is() -> None:
    def of(usual: Any, reference: Any, pointee: str = "fp32") -> float:
        arrays = [[np.asarray(one, DTYPES[pointee]).view(np.uint8)] for one in (usual, reference)]
        return worst([Pointer("out", pointee, 0, 0, 0)], *arrays)

    assert of([1.0, 2.0, np.nan, np.inf], [1.0, 2.0, np.nan, np.inf]) == 0
    assert of([1.0, 2.5], [1.0, 2.0]) == pytest.approx(0.5 / 2.02)
    assert of([1.25, 100.0], [1.0, 100.0], "bf16") == pytest.approx(0.25 / 2.0)
    assert of([np.inf], [1.0]) == of([1.0], [np.inf]) == of([np.nan], [1.0]) == of([1.0], [np.nan]) == np.inf
    assert of([3, 7], [3, 6], "i32") == pytest.approx(1 / 6.06)
