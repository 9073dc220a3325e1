"""A kernel's machine code for NVIDIA GPUs, from the driver's cache, through nvdisasm of the CUDA toolkit.

The driver has no interface for it. A VkPipelineCache and a ``.bin`` file of the driver's own cache on disk
(``__GL_SHADER_DISK_CACHE_PATH``) both hold a Zstandard frame for each program. The object "NVuc" lies in its contents:
a header of 32 bytes, with the number of sections as 16 bits at byte 8, then 32 bytes for each section, which begin with
its type, its length and its offset from the "N", 32 bits each. Found by nvcachetools (format.txt, nvucdump.c) and
libfloor (vulkan_disassembly.cpp).
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

from .zstandard import frames

_NVUC = b"NVuc"
_HEADER, _SECTION = 32, 32
_CODE = 1  # type of the section with the instructions
#: Bytes of an instruction of compute capability 7.0 and later (CUDA Binary Utilities).
INSTRUCTION_BYTES = 16

#: Seconds that nvdisasm may take.
_SECONDS = 60


class NoMachineCode(RuntimeError):
    """The machine code cannot be shown. The message says why, and what to do where something can be done."""


def machine_code(cached: bytes) -> bytes:
    """The instructions of the only program in what the driver cached. Raises NoMachineCode if there is none, or more
    than one, or it is of another form; NoZstandard."""
    found = [
        code for contents in frames(cached) if (at := contents.find(_NVUC)) >= 0 and (code := _code(contents[at:]))
    ]
    if len(found) != 1:
        raise NoMachineCode(f"the driver's cache of {len(cached)} bytes has {len(found)} programs, not one")
    return found[0]


def _code(program: bytes) -> bytes:
    """The section with the instructions of an NVuc object."""
    (sections,) = struct.unpack_from("<H", program, 8) if len(program) >= _HEADER else (0,)
    if len(program) < _HEADER + sections * _SECTION:
        raise NoMachineCode("the driver's NVuc object ends within the table of its sections")
    rows = [struct.unpack_from("<3I", program, _HEADER + number * _SECTION) for number in range(sections)]
    found = [(length, offset) for kind, length, offset in rows if kind == _CODE and length]
    if len(found) != 1:
        raise NoMachineCode(f"the driver's NVuc object has {len(found)} sections with code, not one")
    ((length, offset),) = found
    if length % INSTRUCTION_BYTES or offset + length > len(program):
        raise NoMachineCode(
            f"the driver's NVuc object of {len(program)} bytes has code of {length} bytes at {offset}, which are no "
            f"instructions of {INSTRUCTION_BYTES} bytes"
        )
    return program[offset : offset + length]


def disassembled(code: bytes, capability: tuple[int, int]) -> str:
    """The instructions of a GPU with this compute capability as text, one per line. Raises NoMachineCode."""
    architecture = "SM{}{}{}".format(*capability, "a" if capability >= (9, 0) else "")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "code.bin"
        path.write_bytes(code)
        try:
            done = subprocess.run(
                [_nvdisasm(), "--binary", architecture, str(path)],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_SECONDS,
                check=False,
            )
        except OSError as error:
            raise NoMachineCode(f"nvdisasm cannot be run: {error}") from None
        except subprocess.TimeoutExpired:
            raise NoMachineCode(f"nvdisasm did not end within {_SECONDS} s") from None
    if done.returncode:
        raise NoMachineCode(f"nvdisasm --binary {architecture} failed: {done.stderr.strip() or done.returncode}")
    return done.stdout


def _nvdisasm() -> str:
    try:
        from triton import knobs

        return str(knobs.nvidia.nvdisasm.path)
    except (ImportError, RuntimeError) as error:
        if found := shutil.which("nvdisasm"):
            return found
        raise NoMachineCode(
            f"there is no nvdisasm ({error}): upstream's wheel and the CUDA toolkit have one; put it on PATH, or name "
            "it in TRITON_NVDISASM_PATH"
        ) from None
