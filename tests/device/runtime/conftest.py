"""Kernels written by hand in SPIR-V assembly, and what launches them, for tests of the runtime alone.

They follow the backend's ABI (docs/internals/abi.md): a push-constant block, physical storage addresses, no
descriptor sets.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy
import pytest
from triton.backends.spirv.runtime import array
from triton.backends.spirv.runtime.context import Context, current
from triton.backends.spirv.runtime.kernel import Kernel
from triton.backends.spirv.runtime.launches.launch import make_launcher

from tests.spirv_val import validated

_HEADER = """
OpCapability Shader
OpCapability Int64
OpCapability PhysicalStorageBufferAddresses
OpCapability VulkanMemoryModel
OpExtension "SPV_KHR_physical_storage_buffer"
OpMemoryModel PhysicalStorageBuffer64 Vulkan
OpEntryPoint GLCompute %main "main" %id %push
OpExecutionMode %main LocalSize {local_size} 1 1
OpDecorate %id BuiltIn GlobalInvocationId
"""

#: z[i] = x[i] + y[i] for i < n; arguments (*fp32 x, *fp32 y, *fp32 z, i32 n). The last workgroup is masked.
_ADD = (
    _HEADER
    + """
OpDecorate %block Block
OpMemberDecorate %block 0 Offset 0
OpMemberDecorate %block 1 Offset 8
OpMemberDecorate %block 2 Offset 16
OpMemberDecorate %block 3 Offset 24
%void = OpTypeVoid
%fn = OpTypeFunction %void
%bool = OpTypeBool
%u32 = OpTypeInt 32 0
%u64 = OpTypeInt 64 0
%f32 = OpTypeFloat 32
%v3 = OpTypeVector %u32 3
%pv3 = OpTypePointer Input %v3
%pin = OpTypePointer Input %u32
%block = OpTypeStruct %u64 %u64 %u64 %u32
%pblock = OpTypePointer PushConstant %block
%pu64 = OpTypePointer PushConstant %u64
%pu32 = OpTypePointer PushConstant %u32
%pf32 = OpTypePointer PhysicalStorageBuffer %f32
%id = OpVariable %pv3 Input
%push = OpVariable %pblock PushConstant
%c0 = OpConstant %u32 0
%c1 = OpConstant %u32 1
%c2 = OpConstant %u32 2
%c3 = OpConstant %u32 3
%c4 = OpConstant %u64 4
%main = OpFunction %void None %fn
%entry = OpLabel
%gp = OpAccessChain %pin %id %c0
%i = OpLoad %u32 %gp
%np = OpAccessChain %pu32 %push %c3
%n = OpLoad %u32 %np
%in = OpULessThan %bool %i %n
OpSelectionMerge %done None
OpBranchConditional %in %body %done
%body = OpLabel
%wide = OpUConvert %u64 %i
%offset = OpIMul %u64 %wide %c4
%xp = OpAccessChain %pu64 %push %c0
%x = OpLoad %u64 %xp
%xa = OpIAdd %u64 %x %offset
%xq = OpConvertUToPtr %pf32 %xa
%xv = OpLoad %f32 %xq Aligned 4
%yp = OpAccessChain %pu64 %push %c1
%y = OpLoad %u64 %yp
%ya = OpIAdd %u64 %y %offset
%yq = OpConvertUToPtr %pf32 %ya
%yv = OpLoad %f32 %yq Aligned 4
%sum = OpFAdd %f32 %xv %yv
%zp = OpAccessChain %pu64 %push %c2
%z = OpLoad %u64 %zp
%za = OpIAdd %u64 %z %offset
%zq = OpConvertUToPtr %pf32 %za
OpStore %zq %sum Aligned 4
OpBranch %done
%done = OpLabel
OpReturn
OpFunctionEnd
"""
)


def _words(indirect: bool, count: int) -> str:
    """Copies the ``count`` 32-bit words of the argument block to its first argument, a pointer: what a kernel sees."""
    storage = "PhysicalStorageBuffer" if indirect else "PushConstant"
    aligned = " Aligned 4" if indirect else ""
    block = "%outer = OpTypeStruct %u64" if indirect else "%outer = OpTypeStruct %array"
    if indirect:
        base = (
            "%one = OpAccessChain %ppu64 %push %c0\n%address = OpLoad %u64 %one\n"
            "%base = OpConvertUToPtr %pinner %address\n"
        )
        decorate = "OpDecorate %inner Block\nOpMemberDecorate %inner 0 Offset 0\n"
        types = (
            "%inner = OpTypeStruct %array\n%pinner = OpTypePointer PhysicalStorageBuffer %inner\n"
            "%ppu64 = OpTypePointer PushConstant %u64\n"
        )
    else:
        base, decorate, types = "%base = OpCopyObject %pouter %push\n", "", ""
    pword = f"%pword = OpTypePointer {storage} %u32\n"
    out_pointer = "" if indirect else "%pstore = OpTypePointer PhysicalStorageBuffer %u32\n"
    store = "%pword" if indirect else "%pstore"
    return (
        _HEADER
        + f"""
