"""TTGIR text in, disassembly out: what the FileCheck tests are written with."""
from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import triton
from triton.backends.spirv.capabilities import Capabilities, PROFILES
from triton.backends.spirv.lowering.context import Options
from triton.backends.spirv.lowering.module import lower_module
from triton.backends.spirv.ttgir.parser import parse_module

FILECHECK = Path(triton.__file__).parent / "FileCheck"

#: Layouts that the tests name, for subgroups of 8 invocations and 4 warps.
LAYOUTS = """
#vec4 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [8], warpsPerCTA = [4], order = [0]}>
#vec8 = #ttg.blocked<{sizePerThread = [8], threadsPerWarp = [8], warpsPerCTA = [4], order = [0]}>
#one = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [8], warpsPerCTA = [4], order = [0]}>
#rows = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#columns = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [4, 2], warpsPerCTA = [1, 4], order = [0, 1]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
"""


def compile_body(body: str, arguments: str, shared: int = 0, capabilities: Capabilities = PROFILES["lavapipe"]) -> bytes:
    """The SPIR-V of a kernel ``k(arguments)`` whose TTGIR body is ``body``, validated."""
    text = (f"{LAYOUTS}\nmodule attributes {{\"ttg.num-ctas\" = 1 : i32, \"ttg.num-warps\" = 4 : i32, "
            f"ttg.shared = {shared} : i32, ttg.target = \"spirv:vulkan1.3\", \"ttg.threads-per-warp\" = "
            f"{capabilities.subgroup_size} : i32}} {{\n  tt.func public @k({arguments}) "
            f"attributes {{noinline = false}} {{\n{body}\n    tt.return\n  }}\n}}\n")
    spirv = lower_module(parse_module(text), capabilities, Options()).spirv
    subprocess.run(["spirv-val", "--target-env", "vulkan1.3", "-"], input=spirv, check=True)
    return spirv


def disassemble(spirv: bytes) -> str:
    """spirv-dis with numeric ids and no indentation."""
    return subprocess.run(["spirv-dis", "--raw-id", "--no-color", "--no-indent", "-"], input=spirv, check=True,
                          capture_output=True).stdout.decode()


@pytest.fixture
def filecheck() -> Callable[[str, str], None]:
    """``filecheck(text, patterns)``: fails with FileCheck's own report where the patterns do not match."""

    def check(text: str, patterns: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            pattern_file, text_file = Path(folder) / "patterns", Path(folder) / "text"
            pattern_file.write_text(patterns)
            text_file.write_text(text)
            result = subprocess.run([FILECHECK, pattern_file, "--input-file", text_file, "--dump-input-context=20"],
                                    capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
    return check
