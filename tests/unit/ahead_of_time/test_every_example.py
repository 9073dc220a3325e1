"""Every kernel of every example compiles ahead of time for every profile that comes with the backend, and validates."""

import ast
import shutil
import subprocess
from pathlib import Path

import pytest
from triton.backends.spirv import cli
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.planning.workgroup import WARP, WARP_REGISTERS
from triton.backends.spirv.runtime.compiled.kernel_file import json_path, read_abi
from triton.backends.spirv.runtime.modules.validate import environment
from triton.backends.spirv.spirv.disassemble import disassemble

from benchmarks.example_kernels import KERNELS
from tests import uniform_barriers
from tests.unit.ahead_of_time import words

RECORDED = words.recorded()


def _kernels_of(path: Path) -> set[tuple[str, str]]:
    """The @triton.jit functions of an example that are kernels: those that return nothing."""
    functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
    return {
        (path.stem, node.name)
        for node in functions
        if any(ast.unparse(decorator).startswith("triton.jit") for decorator in node.decorator_list)
        and not any(isinstance(inner, ast.Return) and inner.value for inner in ast.walk(node))
    }


def test_no_kernel_is_left_out() -> None:
    there = {kernel for path in words.EXAMPLES.glob("*.py") for kernel in _kernels_of(path)}
    assert there == {(example, kernel) for example, kernel, _ in KERNELS}


def test_the_profiles_that_are_promised_are_there() -> None:
    assert {"generic", "lavapipe", "nvidia-hopper", "amd-rdna3", "intel-xe"} <= PROFILES.keys()


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(("example", "kernel", "signature"), KERNELS)
def test_compiles_and_validates(
    example: str,
    kernel: str,
    signature: str,
    profile: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(*words.FUSED)
    module = tmp_path / f"{kernel}.spv"
    with uniform_barriers.checked():
        status = cli.main(words.arguments(example, kernel, signature, profile, module))
    assert status == 0, capfd.readouterr().err
    tool = shutil.which("spirv-val")
    assert tool is not None, "apt-get install spirv-tools"
    command = [tool, "--target-env", environment(module.read_bytes()), str(module)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    abi = read_abi(module, module.read_bytes())
    done = subprocess.run(["spirv-dis", "--no-color", str(module)], capture_output=True, text=True, check=False)
    if "Invalid capability operand: 6022" not in checked.stderr or "matrices" not in abi.required_features:
        assert checked.returncode == 0, checked.stderr
        assert disassemble(module.read_bytes()) == done.stdout
    else:  # tools of 2023, which do not know cooperative matrices
        assert "OpCooperativeMatrixMulAddKHR" in disassemble(module.read_bytes())
    file = words.readable(kernel, profile)
    if file is not None:
        assert disassemble(module.read_bytes()) == file.read_text(encoding="utf-8")
    assert words.digest(module.read_bytes()) == RECORDED[words.key(example, kernel, signature, profile)], (
        "the words changed: where that is meant, python -m tests.unit.ahead_of_time.words records them"
    )
    capabilities = PROFILES[profile]
    assert json_path(module).is_file() and abi.kernel == kernel and abi.target == capabilities.arch()
    assert set(abi.required_features) <= capabilities.features
    assert abi.shared_bytes <= capabilities.shared_bytes
    assert abi.subgroup_size == capabilities.subgroup_size
    size, *others = abi.workgroup_size
    if capabilities.processor:  # the lanes of a workgroup are the elements of vectors, whatever num_warps is
        assert (size, *others) == (capabilities.subgroup_size, 1, 1)
        return
    # Four warps, of up to 32 lanes where subgroups have fewer, and more where lanes have few registers (workgroup.py).
    lanes = max(WARP * WARP_REGISTERS // capabilities.traits.lane_registers, capabilities.subgroup_size)
    assert others == [1, 1] and 4 * capabilities.subgroup_size <= size <= 4 * lanes
