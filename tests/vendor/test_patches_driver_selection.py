"""The driver selection as triton itself uses it: `triton.runtime.driver.active` in the patched tree."""

from __future__ import annotations

from pathlib import Path

import pytest
from patched_tree import ROOT, run_ok

PLUGINS = ROOT / "examples" / "plugins"

# `registered` is the example of a backend registered at run time; its classes serve as stand-ins here.
PRELUDE = """
import logging, os, sys
import triton
from triton.backends import Backend, backends
from triton.runtime.driver import DriverConfig, _create_driver
from registered import OpListBackend, OpListDriver

def backend(name, active, **members):
    driver = type(name + "Driver", (OpListDriver,), {"is_active": classmethod(lambda cls: active), **members})
    return Backend(OpListBackend, driver)

def message(function):
    try:
        function()
    except RuntimeError as error:
        return str(error)
    raise AssertionError("no error")

backends.clear()
"""


def run(code: str, tmp_path: Path, **env: str) -> str:
    return run_ok(PRELUDE + code, tmp_path / "cache", env=env, path=(PLUGINS,))


def test_the_gpus_own_driver_wins(tmp_path: Path) -> None:
    output = run(
        """
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(name)s %(message)s")
backends.update(nvidia=backend("nvidia", True), spirv=backend("spirv", True))
print(type(triton.runtime.driver.active).__name__)
print(type(DriverConfig().active).__name__)
os.environ["TRITON_SPIRV_BACKEND"] = "1"
print(type(DriverConfig().active).__name__)
del os.environ["TRITON_SPIRV_BACKEND"]
os.environ["TRITON_DEFAULT_BACKEND"] = "spirv"
print(type(DriverConfig().active).__name__)
os.environ["TRITON_DEFAULT_BACKEND"] = "nvidia"
print(type(DriverConfig().active).__name__)
""",
        tmp_path,
    )
    assert output.splitlines() == [
        "triton.runtime.driver_selection the SPIR-V backend steps aside for nvidiaDriver; "
        "TRITON_SPIRV_BACKEND=1 selects it",
        *["nvidiaDriver"] * 2,
        *["spirvDriver"] * 2,
        "nvidiaDriver",
    ]


def test_by_default_stepping_aside_prints_nothing(tmp_path: Path) -> None:
    output = run(
        """
sys.stderr = sys.stdout
backends.update(nvidia=backend("nvidia", True), spirv=backend("spirv", True))
print(type(triton.runtime.driver.active).__name__)
""",
        tmp_path,
    )
    assert output == "nvidiaDriver\n"


@pytest.mark.parametrize("active", [(), ("nvidia",), ("amd", "nvidia")], ids=["none", "one", "two"])
@pytest.mark.parametrize("default", [None, "nvidia", "nobody"])
def test_without_spirv_the_outcome_is_upstreams(tmp_path: Path, active: tuple[str, ...], default: str | None) -> None:
    env = {} if default is None else {"TRITON_DEFAULT_BACKEND": default}
    output = run(
        f"""
backends.update((name, backend(name, name in {active})) for name in ("amd", "nvidia"))

def outcome(function):
    try:
        return type(function()).__name__
    except RuntimeError as error:
        return str(error)

ours, upstreams = outcome(lambda: DriverConfig().active), outcome(_create_driver)
assert ours == upstreams, (ours, upstreams)
print(ours)
""",
        tmp_path,
        **env,
    )
    expected = {
        None: {0: "0 active drivers", 1: "nvidiaDriver", 2: "2 active drivers"}[len(active)],
        "nvidia": "nvidiaDriver" if active else "Backend device 'nvidia' is not active.",
        "nobody": "Unknown backend device 'nobody'",
    }[default]
    assert output.startswith(expected)


def test_no_active_driver(tmp_path: Path) -> None:
    output = run(
        """
tell = staticmethod(lambda: "no Vulkan device was found")
backends.update(nvidia=backend("nvidia", False), spirv=backend("spirv", False, unavailable_reason=tell))
print(message(lambda: triton.runtime.driver.active))
# A failed choice is not kept: a backend that is there later is found.
backends["spirv"] = backend("spirv", True)
print(type(triton.runtime.driver.active).__name__)
""",
        tmp_path,
    )
    lines = output.splitlines()
    assert lines[0].startswith("0 active drivers ([]). There should only be one.")
    assert lines[2] == "  spirv: no Vulkan device was found"
    assert lines[3].startswith("TRITON_SPIRV_COMPILE_ONLY=1 compiles kernels without a device")
    assert lines[-1] == "spirvDriver"
