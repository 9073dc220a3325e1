"""triton_spirv.hpp: a plain Vulkan program launches a kernel that was compiled ahead of time."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command import triton_spirv
from triton.backends.spirv.runtime.compiled.kernel_file import sealed
from vendor_support import ROOT

EXAMPLE = ROOT / "examples/vulkan_app"
INCLUDE = ROOT / "backend/include"

pytestmark = pytest.mark.only_on("Vulkan", "a program in C++ runs kernels that were compiled for its Vulkan device")


def output(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)


SIGNATURE = "*fp32:16, *fp32:16, *fp32:16, i32:16, fp32, 64"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's kernel for several devices, the one that is there among them."""
    path = tmp_path_factory.mktemp("bundle") / "kernels.tsb"
    targets = [word for name in ("nvk-ampere", "generic", "device", "lavapipe-26") for word in ("--target", name)]
    kernel = f"{EXAMPLE}/kernel.py:add"
    for command in (
        ["compile", kernel, "--signature", SIGNATURE, "--bundle", path, *targets],
        ["compile", kernel, "--signature", SIGNATURE.replace("64", "128"), "--bundle", path, "--name", "add_128"],
        ["stubs", path],
    ):
        done = triton_spirv(*command)
        assert done.returncode == 0, done.stderr
    return path


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory, bundle: Path) -> Path:
    """The example, built as its page says."""
    folder = tmp_path_factory.mktemp("vulkan-app")
    where = [f"-DTRITON_SPIRV_INCLUDE={INCLUDE}", f"-DTRITON_SPIRV_KERNELS={bundle.parent}"]
    for command in (
        ["cmake", "-S", EXAMPLE, "-B", folder, *where, "-DCMAKE_CXX_FLAGS=-Werror"],
        ["cmake", "--build", folder],
    ):
        done = output(*command)  # type: ignore[arg-type]
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "vulkan_app"


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's kernel, compiled for the device that is there."""
    path = tmp_path_factory.mktemp("module") / "add.spv"
    done = triton_spirv("compile", f"{EXAMPLE}/kernel.py:add", "--signature", SIGNATURE, "--output", path)
    assert done.returncode == 0, done.stderr
    return path


def copy_of(module: Path, folder: Path, **entries: Any) -> Path:
    """The module with entries of its JSON changed."""
    shutil.copy(module, folder)
    abi = json.loads(module.with_suffix(".json").read_text()) | entries
    (folder / "add.json").write_text(json.dumps(sealed(abi)))
    return folder / module.name


@pytest.mark.parametrize("file", ["module", "bundle"])
def test_the_example_runs(app: Path, request: pytest.FixtureRequest, file: str) -> None:
    """It takes what fits out of a bundle."""
    done = output(app, request.getfixturevalue(file), VK_INSTANCE_LAYERS="VK_LAYER_KHRONOS_validation")
    assert done.returncode == 0, done.stdout + done.stderr
    # The validation layer writes to standard output.
    assert done.stdout == "add: 1008 elements, 0 wrong\n"


