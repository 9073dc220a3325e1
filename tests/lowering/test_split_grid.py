"""Kernels whose launches are parts of a grid: program ids and grid sizes are arguments."""

from __future__ import annotations

from triton.backends.spirv.options import SPIRVOptions
from triton.backends.spirv.transforms.schedule import Options

from tests.lowering.harness import compile_body, disassemble

BODY = """
    %here = tt.get_program_id y : i32
    %size = tt.get_num_programs y : i32
    %sum = arith.addi %here, %size : i32
    tt.store %out, %sum : !tt.ptr<i32>"""


def test_program_ids_count_from_the_first_of_the_part(filecheck):
    """Words of the block: the pointer in 0 and 1, the first program in 2 to 4, the grid's size in 5 to 7."""
    filecheck(
        disassemble(compile_body(BODY, "%out: !tt.ptr<i32>", options=Options(SPIRVOptions(split_grid=True)))),
        """
CHECK-NOT: BuiltIn NumWorkgroups
CHECK: OpDecorate [[ID:%[0-9]+]] BuiltIn WorkgroupId
CHECK-NOT: BuiltIn NumWorkgroups
CHECK-DAG: [[ONE:%[0-9]+]] = OpConstant [[U32:%[0-9]+]] 1
CHECK-DAG: [[THREE:%[0-9]+]] = OpConstant [[U32]] 3
CHECK-DAG: [[SIX:%[0-9]+]] = OpConstant [[U32]] 6
CHECK-DAG: [[FIRST:%[0-9]+]] = OpAccessChain {{%[0-9]+}} {{%[0-9]+}} {{%[0-9]+}} [[THREE]]
CHECK-DAG: [[SIZE:%[0-9]+]] = OpAccessChain {{%[0-9]+}} {{%[0-9]+}} {{%[0-9]+}} [[SIX]]
CHECK-DAG: [[Y:%[0-9]+]] = OpAccessChain {{%[0-9]+}} [[ID]] [[ONE]]
CHECK: OpIAdd
CHECK: OpIAdd
CHECK: OpStore
""",
    )
