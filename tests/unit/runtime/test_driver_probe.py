"""What the answers of the probe of a driver say of it, how that is kept, and what it changes; without a device."""

import logging
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from triton.backends.spirv.capabilities import PROFILES, Capabilities
from triton.backends.spirv.driver_quirks import CORRECTABLE, DRIVERS, OTHER, corrected, fact_of
from triton.backends.spirv.runtime.measuring import driver_probe, measured
from triton.backends.spirv.runtime.measuring.driver_probe import Probe, judged, probe_data, probes

#: A driver that promises most, so that each promise can be refuted.
BEST = replace(OTHER, fused=True, exact_division=True)


def everything(_: str) -> bool:
    return True


def nothing(_: str) -> bool:
    return False


def answers(has: Any = everything, wrong: Probe | None = None) -> Any:
    """The data that a device leaves whose answers are right, except for the lowest bit of the first one to a probe."""
    data = probe_data(has)
    asked = [probe for probe in probes() if all(map(has, probe.needs))]
    for probe, (_, start) in zip(asked, driver_probe._places(asked)[0], strict=True):
        type_ = driver_probe._answer_type(probe)
        right = np.ascontiguousarray(probe.right.astype(type_))
        data[start : start + right.nbytes] = right.view(np.uint8)
        if probe is wrong:
            data[start] ^= 1
    return data


def test_a_driver_whose_answers_are_right_is_as_it_is_known() -> None:
    assert judged(answers(), everything, BEST) == frozenset()
    assert judged(answers(), everything, OTHER) == {"fused"}
    assert judged(answers(nothing), nothing, BEST) == frozenset()


@pytest.mark.parametrize("number", range(len(probes())))
def test_one_wrong_answer_is_noticed(number: int) -> None:
    probe = probes()[number]
    sign = "" if probe.wrong_is else "-"
    assert judged(answers(wrong=probe), everything, BEST) == {f"{sign}{probe.fact}"}


def test_every_fact_that_can_be_corrected_is_asked_for() -> None:
    assert {probe.fact for probe in probes()} == CORRECTABLE


@pytest.mark.parametrize("name", sorted(CORRECTABLE))
def test_a_correction_turns_one_fact(name: str) -> None:
    for text, value in ((name, True), (f"-{name}", False)):
        driver = corrected(DRIVERS["mesa_llvmpipe"], frozenset({text}))
        assert fact_of(driver, name) is value
        others = CORRECTABLE - {name}
        assert all(fact_of(driver, one) == fact_of(DRIVERS["mesa_llvmpipe"], one) for one in others)


def test_corrections_are_part_of_a_target() -> None:
    known = PROFILES["generic"]
    found = replace(known, corrections=frozenset({"fused", "folds_zeros", "-rounds_doubles"}))
    assert found.arch() == f"{known.arch()};corrections=-rounds_doubles,folds_zeros,fused"
    assert Capabilities.parse(found.arch()) == found
    assert found.traits.fused and found.traits.faults.folds_zeros and not found.traits.rounds_doubles
    assert not known.traits.fused and "corrections" not in known.arch()
    with pytest.raises(ValueError, match=r"unknown facts of drivers \['likes_tea'\]"):
        replace(known, corrections=frozenset({"-likes_tea"}))


def device(profile: str) -> Any:
    capabilities = PROFILES[profile]
    return SimpleNamespace(
        name="a device", driver=capabilities.driver, driver_version="1", uuid="00", capabilities=capabilities
    )


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[frozenset[str]]:
    """What asking gives, one after the other; those that are left."""
    left = [frozenset({"folds_zeros"})]
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(measured, "devices", lambda: (device("nvidia-hopper"), device("cpu-x86-64-v3")))
    monkeypatch.setattr(measured, "of_device", lambda index: None)
    monkeypatch.setattr(measured, "ask", lambda context: left.pop(0))
    return left


def test_a_driver_is_asked_once(found: list[frozenset[str]]) -> None:
    for _ in range(2):
        assert measured.corrections(device("nvidia-hopper")) == {"folds_zeros"}
    assert not found


def test_a_processor_is_not_asked(found: list[frozenset[str]]) -> None:
    assert measured.corrections(device("cpu-x86-64-v3")) == frozenset()
    assert found


def test_a_device_that_is_not_offered_is_not_asked(found: list[frozenset[str]], tmp_path: Path) -> None:
    assert measured.corrections(device("amd-rdna3")) == frozenset()
    assert found and not list(tmp_path.rglob("*.json"))


@pytest.mark.parametrize("error", [RuntimeError("VK_ERROR_DEVICE_LOST (-4)"), ModuleNotFoundError("No module 'numpy'")])
def test_where_no_kernel_can_ask_the_name_counts(
    found: list[frozenset[str]], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    def ask(_: Any) -> frozenset[str]:
        raise error

    monkeypatch.setattr(measured, "ask", ask)
    with caplog.at_level(logging.WARNING):
        assert measured.corrections(device("nvidia-hopper")) == frozenset()
    assert "what is known of its driver was not tried" in caplog.text