OpDecorate %outer Block
OpMemberDecorate %outer 0 Offset 0
OpDecorate %array ArrayStride 4
{decorate}
%void = OpTypeVoid
%fn = OpTypeFunction %void
%u32 = OpTypeInt 32 0
%u64 = OpTypeInt 64 0
%v3 = OpTypeVector %u32 3
%v2 = OpTypeVector %u32 2
%pv3 = OpTypePointer Input %v3
%pin = OpTypePointer Input %u32
%count = OpConstant %u32 {count}
%array = OpTypeArray %u32 %count
{block}
%pouter = OpTypePointer PushConstant %outer
{types}{pword}{out_pointer}
%id = OpVariable %pv3 Input
%push = OpVariable %pouter PushConstant
%c0 = OpConstant %u32 0
%c1 = OpConstant %u32 1
%c4 = OpConstant %u64 4
%main = OpFunction %void None %fn
%entry = OpLabel
%gp = OpAccessChain %pin %id %c0
%i = OpLoad %u32 %gp
{base}
%lowp = OpAccessChain %pword %base %c0 %c0
%low = OpLoad %u32 %lowp{aligned}
%highp = OpAccessChain %pword %base %c0 %c1
%high = OpLoad %u32 %highp{aligned}
%pair = OpCompositeConstruct %v2 %low %high
%out = OpBitcast %u64 %pair
%from = OpAccessChain %pword %base %c0 %i
%word = OpLoad %u32 %from{aligned}
%wide = OpUConvert %u64 %i
%offset = OpIMul %u64 %wide %c4
%to = OpIAdd %u64 %out %offset
%target = OpConvertUToPtr {store} %to
OpStore %target %word Aligned 4
OpReturn
OpFunctionEnd
"""
    )


#: Seconds for a test of the runtime. The tests of other folders only compute; these may wait for what never comes.
_SECONDS = 300


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that hangs ends the run, with the stacks of all threads: a thread that waits in a driver cannot be told
    to stop."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.timeout(_SECONDS, method="thread"))


def assemble(text: str) -> bytes:
    """The module of an assembly text, checked with spirv-val."""
    if shutil.which("spirv-as") is None:
        pytest.fail("spirv-as is missing; install it with: apt-get install spirv-tools")
    module = subprocess.run(
        ["spirv-as", "--target-env", "vulkan1.3", "-", "-o", "-"], input=text.encode(), check=True, capture_output=True
    ).stdout
    return validated(module)


@pytest.fixture(scope="session")
def add_module() -> bytes:
    """z[i] = x[i] + y[i] for i < n; arguments (*fp32 x, *fp32 y, *fp32 z, i32 n); 64 elements a workgroup."""
    return assemble(_ADD.format(local_size=64))


@pytest.fixture(scope="session")
def word_module() -> Callable[..., bytes]:
    """(count, indirect, local_size=1) → a module that writes the ``count`` words of its argument block to its first
    argument (*u32), one an invocation: grid (count / local_size, 1, 1)."""
    return lambda count, indirect, local_size=1: assemble(_words(indirect, count).format(local_size=local_size))


#: Reads its argument, *u32 x, 30,000 times, as long as it is 0. Mesa's CPU driver ends loops after 65,535 iterations.
_LONG = (
    _HEADER
    + """
