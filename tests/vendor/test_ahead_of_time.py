"""Kernels compiled here, loaded and launched by the plugin-only wheel where NumPy is installed and Triton is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from triton.backends.spirv.cpu.host import level_of
from triton.backends.spirv.runtime.native_module import native
from vendor_support import ROOT, Venv

from tools.project import Project

HERE = Path(__file__).parent
COMMAND = [sys.executable, "-m", "triton.backends.spirv.cli"]


@pytest.fixture(scope="module")
def without_triton(venv: Venv, plugin_wheel: Path) -> Venv:
    """An environment with NumPy, the runtime and what it needs."""
    venv.pip("install", "numpy", *Project(ROOT).settings()["dependencies"])
    venv.pip("install", "--no-deps", str(plugin_wheel))
    return venv


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the kernels were compiled to, for the device that is present."""
    folder = tmp_path_factory.mktemp("modules")
    for kernel, signature in (("softmax", "*fp32, *fp32, i32, 512"), ("guarded", "*i32, i32")):
        subprocess.run(
            [
                *COMMAND,
                "compile",
                f"{HERE / 'ahead_of_time_kernels.py'}:{kernel}",
                "--signature",
                signature,
                "--debug",
                "-o",
                str(folder / f"{kernel}.spv"),
            ],
            check=True,
        )
    return folder


def test_machine_code_runs_without_triton_and_without_vulkan(without_triton: Venv, tmp_path: Path) -> None:
    kernels = HERE / "ahead_of_time_kernels.py"
    target = f"cpu-{level_of(native().processor_level())[0]}"
    for kernel, signature in (("softmax", "*fp32, *fp32, i32, 512"), ("guarded", "*i32, i32")):
        words = ["compile", f"{kernels}:{kernel}", "-s", signature, "--debug", "-t", target]
        subprocess.run([*COMMAND, *words, "-o", str(tmp_path / f"{kernel}.spv")], check=True)
    done = without_triton.run(
        HERE / "ahead_of_time_probe.py", str(tmp_path), "without vulkan", TRITON_SPIRV_DEVICE="cpu"
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["triton"], found["file"], found["torch"]) == (False, None, False)
    assert max(found["errors"]) < 1e-6
    assert found["few"] == list(range(8))
    assert "kernel 'guarded': assertion failed: past the end" in found["assertion"]
    # Of SPIR-V alone, Triton would make the code.
    (tmp_path / "softmax.o").unlink()
    done = without_triton.run(
        HERE / "ahead_of_time_probe.py", str(tmp_path), "without vulkan", TRITON_SPIRV_DEVICE="cpu"
    )
    assert done.returncode == 1
    assert "Triton, which makes machine code of its SPIR-V, is not installed" in done.stderr
    assert f"compile it with --target {target}, and take the .o that this writes along" in done.stderr


def test_modules_run_without_triton(without_triton: Venv, modules: Path) -> None:
    done = without_triton.run(HERE / "ahead_of_time_probe.py", str(modules))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["triton"], found["file"], found["torch"]) == (False, None, False)
    assert found["runtime"] == "triton_spirv.runtime"
    assert max(found["errors"]) < 1e-6
    assert found["few"] == list(range(8))
    assert "kernel 'guarded': assertion failed: past the end" in found["assertion"]


def _command(venv: Venv, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("TRITON_", "PYTHON"))}
    return subprocess.run(
        [str(venv.folder / "bin/triton-spirv"), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_works_without_triton(without_triton: Venv) -> None:
    info = _command(without_triton, "info", "--json")
    assert info.returncode == 0, info.stderr
    assert json.loads(info.stdout)["used"]["index"] == 0
    profiles = _command(without_triton, "profiles")
    assert profiles.returncode == 0 and "amd-rdna3" in profiles.stdout


def test_compiling_says_that_it_needs_triton(without_triton: Venv, tmp_path: Path) -> None:
    module = tmp_path / "softmax.spv"
    done = _command(
        without_triton,
        "compile",
        f"{HERE / 'ahead_of_time_kernels.py'}:softmax",
        "-s",
        "*fp32,*fp32,i32,512",
        "-t",
        "generic",
        "-o",
        str(module),
    )
    assert done.returncode == 1
    assert done.stderr.startswith("triton-spirv compile: error: compiling needs Triton, which is not installed")
    assert not list(tmp_path.iterdir())
