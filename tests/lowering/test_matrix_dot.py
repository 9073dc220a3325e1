"""tt.dot on cooperative matrices: fragments are made of registers and taken apart again."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from triton.backends.spirv.capabilities import PROFILES, Capabilities
from triton.backends.spirv.errors import UnsupportedOperation
from triton.backends.spirv.matrices import MatrixConfiguration
from triton.backends.spirv.spirv.disassemble import disassemble
from triton.backends.spirv.transforms.gpu.matrix_buffers import pad_matrix_buffers
from triton.backends.spirv.transforms.schedule import Options
from triton.backends.spirv.ttgir.encodings import PaddedSharedEncoding
from triton.backends.spirv.ttgir.parser import parse_module

from tests.lowering.harness import lower_module
from tests.spirv_val import validated

HOPPER, LAVAPIPE = PROFILES["nvidia-hopper"], PROFILES["lavapipe-26"]

TEXT = """
#mma = #ttg.nvidia_mma<{{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1], instrShape = [16, 8]}}>
#a = #ttg.dot_op<{{opIdx = 0, parent = #mma, kWidth = {width}}}>
#b = #ttg.dot_op<{{opIdx = 1, parent = #mma, kWidth = {width}}}>
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.shared = 0 : i32,
    ttg.target = "spirv:vulkan1.3", "ttg.threads-per-warp" = 32 : i32}} {{
  tt.func public @k(%p: !tt.ptr<{result}>, %x: !tt.ptr<{element}>, %n: i32) {{
{loads}
    %c = arith.constant dense<{zero}> : {total}
{products}
    %q = tt.splat %p : !tt.ptr<{result}> -> tensor<{m}x{n}x!tt.ptr<{result}>, #mma>
    tt.store %q, %d : tensor<{m}x{n}x!tt.ptr<{result}>, #mma>
    tt.return
  }}
}}
"""


#: A product, and what a loop makes of its sum before it adds another one.
ONE = "    %d = tt.dot %a, %b, %c{precision} : {left} * {right} -> {total}"
LOOP = """
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %factor = arith.constant dense<0.5> : {total}
    %d = scf.for %i = %zero to %n step %one iter_args(%sum = %c) -> ({total}) : i32 {{
      %scaled = arith.mulf %sum, %factor : {total}
      %next = tt.dot %a, %b, %scaled : {left} * {right} -> {total}
      scf.yield %next : {total}
    }}"""


def loads(name: str, rows: int, columns: int, element: str) -> str:
    """Reads ``%name``, of encoding ``#name``, from consecutive addresses."""
    shape = f"{rows}x{columns}x"
    return f"""
    %{name}0 = tt.make_range {{end = {rows} : i32, start = 0 : i32}} : tensor<{rows}xi32, #ttg.slice<{{dim = 1, parent = #{name}}}>>
    %{name}1 = tt.make_range {{end = {columns} : i32, start = 0 : i32}} : tensor<{columns}xi32, #ttg.slice<{{dim = 0, parent = #{name}}}>>
    %{name}2 = tt.expand_dims %{name}0 {{axis = 1 : i32}} : tensor<{rows}xi32, #ttg.slice<{{dim = 1, parent = #{name}}}>> -> tensor<{rows}x1xi32, #{name}>
    %{name}3 = tt.expand_dims %{name}1 {{axis = 0 : i32}} : tensor<{columns}xi32, #ttg.slice<{{dim = 0, parent = #{name}}}>> -> tensor<1x{columns}xi32, #{name}>
    %{name}4 = arith.constant dense<{columns}> : tensor<{rows}x1xi32, #{name}>
    %{name}5 = arith.muli %{name}2, %{name}4 : tensor<{rows}x1xi32, #{name}>
    %{name}6 = tt.broadcast %{name}5 : tensor<{rows}x1xi32, #{name}> -> tensor<{shape}i32, #{name}>
    %{name}7 = tt.broadcast %{name}3 : tensor<1x{columns}xi32, #{name}> -> tensor<{shape}i32, #{name}>
    %{name}8 = arith.addi %{name}6, %{name}7 : tensor<{shape}i32, #{name}>
    %{name}9 = tt.splat %x : !tt.ptr<{element}> -> tensor<{shape}!tt.ptr<{element}>, #{name}>
    %{name}10 = tt.addptr %{name}9, %{name}8 : tensor<{shape}!tt.ptr<{element}>, #{name}>, tensor<{shape}i32, #{name}>
    %{name} = tt.load %{name}10 : tensor<{shape}!tt.ptr<{element}>, #{name}>"""  # noqa: E501


