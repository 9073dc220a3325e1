"""What the results of the probe of Exp2 say of a device, and how that is kept; without a device."""

import logging
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.planning.native_math import native_math
from triton.backends.spirv.runtime.measuring import measured
from triton.backends.spirv.runtime.measuring.native_probe import SAMPLES, judged, probe_data

NORMAL, SUBNORMAL = {"exp2"}, {"exp2", "exp2_subnormal"}


def results(change: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Any:
    """The data that a device leaves whose results are ``change(x, 2^x)`` in f32."""
    data = probe_data()
    x = data[:SAMPLES].astype(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        data[SAMPLES:] = change(x, np.exp2(x)).astype(np.float32)
    return data


def off(units: float) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    return lambda x, exact: np.where(exact >= 2.0**-126, exact * (1 + units * 2.0**-23), exact)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda x, exact: exact, SUBNORMAL),
        (lambda x, exact: np.where(exact < 2.0**-126, 0, exact), NORMAL),
        (off(0.7), SUBNORMAL),
        (off(3.5), set()),
        (off(-3.5), set()),
        (lambda x, exact: np.where(np.isnan(x), 0, exact), set()),
        (lambda x, exact: np.where(np.isinf(exact), 3e38, exact), set()),
        (lambda x, exact: np.where(x == -np.inf, np.nan, exact), set()),
        (lambda x, exact: np.where(x == 1, 2.0001, exact), set()),
        (lambda x, exact: np.where(exact < 2.0**-126, 1e-30, exact), set()),
        (lambda x, exact: np.full_like(exact, np.nan), set()),
    ],
)
def test_judged(change: Callable[[np.ndarray, np.ndarray], np.ndarray], expected: set[str]) -> None:
    assert judged(results(change)) == expected


def device(driver: str) -> Any:
    return SimpleNamespace(
        name="a device",
        driver=driver,
        driver_version="1",
        uuid="00",
        capabilities=SimpleNamespace(
            subgroup_size=32, traits=PROFILES["nvidia-hopper" if driver == "nvidia_proprietary" else "lavapipe"].traits
        ),
    )


@pytest.fixture
def measurements(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[frozenset[str]]:
    """What measuring gives, one after the other; those that are left."""
    left = [frozenset(NORMAL)]
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(measured, "devices", lambda: (device("nvidia_proprietary"), device("mesa_llvmpipe")))
    monkeypatch.setattr(measured, "of_device", lambda index: None)
    monkeypatch.setattr(measured, "measure", lambda context: left.pop(0))
    return left


def test_a_device_is_measured_once(measurements: list[frozenset[str]]) -> None:
    for _ in range(2):
        assert measured.native_math(device("nvidia_proprietary")) == NORMAL
    assert not measurements


def test_a_damaged_record_is_replaced(measurements: list[frozenset[str]], tmp_path: Path) -> None:
    measured.native_math(device("nvidia_proprietary"))
    (path,) = tmp_path.rglob("*.functions.json")
    path.write_text("{")
    measurements.append(frozenset(SUBNORMAL))
    assert measured.native_math(device("nvidia_proprietary")) == SUBNORMAL
    assert measured.native_math(device("nvidia_proprietary")) == SUBNORMAL


def test_a_cpu_driver_is_not_measured(measurements: list[frozenset[str]]) -> None:
    assert measured.native_math(device("mesa_llvmpipe")) == frozenset()
    assert measurements


def test_a_probe_that_fails_costs_the_native_functions(
    measurements: list[frozenset[str]], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def measure(_: Any) -> frozenset[str]:
        raise RuntimeError("vkQueueSubmit failed: VK_ERROR_DEVICE_LOST (-4)")

    monkeypatch.setattr(measured, "measure", measure)
    with caplog.at_level(logging.WARNING):
        assert measured.native_math(device("nvidia_proprietary")) == frozenset()
    assert "its own functions are not used" in caplog.text


def test_the_option() -> None:
    hopper = PROFILES["nvidia-hopper"]
    assert native_math("auto", hopper) == NORMAL
    assert native_math("0", hopper) == native_math("off", hopper) == frozenset()
    assert native_math("1", PROFILES["lavapipe"]) == SUBNORMAL
    with pytest.raises(ValueError, match="must be 0, 1 or auto"):
        native_math("yes please", hopper)
