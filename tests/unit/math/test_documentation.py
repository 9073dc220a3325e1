"""docs/internals/math.md states the bounds that the device tests hold the functions to."""

from pathlib import Path

from tests.device.math.bounds import ABSOLUTE, BINARY, BOUNDS

DOCUMENT = Path(__file__).parents[3] / "docs/internals/math.md"


def test_bounds_are_documented():
    bounds = {name: (bound.single, bound.double) for name, bound in BOUNDS.items()}
    bounds |= {name: (entry[1], entry[2]) for name, entry in (*BINARY.items(), *ABSOLUTE.items())}
    lines = DOCUMENT.read_text().splitlines()
    missing = [
        name for name, (single, double) in bounds.items() if f"| {name} | {single:g} | {double:g} |" not in lines
    ]
    assert missing == []