def compiled(
    m: int,
    n: int,
    k: int,
    element: str = "f16",
    result: str = "f32",
    capabilities: Capabilities = HOPPER,
    matrices: tuple[MatrixConfiguration, ...] | None = None,
    precision: str = "",
    products: str = ONE,
    shared: str = "",
) -> str:
    """The disassembly of a kernel with one dot of fragments. ``shared``: the precision of all of its dots."""
    types = {
        "left": f"tensor<{m}x{k}x{element}, #a>",
        "right": f"tensor<{k}x{n}x{element}, #b>",
        "total": f"tensor<{m}x{n}x{result}, #mma>",
    }
    text = TEXT.format(
        loads=loads("a", m, k, element) + loads("b", k, n, element),
        total=types["total"],
        products=products.format(**types, precision=f", inputPrecision = {precision}" if precision else ""),
        m=m,
        n=n,
        element=element,
        result=result,
        width={"i8": 4, "f32": 1}.get(element, 2),
        zero="0" if result == "i32" else "0.0",
    )
    if shared:
        text = text.replace("module attributes {", f'module attributes {{"ttg.dot-precision" = "{shared}", ')
    options = Options(matrices=capabilities.matrices if matrices is None else matrices)
    spirv = lower_module(parse_module(text), capabilities, options).spirv
    return disassemble(validated(spirv, may_be_older=True), names=False)


def test_one_instruction_for_one_fragment(filecheck: Callable[[str, str], None]) -> None:
    filecheck(
        compiled(16, 8, 16),
        """
        CHECK: OpCapability CooperativeMatrixKHR
        CHECK: OpExtension "SPV_KHR_cooperative_matrix"
        CHECK-DAG: [[HALF:%[0-9]+]] = OpTypeFloat 16
        CHECK-DAG: [[FLOAT:%[0-9]+]] = OpTypeFloat 32
        CHECK-DAG: [[A:%[0-9]+]] = OpTypeCooperativeMatrixKHR [[HALF]]
        CHECK-DAG: [[C:%[0-9]+]] = OpTypeCooperativeMatrixKHR [[FLOAT]]
        CHECK: [[D:%[0-9]+]] = OpCooperativeMatrixMulAddKHR [[C]]
        CHECK-NOT: OpCooperativeMatrixMulAddKHR
        CHECK: OpCompositeExtract [[FLOAT]] [[D]] 0
        CHECK: OpCompositeExtract [[FLOAT]] [[D]] 3
        """,
    )


def test_tf32_is_one_product_of_halves_where_a_vote_allows_it(filecheck: Callable[[str, str], None]) -> None:
    text = compiled(16, 8, 32, "f32", precision="tf32", shared="tf32")
    assert text.count("OpCooperativeMatrixMulAddKHR") == 2 * (4 + 1), "four products of bf16 in the branch"
    filecheck(
        text,
        """
        CHECK-DAG: [[FLOAT:%[0-9]+]] = OpTypeFloat 32
        CHECK: OpGroupNonUniformAny
        CHECK: OpBranchConditional
        CHECK: OpCooperativeMatrixMulAddKHR
        CHECK: OpLabel
        CHECK: OpFConvert
        CHECK: [[D:%[0-9]+]] = OpCooperativeMatrixMulAddKHR
        CHECK: [[D:%[0-9]+]] = OpCooperativeMatrixMulAddKHR
        CHECK: OpCompositeExtract [[FLOAT]] [[D]] 0
        CHECK: OpExtInst [[FLOAT]] {{%[0-9]+}} Fma
        """,
    )


