"""triton_spirv.hpp on the processor: C++ programs, without Vulkan, run machine code that was compiled ahead of time."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import triton_spirv
from triton.backends.spirv.cpu.host import level_of
from triton.backends.spirv.runtime.compiled.kernel_file import sealed
from triton.backends.spirv.runtime.native_module import native
from vendor_support import ROOT

EXAMPLE = ROOT / "examples/cpu_app"
INCLUDE = ROOT / "backend/include"
HERE = Path(__file__).parent / "cpu_app"
STRICT = ["-std=c++17", "-Wall", "-Wextra", "-Wshadow", "-Wpedantic", "-Werror", "-DTRITON_SPIRV_NO_VULKAN"]
#: Name → the flags of that form.
FORMS = {
    "exceptions": ["-fsanitize=undefined", "-fno-sanitize-recover"],
    "small": ["-DTRITON_SPIRV_NO_EXCEPTIONS", "-DTRITON_SPIRV_NO_FILES", "-fno-exceptions", "-fno-rtti"],
}
HOST = f"cpu-{level_of(native().processor_level())[0]}"
CROSS, QEMU = shutil.which("aarch64-linux-gnu-g++"), shutil.which("qemu-aarch64")


def has_llvmlite() -> bool:
    """Whether code for other architectures can be made here."""
    try:
        import llvmlite.binding  # noqa: F401
    except ImportError:
        return False
    return True


#: Where the tests run: a profile, and what runs its programs.
MACHINES = [
    HOST,
    pytest.param(
        "cpu-aarch64",
        marks=pytest.mark.skipif(
            not (CROSS and QEMU and has_llvmlite()) or HOST == "cpu-aarch64",
            reason="needs g++-aarch64-linux-gnu, qemu-user and llvmlite",
        ),
    ),
]


def output(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)


def succeed(*command: str | Path) -> None:
    done = output(*command)
    assert done.returncode == 0, done.stdout + done.stderr


def written(*words: str | Path) -> None:
    done = triton_spirv(*words)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cpu-app")


def runner(folder: Path, machine: str, form: str) -> list[str | Path]:
    """The command of the program that runs kernels."""
    path = folder / f"runner-{machine}-{form}"
    compiler, flags = (
        ("c++", FORMS[form])
        if machine == HOST
        else (str(CROSS), [*(flag for flag in FORMS[form] if "sanitize" not in flag), "-static"])
    )
    if not path.exists():
        succeed(compiler, *STRICT, *flags, "-O1", f"-I{INCLUDE}", HERE / "runner.cpp", "-pthread", "-o", path)
    return [path] if machine == HOST else [str(QEMU), path]


def module(folder: Path, machine: str, kernel: str, signature: str) -> Path:
    """The object of a kernel of kernels.py."""
    path = folder / f"{kernel}-{machine}-{abs(hash(signature))}.o"
    if not path.exists():
        written("compile", f"{HERE}/kernels.py:{kernel}", "-s", signature, "-t", machine, "-o", path)
        assert not path.with_suffix(".spv").exists()
    return path


def run(
    command: list[str | Path], path: Path, grid: tuple[int, int, int], *arguments: Any, threads: int = 0
) -> list[np.ndarray]:
    """The arrays among the arguments after a run."""
    words, files = [], []
    for number, argument in enumerate(arguments):
        if isinstance(argument, np.ndarray):
            file = path.with_name(f"{path.stem}-{number}.bin")
            file.write_bytes(argument.tobytes())
            files.append((file, argument))
            words.append(f"@{file}")
        else:
            words.append(f"{'i' if isinstance(argument, int) else 'd'}{argument}")
    done = output(*command, path, path.with_suffix(".json"), *map(str, grid), str(threads), *words)
    assert done.returncode == 0, done.stderr
    return [np.frombuffer(file.read_bytes(), array.dtype).reshape(array.shape) for file, array in files]


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("n", [1, 63, 100_003])
def test_elementwise(folder: Path, machine: str, form: str, n: int) -> None:
    path = module(folder, machine, "add", "*fp32, *fp32, *fp32, i32, fp32, 64")
    x, y, out = numbers(n), numbers(n, 1)[:, 0], np.full(n + 9, 7, np.float32)
    *_, found = run(runner(folder, machine, form), path, (-(-n // 64), 1, 1), x, y, out, n, 0.5)
    np.testing.assert_allclose(found[:n], x + np.float32(0.5) * y, rtol=1e-6, atol=1e-6)
    assert (found[n:] == 7).all()


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_reductions(folder: Path, machine: str, dtype: type) -> None:
    path = module(folder, machine, "softmax", f"*{'fp32' if dtype is np.float32 else 'fp16'}, *fp32, i32, 512")
    x, out = numbers(50, 301), np.zeros((50, 301), dtype)
    found, _ = run(runner(folder, machine, "exceptions"), path, (50, 1, 1), out, x, 301)
    expected = np.exp(x.astype(np.float64))
    expected /= expected.sum(axis=1, keepdims=True)
    assert np.abs(found - expected).max() < (1e-6 if dtype is np.float32 else 1e-4)


@pytest.mark.parametrize("machine", MACHINES)
def test_products(folder: Path, machine: str) -> None:
    path = module(folder, machine, "product", "*fp32, *fp32, *fp32, i32, i32, i32, 32, 64, 32")
    m, n, k = 101, 131, 67
    a, b, c = numbers(m, k), numbers(k, n), np.zeros((m, n), np.float32)
    *_, found = run(runner(folder, machine, "exceptions"), path, (4, 3, 1), a, b, c, m, n, k)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    assert np.abs(found - expected).max() < 1e-4


@pytest.mark.parametrize("machine", MACHINES)
def test_sorts(folder: Path, machine: str) -> None:
    path = module(folder, machine, "sort", "*i32, *i32, 128")
    x = np.random.default_rng(0).integers(-1000, 1000, (7, 128), dtype=np.int32)
    found, _ = run(runner(folder, machine, "exceptions"), path, (7, 1, 1), np.zeros_like(x), x)
    assert (found == np.sort(x, axis=1)).all()


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_a_program_may_wait_for_one_before_it(folder: Path, threads: int) -> None:
    path = module(folder, HOST, "chain", "*i32, *i32")
    counter, out = np.zeros(1, np.int32), np.zeros(3000, np.int32)
    counter, found = run(runner(folder, HOST, "small"), path, (3000, 1, 1), counter, out, threads=threads)
    assert counter[0] == 3000
    assert (found == np.arange(3000)).all()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_all_programs_run_once_with_any_number_of_threads(folder: Path, threads: int) -> None:
    path = module(folder, HOST, "count", "*i32, *i32, 64")
    programs, ids = np.zeros((30, 40, 50), np.int32), np.zeros((30, 40, 50), np.int32)
    found, numbered = run(runner(folder, HOST, "small"), path, (50, 40, 30), programs, ids, threads=threads)
    assert (found == 1).all()
    assert (numbered == np.arange(60_000).reshape(30, 40, 50)).all()


def edited(path: Path, **entries: Any) -> Path:
    """A copy with entries of `machine_code` in its JSON changed."""
    copy = path.with_name(f"edited-{path.name}")
    shutil.copy(path, copy)
    abi = json.loads(path.with_suffix(".json").read_text())
    abi["machine_code"] |= entries
    copy.with_suffix(".json").write_text(json.dumps(sealed(abi)))
    return copy


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"processor": "x86-64-v9"}, "its machine code is for x86-64-v9, and this processor is "),
        ({"processor": "riscv64"}, "its machine code is for riscv64, and this processor is "),
        ({"launch": 1}, "its machine code is called in version 1, this loader knows 2: take triton_spirv.hpp"),
        ({"sha256": "0" * 64}, "has machine code other than that which its JSON describes: compile it again"),
        ({"scratch_bytes": -1}, "the kernel's JSON is damaged: scratch_bytes is not a whole number"),
        ({"scratch_bytes": "1"}, "the kernel's JSON is damaged: scratch_bytes has the wrong type"),
    ],
)
def test_what_is_refused(folder: Path, form: str, entries: dict[str, Any], message: str) -> None:
    path = edited(module(folder, HOST, "add", "*fp32, *fp32, *fp32, i32, fp32, 64"), **entries)
    done = output(*runner(folder, HOST, form), path, path.with_suffix(".json"), "1", "1", "1", "1")
    assert done.returncode == 1
    assert message in done.stderr


def test_code_that_is_damaged_is_refused(folder: Path) -> None:
    path = module(folder, HOST, "add", "*fp32, *fp32, *fp32, i32, fp32, 64")
    for data in (b"", path.read_bytes()[:100], b"\x7fELF" + bytes(60)):
        copy = edited(path, sha256=hashlib.sha256(data).hexdigest())
        copy.write_bytes(data)
        done = output(*runner(folder, HOST, "small"), copy, copy.with_suffix(".json"), "1", "1", "1", "1")
        assert (done.returncode, "cannot be loaded: " in done.stderr) == (1, True), done.stderr


def test_a_kernel_for_a_gpu_is_refused(folder: Path) -> None:
    path = folder / "gpu.spv"
    kernel = f"{HERE}/kernels.py:add"
    written("compile", kernel, "-s", "*fp32, *fp32, *fp32, i32, fp32, 64", "-t", "nvk-ampere", "-o", path)
    done = output(*runner(folder, HOST, "small"), path, path.with_suffix(".json"), "1", "1", "1", "1")
    assert done.returncode == 1
    assert "it has no machine code: it was compiled for the driver mesa_nvk" in done.stderr


def test_the_example_is_built_and_falls_back_in_a_bundle(folder: Path) -> None:
    kernel, signature = f"{ROOT}/examples/vulkan_app/kernel.py:add", "*fp32, *fp32, *fp32, i32, fp32, 64"
    add, bundle, without = folder / "add.o", folder / "kernels.tsb", folder / "gpus.tsb"
    gpus = ["-t", "nvk-ampere", "-t", "generic"]
    written("compile", kernel, "-s", signature, "-t", HOST, "-o", add)
    written("compile", kernel, "-s", signature, *gpus, "-t", HOST, "--bundle", bundle)
    written("compile", kernel, "-s", signature, *gpus, "--bundle", without)
    succeed("cmake", "-S", EXAMPLE, "-B", folder / "build", f"-DTRITON_SPIRV_INCLUDE={INCLUDE}")
    succeed("cmake", "--build", folder / "build")
    app = folder / "build/cpu_app"
    for path in (add, bundle):
        done = output(app, path)
        assert (done.returncode, done.stdout) == (0, "1000 numbers are right\n"), done.stderr
    libraries = output("ldd", app).stdout
    assert "libc.so" in libraries and "vulkan" not in libraries
    done = output(app, without)
    assert done.returncode == 1
    assert "no variant of kernel 'add' in the bundle runs on this processor; for mesa_nvk: it has no" in done.stderr


def test_stubs_compile_with_and_without_vulkan(folder: Path) -> None:
    kernel, signature = f"{ROOT}/examples/vulkan_app/kernel.py:add", "*fp32, *fp32, *fp32, i32, fp32, 64"
    written("compile", kernel, "-s", signature, "-t", "generic", "-t", HOST, "--bundle", folder / "both.tsb")
    written("stubs", folder / "both.tsb")
    source = folder / "stubs.cpp"
    source.write_text("""
#include <both.hpp>
#include <cstdio>
int main(int, char **argv) {
  const both::AddOnCpu add(triton_spirv::Bundle::read(argv[1]));
  float x = 1, y = 2, out = 0;
  add.run({1, 1, 1}, triton_spirv::pointer(&x), triton_spirv::pointer(&y), triton_spirv::pointer(&out), 1, 3.0f);
  std::printf("%g %u\\n", static_cast<double>(out), add.constant("BLOCK"));
}
""")
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}", f"-I{folder}", source, "-o", folder / "stubs"]
    for words in (["-DTRITON_SPIRV_NO_VULKAN"], ["-DVK_NO_PROTOTYPES"]):
        succeed("c++", *flags, *words)
        assert output(folder / "stubs", folder / "both.tsb").stdout == "7 64\n"
