"""Random functions of branching blocks as TTGIR text."""

from collections.abc import Sequence

from hypothesis import strategies as st


def function(body: str, arguments: str = "%seed: i32", results: str = "i32") -> str:
    """A module whose public function ``k`` has the body."""
    return (
        f'module attributes {{"ttg.num-warps" = 4 : i32}} {{\n  tt.func public @k({arguments}) -> ({results}) '
        f"attributes {{noinline = false}} {{\n{body}\n  }}\n}}\n"
    )


def _dominators(edges: Sequence[Sequence[int]]) -> list[set[int]]:
    """The dominators of each block of a graph without branches back; a block that is not reached has all."""
    found = [set(range(len(edges))) for _ in edges]
    found[0] = {0}
    for block in range(1, len(edges)):
        sources = [source for source in range(block) if block in edges[source]]
        for source in sources:
            found[block] &= found[source]
        found[block].add(block)
    return found


@st.composite
def branching_functions(draw: st.DrawFn, loops: bool = False) -> str:
    """A function ``(seed, fuel)`` of up to ten blocks. Every block mixes its number into a value, so that the result
    tells the path; a branch back is taken only while fuel lasts."""
    count = draw(st.integers(2, 10))
    forward = [
        sorted(draw(st.lists(st.integers(block + 1, count - 1), max_size=3))) if block + 1 < count else []
        for block in range(count)
    ]
    dominators = _dominators(forward)
    back: list[int | None] = [None] * count
    if loops:
        for block in range(1, count):
            heads = sorted(dominators[block] - {0})
            if len(dominators[block]) <= block + 1 and forward[block] and draw(st.booleans()):
                back[block] = draw(st.sampled_from(heads))
    #: The block whose values a block goes on with; -1 where it takes (mixed, fuel) as arguments: blocks with several
    #: ways in, and some of those with one.
    previous = []
    for block in range(count):
        ways = sum(row.count(block) for row in forward) + back.count(block)
        takes = ways != 1 or draw(st.booleans())
        previous.append(-1 if takes else max(dominators[block] - {block}))
    text: list[str] = []
    for block in range(count):
        if block:
            text.append(f"^bb{block}(%m{block}: i32, %f{block}: i32):" if previous[block] < 0 else f"^bb{block}:")
        if block == 0:
            mixed, fuel = "%seed", "%fuel"
        elif previous[block] < 0:
            mixed, fuel = f"%m{block}", f"%f{block}"
        else:
            mixed, fuel = f"%o{previous[block]}", f"%g{previous[block]}"
        # A value of any block that dominates this one may be used.
        other = draw(st.sampled_from(sorted(dominators[block] - {block}) or [-1])) if block else -1
        text += [
            f"%c{block} = arith.constant {block + 3} : i32",
            f"%k{block} = arith.constant 31 : i32",
            f"%one{block} = arith.constant 1 : i32",
            f"%z{block} = arith.constant 0 : i32",
            f"%p{block} = arith.muli {mixed}, %k{block} : i32",
            f"%q{block} = arith.addi %p{block}, {f'%o{other}' if other >= 0 else f'%c{block}'} : i32",
            f"%o{block} = arith.addi %q{block}, %c{block} : i32",
            f"%g{block} = arith.subi {fuel}, %one{block} : i32",
        ]

        shift = draw(st.integers(0, 4))
        test = [
            f"%tm{block} = arith.constant {1 << shift} : i32",
            f"%tb{block} = arith.andi %o{block}, %tm{block} : i32",
            f"%t{block} = arith.cmpi ne, %tb{block}, %z{block} : i32",
        ]
        targets = [
            f"^bb{number}(%o{block}, %g{block} : i32, i32)" if previous[number] < 0 else f"^bb{number}"
            for number in forward[block]
        ]
        head = back[block]
        if head is not None:
            text += [
                f"%alive{block} = arith.cmpi sgt, %g{block}, %z{block} : i32",
                *test,
                f"%back{block} = arith.andi %alive{block}, %t{block} : i1",
                f"cf.cond_br %back{block}, ^bb{head}(%o{block}, %g{block} : i32, i32), {targets[0]}",
            ]
        elif not targets:
            text.append(f"tt.return %o{block} : i32")
        elif len(targets) == 1:
            text.append(f"cf.br {targets[0]}")
        elif len(targets) == 2:
            text += [*test, f"cf.cond_br %t{block}, {targets[0]}, {targets[1]}"]
        else:
            text += [
                f"%three{block} = arith.constant 3 : i32",
                f"%case{block} = arith.andi %o{block}, %three{block} : i32",
                f"cf.switch %case{block} : i32, [\n default: {targets[0]},\n 1: {targets[1]},\n 3: {targets[2]}\n]",
            ]
    return function("\n".join(text), "%seed: i32, %fuel: i32")
