"""TTGIR text in, disassembly out: what the FileCheck tests are written with."""

import subprocess
from dataclasses import replace

import pytest
from triton.backends.spirv.capabilities import PROFILES, Capabilities
from triton.backends.spirv.driver_quirks import DRIVERS
from triton.backends.spirv.lowering.entry_point import LoweredKernel, emit
from triton.backends.spirv.stages import plan_module
from triton.backends.spirv.transforms.schedule import Options
from triton.backends.spirv.ttgir.ir import Module
from triton.backends.spirv.ttgir.parser import parse_module

from tests.spirv_val import validated

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


#: Mesa's CPU driver, and a device of the same limits whose driver has no ways of its own.
LAVAPIPE = PROFILES["lavapipe"]
PLAIN = replace(LAVAPIPE, driver="generic")


def driven(monkeypatch: pytest.MonkeyPatch, capabilities: Capabilities, **habits: object) -> Capabilities:
    """The same device with a driver of other habits (driver_quirks.Driver)."""
    monkeypatch.setitem(DRIVERS, "another", replace(capabilities.traits, **habits))  # type: ignore[arg-type]
    return replace(capabilities, driver="another")


def lower_module(source: Module, capabilities: Capabilities, options: Options) -> LoweredKernel:
    """Compiles the only public function of ``source``, which is rewritten on the way."""
    return emit(plan_module(source, capabilities, options))


def module_of(function: str, shared: int = 0, capabilities: Capabilities = LAVAPIPE, warps: int = 4) -> str:
    """The TTGIR of a module with this function, which may use the layouts above."""
    return (
        f'{LAYOUTS}\nmodule attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = {warps} : i32, '
        f'ttg.shared = {shared} : i32, ttg.target = "spirv:vulkan1.3", "ttg.threads-per-warp" = '
        f"{capabilities.subgroup_size} : i32}} {{\n{function}}}\n"
    )


def module_text(
    body: str, arguments: str, shared: int = 0, capabilities: Capabilities = LAVAPIPE, warps: int = 4
) -> str:
    """The TTGIR of a kernel ``k(arguments)`` with this body."""
    function = f"  tt.func public @k({arguments}) attributes {{noinline = false}} {{\n{body}\n    tt.return\n  }}\n"
    return module_of(function, shared, capabilities, warps)


def compile_body(
    body: str,
    arguments: str,
    shared: int = 0,
    capabilities: Capabilities = LAVAPIPE,
    options: Options | None = None,
    warps: int = 4,
) -> bytes:
    """The SPIR-V of that kernel, validated."""
    text = module_text(body, arguments, shared, capabilities, warps)
    return validated(lower_module(parse_module(text), capabilities, options or Options()).spirv)


def disassemble(spirv: bytes) -> str:
    """spirv-dis with numeric ids and no indentation."""
    return subprocess.run(
        ["spirv-dis", "--raw-id", "--no-color", "--no-indent", "-"], input=spirv, check=True, capture_output=True
    ).stdout.decode()
