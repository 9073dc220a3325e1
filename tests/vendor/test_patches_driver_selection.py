"""The driver selection as triton itself uses it: `triton.runtime.driver.active` in the patched tree."""

from __future__ import annotations

from pathlib import Path

from patched_tree import ROOT, run_ok

PLUGINS = ROOT / "examples" / "plugins"

# `registered` is the example of a backend registered at run time; its classes serve as stand-ins here.
PRELUDE = """
import logging, os, sys
import triton
from triton.backends import Backend, backends
from triton.runtime.driver import DriverConfig
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


def run(code: str, tmp_path: Path) -> str:
    return run_ok(PRELUDE + code, tmp_path / "cache", path=(PLUGINS,))


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