def test_the_python_stub_launches_what_fits(bundle: Path) -> None:
    code = """
import numpy as np
import kernels
x, out = np.arange(1008, dtype=np.float32), np.zeros(1008, np.float32)
for function, block in ((kernels.add, 64), (kernels.add_128, 128)):
    out[:] = 0
    function(lambda meta: (-(-meta["n"] // meta["BLOCK"]),), x, x, out, 1008, 0.5)
    assert (out == 1.5 * x).all()
print(kernels.add.__annotations__["n"])
"""
    done = output(sys.executable, "-c", code, PYTHONPATH=str(bundle.parent))
    assert (done.returncode, done.stdout) == (0, "int\n"), done.stderr
    checked = output(sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", bundle.parent / "kernels.py")
    assert checked.returncode == 0, checked.stdout


def test_a_bundle_in_which_nothing_fits(app: Path, tmp_path: Path) -> None:
    path = tmp_path / "kernels.tsb"
    targets = ("--target", "nvk-ampere", "--target", "qualcomm-adreno7", "--target", "apple-m1")
    command = ["compile", f"{EXAMPLE}/kernel.py:add", "--signature", SIGNATURE, "--bundle", path, *targets]
    assert triton_spirv(*command).returncode == 0
    done = output(app, path)
    assert done.returncode == 1
    assert "no variant of kernel 'add' in the bundle runs on " in done.stderr
    for driver in ("mesa_nvk", "mesa_turnip", "mesa_honeykrisp"):
        assert f"; for {driver}: it was compiled for the driver {driver}, not mesa_llvmpipe" in done.stderr
    code = f"from triton.backends.spirv.runtime import load_bundle; load_bundle({str(path)!r})['add']"
    done = output(sys.executable, "-c", code)
    assert "IncompatibleModule: no variant of kernel 'add' in " in done.stderr and "for mesa_turnip: " in done.stderr


def test_damaged_bundles(app: Path, bundle: Path, tmp_path: Path) -> None:
    data = bundle.read_bytes()
    path = tmp_path / "kernels.tsb"
    cases = [(b"", "no bundle"), (b"x" * 100, "no bundle"), (data[:200], "damaged"), (data[:-4], "damaged|cut off")]
    cases += [(data[:8] + b"\2" + data[9:], "has version 2"), (data[:-4] + b"\0\0\0\1", "another module|damaged")]
    cases += [(data.replace(b'"offset"', b'"offzet"', 1), "damaged")]
    for text, message in cases:
        path.write_bytes(text)
        done = output(app, path)
        # What is at the end belongs to one variant alone, which need not be the one that fits.
        assert done.returncode == 1 or text[:-4] == data[:-4], message
        assert done.returncode == 0 or re.search(message, done.stderr), done.stderr
        code = f"from triton.backends.spirv.runtime import load_bundle; load_bundle({str(path)!r})"
        done = output(sys.executable, "-c", code)
        assert re.search(f"IncompatibleModule: .*({message})", done.stderr), done.stderr


def test_what_a_bundle_refuses(tmp_path: Path) -> None:
    path = tmp_path / "kernels.tsb"
    kernel = f"{EXAMPLE}/kernel.py:add"

    def compiled(signature: str, target: str, *words: str) -> str:
        return triton_spirv("compile", kernel, "-s", signature, "-t", target, *words).stderr.strip()

    assert compiled(SIGNATURE, "generic", "--bundle", str(path)) == ""
    before = path.read_bytes()
    other = SIGNATURE.replace("i32", "i64")
    assert "take other arguments: " in compiled(other, "lavapipe", "--bundle", str(path))
    assert path.read_bytes() == before
    assert "a bundle's name ends in .tsb" in compiled(SIGNATURE, "generic", "--bundle", str(tmp_path / "x.spv"))
    assert "need --bundle" in compiled(SIGNATURE, "generic", "-t", "lavapipe", "-o", str(tmp_path / "x.spv"))


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"version": 1}, "version 1 of the ABI, this loader 2: take triton_spirv.hpp of the wheel that compiled it"),
        ({"format": "other"}, "does not describe a kernel of triton-spirv"),
        ({"sha256": "0" * 64}, "is not the module that the JSON beside it describes"),
        ({"subgroup_size": 4096}, "it needs subgroups of 4096; compile it with `triton-spirv compile --target device`"),
        ({"target": "vulkan1.3;driver=mesa_radv;x=1"}, "it was compiled for the driver mesa_radv, not "),
        ({"shared_bytes": 1 << 30}, "it takes 1073741824 bytes of shared memory"),
        ({"reports": [{"kind": "print"}]}, "which this loader does not serve: compile it without --debug"),
    ],
)
def test_what_does_not_suit_is_refused(
    app: Path, module: Path, tmp_path: Path, entries: dict[str, Any], message: str
) -> None:
    done = output(app, copy_of(module, tmp_path, **entries))
    assert done.returncode == 1
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_module_without_its_json(app: Path, module: Path, tmp_path: Path) -> None:
    shutil.copy(module, tmp_path)
    done = output(app, tmp_path / "add.spv")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"there is no file {tmp_path}/add.json" in done.stderr
