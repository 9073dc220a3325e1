"""What tests of machine code run for."""

import pytest

from tests.unit.cpu.kernels import PROFILES_HERE


@pytest.fixture(params=PROFILES_HERE)
def profile(request: pytest.FixtureRequest) -> str:
    """A set of instructions."""
    return str(request.param)
