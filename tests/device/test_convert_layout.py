"""ttg.convert_layout between pairs of layouts: modules written as TTGIR, compiled from the file and run."""

import itertools
from dataclasses import replace

import hypothesis
import numpy as np
import pytest
import triton
from hypothesis import strategies as st
from triton.runtime import driver

from tests.device.helpers import Guarded, assert_same, device_capabilities, inputs, to_torch

#: Bits of the number of a lane: the layouts here fill the device's subgroups, whatever their size.
LANE_BITS = device_capabilities().subgroup_size.bit_length() - 1

#: TTGIR's element type → NumPy's name.
ELEMENTS = {
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
}

MODULE = """
#source = {source}
#target = {target}
#one = #ttg.blocked<{{sizePerThread = [1], threadsPerWarp = [{lanes}], warpsPerCTA = [{warps}], order = [0]}}>
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = {warps} : i32, ttg.target = "spirv:vulkan1.3",
    "ttg.threads-per-warp" = {lanes} : i32}} {{
  tt.func public @convert(%x: !tt.ptr<{element}>, %y: !tt.ptr<{element}>) attributes {{noinline = false}} {{
{address_source}
    %value = tt.load %ps : tensor<{shape}x!tt.ptr<{element}>, #source>
{before}
    %moved = ttg.convert_layout %held : tensor<{shape}x{moved}, #source> -> tensor<{shape}x{moved}, #target>
{after}
{address_target}
    tt.store %pt, %result : tensor<{shape}x!tt.ptr<{element}>, #target>
    tt.return
  }}
}}
"""


def addresses(pointer: str, name: str, layout: str, shape: tuple[int, ...], element: str) -> str:
    """TTGIR for the row-major addresses of every element in ``layout``."""
    text = "x".join(map(str, shape))
    lines, total = [], ""
    for dim, extent in enumerate(shape):
        stride = int(np.prod(shape[dim + 1 :]))
        current, kept = layout, [f"{layout}"]
        for other in reversed(range(len(shape))):
            if other != dim:
                current = f"#ttg.slice<{{dim = {other if other > dim else 0}, parent = {current}}}>"
                kept.append(current)
        v = f"%{name}{dim}"
        lines.append(
            f"    {v}r = tt.make_range {{end = {extent} : i32, start = 0 : i32}} : tensor<{extent}xi32, {kept[-1]}>"
        )
        sizes, value = [extent], f"{v}r"
        for number, parent in enumerate(reversed(kept[:-1])):
            other = [axis for axis in reversed(range(len(shape))) if axis != dim][len(kept) - 2 - number]
            axis = other if other > dim else 0
            grown = [*sizes[:axis], 1, *sizes[axis:]]
            lines.append(
                f"    {v}e{number} = tt.expand_dims {value} {{axis = {axis} : i32}} : "
                f"tensor<{'x'.join(map(str, sizes))}xi32, {kept[len(kept) - 1 - number]}> -> "
                f"tensor<{'x'.join(map(str, grown))}xi32, {parent}>"
            )
            sizes, value = grown, f"{v}e{number}"
        if sizes != list(shape):
            lines.append(
                f"    {v}b = tt.broadcast {value} : tensor<{'x'.join(map(str, sizes))}xi32, {layout}> -> "
                f"tensor<{text}xi32, {layout}>"
            )
            value = f"{v}b"
        lines.append(f"    {v}s = arith.constant dense<{stride}> : tensor<{text}xi32, {layout}>")
        lines.append(f"    {v}m = arith.muli {value}, {v}s : tensor<{text}xi32, {layout}>")
        if total:
            lines.append(f"    {v}t = arith.addi {total}, {v}m : tensor<{text}xi32, {layout}>")
        total = f"{v}t" if total else f"{v}m"
    lines.append(
        f"    %{name}p = tt.splat {pointer} : !tt.ptr<{element}> -> tensor<{text}x!tt.ptr<{element}>, {layout}>"
    )
    lines.append(
        f"    %p{name} = tt.addptr %{name}p, {total} : tensor<{text}x!tt.ptr<{element}>, {layout}>, "
        f"tensor<{text}xi32, {layout}>"
    )
    return "\n".join(lines)


def module_text(source: str, target: str, shape: tuple[int, ...], element: str, warps: int, boolean: bool) -> str:
    text = "x".join(map(str, shape))
    moved, before, after = element, "", ""
    if boolean:
        moved = "i1"
        before = (
            f"    %zero = arith.constant dense<0> : tensor<{text}x{element}, #source>\n"
            f"    %held = arith.cmpi sgt, %value, %zero : tensor<{text}x{element}, #source>"
        )
        after = f"    %result = arith.extui %moved : tensor<{text}xi1, #target> to tensor<{text}x{element}, #target>"
    text_of = MODULE.format(
        source=source,
        target=target,
        lanes=1 << LANE_BITS,
        warps=warps,
        element=element,
        shape=text,
        moved=moved,
        before=before,
        after=after,
        address_source=addresses("%x", "s", "#source", shape, element),
        address_target=addresses("%y", "t", "#target", shape, element),
    )
    return text_of if boolean else text_of.replace("%held", "%value").replace("%result", "%moved")


