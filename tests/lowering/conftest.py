"""FileCheck for tests that have patterns beside them."""

from collections.abc import Callable

import pytest

from tests.filecheck import check


@pytest.fixture
def filecheck() -> Callable[[str, str], None]:
    """``filecheck(text, patterns)``: tests.filecheck.check."""
    return check
