"""The table of drivers: what nobody reads is not in it."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest
from triton.backends.spirv import drivers
from triton.backends.spirv.drivers import Driver, Faults

_ROOT = Path(drivers.__file__).parent


@pytest.fixture(scope="module")
def sources() -> str:
    """The backend without the table."""
    return "\n".join(path.read_text(encoding="utf-8") for path in _ROOT.rglob("*.py") if path.name != "drivers.py")


@pytest.mark.parametrize("name", [entry.name for entry in (*fields(Faults), *fields(Driver))])
def test_every_field_is_read(name: str, sources: str) -> None:
    assert re.search(rf"\.{name}\b", sources)


def test_a_field_that_nobody_reads_is_noticed(sources: str) -> None:
    assert not re.search(r"\.likes_tea\b", sources)
