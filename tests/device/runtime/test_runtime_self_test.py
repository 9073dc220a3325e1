"""The self-test of a driver: what it finds wrong, or what ends it, is left out and named."""

import logging
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.field_reports import RAN_HERE
from triton.backends.spirv.inspection import known_results, self_test
from triton.backends.spirv.runtime import DeviceUnavailable, current, from_numpy
from triton.backends.spirv.runtime.measuring import trust
from triton.backends.spirv.runtime.vulkan.device_info import VulkanDeviceInfo

CHILD = """
import os, sys, time
for group in sys.argv[1:]:
    print("begin", group, flush=True)
    if group == "matrices":
        os.abort()
    if group == "bfloat16_matrices":
        time.sleep(600)
    print(f"wrong {group}: add float16 is wrong" if group == "float16" else f"right {group}", flush=True)
"""


def test_what_is_wrong_crashes_or_hangs() -> None:
    found = trust.run([sys.executable, "-c", CHILD], list(trust.LEFT_OUT), {}, seconds=2)
    assert found == {
        "float16": "add float16 is wrong",
        "matrices": "it ends the process with status -6",
        "bfloat16_matrices": "it does not end within 2 s",
    }


def test_a_child_that_does_not_begin() -> None:
    found = trust.run([sys.executable, "-c", "raise SystemExit('no Triton')"], list(trust.LEFT_OUT), {})
    assert found == {"basics": "it ends the process with status 1 (no Triton)"}


def _device(driver: str) -> VulkanDeviceInfo:
    features = PROFILES["amd-rdna3"].features | {"float16", "matrices", "float32_atomic_add"}
    able = replace(PROFILES["amd-rdna3"], driver=driver, features=features)
    return VulkanDeviceInfo("GPU", "discrete", "ab" * 16, driver, (), able, driver_version="1.2.3", api_version=(1, 3))


def test_it_is_left_out_and_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Of a driver on which no kernels ran here; what was found is kept."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("TRITON_SPIRV_SELF_TEST", raising=False)
    asked: list[dict[str, str]] = []

    def run(_: Any, groups: list[str], environment: dict[str, str]) -> dict[str, str]:
        asked.append(environment)
        assert groups == list(trust.LEFT_OUT)
        return {"float16": "add float16: is wrong", "matrices": "it ends the process"}

    monkeypatch.setattr(trust, "run", run)
    with caplog.at_level(logging.WARNING):
        first = trust.trusted(_device("mesa_radv"))
    assert not first.has("float16") and not first.has("matrices") and first.has("float32_atomic_add")
    assert len(caplog.records) == 2 and "triton-spirv report" in caplog.text
    assert trust.trusted(_device("mesa_radv")) == first
    assert [one["TRITON_SPIRV_SELF_TEST"] for one in asked] == ["0"]
    # Another version of the driver is another one.
    trust.trusted(replace(_device("mesa_radv"), driver_version="1.2.4"))
    assert len(asked) == 2
    for driver in RAN_HERE:
        assert trust.trusted(_device(driver)).has("float16")
    assert len(asked) == 2


def test_a_device_without_right_sums_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("TRITON_SPIRV_SELF_TEST", raising=False)
    monkeypatch.setattr(trust, "run", lambda *_: {"subgroups": "sums float32 0 is wrong"})
    with pytest.raises(
        DeviceUnavailable, match="self-test .* failed: sums float32 0 is wrong.*TRITON_SPIRV_SELF_TEST=0"
    ):
        trust.trusted(_device("mesa_radv"))
    monkeypatch.setenv("TRITON_SPIRV_SELF_TEST", "0")
    assert trust.trusted(_device("mesa_radv")) == _device("mesa_radv").capabilities


def test_wrong_values_are_seen() -> None:
    """A kernel that gives other values, writes nothing, or writes behind its result, is wrong."""
    values = np.arange(8, dtype=np.float32)
    x, zeros = from_numpy(np.arange(16, dtype=np.float32)), from_numpy(np.zeros(16, np.float32))

    def measured(first: Any, elements: int, expected: Any = values) -> known_results.Result:
        def launch(out: Any) -> None:
            known_results.add[(1,)](x, zeros, out, elements, BLOCK=16)

        return known_results._measured(launch, first, expected, 1e-6)

    assert measured(values * 0, 8).right
    assert not measured(values * 0, 8, values + 1).right
    assert not measured(values * np.nan, 7).right
    assert not measured(values * 0, 9).right


def test_slow_matrix_units_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = current()
    able = replace(opened.capabilities, features=opened.capabilities.features | {"matrices"})
    monkeypatch.setattr(opened, "capabilities", able)
    monkeypatch.setattr(self_test, "times_of_products", lambda: (0.002, 0.001))
    assert [*self_test.faults_of("matrices", [])] == ["a product takes 2 ms on matrix units and 1 ms without"]
    monkeypatch.setattr(self_test, "times_of_products", lambda: (0.001, 0.001))
    assert [*self_test.faults_of("matrices", [])] == []


def test_another_program_on_the_device_makes_no_product_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """It used the device while the first round ran, and again in the last one."""
    took = iter([0.009, 0.002, 0.001, 0.002, 0.001, 0.008])
    monkeypatch.setattr(known_results, "_product", lambda *_: known_results.Result(0, next(took)))
    assert known_results.times_of_products() == (0.001, 0.002)
    assert next(took, None) is None


def test_this_device_passes(tmp_path: Path) -> None:
    """As a first use of a new driver: the child finds nothing, and kernels run."""
    program = (
        "import logging; logging.basicConfig(level=logging.WARNING)\n"
        "from triton.backends.spirv.runtime import current, capabilities_of\n"
        "device = current().device\n"
        "print(capabilities_of(device).features == device.capabilities.features)\n"
    )
    environment = {**os.environ, "TRITON_SPIRV_SELF_TEST": "1", "TRITON_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0 and done.stdout == "True\n", done.stderr
    assert "self-test" not in done.stderr
    (record,) = (tmp_path / "spirv-pipelines").glob("*.self-test.json")
    assert record.read_text() == "[]"
