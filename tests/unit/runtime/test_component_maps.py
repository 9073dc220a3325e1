"""Probes of matrix units that go wrong, without a device."""

from types import SimpleNamespace
from typing import Any

import pytest
from triton.backends.spirv.runtime.device_kind import MatrixProperties
from triton.backends.spirv.runtime.errors import DeviceUnavailable, KernelRejected, ValidationError
from triton.backends.spirv.runtime.measuring import component_maps

F16 = MatrixProperties(16, 16, 16, ("f16", "f16", "f32", "f32"), False)
DEVICE: Any = SimpleNamespace(name="a device", matrices=(F16,))


@pytest.fixture(autouse=True)
def one_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(component_maps, "devices", lambda: [DEVICE])
    monkeypatch.setattr(component_maps, "of_device", lambda index: None)


@pytest.mark.parametrize(
    "fault",
    [
        RuntimeError("vkQueueSubmit failed: VK_ERROR_DEVICE_LOST (-4)"),
        KernelRejected("kernel 'probe'", "probe.spv"),
        ValidationError("no such capability"),
    ],
    ids=lambda fault: type(fault).__name__,
)
def test_what_a_driver_may_do_costs_the_matrix_units(
    fault: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def measure(*_: Any) -> Any:
        raise fault

    monkeypatch.setattr(component_maps, "measure", measure)
    assert component_maps._measured(DEVICE) is None
    assert type(fault).__name__ in caplog.text


def test_a_device_that_cannot_be_opened_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_device(index: int) -> Any:
        raise DeviceUnavailable("it is gone")

    monkeypatch.setattr(component_maps, "of_device", of_device)
    assert component_maps._measured(DEVICE) is None


def test_a_device_that_the_process_does_not_use_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    # As `triton-spirv info` asks of each that is installed where TRITON_SPIRV_DEVICE=cpu.
    monkeypatch.setattr(component_maps, "devices", lambda: ())
    assert component_maps._measured(DEVICE) is None


def test_a_mistake_in_the_probe_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(*_: Any) -> Any:
        raise TypeError("a mistake")

    monkeypatch.setattr(component_maps, "measure", measure)
    with pytest.raises(TypeError, match="a mistake"):
        component_maps._measured(DEVICE)
