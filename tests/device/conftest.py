"""Every module of the device tests is validated where Khronos' layer is installed."""

import os

import pytest

from tests.device.validation import layer_is_installed


@pytest.fixture(scope="session", autouse=True)
def exact_and_validated() -> None:
    """Every module is validated. Dots of f32 have full precision where a kernel does not say: tests compare with bounds
    of f32."""
    os.environ.setdefault("TRITON_F32_DEFAULT", "ieee")
    os.environ.setdefault("TRITON_SPIRV_VALIDATE", "1" if layer_is_installed() else "0")
    # Machines that run tests are busy: pytest's own limit counts.
    os.environ.setdefault("TRITON_SPIRV_COMPILE_TIMEOUT", "3600")