def test_accumulators_stay_matrices_over_all_of_k(filecheck: Callable[[str, str], None]) -> None:
    text = compiled(16, 8, 64)
    assert text.count("OpCooperativeMatrixMulAddKHR") == 4
    filecheck(
        text,
        """
        CHECK: [[ONE:%[0-9]+]] = OpCooperativeMatrixMulAddKHR
        CHECK: [[TWO:%[0-9]+]] = OpCooperativeMatrixMulAddKHR {{.*}} [[ONE]]{{$}}
        CHECK: [[THREE:%[0-9]+]] = OpCooperativeMatrixMulAddKHR {{.*}} [[TWO]]{{$}}
        CHECK: OpCooperativeMatrixMulAddKHR {{.*}} [[THREE]]{{$}}
        """,
    )


def test_a_loop_that_computes_with_its_sums_carries_matrices(filecheck: Callable[[str, str], None]) -> None:
    filecheck(
        compiled(16, 8, 64, products=LOOP),
        """
        CHECK: [[FLOAT:%[0-9]+]] = OpTypeFloat 32
        CHECK: [[C:%[0-9]+]] = OpTypeCooperativeMatrixKHR [[FLOAT]]
        CHECK: [[START:%[0-9]+]] = OpCompositeConstruct [[C]]
        CHECK: OpBranch
        CHECK: [[SUM:%[0-9]+]] = OpPhi [[C]] [[START]] {{%[0-9]+}} [[LAST:%[0-9]+]]
        CHECK-NOT: OpPhi [[FLOAT]]
        CHECK: OpCompositeExtract [[FLOAT]] [[SUM]] 0
        CHECK: OpCompositeExtract [[FLOAT]] [[SUM]] 3
        CHECK: OpLoopMerge
        CHECK: [[LAST]] = OpCooperativeMatrixMulAddKHR
        """,
    )


FIRST = "    %first = tt.dot %a, %b, %c : {left} * {right} -> {total}"
HALF = """
    %half = arith.constant dense<0.5> : {total}
    %start = arith.mulf %first, %half : {total}"""


def test_a_loop_starts_with_a_matrix_that_is_there() -> None:
    text = compiled(16, 8, 16, products=FIRST + LOOP.replace("(%sum = %c)", "(%sum = %first)"))
    first, again = re.findall(r"(%\d+) = OpCooperativeMatrixMulAddKHR", text)
    assert re.search(rf"OpPhi %\d+ {first} %\d+ {again} ", text)


def test_what_a_loop_starts_with_becomes_a_matrix_before_it() -> None:
    text = compiled(16, 8, 16, products=FIRST + HALF + LOOP.replace("(%sum = %c)", "(%sum = %start)"))
    inserted = re.findall(r"(%\d+) = OpCompositeInsert", text[: text.index("OpPhi")])
    assert re.search(rf"OpPhi %\d+ {inserted[-1]} ", text)


@pytest.mark.parametrize(
    "products, k, driver",
    [
        (re.sub(" *%scaled = .*\n", "", LOOP).replace("%scaled", "%sum"), 64, HOPPER.driver),
        (LOOP, 128, HOPPER.driver),
        (LOOP, 64, "generic"),
    ],
    ids=["only adds to them", "keeps many operands", "another driver"],
)
def test_a_loop_carries_components(products: str, k: int, driver: str) -> None:
    text = compiled(16, 8, k, products=products, capabilities=replace(HOPPER, driver=driver))
    number = re.search(r"(%\d+) = OpTypeFloat 32", text)
    assert number and text.count(f"OpPhi {number[1]} ") == 4


@pytest.mark.parametrize(
    "shape, element, result, count",
    [
        ((32, 32, 32), "f16", "f32", 2 * 2 * 2),
        ((32, 32, 32), "bf16", "f32", 2 * 2 * 2),
        ((32, 32, 64), "i8", "i32", 2 * 2 * 2),
        ((16, 8, 16), "f16", "f16", 1),
        ((4, 4, 16), "f16", "f32", 1),
        ((16, 8, 8), "f16", "f32", 1),
    ],
)
def test_as_many_instructions_as_fragments(shape: tuple[int, int, int], element: str, result: str, count: int) -> None:
    assert compiled(*shape, element, result).count("OpCooperativeMatrixMulAddKHR") == count


