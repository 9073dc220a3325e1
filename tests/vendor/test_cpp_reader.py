"""What triton_spirv.hpp makes of a kernel's JSON and of values, without a device."""

from __future__ import annotations

import hashlib
import json
import random
import struct
import subprocess
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from command import triton_spirv
from triton.backends.spirv.runtime.compiled.kernel_file import sealed
from vendor_support import ROOT

INCLUDE = ROOT / "backend/include"
PROBE = Path(__file__).parent / "vulkan_app/probe.cpp"


def output(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("probe") / "probe"
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-fsanitize=undefined", "-fno-sanitize-recover"]
    done = output("c++", *flags, "-DTRITON_SPIRV_NO_VULKAN", f"-I{INCLUDE}", PROBE, "-pthread", "-o", path)
    assert done.returncode == 0, done.stderr
    return path


def abi_of(*types: str, divisible_by: int = 1, options: dict[str, Any] | None = None) -> dict[str, Any]:
    """The JSON of a kernel with those arguments, and further options."""
    sizes = {"i1": 1, "i8": 1, "u8": 1, "i16": 2, "fp16": 2, "bf16": 2, "i32": 4, "u32": 4, "fp32": 4}
    arguments, offset = [], 0
    for index, type_ in enumerate(types):
        size = sizes.get(type_, 8)
        offset = -(-offset // size) * size
        entry = {"name": f"a{index}", "type": type_, "offset": offset, "bytes": size, "written": False}
        arguments.append(entry | {"parameter": index, "role": None})
        offset += size
    entries = {
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
        "options": {"x": [1.5e-3, -0, None, True], **(options or {})},
    }
    return sealed(entries)


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


@pytest.mark.parametrize("ascii_alone", [True, False])
def test_the_checksum_of_what_python_wrote(probe: Path, tmp_path: Path, ascii_alone: bool) -> None:
    rng = random.Random(5)

    def value(depth: int) -> Any:
        kind = rng.randrange(8 if depth < 4 else 6)
        if kind == 0:
            return rng.choice((None, True, False))
        if kind < 3:
            return rng.choice((0, -1, 2**53 + 1, -(2**63), 0.5, -0.0, 1e-05, 1e300, 0.1, 1.7976931348623157e308))
        if kind < 6:
            letters = 'a/\\"\b\f\n\r\t\0\x1f\x7f é\u07ff\u0800\uffff\U00010000\U0010ffff'
            return "".join(rng.choice(letters) for _ in range(rng.randrange(6)))
        return [value(depth + 1) for _ in range(rng.randrange(4))] if kind == 6 else named(depth + 1)

    def named(depth: int) -> dict[str, Any]:
        return {rng.choice("abBé\U0001f600\uffff") + str(index): value(depth) for index in range(rng.randrange(6))}

    for _ in range(40):
        text = json.dumps(abi_of("i32", options=named(0)), indent=2, ensure_ascii=ascii_alone)
        done = output(probe, "parse", write(tmp_path, text))
        assert done.returncode == 0, done.stderr + text


def test_a_changed_entry_is_noticed(probe: Path, tmp_path: Path) -> None:
    entries = abi_of("i32", "*fp32")
    for name in entries:
        changed = entries | {name: {"shared_bytes": 4, "required_features": ["fp16"]}.get(name, 0)}
        assert output(probe, "parse", write(tmp_path, json.dumps(changed))).returncode == 1, name
    done = output(probe, "parse", write(tmp_path, json.dumps(entries | {"shared_bytes": 4})))
    assert "damaged, or was changed by hand: its checksum is not that of its other entries" in done.stderr
    lacking = {name: value for name, value in entries.items() if name != "checksum"}
    assert "no entry checksum" in output(probe, "parse", write(tmp_path, json.dumps(lacking))).stderr


def test_a_flipped_bit_is_noticed(probe: Path, tmp_path: Path) -> None:
    """But for the case of an escape's digit and of a letter in it, which says the same."""
    data = json.dumps(abi_of("i32"), ensure_ascii=False).encode()
    path = tmp_path / "kernel.json"
    for at in range(0, len(data), 5):
        path.write_bytes(data[:at] + bytes([data[at] ^ (1 << at % 8)]) + data[at + 1 :])
        assert output(probe, "parse", path).returncode == 1, at


@pytest.mark.parametrize("size", [0, 1, 55, 56, 63, 64, 65, 119, 1000])
def test_the_digest(probe: Path, tmp_path: Path, size: int) -> None:
    data = bytes(index * 7 % 256 for index in range(size))
    (tmp_path / "data").write_bytes(data)
    assert output(probe, "sha256", tmp_path / "data").stdout.strip() == hashlib.sha256(data).hexdigest()


def test_the_wheel_holds_the_header() -> None:
    done = triton_spirv("include")
    assert done.returncode == 0
    assert (Path(done.stdout.strip()) / "triton_spirv.hpp").read_text() == (INCLUDE / "triton_spirv.hpp").read_text()
