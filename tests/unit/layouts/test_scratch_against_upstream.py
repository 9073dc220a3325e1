"""Upstream's allocation of workgroup memory suffices for every plan, and where it gives none none is needed."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from triton._C.libtriton import ir, passes
from triton.backends.spirv.layouts.conversion import plan_conversion
from triton.backends.spirv.layouts.distributed import distributed_layout
from triton.backends.spirv.layouts.reduction import plan_reduction
from triton.backends.spirv.layouts.through_shared import ThroughShared
from triton.backends.spirv.ttgir.encodings import (
    BlockedEncoding,
    DotOperandEncoding,
    Encoding,
    LinearEncoding,
    SliceEncoding,
)

from .strategies import blocked_encodings, shapes

ELEMENTS = {"i1": 1, "i8": 1, "f16": 2, "f32": 4, "f64": 8, "!tt.ptr<f32>": 8}


def text(encoding: Encoding) -> str:
    """The attribute as MLIR prints it."""
    match encoding:
        case BlockedEncoding():
            return (
                f"#ttg.blocked<{{sizePerThread = {list(encoding.size_per_thread)}, threadsPerWarp = "
                f"{list(encoding.threads_per_warp)}, warpsPerCTA = {list(encoding.warps_per_cta)}, "
                f"order = {list(encoding.order)}}}>"
            )
        case SliceEncoding():
            return f"#ttg.slice<{{dim = {encoding.dim}, parent = {text(encoding.parent)}}}>"
        case DotOperandEncoding():
            return f"#ttg.dot_op<{{opIdx = {encoding.op_idx}, parent = {text(encoding.parent)}}}>"
        case LinearEncoding():
            bases = ", ".join(
                f"{name} = {[list(point) for point in getattr(encoding, name)]}"
                for name in ("register", "lane", "warp", "block")
            )
            return f"#ttg.linear<{{{bases}}}>"
    raise AssertionError(encoding)


def tensor(shape: tuple[int, ...], element: str, encoding: Encoding) -> str:
    return f"tensor<{'x'.join(map(str, shape))}x{element}, {text(encoding)}>"


def allocations(path: Path, body: list[str], arguments: list[str], lanes: int, warps: int, name: str) -> list[int]:
    """``allocation.size`` of each operation called ``name``, in order; 0 if there is none."""
    parameters = ", ".join(f"%a{index}: {type_}" for index, type_ in enumerate(arguments))
    path.write_text(
        f'module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = {1 << warps} : i32, '
        f'"ttg.threads-per-warp" = {1 << lanes} : i32}} {{\n  tt.func public @f({parameters}) {{\n'
        + "\n".join(body)
        + "\n    tt.return\n  }\n}\n"
    )
    context = ir.context()
    ir.load_dialects(context)
    module = ir.parse_mlir_module(str(path), context)
    module.context = context
    manager = ir.pass_manager(context)
    passes.ttgpuir.add_allocate_shared_memory(manager)
    manager.run(module, "allocate")
    found: list[int] = []
    module.walk(lambda op: found.append(op.get_int_attr("allocation.size") or 0) if op.get_name() == name else None)
    return found


@st.composite
def encodings(draw: st.DrawFn, shape: tuple[int, ...], lanes: int, warps: int) -> Encoding:
    """A blocked encoding, a slice, a dot operand, or a linear encoding."""
    rank = len(shape)
    kind = draw(st.sampled_from(["blocked", "slice", "dot", "linear"]))
    if kind == "slice":
        return SliceEncoding(draw(st.integers(0, rank)), draw(blocked_encodings(rank + 1, lanes, warps)))
    blocked = draw(blocked_encodings(rank, lanes, warps))
    if kind == "dot" and rank > 1:
        return DotOperandEncoding(draw(st.integers(0, 1)), blocked)
    if kind == "linear":
        layout = distributed_layout(blocked, shape)
        bases = list(draw(st.permutations([p for points in layout.bases.values() for p in points])))
        thread = lanes + warps
        zero = (0,) * rank
        registers = tuple(point for point in bases[thread:] if point != zero)
        missing = [p for points in layout.bases.values() for p in points if any(p)]
        covered = {*registers, *bases[:thread]}
        assert covered >= set(missing)
        return LinearEncoding(registers, tuple(bases[:lanes]), tuple(bases[lanes:thread]), ())
    return blocked


QUICK = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@QUICK
@given(st.data(), st.integers(1, 3), st.integers(2, 5), st.integers(0, 3))
def test_conversions(tmp_path: Path, data: st.DataObject, rank: int, lanes: int, warps: int) -> None:
    cases = []
    for _ in range(8):
        shape = data.draw(shapes(rank, rank, 6 if rank < 3 else 4))
        cases.append(
            (
                shape,
                data.draw(st.sampled_from(list(ELEMENTS))),
                data.draw(encodings(shape, lanes, warps)),
                data.draw(encodings(shape, lanes, warps)),
            )
        )
    arguments = [tensor(shape, element, source) for shape, element, source, _ in cases]
    body = [
        f"    %c{index} = ttg.convert_layout %a{index} : {argument} -> {tensor(shape, element, result)}"
        for index, (argument, (shape, element, _, result)) in enumerate(zip(arguments, cases, strict=True))
    ]
    sizes = allocations(tmp_path / "case.ttgir", body, arguments, lanes, warps, "ttg.convert_layout")
    assert len(sizes) == len(cases)
    for size, (shape, element, source, result) in zip(sizes, cases, strict=True):
        plan = plan_conversion(
            distributed_layout(source, shape), distributed_layout(result, shape), ELEMENTS[element], size
        )
        if isinstance(plan, ThroughShared):
            assert 0 < plan.size * ELEMENTS[element] <= size


@QUICK
@given(st.data(), st.integers(1, 3), st.integers(2, 5), st.integers(0, 3), st.integers(1, 2))
def test_reductions(tmp_path: Path, data: st.DataObject, rank: int, lanes: int, warps: int, operands: int) -> None:
    cases, body, arguments = [], [], []
    for index in range(6):
        shape = data.draw(shapes(rank, rank, 6 if rank < 3 else 4))
        axis = data.draw(st.integers(0, rank - 1))
        types = data.draw(st.lists(st.sampled_from(["i8", "i16", "i32", "i64"]), min_size=operands, max_size=operands))
        encoding = data.draw(encodings(shape, lanes, warps))
        cases.append((shape, axis, types, encoding))
        inputs = [tensor(shape, element, encoding) for element in types]
        rest = shape[:axis] + shape[axis + 1 :]
        outputs = [tensor(rest, element, SliceEncoding(axis, encoding)) if rest else element for element in types]
        names = [f"%a{len(arguments) + place}" for place in range(operands)]
        arguments += inputs
        left, right = ([f"%{side}{place}" for place in range(operands)] for side in "pq")
        header = ", ".join(f"{n}: {t}" for n, t in zip(left + right, types + types, strict=True))
        sums = [f"      %s{p} = arith.addi {left[p]}, {right[p]} : {types[p]}" for p in range(operands)]
        returned = ", ".join(f"%s{p}" for p in range(operands))
        body += [
            f'    %r{index}:{operands} = "tt.reduce"({", ".join(names)}) <{{axis = {axis} : i32}}> ({{',
            f"    ^bb0({header}):",
            *sums,
            f"      tt.reduce.return {returned} : {', '.join(types)}",
            f"    }}) : ({', '.join(inputs)}) -> ({', '.join(outputs)})",
        ]
    sizes = allocations(tmp_path / "case.ttgir", body, arguments, lanes, warps, "tt.reduce")
    assert len(sizes) == len(cases)
    for size, (shape, axis, types, encoding) in zip(sizes, cases, strict=True):
        plan = plan_reduction(distributed_layout(encoding, shape), axis, tuple(int(t[1:]) // 8 for t in types), size)
        if size == 0:
            assert plan.across_warps is None


@pytest.mark.parametrize("extent", [64, 128])
def test_a_transposition_that_upstream_does_in_parts(tmp_path: Path, extent: int) -> None:
    """Registers common to both sides: upstream gives memory for a part of the tensor, and the plan has rounds."""
    source = BlockedEncoding((1, 4), (4, 8), (4, 1), (1, 0))
    result = BlockedEncoding((4, 1), (8, 4), (1, 4), (0, 1))
    shape = (extent, extent)
    argument = tensor(shape, "f32", source)
    body = [f"    %c = ttg.convert_layout %a0 : {argument} -> {tensor(shape, 'f32', result)}"]
    (size,) = allocations(tmp_path / "case.ttgir", body, [argument], 5, 2, "ttg.convert_layout")
    plan = plan_conversion(distributed_layout(source, shape), distributed_layout(result, shape), 4, size)
    assert isinstance(plan, ThroughShared)
    assert len(plan.rounds) * size == extent * extent * 4
