"""What a user sees of a kernel's code: ``kernel.asm["spvasm"]`` and ``triton-spirv disassemble``."""

import json
import re
import struct
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl
from triton import knobs
from triton.backends.spirv import cli
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.inspection.compilers import NVIDIA
from triton.backends.spirv.inspection.listing import machine_text
from triton.backends.spirv.runtime import context
from triton.backends.spirv.runtime.vulkan.compiled_code import cached_program
from triton.backends.spirv.runtime.vulkan.manifests import installed

EXAMPLES = Path(__file__).parents[2] / "examples"
CPU = context.current().device.driver == "mesa_llvmpipe"


@triton.jit
def sum_of_rows(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(n):
        total += tl.load(x + row * BLOCK + i) * 2  # doubled
    tl.store(out + i, total)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> triton.compiler.CompiledKernel:
    """``sum_of_rows`` with debug information, in its own cache; it also runs right."""
    monkeypatch.setattr(knobs.cache, "dir", str(tmp_path / "cache"))
    sum_of_rows.device_caches.clear()
    sum_of_rows.relaunch = None
    out = torch.zeros(16)
    compiled = sum_of_rows[(1,)](torch.ones(48), out, 3, BLOCK=16, debug_info=True, enable_fp_fusion=True)
    assert out.tolist() == [6.0] * 16
    return compiled


LINE = re.compile(r"^ +; test_disassembly\.py:\d+: total \+= tl\.load\(x \+ row \* BLOCK \+ i\) \* 2  # doubled$", re.M)


def test_source_lines_names_and_nesting(kernel: triton.compiler.CompiledKernel) -> None:
    text = kernel.asm["spvasm"]
    inside = text[text.index("OpLoopMerge") :]
    assert LINE.search(inside), text
    assert re.search(r"^ +%total(_\d+)? = OpExtInst %float %\w+ Fma ", inside, re.M), text
    columns = [line.index("Op") for line in text.splitlines() if "OpLoad %float" in line or "OpReturn" in line]
    assert columns[0] > columns[-1], "what the loop holds is indented"
    with pytest.raises(KeyError, match="nothing"):
        kernel.asm["nothing"]


def test_the_command_prints_the_same(
    kernel: triton.compiler.CompiledKernel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = tmp_path / "kernel.spv"
    module.write_bytes(kernel.asm["spv"])
    for name in ("sum_of_rows", str(module)):
        assert cli.main(["disassemble", name]) == 0
        assert capsys.readouterr().out == kernel.asm["spvasm"]
    assert cli.main(["disassemble", "sum_of_rows", "--stage", "ttgir"]) == 0
    assert capsys.readouterr().out == kernel.asm["ttgir"]
    assert cli.main(["disassemble", "sum_of_rows", "--stage", "plan"]) == 0
    layout, memory, pointers, load, store = capsys.readouterr().out.splitlines()
    assert layout.startswith("layout: ")
    assert memory.startswith("shared memory: 0 of ")
    assert pointers == "pointers: 32-bit offsets from x, out"
    assert re.search(r"test_disassembly\.py:\d+:\d+  tt\.load   1 element of 32 bits an access, because ", load)
    assert " tt.store  1 element of 32 bits an access, because " in store


@pytest.mark.skipif(not any(one.path.name.startswith("radeon") for one in installed()), reason="RADV is not installed")
def test_the_instructions_of_a_device(tmp_path: Path) -> None:
    """RADV compiles without a GPU; ``triton-spirv disassemble --stage machine`` prints this of a kernel made for it."""
    module = tmp_path / "add.spv"
    signature = "*fp32:16, *fp32:16, *fp32:16, i32:16, 1024"
    request = [f"{EXAMPLES}/vector_add.py:add_kernel", "-s", signature, "-t", "amd-rdna3", "-o", str(module)]
    assert cli.main(["compile", *request]) == 0
    heading, *lines = machine_text(module.read_bytes(), PROFILES["amd-rdna3"]).splitlines()
    assert heading.startswith("// ")
    assert any(re.match(r"// VGPRs +[1-9]\d*  ", line) for line in lines)
    assert any(re.match(r"\s+v_add_f32", line) for line in lines)


@pytest.mark.only_on("Vulkan", "pipeline caches are Vulkan's")
def test_what_the_driver_caches_of_one_kernel(kernel: triton.compiler.CompiledKernel) -> None:
    """Vulkan's header, then the driver's own form of the program; of NVIDIA's driver the device's instructions."""
    device = context.current()
    layout, size = device.opened.pipeline_layout, device.capabilities.subgroup_size
    data = cached_program(device.opened.handle, layout, kernel.asm["spv"], size, device.device.chooses_subgroup_size)
    length, version = struct.unpack_from("<2I", data)
    assert (length, version) == (32, 1)  # Mesa 26.2.6's CPU driver gives 20 of the 32 bytes
    if device.device.driver == NVIDIA:
        text = machine_text(kernel.asm["spv"], device.capabilities)
        assert re.search(r"^// LDG\S* +\d+ +[1-9]", text, re.MULTILINE), text
        assert re.search(r"^// Register Count +[1-9]", text, re.MULTILINE), text
    with pytest.raises(ValueError, match="SPIR-V"):
        cached_program(device.opened.handle, layout, kernel.asm["spv"][:-4], size, device.device.chooses_subgroup_size)


@pytest.mark.skipif(not CPU, reason="the driver shows its code")
def test_a_driver_that_shows_no_instructions_is_refused_by_name(
    kernel: triton.compiler.CompiledKernel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = tmp_path / "kernel.spv"
    module.write_bytes(kernel.asm["spv"])
    for name in ("sum_of_rows", str(module)):
        assert cli.main(["disassemble", name, "--stage", "machine"]) == 1
        error = capsys.readouterr().err
        assert error.startswith("triton-spirv: the driver mesa_llvmpipe shows no machine code; these do: "), error
        assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{folder}/no.spv", "--stage", "machine"], "{folder}/no.spv cannot be read: No such file or directory"),
        (["nobody"], "no kernel in {folder}/cache has the name or key 'nobody': it has sum_of_rows"),
        (["{folder}/no.spv"], "{folder}/no.spv cannot be read: No such file or directory"),
        (["{folder}/text.spv"], "{folder}/text.spv is not a SPIR-V module: "),
        (["{folder}/cut.spv"], "{folder}/cut.spv is not a SPIR-V module: "),
        (["{folder}/cut.spv", "--stage", "ttir"], "{folder}/cut.spv is a file, which has no stage 'ttir'"),
    ],
)
def test_bad_input_is_one_line(
    kernel: triton.compiler.CompiledKernel,
    arguments: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "text.spv").write_text("hello")
    (tmp_path / "cut.spv").write_bytes(kernel.asm["spv"][:-2])
    assert cli.main(["disassemble", *(text.format(folder=tmp_path) for text in arguments)]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"triton-spirv: {message.format(folder=tmp_path)}") and error.count("\n") == 1, error


@pytest.mark.parametrize(
    "layout", [{"subgroups": 3}, {"colour": "red"}, None], ids=["never tried", "of other fields", "not there"]
)
@pytest.mark.parametrize("command", [["disassemble", "--stage", "plan"], ["inspect", "-o", "{folder}/page.html"]])
def test_an_entry_of_another_version_is_refused(
    kernel: triton.compiler.CompiledKernel,
    command: list[str],
    layout: dict[str, object] | None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The search for its layout ended in no case where this version tries no such layout."""
    (path,) = (tmp_path / "cache").glob("*/sum_of_rows.json")
    metadata = json.loads(path.read_text())
    if layout is None:
        del metadata["layout"]
    else:
        metadata["layout"] |= layout
    path.write_text(json.dumps(metadata))
    assert cli.main([*(text.format(folder=tmp_path) for text in command), "sum_of_rows"]) == 1
    error = capsys.readouterr().err
    assert "kernel sum_of_rows, " in error and error.count("\n") == 1, error
    assert "was compiled by another version of this backend: launch it again" in error, error
    assert not list(tmp_path.glob("*.html"))
