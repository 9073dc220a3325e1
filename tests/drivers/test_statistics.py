"""What drivers say of kernels that they compiled, and what becomes of it where they say nothing."""

import sys
from pathlib import Path
from typing import Any

import pytest
from triton.backends.spirv import cli
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.inspection import compilers
from triton.backends.spirv.inspection.compilers import Answer, asked
from triton.backends.spirv.inspection.offline import NoMesa, Process, processes

from benchmarks.amd_shaders import COMPILER
from benchmarks.example_kernels import KERNELS
from benchmarks.mesa_shaders import shaders

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The softmax of the examples for RDNA 3."""
    path = tmp_path_factory.mktemp("module") / "softmax.spv"
    signature = next(signature for example, _, signature in KERNELS if example == "fused_softmax")
    request = [f"{EXAMPLES}/fused_softmax.py:softmax_kernel", "-s", signature, "-t", "amd-rdna3", "-o", str(path)]
    assert cli.main(["compile", *request]) == 0
    return path


@pytest.fixture(scope="module")
def answer(module: Path) -> Answer:
    try:
        next(processes("mesa_radv", module.parent))
    except NoMesa as error:
        pytest.skip(str(error))
    return asked(module.read_bytes(), PROFILES["amd-rdna3"])


def test_registers_and_spills_are_those_that_the_driver_prints(module: Path, answer: Answer) -> None:
    (printed,) = shaders([module], COMPILER)["shaders"]
    assert (answer.registers, answer.spills) == (printed["vgprs"], printed["spilled"] + printed["scalars"])
    assert answer.registers and "RADV" in answer.device and not answer.why
    figures = {row.name: row.value for row in answer.executables[0].statistics}
    assert figures["LDS size"] == printed["shared"] and figures["Instructions"] == printed["instructions"]


def test_the_drivers_own_code(answer: Answer) -> None:
    (executable,) = answer.executables
    assert executable.subgroup_size == 32
    texts = {one.name: one.text for one in executable.representations}
    assert "global_load_b32" in texts["Assembly"] and "\0" not in texts["Assembly"]
    assert texts.keys() == {"NIR Shader(s)", "ACO IR", "Assembly"}


@pytest.mark.parametrize(
    ("profile", "why"),
    [
        ("generic", "this machine has no device of the driver generic"),
        ("intel-xe", "intel_open_source_mesa; Mesa compiles without one, but INTEL_NOOP_DRM_SHIM names no"),
    ],
)
def test_a_driver_that_is_not_there(monkeypatch: pytest.MonkeyPatch, module: Path, profile: str, why: str) -> None:
    monkeypatch.delenv("INTEL_NOOP_DRM_SHIM", raising=False)
    monkeypatch.setattr(compilers, "devices", tuple)
    known = asked(module.read_bytes(), PROFILES[profile])
    assert why in known.why and (known.device, known.executables) == ("", ())


def test_a_driver_that_fails_ends_no_more_than_its_process(
    monkeypatch: pytest.MonkeyPatch, module: Path, tmp_path: Path
) -> None:
    def nothing() -> list[Any]:
        return []

    monkeypatch.setattr(compilers, "devices", nothing)
    nowhere = Process((sys.executable,), {"VK_DRIVER_FILES": str(tmp_path / "none.json")})
    monkeypatch.setattr(compilers, "processes", lambda driver, folder: iter([nowhere]))
    known = asked(module.read_bytes(), PROFILES["amd-rdna3"])
    assert "the driver mesa_radv failed: " in known.why and not known.executables
