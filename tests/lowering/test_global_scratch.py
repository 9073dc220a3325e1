"""Global scratch memory: the address that the launcher passes, plus the program's share of it, plus the offset."""

from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.transforms.schedule import Options
from triton.backends.spirv.ttgir.parser import parse_module

from tests.lowering.harness import disassemble, lower_module

ATTRIBUTES = """"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "spirv:vulkan1.3",
    "ttg.threads-per-warp" = 8 : i32"""
SCRATCH = """, ttg.global_scratch_memory_size = 768 : i32, ttg.global_scratch_memory_alignment = 256 : i32"""
TEXT = f"""
module attributes {{{ATTRIBUTES}{SCRATCH}}} {{
  tt.func private @inner(%v: i32) attributes {{noinline = true}} {{
    %m = ttg.global_scratch_alloc {{alignment = 4 : i32, nbytes = 12 : i32,
                                    ttg.global_scratch_memory_offset = 8 : i32}} : !tt.ptr<i32>
    tt.store %m, %v : !tt.ptr<i32>
    tt.return
  }}
  tt.func public @k(%v: i32) attributes {{noinline = false}} {{
    tt.call @inner(%v) {{ttg.global_scratch_memory_offset = 512 : i32}} : (i32) -> ()
    tt.return
  }}
}}
"""


def test_address_of_a_callees_memory(filecheck):
    kernel = lower_module(parse_module(TEXT), PROFILES["lavapipe"], Options())
    assert (kernel.global_scratch.size, kernel.global_scratch.alignment) == (768, 256)
    assert kernel.argument_bytes == 16  # v, padding, the address
    filecheck(
        disassemble(kernel.spirv),
        """
CHECK-DAG: [[INT:%[0-9]+]] = OpTypeInt 64 0
CHECK-DAG: [[SIZE:%[0-9]+]] = OpConstant [[INT]] 768
CHECK-DAG: [[OFFSET:%[0-9]+]] = OpConstant [[INT]] 520
CHECK: [[BASE:%[0-9]+]] = OpBitcast [[INT]]
CHECK: [[PLACE:%[0-9]+]] = OpIMul [[INT]] {{%[0-9]+}} [[SIZE]]
CHECK: [[PROGRAM:%[0-9]+]] = OpIAdd [[INT]] [[BASE]] [[PLACE]]
CHECK: [[ADDRESS:%[0-9]+]] = OpIAdd [[INT]] [[PROGRAM]] [[OFFSET]]
CHECK: OpConvertUToPtr {{%[0-9]+}} [[ADDRESS]]
""",
    )


def test_a_kernel_without_any_takes_no_address():
    text = f"""
module attributes {{{ATTRIBUTES}}} {{
  tt.func public @k(%v: i32) attributes {{noinline = false}} {{
    tt.return
  }}
}}
"""
    kernel = lower_module(parse_module(text), PROFILES["lavapipe"], Options())
    assert kernel.global_scratch.size == 0 and kernel.argument_bytes == 4
