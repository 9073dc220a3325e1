"""triton_spirv.hpp: a plain Vulkan program launches a kernel that was compiled ahead of time."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from command import triton_spirv
from vendor_support import ROOT

EXAMPLE = ROOT / "examples/vulkan_app"
INCLUDE = ROOT / "backend/include"
PROBE = Path(__file__).parent / "vulkan_app/probe.cpp"

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
    (folder / "add.json").write_text(json.dumps(abi))
    return folder / module.name


def test_the_example_runs(app: Path, module: Path) -> None:
    done = output(app, module, VK_INSTANCE_LAYERS="VK_LAYER_KHRONOS_validation")
    assert done.returncode == 0, done.stdout + done.stderr
    # The validation layer writes to standard output.
    assert done.stdout == "add: 1008 elements, 0 wrong\n"


def test_the_example_takes_what_fits_out_of_a_bundle(app: Path, bundle: Path) -> None:
    done = output(app, bundle, VK_INSTANCE_LAYERS="VK_LAYER_KHRONOS_validation")
    assert done.returncode == 0, done.stdout + done.stderr
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


# -- without a device ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("probe") / "probe"
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-fsanitize=undefined", "-fno-sanitize-recover"]
    done = output("c++", *flags, f"-I{INCLUDE}", PROBE, "-lvulkan", "-o", path)
    assert done.returncode == 0, done.stderr
    return path


def abi_of(*types: str, divisible_by: int = 1) -> dict[str, Any]:
    """The JSON of a kernel with those arguments."""
    sizes = {"i1": 1, "i8": 1, "u8": 1, "i16": 2, "fp16": 2, "bf16": 2, "i32": 4, "u32": 4, "fp32": 4}
    arguments, offset = [], 0
    for index, type_ in enumerate(types):
        size = sizes.get(type_, 8)
        offset = -(-offset // size) * size
        entry = {"name": f"a{index}", "type": type_, "offset": offset, "bytes": size, "written": False}
        arguments.append(entry | {"parameter": index, "role": None})
        offset += size
    return {
        "format": "triton-spirv-kernel",
        "version": 2,
        "kernel": "ké\U0001f600",
        "sha256": "0" * 64,
        "target": "vulkan1.3;driver=generic",
        "required_features": [],
        "subgroup_size": 8,
        "workgroup_size": [8, 1, 1],
        "shared_bytes": 0,
        "parameters": [{"name": f"a{i}", "type": t, "divisible_by": divisible_by} for i, t in enumerate(types)],
        "arguments": arguments,
        "block_bytes": -(-offset // 4) * 4,
        "indirect_arguments": False,
        "reports": [],
        "options": {"x": [1.5e-3, -0, None, True]},
    }


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "kernel.json"
    path.write_text(text)
    return path


def test_the_block_is_that_of_the_abi(probe: Path, tmp_path: Path) -> None:
    cases = [
        ("*fp32", "p18446744073709551600", struct.pack("<Q", 2**64 - 16)),
        ("i1", "b1", b"\1"),
        ("i8", "i-128", b"\x80"),
        ("u8", "i255", b"\xff"),
        ("i16", "i-2", b"\xfe\xff"),
        ("i32", "i-2147483648", struct.pack("<i", -(2**31))),
        ("u32", "u4294967295", b"\xff" * 4),
        ("i64", "i-9223372036854775808", struct.pack("<q", -(2**63))),
        ("u64", "u18446744073709551615", b"\xff" * 8),
        ("fp32", "d0.1", struct.pack("<f", 0.1)),
        ("fp64", "d0.1", struct.pack("<d", 0.1)),
        ("fp32", "i3", struct.pack("<f", 3)),
    ]
    # Ties, subnormal numbers, the largest number, what rounds to infinity, and signs.
    numbers = [
        0.1,
        -0.0,
        1 + 2**-11,
        1 + 3 * 2**-11,
        6e-8,
        2**-25,
        2.0**-24,
        2**-14 - 2**-26,
        65504.0,
        65519.9,
        65520.0,
    ]
    numbers += [1 + 2**-8, 1 + 3 * 2**-8, 1e-40, 3.3895e38, 3.4e38, 1e300, -1e-300, float("inf"), 1 + 2**-11 + 2**-40]
    for number in numbers:
        with np.errstate(over="ignore"):
            cases.append(("fp16", f"d{number!r}", np.float64(number).astype(np.float16).tobytes()))
    # From float64 ml_dtypes rounds twice; these numbers are the same either way.
    for number in numbers[:-1]:
        with np.errstate(over="ignore"):
            cases.append(("bf16", f"d{number!r}", np.float32(number).astype(ml_dtypes.bfloat16).tobytes()))
    path = write(tmp_path, json.dumps(abi_of(*(case[0] for case in cases))))
    done = output(probe, "pack", path, *(case[1] for case in cases))
    assert done.returncode == 0, done.stderr
    found = [bytes.fromhex(word) for word in done.stdout.split()]
    assert [(case[:2], data) for case, data in zip(cases, found, strict=True)] == [
        (case[:2], case[2]) for case in cases
    ]


@pytest.mark.parametrize(
    ("type_", "value", "message"),
    [
        ("i32", "i2147483648", "the value does not fit"),
        ("u8", "i-1", "the value does not fit"),
        ("i8", "u128", "the value does not fit"),
        ("i1", "i2", "the value does not fit"),
        ("i32", "d1.0", "it must be an integer"),
        ("*fp32", "i16", "it must be a triton_spirv::Pointer"),
        ("fp32", "p16", "it must be a number"),
        ("i32x", "i1", "this loader does not know its type"),
        ("fp8e5", "d1", "this loader does not know its type"),
    ],
)
def test_a_value_that_does_not_suit(probe: Path, tmp_path: Path, type_: str, value: str, message: str) -> None:
    path = write(tmp_path, json.dumps(abi_of(type_)))
    done = output(probe, "pack", path, value)
    assert done.returncode == 1
    assert f"argument 'a0' ({type_}): {message}" in done.stderr


def test_multiples_that_were_promised(probe: Path, tmp_path: Path) -> None:
    path = write(tmp_path, json.dumps(abi_of("*fp32", divisible_by=16)))
    assert output(probe, "pack", path, "p32").returncode == 0
    done = output(probe, "pack", path, "p36")
    assert "it was compiled for multiples of 16" in done.stderr


def test_the_reader_takes_json_and_nothing_else(probe: Path, tmp_path: Path) -> None:
    text = json.dumps(abi_of("i32"), indent=2)
    path = write(tmp_path, text)
    done = output(probe, "parse", path)
    assert (done.returncode, done.stdout) == (0, "ké\U0001f600\n")
    done = output(probe, "parse", write(tmp_path, text.replace("\\ud83d\\ude00", "\\uD83D\\uDE00")))
    assert (done.returncode, done.stdout) == (0, "ké\U0001f600\n")
    damaged = [text[:cut] for cut in range(0, len(text), 97)]
    damaged += [text + "x", text.replace("null", "nul"), text.replace("1,\n", "1,,\n"), text.replace("0.0015", "0.")]
    damaged += [text.replace("true", "True"), text.replace("0.0015", "01"), text.replace("\\ud83d", "\\ud8"), "[" * 100]
    damaged += [text.replace("\\ud83d", ""), text.replace('"version": 2', '"version": 2, "version": 2'), "\0" + text]
    damaged += [text.replace('"version": 2', '"version": 2.5'), text.replace('"bytes": 4', '"bytes": 9')]
    damaged += [text.replace('"offset": 0', '"offset": 4294967295'), text.replace('"parameter": 0', '"parameter": 1')]
    damaged += [text.replace("\\u00e9", "\\u00e\x19"), text.replace("\\u00e9", "\\u00\x05\x19")]
    assert all(one != text for one in damaged)
    for one in damaged:
        done = output(probe, "parse", write(tmp_path, one))
        assert done.returncode == 1, one
        assert "damaged" in done.stderr or "version" in done.stderr, done.stderr


@pytest.mark.parametrize("size", [0, 1, 55, 56, 63, 64, 65, 119, 1000])
def test_the_digest(probe: Path, tmp_path: Path, size: int) -> None:
    data = bytes(index * 7 % 256 for index in range(size))
    (tmp_path / "data").write_bytes(data)
    assert output(probe, "sha256", tmp_path / "data").stdout.strip() == hashlib.sha256(data).hexdigest()


def test_the_wheel_holds_the_header() -> None:
    done = triton_spirv("include")
    assert done.returncode == 0
    assert (Path(done.stdout.strip()) / "triton_spirv.hpp").read_text() == (INCLUDE / "triton_spirv.hpp").read_text()
