"""A plugin of pytest: a test ends as skipped where a kernel is refused for a feature that the emulated device's profile
lacks, such as float64, since that refusal is right. Every other refusal fails the test."""

from collections.abc import Generator
from typing import Any

import pytest

from tests.lacking import lacked


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Changes the report of such a test."""
    report = yield
    if call.excinfo is None or not report.failed:
        return report
    feature = lacked(call.excinfo.value)
    if feature:
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1] or 0, f"Skipped: the device lacks {feature}")
    return report