def convert(
    folder,
    source: str,
    target: str,
    shape: tuple[int, ...],
    element: str = "f32",
    warps: int = 4,
    boolean: bool = False,
    shared_bytes: int | None = None,
) -> None:
    """Compiles and runs a conversion of a tensor, and compares what it stores with what it loaded. ``shared_bytes``: of
    the device it is compiled for, instead of those that there are."""
    path = folder / "convert.ttgir"
    path.write_text(module_text(source, target, shape, element, warps, boolean))
    target_of = driver.active.get_current_target()
    if shared_bytes is not None:
        target_of = replace(target_of, arch=replace(device_capabilities(), shared_bytes=shared_bytes).arch())
    kernel = triton.compile(str(path), target=target_of, options={"num_warps": warps})
    x = inputs(ELEMENTS[element], int(np.prod(shape))).reshape(shape)
    out = Guarded(shape, ELEMENTS[element])
    kernel[(1, 1, 1)](to_torch(x), out.tensor)
    assert shared_bytes is None or kernel.metadata.shared <= shared_bytes
    assert_same(out.values(), (x > 0).astype(x.dtype) if boolean else x, (source, target, shape, element))


def blocked(size: list[int], threads: list[int], warps: list[int], order: list[int]) -> str:
    return (
        f"#ttg.blocked<{{sizePerThread = {size}, threadsPerWarp = {threads}, warpsPerCTA = {warps}, order = {order}}}>"
    )


def lanes(parts: int) -> list[int]:
    """The lanes of a subgroup along so many dimensions, as even as can be, the last with most."""
    return [1 << (LANE_BITS + part) // parts for part in range(parts)]


#: Bases of a 32×16 tensor's elements: lanes take the first of them, registers the others.
BASES = [[0, 8], [1, 0], [4, 0], [16, 0], [0, 4], [8, 0], [0, 1]]

ROWS = blocked([1, 4], lanes(2), [4, 1], [1, 0])
COLUMNS = blocked([4, 1], lanes(2)[::-1], [1, 4], [0, 1])
SQUARE = blocked([2, 2], lanes(2)[::-1], [2, 2], [1, 0])
LAYOUTS = {
    "rows": ROWS,
    "columns": COLUMNS,
    "square": SQUARE,
    "dot_a": f"#ttg.dot_op<{{opIdx = 0, parent = {SQUARE}}}>",
    "dot_b": f"#ttg.dot_op<{{opIdx = 1, parent = {ROWS}}}>",
    "slice": f"#ttg.slice<{{dim = 1, parent = {blocked([1, 2, 1], lanes(3), [2, 2, 1], [2, 1, 0])}}}>",
    "linear": f"#ttg.linear<{{register = {BASES[: LANE_BITS - 1 : -1]}, lane = {BASES[:LANE_BITS]}, "
    "warp = [[0, 2], [2, 0]], block = []}>",
}


@pytest.mark.parametrize(("source", "target"), list(itertools.permutations(LAYOUTS, 2)))
def test_pairs_of_layouts(source, target, tmp_path):
    convert(tmp_path, LAYOUTS[source], LAYOUTS[target], (32, 16))


@pytest.mark.parametrize("element", ELEMENTS)
def test_element_types(element, tmp_path):
    convert(tmp_path, ROWS, COLUMNS, (16, 32), element)
    convert(tmp_path, COLUMNS, LAYOUTS["dot_a"], (16, 32), element)


@pytest.mark.parametrize(("source", "target"), [("rows", "columns"), ("columns", "dot_b"), ("square", "slice")])
def test_booleans(source, target, tmp_path):
    convert(tmp_path, LAYOUTS[source], LAYOUTS[target], (32, 16), "i8", boolean=True)


@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (1, 64), (128, 4)])
def test_tensors_smaller_than_the_layout(shape, tmp_path):
    convert(tmp_path, ROWS, COLUMNS, shape, "i16")
    convert(tmp_path, COLUMNS, SQUARE, shape, "f64")


def splits(total: int, parts: int) -> st.SearchStrategy[list[int]]:
    """Powers of two whose product is 2^total, ``parts`` of them."""
    return st.lists(st.integers(0, parts - 1), min_size=total, max_size=total).map(
        lambda chosen: [1 << chosen.count(part) for part in range(parts)]
    )


@st.composite
def layout_pairs(draw):
    rank, warp_bits = draw(st.integers(1, 3)), draw(st.integers(0, 3))
    shape = tuple(1 << bits for bits in draw(st.lists(st.integers(0, 6 - rank), min_size=rank, max_size=rank)))
    layouts = [
        blocked(
            draw(splits(draw(st.integers(0, 3)), rank)),
            draw(splits(LANE_BITS, rank)),
            draw(splits(warp_bits, rank)),
            list(draw(st.permutations(range(rank)))),
        )
        for _ in range(2)
    ]
    element = draw(st.sampled_from([*ELEMENTS, "i1"]))
    return layouts[0], layouts[1], shape, element, 1 << warp_bits


DRAWN = hypothesis.settings(
    max_examples=60,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)


@DRAWN
@hypothesis.given(layout_pairs())
def test_drawn_layouts(tmp_path, drawn):
    source, target, shape, element, warps = drawn
    convert(tmp_path, source, target, shape, "i8" if element == "i1" else element, warps, boolean=element == "i1")


@DRAWN
@hypothesis.given(layout_pairs())
def test_drawn_layouts_in_the_least_memory(tmp_path, drawn):
    """A place for each invocation: elements go through it in rounds, in which subgroups and lanes take turns."""
    source, target, shape, element, warps = drawn
    least = np.dtype(ELEMENTS.get(element, "int8").replace("bfloat16", "int16")).itemsize * warps << LANE_BITS
    element, boolean = ("i8", True) if element == "i1" else (element, False)
    convert(tmp_path, source, target, shape, element, warps, boolean, max(least, 64))