OpDecorate %block Block
OpMemberDecorate %block 0 Offset 0
%void = OpTypeVoid
%fn = OpTypeFunction %void
%bool = OpTypeBool
%u32 = OpTypeInt 32 0
%u64 = OpTypeInt 64 0
%v3 = OpTypeVector %u32 3
%pv3 = OpTypePointer Input %v3
%block = OpTypeStruct %u64
%pblock = OpTypePointer PushConstant %block
%pu64 = OpTypePointer PushConstant %u64
%pu32 = OpTypePointer PhysicalStorageBuffer %u32
%id = OpVariable %pv3 Input
%push = OpVariable %pblock PushConstant
%c0 = OpConstant %u32 0
%c1 = OpConstant %u32 1
%many = OpConstant %u32 30000
%main = OpFunction %void None %fn
%entry = OpLabel
%xp = OpAccessChain %pu64 %push %c0
%x = OpLoad %u64 %xp
%q = OpConvertUToPtr %pu32 %x
OpBranch %head
%head = OpLabel
%i = OpPhi %u32 %c0 %entry %more %next
OpLoopMerge %done %next None
OpBranch %body
%body = OpLabel
%v = OpLoad %u32 %q Volatile|Aligned 4
%sum = OpIAdd %u32 %v %i
%ends = OpUGreaterThanEqual %bool %sum %many
OpBranchConditional %ends %done %next
%next = OpLabel
%more = OpIAdd %u32 %i %c1
OpBranch %head
%done = OpLabel
OpReturn
OpFunctionEnd
"""
)


@pytest.fixture
def long_file(tmp_path: Path) -> Path:
    """The module of a kernel that takes long, but ends, with a large grid: a GPU cannot be told to give one up. Its
    argument is a *u32 that points at 0."""
    path = tmp_path / "long.spv"
    path.write_bytes(assemble(_LONG.format(local_size=8)))
    return path


@pytest.fixture
def add_file(add_module: bytes, tmp_path: Path) -> Path:
    """The module of the add kernel, for its own process."""
    path = tmp_path / "add.spv"
    path.write_bytes(add_module)
    return path


ADD_ENTRIES = [((0,), "x", "*fp32"), ((1,), "y", "*fp32"), ((2,), "z", "*fp32"), ((3,), "n", "i32")]


class Launchable:
    """A kernel of the current device, called as ``kernel(grid, *arguments)``."""

    def __init__(
        self,
        context: Context,
        spirv: bytes,
        entries: Sequence[Any],
        indirect: bool = False,
        written: Sequence[str] | None = None,
    ) -> None:
        self.context = context
        self.kernel = Kernel(context, "test", spirv)
        self.launcher: Any = make_launcher(context, "test", entries, indirect, written)

    def __call__(
        self, grid: tuple[int, ...], *arguments: Any, hooks: tuple[Any, Any] = (None, None), launch_metadata: Any = None
    ) -> None:
        grid = (*grid, 1, 1)[:3]
        self.launcher(*grid, 0, self.kernel.handle, None, launch_metadata, *hooks, *arguments)


@pytest.fixture(params=["default", "staged", "imported"])
def context(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Context]:
    """The device's own context, and one with each other way for host memory."""
    own = current()  # opened before the variable is set
    if request.param == "default":
        yield own
        return
    if request.param == "imported" and not own.device.host_import_alignment:
        pytest.skip("the device lacks VK_EXT_external_memory_host")
    monkeypatch.setenv("TRITON_SPIRV_HOST_MEMORY", request.param)
    other = Context(own.device)
    yield other
    other.close()


@pytest.fixture(params=["", "staged", "imported"])
def way(request: pytest.FixtureRequest) -> str:
    """TRITON_SPIRV_HOST_MEMORY, with each value that the device takes."""
    if request.param == "imported" and not current().device.host_import_alignment:
        pytest.skip("the device lacks VK_EXT_external_memory_host")
    return str(request.param)


@pytest.fixture(scope="session")
def faulty_layer(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment that puts the layer of faulty_layer.cpp before the driver."""
    folder = tmp_path_factory.mktemp("layer")
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.fail("a C++ compiler is missing; install one with: apt-get install g++")
    source = Path(__file__).with_name("faulty_layer.cpp")
    subprocess.run(
        [compiler, "-shared", "-std=c++17", "-fPIC", "-O1", "-o", str(folder / "libfaulty.so"), str(source)], check=True
    )
    layer = {
        "name": "VK_LAYER_TEST_faulty",
        "type": "GLOBAL",
        "library_path": str(folder / "libfaulty.so"),
        "api_version": "1.3.0",
        "implementation_version": "1",
        "description": "makes calls fail",
    }
    (folder / "faulty.json").write_text(json.dumps({"file_format_version": "1.2.0", "layer": layer}))
    return {"VK_LAYER_PATH": str(folder), "VK_INSTANCE_LAYERS": "VK_LAYER_TEST_faulty"}


@pytest.fixture
def launchable(context: Context) -> Callable[..., Launchable]:
    """Makes a Launchable on the context."""
    return lambda *args, **kwargs: Launchable(context, *args, **kwargs)


@pytest.fixture
def add(launchable: Callable[..., Launchable], add_module: bytes) -> Iterator[Launchable]:
    """The add kernel, loaded."""
    loaded = launchable(add_module, ADD_ENTRIES)
    yield loaded
    loaded.kernel.unload()


def padded(values: Any, before: int = 0, after: int = 64) -> tuple[Any, Any]:
    """(whole, part): an array with ``values`` at ``before`` elements in, and its view of them; the rest is -7."""
    whole = numpy.full(before + len(values) + after, -7, values.dtype)
    whole[before : before + len(values)] = values
    return whole, whole[before : before + len(values)]


@pytest.fixture
def make_padded() -> Callable[..., tuple[Any, Any]]:
    """``padded``."""
    return padded


@pytest.fixture
def view() -> Callable[[Any], Any]:
    """NumPy array → kernel argument."""
    return array
