"""TESTS_FLUSH_SUBNORMALS=1 runs the tests of this folder as on a device that takes subnormal f32 numbers for zero."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from triton import knobs

from tests.device.math import harness, weaker


@pytest.fixture
def compiled_afresh(tmp_path: Path) -> Iterator[None]:
    """Kernels of this test are compiled by it, and not used by others."""
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path)
        harness._module.cache_clear()
        yield
        harness._module.cache_clear()


@pytest.fixture(autouse=True)
def flushing_if_asked_for(request: pytest.FixtureRequest) -> None:
    if os.environ.get("TESTS_FLUSH_SUBNORMALS") == "1":
        request.getfixturevalue("compiled_afresh")
        weaker.flush(request.getfixturevalue("monkeypatch"))
