"""Compile options: what launches written for CUDA and AMD pass, and debug=True."""

import logging
from dataclasses import fields
from typing import Any

import pytest
from triton.backends.amd.compiler import HIPOptions
from triton.backends.nvidia.compiler import CUDAOptions
from triton.backends.spirv import options as options_module
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.compiler import SPIRVBackend
from triton.backends.spirv.options import CHOICES, FOREIGN, SPIRVOptions
from triton.backends.spirv.target import target_of

PROFILE = PROFILES["lavapipe"]


@pytest.fixture
def backend() -> SPIRVBackend:
    """For Mesa's CPU driver."""
    return SPIRVBackend(target_of(PROFILE))


@pytest.mark.parametrize("other", [CUDAOptions, HIPOptions])
def test_every_option_of_upstream_is_known(backend: SPIRVBackend, other: Any) -> None:
    names = {entry.name for entry in fields(other)}
    assert names - {entry.name for entry in fields(SPIRVOptions)} - FOREIGN.keys() == set()


def test_no_option_is_both() -> None:
    assert FOREIGN.keys().isdisjoint(entry.name for entry in fields(SPIRVOptions))


@pytest.mark.parametrize("name", [name for name, choice in CHOICES.items() if choice.setting])
def test_a_launch_says_more_than_the_environment(
    backend: SPIRVBackend, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = CHOICES[name].setting
    assert setting is not None
    text = "programs" if name == "check_program_races" else "1"
    off, on = (CHOICES[name].says(setting.parse(value)) for value in ("0", text))
    assert off != on
    monkeypatch.setenv(setting.name, text)
    assert getattr(backend.parse_options({}), name) == on
    assert getattr(backend.parse_options({name: None}), name) == on
    assert getattr(backend.parse_options({name: off}), name) == off


@pytest.mark.parametrize("name", FOREIGN)
def test_an_option_without_effect(backend: SPIRVBackend, name: str, caplog: pytest.LogCaptureFixture) -> None:
    options_module._said.clear()
    with caplog.at_level(logging.INFO, logger="triton.backends.spirv"):
        first, second = (backend.parse_options({name: 2}) for _ in range(2))
    assert first.__dict__[name] == 2
    assert first.hash() == second.hash() == backend.parse_options({}).hash()
    assert [record.message for record in caplog.records] == [
        f"the option {name}=2 has no effect on the SPIR-V backend: {FOREIGN[name]}"
    ]


def test_an_option_of_no_backend_is_not_taken(backend: SPIRVBackend) -> None:
    assert "number_of_wraps" not in backend.parse_options({"number_of_wraps": 4}).__dict__


@pytest.mark.parametrize(
    ("asked", "checked"),
    [
        ({}, False),
        ({"debug": True}, True),
        ({"debug": False}, False),
        ({"debug": True, "sanitize_overflow": False}, False),
        ({"sanitize_overflow": True}, False),
    ],
)
def test_overflow_is_checked_in_debug_mode(backend: SPIRVBackend, asked: dict[str, bool], checked: bool) -> None:
    assert backend.parse_options(asked).sanitize_overflow is checked