def test_integers_are_signed() -> None:
    (line,) = [line for line in compiled(16, 8, 32, "i8", "i32").split("\n") if "MulAdd" in line]
    assert line.endswith(
        "MatrixASignedComponentsKHR|MatrixBSignedComponentsKHR|MatrixCSignedComponentsKHR|MatrixResultSignedComponentsKHR"
    )


def test_half_results_are_added_in_single_precision() -> None:
    lines = compiled(16, 8, 16, "f16", "f16").split("\n")
    matrices = [line for line in lines if "OpTypeCooperativeMatrixKHR" in line]
    single = next(line.split()[0] for line in lines if line.endswith("OpTypeFloat 32"))
    assert len(matrices) == 3 and single in matrices[2]


def test_a_devices_own_fragments_are_made_of_upstreams() -> None:
    """The device has 8×8×8 in subgroups of 8; the module says 16×8×16 in warps of 32."""
    text = compiled(32, 16, 16, capabilities=LAVAPIPE)
    assert text.count("OpCooperativeMatrixMulAddKHR") == 4 * 2 * 2 and "OpGroupNonUniformShuffle" not in text


@pytest.mark.parametrize(
    "precision, products, sums", [("tf32", 3, 0), ("bf16x3", 3, 0), ("bf16x6", 6, 4), ("tf32x3", 6, 4)]
)
def test_parts_of_floats_are_multiplied(
    precision: str, products: int, sums: int, filecheck: Callable[[str, str], None]
) -> None:
    """Each lane has 4 elements of the result; where parts are added up by themselves, so many additions follow."""
    text = compiled(16, 8, 16, "f32", precision=precision)
    assert text.count("OpCooperativeMatrixMulAddKHR") == products
    assert text.count("OpFAdd") == sums
    # A lane's 8 elements of A and 4 of B: what is left after each part but the last one.
    assert text.count("OpFSub") == 12 * (1 if products == 3 else 2)
    filecheck(
        text,
        """
        CHECK: OpCapability BFloat16CooperativeMatrixKHR
        CHECK-DAG: [[BF16:%[0-9]+]] = OpTypeFloat 16 {{.*}}
        CHECK-DAG: [[FLOAT:%[0-9]+]] = OpTypeFloat 32
        CHECK-DAG: OpTypeCooperativeMatrixKHR [[FLOAT]]
        CHECK: OpCooperativeMatrixMulAddKHR
        """,
    )


@pytest.mark.parametrize("precision, matrices", [("", HOPPER.matrices), ("tf32", HOPPER.matrices[:1])])
def test_floats_are_taken_apart_only_where_asked_and_only_into_bf16(
    precision: str, matrices: tuple[MatrixConfiguration, ...]
) -> None:
    with pytest.raises(UnsupportedOperation, match="no matrix units for"):
        compiled(16, 8, 16, "f32", matrices=matrices, precision=precision)


def test_without_such_units_it_is_refused() -> None:
    with pytest.raises(UnsupportedOperation, match="no matrix units for"):
        compiled(16, 8, 16, "f16", "f32", matrices=tuple(one for one in HOPPER.matrices if one.a == "s8"))


SHARED = """
#mma = #ttg.nvidia_mma<{{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1], instrShape = [16, 8]}}>
#a = #ttg.dot_op<{{opIdx = 0, parent = #mma, kWidth = 2}}>
#b = #ttg.dot_op<{{opIdx = 1, parent = #mma, kWidth = 2}}>
#x = #ttg.blocked<{{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [1, 1], order = [1, 0]}}>
#sa = {rows}
#sb = {columns}
#smem = #ttg.shared_memory
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.shared = 8192 : i32,
    ttg.target = "spirv:vulkan1.3", "ttg.threads-per-warp" = 32 : i32}} {{
  tt.func public @k(%p: !tt.ptr<f32>, %h: f16) {{
    %v = tt.splat %h : f16 -> tensor<32x32xf16, #x>
    %sa = ttg.local_alloc %v {{allocation.offset = 0 : i32}} : (tensor<32x32xf16, #x>) -> !ttg.memdesc<32x32xf16, #sa, #smem>
    %sb = ttg.local_alloc %v {{allocation.offset = 4096 : i32}} : (tensor<32x32xf16, #x>) -> !ttg.memdesc<32x32xf16, #sb, #smem>
    ttg.barrier local
    %a = ttg.local_load %sa : !ttg.memdesc<32x32xf16, #sa, #smem> -> tensor<32x32xf16, #a>
    %b = ttg.local_load %sb : !ttg.memdesc<32x32xf16, #sb, #smem> -> tensor<32x32xf16, #b>
    %c = arith.constant dense<0.0> : tensor<32x32xf32, #mma>
    %d = tt.dot %a, %b, %c : tensor<32x32xf16, #a> * tensor<32x32xf16, #b> -> tensor<32x32xf32, #mma>
    %q = tt.splat %p : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>, #mma>
    tt.store %q, %d : tensor<32x32x!tt.ptr<f32>, #mma>
    tt.return
  }}
}}
"""  # noqa: E501
SWIZZLED = "#ttg.swizzled_shared<{{vec = 8, perPhase = 2, maxPhase = 4, order = [{order}]}}>"
PADDED = "#ttg.padded_shared<[32:+8] {{order = [{order}], shape = [32, 32]}}>"


