"""What a newer Mesa's CPU driver makes of kernels: NEWER_MESA names its folder (newer_mesa.py)."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from triton.backends.spirv.inspection.offline import NEWER_MESA, NoMesa, newer_interpreter

from .newer_mesa import environment, interpreter

APP = Path(__file__).parents[2] / "examples/vulkan_app"


def test_a_folder_without_mesa_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoMesa, match="does not hold the Mesa of a newer Debian"):
        interpreter(tmp_path, tmp_path)


def assert_tests_pass(program: str, environment: Mapping[str, str], *tests: str) -> None:
    """pytest, run by the Python ``program``, passes all ``tests`` (its arguments) and skips none."""
    done = subprocess.run(
        [program, "-m", "pytest", "-n0", "-q", "-p", "no:cacheprovider", *tests],
        env=environment,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stdout.strip().splitlines()[-1:]
    assert done.returncode == 0 and "skipped" not in "".join(last), done.stdout[-4000:] + done.stderr[-2000:]


@pytest.fixture
def folder() -> Path:
    """The newer Mesa's."""
    named = os.environ.get(NEWER_MESA, "")
    if not named:
        pytest.skip(f"{NEWER_MESA} names no folder with a newer Mesa")
    return Path(named).resolve()


def test_dots_of_fragments(folder: Path, tmp_path: Path) -> None:
    own_matrices = "[1] or 1- or -1]"  # the ids of tests on the device's own
    program, variables = str(interpreter(folder, tmp_path)), environment(folder, tmp_path)
    assert_tests_pass(program, variables, "tests/device/test_dot_fragments.py", "-k", own_matrices)


def test_what_is_started_there_has_the_same_libraries(folder: Path, tmp_path: Path) -> None:
    """A child process, and a command of the environment, open the newer driver too."""
    child = (
        "import subprocess, sys; subprocess.run(['triton-spirv', 'info']); subprocess.run([sys.executable, '-c', {!r}])"
    )
    opened = "from triton.backends.spirv.runtime.context import current; print(current().device.driver_version)"
    program = str(interpreter(folder, tmp_path))
    done = subprocess.run(
        [program, "-c", child.format(opened)],
        env=environment(folder, tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    version = done.stdout.splitlines()[-1]
    assert version.startswith("Mesa 2") and f"driver mesa_llvmpipe {version}" in done.stdout
    plain = subprocess.run([sys.executable, "-c", opened], capture_output=True, text=True, check=True)
    assert version != plain.stdout.strip(), "the newer Mesa is the one that is installed"


def test_one_bundle_serves_a_program_on_both_drivers(folder: Path, tmp_path: Path) -> None:
    """examples/vulkan_app, built once, with kernels for either version of the driver and none for any other."""
    bundle, built = tmp_path / "kernels.tsb", tmp_path / "app"
    cli = [sys.executable, "-m", "triton.backends.spirv.cli"]
    targets = [word for name in ("lavapipe", "lavapipe-26") for word in ("--target", name)]
    signature = "*fp32, *fp32, *fp32, i32, fp32, {}"
    request = ["compile", f"{APP}/kernel.py:add", "--bundle", str(bundle), "--signature"]
    include = subprocess.run([*cli, "include"], capture_output=True, text=True, check=True).stdout.strip()
    for command in (
        [*cli, *request, signature.format(64), *targets],
        [*cli, *request, signature.format(128), "--name", "add_128", *targets],
        [*cli, "stubs", str(bundle)],
        ["cmake", "-S", APP, "-B", built, f"-DTRITON_SPIRV_INCLUDE={include}", f"-DTRITON_SPIRV_KERNELS={tmp_path}"],
        ["cmake", "--build", built],
    ):
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    loader, _, _, *libraries, _ = newer_interpreter(folder, "libvulkan_lvp.so")
    for words, variables in (([], dict(os.environ)), ([loader, *libraries], environment(folder, tmp_path))):
        command = [*words, built / "vulkan_app", bundle]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=300, check=False)
        assert (done.returncode, done.stdout) == (0, "add: 1000 elements, 0 wrong\n"), done.stderr
