"""A plugin of pytest: a test ends as skipped where a kernel is refused for a feature that the emulated device's profile
lacks, such as float64, since that refusal is right. Every other refusal fails the test."""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Any

import pytest

_FEATURE = re.compile(r"\(feature (\w+)\)")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Changes the report of such a test."""
    report = yield
    if call.excinfo is None or not report.failed:
        return report
    from triton.backends.spirv.capabilities import Capabilities
    from triton.backends.spirv.errors import UnsupportedOperation
    from triton.runtime import driver

    found = _FEATURE.search(str(call.excinfo.value))
    if found is None or not call.excinfo.errisinstance((UnsupportedOperation, NotImplementedError)):
        return report
    if not Capabilities.parse(driver.active.get_current_target().arch).has(found[1]):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1] or 0, f"Skipped: the device lacks {found[1]}")
    return report
