"""Encodings and shapes for hypothesis to draw."""

from hypothesis import strategies as st
from triton.backends.spirv.layouts.linear import LinearLayout
from triton.backends.spirv.ttgir.encodings import BlockedEncoding


def shapes(least: int = 1, most: int = 3, largest: int = 6) -> st.SearchStrategy[tuple[int, ...]]:
    """Tensor shapes of ``least`` to ``most`` dimensions, extents 1 to 2**largest."""
    return st.lists(st.integers(0, largest).map(lambda bits: 1 << bits), min_size=least, max_size=most).map(tuple)


@st.composite
def blocked_encodings(
    draw: st.DrawFn, rank: int, lanes: int | None = None, warps: int | None = None
) -> BlockedEncoding:
    """A blocked encoding of ``rank`` dimensions; ``lanes`` and ``warps`` are log2 of their numbers."""

    def spread(bits: int) -> tuple[int, ...]:
        sizes = [1] * rank
        for _ in range(bits):
            sizes[draw(st.integers(0, rank - 1))] *= 2
        return tuple(sizes)

    registers = spread(draw(st.integers(0, 4)))
    lane_bits = draw(st.integers(0, 5)) if lanes is None else lanes
    warp_bits = draw(st.integers(0, 3)) if warps is None else warps
    order = tuple(draw(st.permutations(range(rank))))
    return BlockedEncoding(registers, spread(lane_bits), spread(warp_bits), order)


@st.composite
def arbitrary_layouts(draw: st.DrawFn, bits: int, lanes: int, warps: int) -> LinearLayout:
    """Any surjective layout onto 2**bits elements: bases in any place, with duplicates and mixed bases."""
    columns = [1 << bit for bit in range(bits)]
    for _ in range(draw(st.integers(0, 2 * bits))):  # a random invertible matrix
        if bits > 1:
            a, b = draw(st.lists(st.integers(0, bits - 1), min_size=2, max_size=2, unique=True))
            columns[a] ^= columns[b]
    columns = list(draw(st.permutations(columns)))
    lane_count, warp_count = min(lanes, bits), warps
    slots = {
        "lane": [draw(st.sampled_from([0, 1, 2])) for _ in range(lane_count)],
        "warp": [draw(st.sampled_from([0, 1, 2])) for _ in range(warp_count)],
    }
    inputs: dict[str, list[int]] = {"register": [], "lane": [], "warp": []}
    for name, kinds in slots.items():
        for kind in kinds:
            if kind and columns:
                inputs[name].append(columns.pop())
            else:
                inputs[name].append(0)
        if name == "lane":
            inputs[name] += [0] * (lanes - lane_count)
    inputs["register"] = columns
    used = inputs["register"] + inputs["lane"] + inputs["warp"]
    for bases in inputs.values():  # turn some zero bases into copies or sums of others
        for index, basis in enumerate(bases):
            if not basis and draw(st.booleans()):
                bases[index] = draw(st.sampled_from(used))
    for _ in range(draw(st.integers(0, 1))):
        inputs["register"].append(draw(st.sampled_from([0, *used])))
    return LinearLayout.from_flat(inputs, (1 << bits,))
