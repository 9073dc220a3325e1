"""tt.dot: multiply-adds, loops over K, operands in shared memory."""

from dataclasses import replace

import pytest
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.lowering.errors import UnsupportedOperation

from tests.lowering.harness import LAVAPIPE, compile_body, disassemble, driven


def dot(m: int, n: int, k: int, element: str = "f32", result: str = "f32", between: str = "") -> str:
    """A kernel body: a dot of constant accumulators, with operands read from shared memory, and ``between`` the reads
    and the dot."""
    a, b = f"tensor<{m}x{k}x{element}, #rows>", f"tensor<{k}x{n}x{element}, #rows>"
    zero = "0" if result.startswith("i") else "0.0"
    one = "1" if element.startswith("i") else "1.0"
    left, right = (f"#ttg.dot_op<{{opIdx = {side}, parent = #rows}}>" for side in (0, 1))
    ma, mb = (f"!ttg.memdesc<{rows}x{columns}x{element}, #shared, #smem>" for rows, columns in ((m, k), (k, n)))
    la, lb = f"tensor<{m}x{k}x{element}, {left}>", f"tensor<{k}x{n}x{element}, {right}>"
    c = f"tensor<{m}x{n}x{result}, #rows>"
    return f"""    %one = arith.constant {one} : {element}
    %a = tt.splat %one : {element} -> {a}
    %b = tt.splat %one : {element} -> {b}
    %sa = ttg.local_alloc %a : ({a}) -> {ma}
    %sb = ttg.local_alloc %b : ({b}) -> {mb}
    ttg.barrier local
    %la = ttg.local_load %sa : {ma} -> {la}
    %lb = ttg.local_load %sb : {mb} -> {lb}
    {between}
    %c = arith.constant dense<{zero}> : {c}
    %d = tt.dot %la, %lb, %c : {la} * {lb} -> {c}
    %ptr = tt.splat %p : !tt.ptr<{result}> -> tensor<{m}x{n}x!tt.ptr<{result}>, #rows>
    tt.store %ptr, %d : tensor<{m}x{n}x!tt.ptr<{result}>, #rows>"""


def compiled(*shape: int, element: str = "f32", result: str = "f32") -> str:
    m, n, k = shape
    return disassemble(compile_body(dot(m, n, k, element, result), f"%p: !tt.ptr<{result}>", (m * k + k * n) * 8))


def test_small_dot_is_unrolled(filecheck):
    text = compiled(8, 16, 4)
    filecheck(text, "CHECK-NOT: OpLoopMerge\nCHECK: OpExtInst {{.*}} Fma\n")
    # 4 registers an invocation times 4 steps.
    assert text.count(" Fma ") == 16


def test_large_dot_is_a_loop_whose_body_stays_small(filecheck):
    text = compiled(32, 32, 128)
    filecheck(text, "CHECK: OpLoopMerge %{{[0-9]+}} %{{[0-9]+}} DontUnroll\nCHECK: Fma\n")
    assert 16 <= text.count(" Fma ") <= 1024


def test_several_dots_share_what_is_unrolled(monkeypatch):
    """Of two loops each body has half as many multiply-adds; a dot without a loop keeps all."""
    single, double = dot(32, 32, 128), dot(32, 32, 128)
    double += "\n" + dot(32, 32, 128).replace("%", "%z").replace("%zp :", "%p :")
    driven_by = driven(monkeypatch, LAVAPIPE, dot_unroll=512, dots_unroll=512)
    one, two = (
        disassemble(compile_body(body, "%p: !tt.ptr<f32>", capabilities=driven_by)).count(" Fma ")
        for body in (single, double)
    )
    assert one == two == 512


def test_many_small_dots_are_loops(monkeypatch):
    """Where their operands are in buffers, and all together pass the budget; each of them is below that of one dot."""
    driven_by = driven(monkeypatch, LAVAPIPE, dot_unroll=512, dots_unroll=512)

    def loops(count: int, between: str = "") -> tuple[int, int]:
        one = dot(16, 16, 16, between=between)
        named = (one.replace("%", f"%{'z' * index}").replace(f"%{'z' * index}p :", "%p :") for index in range(count))
        text = disassemble(compile_body("\n".join(named), "%p: !tt.ptr<f32>", capabilities=driven_by))
        return text.count("OpLoopMerge"), text.count(" Fma ")

    assert loops(4) == (0, 4 * 8 * 16)
    assert loops(5) == (5, 5 * 8 * 8)
    assert loops(5, between="ttg.barrier local") == (0, 5 * 8 * 16)  # operands are in registers


@pytest.mark.parametrize(
    ("element", "result", "instruction"),
    [
        ("f16", "f32", "OpFConvert"),
        ("bf16", "f32", "OpShiftLeftLogical"),
        ("f64", "f64", "Fma"),
        ("i8", "i32", "OpIMul"),
        ("f16", "f16", "OpFConvert"),
        ("f8E5M2", "f32", "OpShiftLeftLogical"),
        ("f8E4M3FN", "f16", "OpShiftLeftLogical"),
    ],
)
def test_formats(filecheck, element, result, instruction):
    filecheck(compiled(8, 16, 4, element=element, result=result), f"CHECK: OpControlBarrier\nCHECK: {instruction}\n")


def test_other_formats_are_refused():
    with pytest.raises(UnsupportedOperation, match="'tt.dot'.*i16 into i32"):
        compiled(8, 16, 4, element="i16", result="i32")


def in_registers(monkeypatch: pytest.MonkeyPatch, shared: int, **habits: int) -> str:
    """A long dot whose operands must be read before a barrier, on a device with ``shared`` bytes."""
    body = dot(16, 16, 128, between="ttg.barrier local")
    device = replace(driven(monkeypatch, LAVAPIPE, **habits), shared_bytes=shared)
    return disassemble(compile_body(body, "%p: !tt.ptr<f32>", 0, device))


def test_operands_in_registers_go_to_workgroup_memory(filecheck, monkeypatch):
    """Once for all invocations that hold the same, before a barrier, and the loop reads them there."""
    body = dot(16, 16, 64, between="ttg.barrier local")
    hopper = replace(PROFILES["nvidia-hopper"], subgroup_size=8)
    device = driven(monkeypatch, hopper, dot_unroll=64, dot_unroll_registers=512)
    text = disassemble(compile_body(body, "%p: !tt.ptr<f32>", 8192, device))
    filecheck(
        text,
        "CHECK-NOT: OpVariable {{.*}} Function\nCHECK: OpControlBarrier\nCHECK: OpControlBarrier\n"
        "CHECK: OpStore\nCHECK: OpControlBarrier\nCHECK: OpLoopMerge\n"
        "CHECK-NOT: OpControlBarrier\nCHECK: OpLoad\nCHECK: Fma\n",
    )
    assert text.count("OpControlBarrier") == 3


def test_where_there_is_no_room_they_are_looked_up_in_arrays(monkeypatch):
    text = in_registers(monkeypatch, 4096, dot_unroll_registers=512)
    assert " Function" in text and "OpLoopMerge" in text


def test_or_all_steps_are_unrolled(monkeypatch):
    text = in_registers(monkeypatch, 4096, dot_unroll_registers=1024)
    assert text.count(" Fma ") == 8 * 128 and "OpLoopMerge" not in text
