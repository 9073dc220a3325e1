"""What analysis/barriers.py concludes, against the definitions: all pairs of invocations, all paths."""

from hypothesis import given
from hypothesis import strategies as st
from triton.backends.spirv.analysis.barriers import (
    NO_ACCESS,
    Access,
    Frame,
    MemoryEffect,
    Need,
    barrier_needs,
    own_places,
)
from triton.backends.spirv.layouts.gf2 import combine
from triton.backends.spirv.layouts.linear import LinearLayout
from triton.backends.spirv.ttgir.ir import Block, Function, Operation, Region
from triton.backends.spirv.ttgir.types import FunctionType

BITS = 6
LAYOUTS = st.fixed_dictionaries(
    {name: st.lists(st.integers(0, (1 << BITS) - 1), min_size=2, max_size=2) for name in ("register", "lane", "warp")}
)


@given(LAYOUTS, st.lists(st.integers(0, 15), min_size=4, max_size=4), st.booleans(), st.booleans())
def test_own_places_against_all_pairs_of_invocations(
    first: dict[str, list[int]], mixed: list[int], by_lanes: bool, same: bool
) -> None:
    """The second layout is the first with elements moved among registers, or among registers and lanes."""
    moved = [*first["register"], *(first["lane"] if by_lanes else [])]
    shifts = [0] * 4 if same else [combine(moved, number & (1 << len(moved)) - 1) for number in mixed]
    second = {
        "register": first["register"][::-1],
        "lane": [basis ^ shift for basis, shift in zip(first["lane"], shifts[:2], strict=True)],
        "warp": [basis ^ shift for basis, shift in zip(first["warp"], shifts[2:], strict=True)],
    }
    layouts = [LinearLayout.from_flat(inputs, (1 << BITS,)) for inputs in (first, second)]
    frame = Frame(0, 4, ())
    earlier, later = (
        Access(Operation("x", [], [], {}), 0, 128, write, layout, frame)
        for write, layout in zip((True, False), layouts, strict=True)
    )
    holders = [
        [
            (warp, lane, layout.apply_flat(register=register, lane=lane, warp=warp))
            for register in range(4)
            for lane in range(4)
            for warp in range(4)
        ]
        for layout in layouts
    ]
    meeting = {(a[0] == b[0], a[:2] == b[:2]) for a in holders[0] for b in holders[1] if a[2] == b[2]}
    expected = (
        Need.WORKGROUP
        if any(not warps for warps, _ in meeting)
        else Need.SUBGROUP
        if any(not own for _, own in meeting)
        else Need.NOTHING
    )
    assert own_places(earlier, later) >= expected, "a barrier too few"
    assert not same or own_places(earlier, later) == expected


STEPS = st.recursive(
    st.sampled_from("aabbccddu"),
    lambda inner: st.one_of(
        st.tuples(st.just("for"), st.lists(inner, max_size=4)),
        st.tuples(st.just("if"), st.lists(inner, max_size=3), st.lists(inner, max_size=3)),
    ),
    max_leaves=10,
)
#: What must stand between accesses, by their letters: a and b write, c and d read, all the same bytes.
NEEDS = st.fixed_dictionaries({(x, y): st.sampled_from(list(Need)) for x in "abcd" for y in "abcd"})


@given(st.lists(STEPS, max_size=6), NEEDS)
def test_every_pair_is_parted(steps: list, needs: dict[tuple[str, str], Need]) -> None:
    block = Block(parent=Region())
    steps = build(block, steps)
    assert block.parent is not None
    block.parent.blocks = [block]
    function = Function("k", FunctionType((), ()), [], {}, True, block.parent)

    def effect(operation: Operation) -> MemoryEffect:
        known = operation.name in "abcd"
        return MemoryEffect((Access(operation, 0, 4, operation.name in "ab"),)) if known else NO_ACCESS

    rules = {pair: (lambda earlier, later, need=need: need) for pair, need in needs.items()}
    found = barrier_needs(function, effect, rules)
    for path in paths(steps):
        for start, first in enumerate(path):
            strongest = Need.NOTHING
            for operation in path[start + 1 :]:
                strongest = max(strongest, found.get(operation, Need.NOTHING))
                if operation.name == "ttg.barrier":
                    strongest = Need.WORKGROUP
                elif first.name in "ab" or operation.name in "ab":
                    assert strongest >= needs.get((first.name, operation.name), Need.NOTHING)


def build(block: Block, steps: list) -> list:
    """Appends operations for ``steps`` to ``block``; the same steps with operations instead of letters."""
    made: list = []
    for step in steps:
        if isinstance(step, str):
            operation = Operation("ttg.barrier" if step == "u" else step, [], [], {}, block=block)
            made.append(operation)
        else:
            operation = Operation(f"scf.{step[0]}", [], [], {}, block=block)
            bodies = []
            for number, inner in enumerate(step[1:]):
                if number and not inner:  # no else
                    bodies.append([])
                    continue
                region = Region(parent=operation)
                region.blocks = [Block(parent=region)]
                bodies.append(build(region.blocks[0], inner))
                operation.regions.append(region)
            made.append((step[0], *bodies))
        block.operations.append(operation)
    return made


def paths(steps: list, limit: int = 64) -> list[list[Operation]]:
    """Sequences of operations that may run, with up to two rounds of each loop; the first ``limit`` of them."""
    found: list[list[Operation]] = [[]]
    for step in steps:
        if isinstance(step, Operation):
            ways: list[list[Operation]] = [[step]]
        elif step[0] == "if":
            ways = paths(step[1]) + paths(step[2])
        else:
            rounds = paths(step[1], 6)
            ways = [[], *rounds, *([*one, *other] for one in rounds for other in rounds)]
        found = [[*path, *way] for way in ways for path in found][:limit]
    return found
