"""triton_spirv.hpp in each of its forms, on devices that are played: drivers, features and limits are checked."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from command import triton_spirv
from vendor_support import ROOT

from backend.ahead_of_time import cpp_tables
from backend.capabilities import profiles
from backend.driver_quirks import DRIVER_IDS

INCLUDE = ROOT / "backend/include"
FAKE = Path(__file__).parent / "vulkan_app/fake.cpp"
STRICT = ["-std=c++17", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-fsanitize=undefined", "-fno-sanitize-recover"]
#: Name → the flags of that form. The last is what an NDK would be given: no exceptions, no RTTI, no files.
FORMS = {
    "exceptions": [],
    "results": ["-DTRITON_SPIRV_NO_EXCEPTIONS", "-fno-exceptions"],
    "android": [
        "-DTRITON_SPIRV_NO_EXCEPTIONS",
        "-DTRITON_SPIRV_NO_FILES",
        "-fno-exceptions",
        "-fno-rtti",
        "-fPIE",
        "-fvisibility=hidden",
    ],
}
KERNELS = """
import triton
import triton.language as tl

@triton.jit
def add(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)

@triton.jit
def product(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    a = tl.load(x + at)
    tl.store(out + at, tl.dot(a, a))
"""
OF_DRIVER = {name: number for number, name in DRIVER_IDS.items()}
VULKAN_PROFILES = sorted(name for name, profile in profiles().items() if not profile.capabilities.processor)


@pytest.fixture(scope="module", params=FORMS)
def fake(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fake") / "fake"
    command = ["c++", *STRICT, *FORMS[request.param], f"-I{INCLUDE}", str(FAKE), "-o", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kernels") / "kernels.py"
    path.write_text(KERNELS)
    return path


def module(kernels: Path, function: str, signature: str, target: str) -> Path:
    path = kernels.parent / f"{function}-{target}-{signature.split(',')[0][1:]}.spv"
    if not path.exists():
        done = triton_spirv("compile", f"{kernels}:{function}", "-s", signature, "-t", target, "-o", path)
        assert done.returncode == 0, done.stderr
    return path


def run(fake: Path, spirv: Path, driver: int, lacking: str = "", y: int = 1) -> subprocess.CompletedProcess[str]:
    command = [str(fake), str(spirv), str(spirv.with_suffix(".json")), str(driver), lacking, str(y)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})


def test_the_tables_are_those_of_python() -> None:
    assert cpp_tables.PATH.read_text() == cpp_tables.text(), "run python -m backend.ahead_of_time.cpp_tables"


@pytest.mark.parametrize("profile", VULKAN_PROFILES)
def test_each_profile_s_driver_is_known(fake: Path, kernels: Path, profile: str) -> None:
    spirv = module(kernels, "add", "*fp32, *fp32, i32, 64", profile)
    driver = profiles()[profile].capabilities.driver
    own = OF_DRIVER.get(driver, OF_DRIVER["mesa_radv"])  # what is generic runs on any GPU
    done = run(fake, spirv, own)
    assert (done.returncode, done.stdout) == (0, "20 bytes, grid 1 1 1\n"), done.stderr
    other = run(fake, spirv, OF_DRIVER["mesa_llvmpipe" if driver != "mesa_llvmpipe" else "mesa_nvk"])
    assert other.returncode == 1
    assert f"it was compiled for the driver {driver}, not mesa_" in other.stderr


def test_a_driver_of_no_name(fake: Path, kernels: Path) -> None:
    spirv = module(kernels, "add", "*fp32, *fp32, i32, 64", "nvk-ampere")
    assert "for the driver mesa_nvk, not driver 999" in run(fake, spirv, 999).stderr


@pytest.mark.parametrize(
    ("signature", "lacking", "message"),
    [
        ("*fp64, *fp64, i32, 64", "shaderFloat64", "it needs float64 (shaderFloat64), which the device lacks"),
        ("*fp16, *fp16, i32, 64", "shaderFloat16", "it needs float16 (shaderFloat16), which the device lacks"),
        ("*i8, *i8, i32, 64", "storageBuffer8BitAccess", "it needs storage8 (storageBuffer8BitAccess), which the"),
        ("*fp32, *fp32, i32, 64", "vulkanMemoryModel", "every kernel needs vulkanMemoryModel"),
    ],
)
def test_a_feature_that_the_device_lacks(fake: Path, kernels: Path, signature: str, lacking: str, message: str) -> None:
    spirv = module(kernels, "add", signature, "nvidia-hopper")
    driver = OF_DRIVER["nvidia_proprietary"]
    assert run(fake, spirv, driver).returncode == 0
    done = run(fake, spirv, driver, lacking)
    assert done.returncode == 1
    assert message in done.stderr


def test_matrices_that_nobody_measured_are_refused(fake: Path, kernels: Path) -> None:
    spirv = module(kernels, "product", "*fp16, *fp32, 64", "nvidia-hopper")
    assert "matrices" in json.loads(spirv.with_suffix(".json").read_text())["required_features"]
    done = run(fake, spirv, OF_DRIVER["nvidia_proprietary"])
    assert done.returncode == 1
    assert "set Options::trust_matrices" in done.stderr


def test_a_grid_past_the_device_s_limit(fake: Path, kernels: Path) -> None:
    spirv = module(kernels, "add", "*fp32, *fp32, i32, 64", "generic")
    assert run(fake, spirv, OF_DRIVER["mesa_nvk"], y=65535).stdout == "20 bytes, grid 1 65535 1\n"
    done = run(fake, spirv, OF_DRIVER["mesa_nvk"], y=70000)
    assert (done.returncode, done.stdout) == (1, "")
    assert "cannot have a grid of 70000 on axis 1: the device runs at most 65535" in done.stderr


def test_without_a_loader(fake: Path, kernels: Path) -> None:
    spirv = module(kernels, "add", "*fp32, *fp32, i32, 64", "generic")
    done = run(fake, spirv, OF_DRIVER["mesa_nvk"], y=0)
    assert done.returncode == 1
    assert "is missing: set Options::functions to Functions::load(" in done.stderr


@pytest.mark.parametrize("form", FORMS)
def test_no_form_needs_what_it_says_it_does_without(form: str, tmp_path: Path) -> None:
    source = tmp_path / "one.cpp"
    source.write_text("#include <triton_spirv.hpp>\nint main() { return triton_spirv::Options().trust_matrices; }\n")
    command = ["c++", "-std=c++17", *FORMS[form], "-DVK_NO_PROTOTYPES", f"-I{INCLUDE}", "-M", str(source)]
    files = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert ("/fstream" in files) == (form != "android")


#: What cl.exe warns of at /W4, as far as GCC and clang know it: narrowing (C4242, C4244, C4245, C4267), signs (C4018,
#: C4389), hidden names (C4456 to C4459), parameters and functions that are not used (C4100, C4505), variables that may
#: not be set (C4701), a missing return (C4715).
AS_MSVC = ["-Wconversion", "-Wsign-conversion", "-Wshadow", "-Wuninitialized", "-Werror"]
_MINGW = "x86_64-w64-mingw32-g++-posix"
#: clang in the form that takes cl.exe's options, with mingw-w64's headers: Microsoft's come with Visual Studio alone.
_CLANG_CL = next((name for name in ("clang-cl", *(f"clang-cl-{n}" for n in range(14, 23))) if shutil.which(name)), "")


@pytest.mark.parametrize("form", ["exceptions", "results"])
@pytest.mark.parametrize("compiler", ["c++", *[_MINGW] * bool(shutil.which(_MINGW)), *[_CLANG_CL] * bool(_CLANG_CL)])
def test_msvc_s_warnings(compiler: str, form: str, tmp_path: Path) -> None:
    shutil.copytree("/usr/include/vulkan", tmp_path / "vulkan")
    shutil.copytree("/usr/include/vk_video", tmp_path / "vk_video")
    flags = [*AS_MSVC, f"-I{INCLUDE}", *(["-DTRITON_SPIRV_NO_EXCEPTIONS"] if form == "results" else [])]
    if compiler == _CLANG_CL:
        flags += ["--target=x86_64-w64-windows-gnu", "/W4", "/EHsc", "/Zs", "-Wno-unused-command-line-argument"]
        flags += ["/clang:-std=c++17", f"/clang:-isystem{tmp_path}", "--"]  # a path would be an option
    else:
        flags += ["-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-isystem", str(tmp_path)]
    done = subprocess.run([compiler, *flags, FAKE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
