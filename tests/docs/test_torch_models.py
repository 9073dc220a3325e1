"""docs/internals/torch-models.md has a row for every model of benchmarks/library_models, and none is wrong."""

import re

import pytest

from benchmarks.library_model_shapes import MODELS
from benchmarks.library_models import PAGE, WRITTEN
from benchmarks.outcomes import FAILURES

_ROWS = re.findall(r"^\| (\S+) (\S+) \| `(\S+)` \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def test_the_page_has_a_row_for_every_model() -> None:
    assert [(library, model) for library, _, model, _ in _ROWS] == list(MODELS)


@pytest.mark.parametrize(("library", "version", "model", "cells"), _ROWS, ids=[f"{row[0]}/{row[2]}" for row in _ROWS])
def test_a_model_of_the_page_was_trained_to_its_end(library: str, version: str, model: str, cells: str) -> None:
    assert re.fullmatch(r"[\d.]+", version)
    assert not any(re.search(rf"\b{outcome}: ", cells) for outcome in FAILURES)


def test_the_page_says_with_what_it_was_made() -> None:
    assert re.search(
        rf"^{WRITTEN}\d{{4}}-\d\d-\d\d with torch [\d.]+, Python [\d.]+, driver \S.*\.$", PAGE.read_text(), re.MULTILINE
    )
