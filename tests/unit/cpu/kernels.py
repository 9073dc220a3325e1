"""Kernels compiled for a processor and run in this process, without a device."""

import platform
import struct
from pathlib import Path
from typing import Any

import numpy as np
import triton
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.cpu.host import Host
from triton.backends.spirv.cpu.machine import assemble
from triton.backends.spirv.cpu.objects import make
from triton.backends.spirv.runtime.native_module import native
from triton.backends.spirv.target import target_of
from triton.compiler import ASTSource


def _features() -> set[str]:
    """By the names of the system, not by the test that is tested."""
    names = {
        "avx512_bf16": "avx512bf16",
        "avx512_vnni": "avx512vnni",
        "avx_vnni": "avxvnni",
        "amx_int8": "amx-int8",
        "asimddp": "dotprod",
    }
    return {names[flag] for flag in Path("/proc/cpuinfo").read_text(encoding="utf-8").split() if flag in names}


def _levels() -> list[str]:
    if platform.machine() == "aarch64":
        return ["aarch64"]
    flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].split()
    wide = {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"} <= set(flags)
    return ["x86-64-v3", "x86-64-v4"] if wide else ["x86-64-v3"]


#: LLVM's names of the instructions beyond a level that this machine has (cpu/host.py).
FEATURES_HERE = _features()
#: The profiles of the CPU device whose code this machine runs.
PROFILES_HERE = [f"cpu-{level}" for level in _levels()]

_TYPES = {"float32": "fp32", "float16": "fp16", "float64": "fp64", "bool": "i1"}
_DEVICE: list[Any] = []


def type_name(dtype: np.dtype[Any]) -> str:
    """Triton's name of a NumPy type."""
    return _TYPES.get(dtype.name, dtype.name.replace("uint", "u").replace("int", "i"))


def compiled(
    profile: str,
    kernel: Any,
    arguments: list[Any],
    constants: dict[str, Any],
    divisible: bool = False,
    ranged: bool = False,
    **options: Any,
) -> Any:
    """The kernel compiled for arrays and numbers: an integer is an i32, a float an fp32. ``divisible``: arrays begin at
    multiples of 16 bytes, and integers are multiples of 16. ``ranged``: arrays have less than 2 GiB."""
    names = [name for name in kernel.arg_names if name not in constants]
    signature = {
        name: f"*{type_name(value.dtype)}"
        if isinstance(value, np.ndarray)
        else ("i32" if isinstance(value, int) else "fp32")
        for name, value in zip(names, arguments, strict=True)
    }
    signature |= dict.fromkeys(constants, "constexpr")
    ordered = {name: signature[name] for name in kernel.arg_names}
    capabilities = PROFILES[profile]
    target = target_of(capabilities)
    attributes = {
        (kernel.arg_names.index(name),): [["tt.divisibility", 16]]
        for name, value in zip(names, arguments, strict=True)
        if divisible and not isinstance(value, float)
    }
    attributes |= {
        (kernel.arg_names.index(name),): [["tt.pointer_range", 32]]
        for name, value in zip(names, arguments, strict=True)
        if ranged and isinstance(value, np.ndarray)
    }
    return triton.compile(ASTSource(kernel, ordered, constants, attributes), target=target, options=options)


def block_of(arguments: list[Any]) -> bytes:
    """The argument block (docs/internals/abi.md)."""
    block = b""
    for value in arguments:
        if isinstance(value, np.ndarray):
            block += bytes(-len(block) % 8) + struct.pack("<Q", value.ctypes.data)
        else:
            block += struct.pack("<i" if isinstance(value, int) else "<f", value)
    return block


def run(profile: str, kernel: Any, grid: tuple[int, ...], *arguments: Any, **constants: Any) -> None:
    """Runs a kernel over a grid; its arrays are written in place. Raises RuntimeError for a fault of its code."""
    options = {name: constants.pop(name) for name in ("num_warps", "debug", "ranged") if name in constants}
    found = compiled(profile, kernel, list(arguments), constants, **options)
    code = make(found.asm["spv"], PROFILES[profile].subgroup_size, PROFILES[profile].processor)
    launch(code.code, code.scratch, found.metadata.name, block_of(list(arguments)), grid)


def run_text(text: str, host: Host, name: str, arguments: list[Any]) -> None:
    """Runs one program of a kernel that is given as LLVM IR. Raises RuntimeError for a fault of its code."""
    code = assemble(text, host)
    launch(code, 0, name, block_of(arguments), (1,))


def launch(code: bytes, scratch: int, name: str, block: bytes, grid: tuple[int, ...]) -> None:
    """Runs machine code over a grid, on two threads. Raises RuntimeError for a fault of it."""
    module = native()
    module.processor_level()  # which asks the system for what instructions need
    if not _DEVICE:
        _DEVICE.append(module.CpuDevice(threads=2, timeout_ns=2**64 - 1))
    loaded = module.CpuKernel(module.CpuObject(code), name, scratch)
    _DEVICE[0].launch(loaded, block, [*grid, 1, 1][:3], name=name)
