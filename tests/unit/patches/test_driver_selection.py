"""The rules of overlay/…/driver_selection.py, on stand-in driver classes; no triton is imported."""

import importlib.util
import logging
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from backend import settings

SOURCE = Path(__file__).resolve().parents[3] / "overlay/python/triton/runtime/driver_selection.py"


@pytest.fixture
def selection(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    for variable in ("TRITON_DEFAULT_BACKEND", "TRITON_SPIRV_BACKEND"):
        monkeypatch.delenv(variable, raising=False)
    spec = importlib.util.spec_from_file_location("driver_selection", SOURCE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def backend(name: str, active: bool, reason: str | None = None) -> Any:
    members: dict[str, Any] = {"is_active": staticmethod(lambda: active)}
    if name == "spirv":
        members["is_requested"] = staticmethod(settings.BACKEND.get)
    if reason is not None:
        members["unavailable_reason"] = staticmethod(lambda: reason)
    return SimpleNamespace(driver=type(f"{name.capitalize()}Driver", (), members))


def backends(**active: bool) -> dict[str, Any]:
    return {name: backend(name, is_active) for name, is_active in active.items()}


def never() -> Any:
    raise AssertionError("must not be called")


def chosen(selection: ModuleType, table: dict[str, Any]) -> str:
    driver = selection.select_driver(table, never)
    return next(name for name, entry in table.items() if type(driver) is entry.driver)


@pytest.mark.parametrize("variables", [{}, {"TRITON_DEFAULT_BACKEND": "nvidia"}, {"TRITON_SPIRV_BACKEND": "0"}])
def test_without_spirv_upstream_decides(
    selection: ModuleType, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    answer = object()
    assert selection.select_driver(backends(nvidia=True, amd=True), lambda: answer) is answer


def test_the_gpus_own_driver_wins_and_that_is_logged_once(
    selection: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    table = backends(amd=False, nvidia=True, spirv=True)
    assert [chosen(selection, table) for _ in range(3)] == ["nvidia"] * 3
    assert [r.getMessage() for r in caplog.records] == [
        "the SPIR-V backend steps aside for NvidiaDriver; TRITON_SPIRV_BACKEND=1 selects it"
    ]


def test_vulkan_is_not_looked_for_beside_another_driver(selection: ModuleType) -> None:
    table = backends(nvidia=True)
    table["spirv"] = SimpleNamespace(driver=type("SPIRVDriver", (), {"is_active": staticmethod(never)}))
    assert chosen(selection, table) == "nvidia"


def test_spirv_alone_is_taken(selection: ModuleType) -> None:
    assert chosen(selection, backends(amd=False, nvidia=False, spirv=True)) == "spirv"


@pytest.mark.parametrize("value", ["1", "true", "ON", "yes", " 1 "])
def test_spirv_is_taken_on_request(selection: ModuleType, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("TRITON_SPIRV_BACKEND", value)
    assert chosen(selection, backends(nvidia=True, spirv=True)) == "spirv"


@pytest.mark.parametrize("value", ["0", "", "off", "False"])
def test_a_false_request_is_none(selection: ModuleType, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("TRITON_SPIRV_BACKEND", value)
    assert chosen(selection, backends(nvidia=True, spirv=True)) == "nvidia"


def test_a_request_that_is_neither_on_nor_off(selection: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_SPIRV_BACKEND", "vulkan")
    with pytest.raises(ValueError, match=r"TRITON_SPIRV_BACKEND must be 0 or 1, not 'vulkan'"):
        selection.select_driver(backends(nvidia=True, spirv=True), never)


def test_on_means_the_same_without_the_backend(selection: ModuleType) -> None:
    assert selection._ON == settings.ON and selection.SPIRV_VARIABLE == settings.BACKEND.name


@pytest.mark.parametrize("variable, value", [("TRITON_SPIRV_BACKEND", "1"), ("TRITON_DEFAULT_BACKEND", "spirv")])
def test_a_request_for_an_inactive_spirv_says_what_is_missing(
    selection: ModuleType, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    table = backends(nvidia=True) | {"spirv": backend("spirv", False, "no Vulkan loader (libvulkan.so.1) was found")}
    with pytest.raises(RuntimeError) as error:
        selection.select_driver(table, never)
    assert str(error.value).splitlines() == [
        "Backend device 'spirv' is not active. No Vulkan loader (libvulkan.so.1) was found.",
        "TRITON_SPIRV_COMPILE_ONLY=1 compiles kernels without a device and skips their launches.",
    ]


def test_a_driver_that_gives_no_reason(selection: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_SPIRV_BACKEND", "1")
    with pytest.raises(RuntimeError, match="Needs a Vulkan driver; .* apt-get install mesa-vulkan-drivers libvulkan1"):
        selection.select_driver(backends(spirv=False), never)


def test_a_request_for_a_spirv_that_is_not_installed(selection: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_SPIRV_BACKEND", "1")
    with pytest.raises(RuntimeError, match=r"no backend named 'spirv' is installed \(installed: amd, nvidia\)"):
        selection.select_driver(backends(nvidia=True, amd=False), never)


def test_contradicting_requests(selection: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_SPIRV_BACKEND", "1")
    monkeypatch.setenv("TRITON_DEFAULT_BACKEND", "nvidia")
    with pytest.raises(RuntimeError, match="for 'nvidia': unset one of them"):
        selection.select_driver(backends(nvidia=True, spirv=True), never)


def test_agreeing_requests(selection: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_SPIRV_BACKEND", "1")
    monkeypatch.setenv("TRITON_DEFAULT_BACKEND", "spirv")
    assert chosen(selection, backends(nvidia=True, spirv=True)) == "spirv"


@pytest.mark.parametrize("name", ["nvidia", "unknown"])
def test_upstreams_variable_is_left_to_upstream(
    selection: ModuleType, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("TRITON_DEFAULT_BACKEND", name)
    answer = object()
    assert selection.select_driver(backends(nvidia=True, spirv=True), lambda: answer) is answer


def test_two_gpus_are_upstreams_error(selection: ModuleType) -> None:
    table = backends(amd=True, nvidia=True, spirv=True)
    others = [table["amd"].driver, table["nvidia"].driver]
    with pytest.raises(RuntimeError) as error:
        selection.select_driver(table, never)
    assert str(error.value) == f"2 active drivers ({others}). There should only be one."


def test_no_active_driver_lists_what_each_misses(selection: ModuleType) -> None:
    table = backends(amd=False, nvidia=False, other=False) | {"spirv": backend("spirv", False, "no Vulkan device")}
    with pytest.raises(RuntimeError) as error:
        selection.select_driver(table, never)
    lines = str(error.value).splitlines()
    assert lines[0].startswith("0 active drivers ([]). There should only be one.")
    assert lines[1].startswith("  amd: needs an AMD GPU")
    assert lines[2].startswith("  nvidia: needs an NVIDIA GPU")
    assert lines[3] == "  other: OtherDriver.is_active() is false"
    assert lines[4] == "  spirv: no Vulkan device"
    assert lines[5].startswith("TRITON_SPIRV_COMPILE_ONLY=1 compiles kernels without a device")


def test_each_driver_is_asked_once(selection: ModuleType) -> None:
    asked: list[str] = []

    def counting(name: str) -> Any:

        def is_active() -> bool:
            asked.append(name)
            return name == "spirv"

        return SimpleNamespace(driver=type(name, (), {"is_active": staticmethod(is_active)}))

    assert chosen(selection, {name: counting(name) for name in ("amd", "nvidia", "spirv")}) == "spirv"
    assert asked == ["amd", "nvidia", "spirv"]


def test_the_spirv_class_says_which_other_class_is_worth_asking(selection: ModuleType) -> None:
    """AMD's imports torch when it is asked."""
    table = backends(nvidia=False, spirv=True) | {
        "amd": SimpleNamespace(driver=type("AmdDriver", (), {"is_active": never}))
    }
    table["spirv"].driver.other_is_active = staticmethod(lambda name, driver: name != "amd" and driver.is_active())
    assert chosen(selection, table) == "spirv"
