"""Accesses to shared memory that are checked for races: what is emitted, and that nothing is without the option."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.lowering.entry_point import LoweredKernel
from triton.backends.spirv.lowering.shared_watch import Bytes, Kind, Watch
from triton.backends.spirv.lowering.workgroup_memory import SharedMemory
from triton.backends.spirv.options import SPIRVOptions
from triton.backends.spirv.planning.memory_pools import View
from triton.backends.spirv.spirv.function import FunctionBuilder
from triton.backends.spirv.spirv.module import ModuleBuilder
from triton.backends.spirv.transforms.schedule import Options
from triton.backends.spirv.ttgir.parser import parse_module

from tests.lowering.harness import lower_module, module_text

ARGUMENTS = "%p: !tt.ptr<f32>, %x: f32"
MEMDESC = "!ttg.memdesc<16x16xf32, #shared, #smem, mutable>"

#: A tile is stored in a buffer and loaded in a layout in which invocations of other subgroups have its elements.
BODY = f"""
    %v = tt.splat %x : f32 -> tensor<16x16xf32, #rows>
    %m = ttg.local_alloc %v : (tensor<16x16xf32, #rows>) -> {MEMDESC}
    %l = ttg.local_load %m : {MEMDESC} -> tensor<16x16xf32, #columns>
    %s = tt.splat %p : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>, #columns>
    tt.store %s, %l : tensor<16x16x!tt.ptr<f32>, #columns>"""
NO_BUFFER = """
    %s = tt.splat %p : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>, #rows>
    %v = tt.splat %x : f32 -> tensor<16x16xf32, #rows>
    tt.store %s, %v : tensor<16x16x!tt.ptr<f32>, #rows>"""


def compiled(body: str, profile: str = "lavapipe", checks: tuple[str, ...] = ()) -> LoweredKernel:
    capabilities = replace(PROFILES[profile], subgroup_size=8)  # as the encodings of the text have
    return lower_module(
        parse_module(module_text(body, ARGUMENTS, 1024)),
        capabilities,
        Options(SPIRVOptions(**{f"check_{name}": True for name in checks})),
    )


@pytest.mark.parametrize("profile", ["lavapipe", "generic", "nvidia-hopper", "amd-rdna3", "intel-xe"])
def test_nothing_is_emitted_without_the_option_or_without_shared_memory(profile):
    plain = [compiled(body, profile) for body in (BODY, NO_BUFFER)]
    checked = [compiled(body, profile, checks=("races",)) for body in (BODY, NO_BUFFER)]
    assert plain[1].spirv == checked[1].spirv and checked[1].reports == []
    assert plain[0].spirv != checked[0].spirv and plain[0].shared_bytes == checked[0].shared_bytes == 1024
    assert [message["kind"] for message in checked[0].reports if message["kind"] != "loop"] == [
        "races",
        "shared_access",
        "shared_access",
    ]


class Collected(Watch):
    """The accesses of one invocation, whose addresses are constants."""

    def __init__(self, module: ModuleBuilder) -> None:
        self._module = module
        self.bytes: set[int] = set()

    def access(self, kind: Kind, where: Bytes) -> None:
        first = int(self._module.constants[where.index]) * where.size
        assert kind == Kind.READ and first % where.size == 0
        self.bytes.update(range(first, first + where.size))


@pytest.mark.parametrize("lanes", [4, 8, 32])
@pytest.mark.parametrize(
    ("lines", "stride", "first", "size"), [((16, 16), 40, 320, 2), ((8, 32), 36, 4, 1), ((16, 8), 8, 0, 2)]
)
def test_lanes_share_the_lines_of_a_matrix(lanes, lines, stride, first, size):
    """Together they read its bytes and no others."""
    module = ModuleBuilder()
    watch = Collected(module)
    shared = SharedMemory(module, View(1 << 16, True), watch)
    for lane in range(lanes):
        emitter = SimpleNamespace(f=FunctionBuilder(module, module.void), lane=module.uint(lane), subgroup_size=lanes)
        shared._seen_matrix(emitter, size, module.uint(first), lines, stride, 0, 1 << 16)
    count, length = lines
    places = {first + line * stride + column for line in range(count) for column in range(length)}
    assert watch.bytes == {place * size + byte for place in places for byte in range(size)}