def from_shared(rows: str, columns: str, matrix_loads: bool = True) -> str:
    """The disassembly of a dot of buffers with these encodings."""
    source = parse_module(SHARED.format(rows=rows, columns=columns))
    options = Options(matrices=HOPPER.matrices, matrix_loads=matrix_loads)
    return disassemble(lower_module(source, HOPPER, options).spirv, names=False)


def test_floats_are_read_where_their_fragments_are_made() -> None:
    """Not all of an operand before the first product."""
    text = SHARED.replace("kWidth = 2", "kWidth = 1").replace("f16", "f32")
    text = text.replace("tt.dot %a, %b, %c :", "tt.dot %a, %b, %c, inputPrecision = tf32 :")
    source = parse_module(text.format(rows=PADDED.format(order="1, 0"), columns=PADDED.format(order="0, 1")))
    lines = disassemble(lower_module(source, HOPPER, Options(matrices=HOPPER.matrices)).spirv, names=False).split("\n")
    events = [word for line in lines for word in ("OpLoad", "MulAdd") if word in line]
    loads = events[: events.index("MulAdd")].count("OpLoad")
    assert loads < events.count("OpLoad") / 3 and events.count("MulAdd") == 3 * 8


def test_fragments_are_loaded_from_padded_rows() -> None:
    text = from_shared(PADDED.format(order="1, 0"), PADDED.format(order="0, 1"))
    assert (text.count("OpCooperativeMatrixLoadKHR"), text.count("OpCooperativeMatrixMulAddKHR")) == (4 + 4, 8)
    numbers = dict(re.findall(r"(%\d+) = OpConstant %\d+ (\d+)$", text, re.MULTILINE))
    loads = re.findall(r"OpCooperativeMatrixLoadKHR %\d+ %\d+ (%\d+) (%\d+) NonPrivatePointer", text)
    assert {(numbers[order], numbers[stride]) for order, stride in loads} == {("0", "40"), ("1", "40")}


def test_permuted_rows_are_loaded_by_registers() -> None:
    assert "OpCooperativeMatrixLoadKHR" not in from_shared(SWIZZLED.format(order="1, 0"), SWIZZLED.format(order="1, 0"))
    padded = PADDED.format(order="1, 0")
    assert "OpCooperativeMatrixLoadKHR" not in from_shared(padded, padded, matrix_loads=False)


def test_rows_that_are_not_aligned_are_loaded_by_registers() -> None:
    odd = PADDED.format(order="1, 0").replace("+8", "+4")
    assert from_shared(odd, PADDED.format(order="1, 0")).count("OpCooperativeMatrixLoadKHR") == 4


def test_buffers_that_only_matrix_dots_read_are_padded() -> None:
    source = parse_module(SHARED.format(rows=SWIZZLED.format(order="1, 0"), columns=SWIZZLED.format(order="0, 1")))
    assert pad_matrix_buffers(source)
    (function,) = source.functions.values()
    assert function.body is not None
    found = [one.result.type.encoding for one in function.body.entry.operations if one.name == "ttg.local_alloc"]
    assert found == [PaddedSharedEncoding(((32, 8),), order, (32, 32)) for order in ((1, 0), (0, 1))]
    assert not pad_matrix_buffers(source)
