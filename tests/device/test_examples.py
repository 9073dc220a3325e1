"""Every example is right on the device that the tests run on."""
from __future__ import annotations

from collections.abc import Iterator

import pytest

from examples.demo import EXAMPLES
from examples.harness import Case, measure


def all_cases() -> Iterator[pytest.param]:
    for example in EXAMPLES:
        for case in example.cases():
            yield pytest.param(case, id=f"{case.kernel} {case.size}")


@pytest.mark.parametrize("case", list(all_cases()))
def test_example(case: Case) -> None:
    result = measure(case, seconds=0.0)
    assert result.passed, f"largest error {result.error}, allowed {case.tolerance}"
