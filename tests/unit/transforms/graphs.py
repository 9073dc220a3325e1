"""Random functions of branching blocks as TTGIR text, and an interpreter for what ``structure`` makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from triton.backends.spirv.ttgir.ir import Block, Module, Operation, Region, Value

MASK = (1 << 32) - 1
_COMPARE = {"eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "sgt": lambda a, b: _signed(a) > _signed(b)}
_BINARY = {
    "arith.addi": lambda a, b: a + b & MASK,
    "arith.subi": lambda a, b: a - b & MASK,
    "arith.muli": lambda a, b: a * b & MASK,
    "arith.andi": lambda a, b: a & b,
}


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


def function(body: str, arguments: str = "%seed: i32", results: str = "i32") -> str:
    """A module whose public function ``k`` has the body."""
    return (
        f'module attributes {{"ttg.num-warps" = 4 : i32}} {{\n  tt.func public @k({arguments}) -> ({results}) '
        f"attributes {{noinline = false}} {{\n{body}\n  }}\n}}\n"
    )


# -- generator ---------------------------------------------------------------------------------------------------
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


# -- interpreter -------------------------------------------------------------------------------------------------
def interpret(module: Module, *arguments: int, steps: int = 100_000) -> list[int]:
    """The results of function ``k``. A value that is used where it is not visible is a KeyError."""
    body = module.functions["k"].body
    assert body is not None
    return _Interpreter(steps).region(body, list(arguments), {})[1]


class _Interpreter:
    """Runs i32 and i1 arithmetic, cf, scf.if and scf.while."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    def region(self, region: Region, arguments: list[Any], outer: dict[Value, Any]) -> tuple[Operation, list[Any]]:
        """The terminator that leaves the region, and its operands."""
        block, values = region.entry, dict(outer)
        while True:
            values.update(zip(block.arguments, arguments, strict=True))
            *operations, last = block.operations
            for operation in operations:
                self._left -= 1
                assert self._left > 0, "this does not end"
                results = self._operation(operation, values)
                values.update(zip(operation.results, results, strict=True))
            if not last.successors:
                return last, [values[operand] for operand in last.operands]
            block, arguments = self._branch(last, values)

    def _branch(self, last: Operation, values: dict[Value, Any]) -> tuple[Block, list[Any]]:
        chosen = 0
        if last.name == "cf.cond_br":
            chosen = 0 if values[last.operands[0]] else 1
        elif last.name == "cf.switch" and values[last.operands[0]] in last.attributes["case_values"]:
            chosen = last.attributes["case_values"].index(values[last.operands[0]]) + 1
        successor = last.successors[chosen]
        return successor.block, [values[argument] for argument in successor.arguments]

    def _operation(self, operation: Operation, values: dict[Value, Any]) -> list[Any]:
        operands = [values[operand] for operand in operation.operands]
        if operation.name == "arith.constant":
            return [operation.attributes["value"]]
        if operation.name == "ub.poison":
            return [None]
        if operation.name == "arith.cmpi":
            return [_COMPARE[operation.attributes["predicate"]](*operands)]
        if operation.name in _BINARY:
            return [_BINARY[operation.name](*operands)]
        if operation.name == "scf.if":
            taken = operation.regions[0 if operands[0] else 1]
            return self.region(taken, [], values)[1] if taken.blocks else []
        assert operation.name == "scf.while", operation.name
        before, after = operation.regions
        while True:
            (again, *operands) = self.region(before, operands, values)[1]
            if not again:
                return operands
            operands = self.region(after, operands, values)[1]
