"""The first sentence of the page about a kernel: measurements come before what the code looks like."""

from typing import Any

import pytest
from triton.backends.spirv.inspection.verdict import verdict

CLEAN: dict[str, Any] = {
    "driver": {"spills": 0}, "accesses": [], "dots": [], "matrix_units": False, "banks": [],
}  # fmt: skip
NARROW = {
    "what": "load", "bits": 32, "elements": 1, "why": "the addresses are known to be multiples of 4 bytes only",
    "scalar": False, "could": True, "in_loop": False, "places": ["/kernels/add.py:7"],
}  # fmt: skip


def timed(**changed: Any) -> dict[str, Any]:
    """Ten launches of 1 ms that move 1 GB and compute 1e9 operations, on a device with 10 TB/s and 10 TFLOP/s."""
    peaks = {"bytes_a_second": 1e13, "operations_a_second": 1e13, "device": "a GPU"}
    known = {"launches": 10, "seconds": 1e-3, "bytes": 1e9, "flops": 1e9, "estimated": False, "peaks": peaks}
    return known | changed


def test_a_launch_at_a_limit_names_it() -> None:
    assert verdict(CLEAN, timed(bytes=7e9)) == (
        "Memory limits it: the median of 10 launches, 1,000.0 µs, reaches 70% of what a copy reaches on a GPU."
    )
    assert "Arithmetic limits it: " in verdict(CLEAN, timed(flops=9e9))
    assert "an estimated 90% of what f32 multiply-adds reach on" in verdict(CLEAN, timed(flops=9e9, estimated=True))


def test_a_launch_below_the_limits_says_what_was_measured_and_what_that_means() -> None:
    measured = (
        "No peak limits it: the median of 10 launches, 1,000.0 µs, reaches 10% of what a copy reaches and 10% of what "
        "f32 multiply-adds reach on a GPU. "
    )
    assert verdict(CLEAN, timed()).startswith(measured + "Nothing in the code explains it: more programs")
    said = verdict(CLEAN | {"accesses": [NARROW]}, timed())
    assert said.startswith(measured + "Most likely, accesses to memory limit it: the load of add.py:7 moves 32 of 128")
    for text in (said, verdict(CLEAN, timed())):
        assert "profile --roofline" not in text, "it was run"


def test_caches_are_told_from_memory() -> None:
    """A kernel that reads a row three times and writes it moves twice the bytes of its tensors. On a processor whose
    caches copy 40 TB/s, 10 GB in 1 ms are a copy's bandwidth, but half of them never leave a cache."""
    peaks = timed()["peaks"] | {"bytes_of_caches": 4e13}
    said = verdict(CLEAN, timed(bytes=1e10, distinct=5e9, peaks=peaks))
    assert said.startswith(
        "No peak limits it: the median of 10 launches, 1,000.0 µs, reaches 50% of what a copy reaches, 25% of what a "
        "copy within caches reaches and 10% of what f32 multiply-adds reach on a GPU. It moves each byte 2.0 times: "
        "caches serve all but the first, and one pass would need none."
    )
    assert verdict(CLEAN, timed(bytes=3e10, distinct=1e8, peaks=peaks)).startswith("Caches limit it: the median of")
    said = verdict(machine(gathers=16), timed(bytes=1.6e10, distinct=8e9, peaks=peaks))
    assert said.startswith("Memory limits it: the median of") and "caches serve all but the first. The loop at" in said
    assert "The loop at add.py:7 gathers or scatters: an element apart moves a whole cache line, more" in said


def machine(**loop: Any) -> dict[str, Any]:
    """What report.collected() finds of a kernel for a processor, whose one loop is so."""
    known = {"places": ["/kernels/add.py:7"], "instructions": 40, "vectors": 30, "gathers": 0, "calls": 0, "spills": 0}
    return CLEAN | {"accesses": [NARROW], "machine": {"vector_bits": 512, "loops": [known | loop]}}


def test_a_processors_code_is_judged_by_its_instructions() -> None:
    """Bits of a lane, warps and banks are a GPU's."""
    assert "its vectors have up to 512 bits" in verdict(machine(), None)
    assert "a round of the loop at add.py:7 gathers or scatters 16 vectors" in verdict(machine(gathers=16), None)
    assert "a round of the loop at add.py:7 stores 9 vectors to the stack; a smaller" in verdict(
        machine(spills=9), None
    )
    for known in (machine(), machine(gathers=1), machine(spills=1)):
        for text in (verdict(known, None), verdict(known, timed())):
            assert "128" not in text and "warps" not in text and "subgroups" not in text, text


@pytest.mark.parametrize("unknown", [{"peaks": None}, {"bytes": 0, "flops": 0}])
def test_a_trace_that_says_no_limit_is_told(unknown: dict[str, Any]) -> None:
    said = verdict(CLEAN, timed(**unknown))
    assert said.startswith("Nothing in the code stands out") and "The trace does not say which limit" in said


def test_without_a_trace_the_profile_is_named() -> None:
    assert verdict(CLEAN, None).endswith(
        "`triton-spirv profile --roofline --trace trace.json script.py` says which limit a launch meets."
    )
