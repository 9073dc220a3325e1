"""The first hour of each kind of person goes as benchmarks/walks.py says."""

from pathlib import Path

import pytest

from benchmarks.walks import WALKS, walk


@pytest.mark.parametrize("name", WALKS)
def test_a_walk_goes_to_its_end(name: str, tmp_path: Path) -> None:
    if name == "torch":
        pytest.importorskip("torch")
    taken = walk(name, tmp_path)
    assert [one.fault for one in taken] == [""] * len(WALKS[name])
