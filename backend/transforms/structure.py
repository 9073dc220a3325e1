"""Branches between blocks (``cf.br``, ``cf.cond_br``, ``cf.switch``) to ``scf.if`` and ``scf.while``.

An early ``return`` makes the front end branch; SPIR-V and the analyses want regions of one block. The blocks are laid
out by their dominator tree: a block with one way in goes where that way leads; a block with several (a *merge*) goes
after the branches of its immediate dominator. Code before a merge may want to go there, to a later merge or to the
exit, so it hands on which (an i32) and the values for it, and the merge runs under an ``scf.if``. A block that is
branched back to becomes an ``scf.while`` whose first region is all it dominates. No operation is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..errors import UnsupportedOperation
from ..ttgir.ir import Block, Operation, Region, Successor, Value
from ..ttgir.operations import End, definition_of
from ..ttgir.type_reader import PLAIN_TYPES
from ..ttgir.types import Type
from .rewriting import Rewriter, region_of


def structure(region: Region) -> None:
    """Makes ``region`` and all regions inside it single blocks.

    Raises UnsupportedOperation for a loop that is entered in two places, or that is never left.
    """
    for block in region.blocks:
        for operation in block.operations:
            for inner in operation.regions:
                structure(inner)
    if len(region.blocks) > 1:
        _Structurer(region).run()


@dataclass(slots=True)
class _Outcome:
    """Where control wants to go at a point: the numbers of the possible targets with the values for each, and where
    there are several, the i32 that says which. The exit of the region is target number ``len(blocks)``."""

    targets: dict[int, list[Value]]
    selector: Value | None = None


@dataclass(slots=True)
class _Node:
    """A block in the graph. ``ways_in`` counts branches, ``merges`` are the merges it immediately dominates."""

    block: Block
    number: int
    dominator: _Node | None = None
    ways_in: int = 0
    header: bool = False
    merges: list[_Node] = field(default_factory=list)


class _Structurer:
    """Rewrites one region of several blocks."""

    def __init__(self, region: Region) -> None:
        self._region = region
        self._nodes: dict[Block, _Node] = {}
        self._exit_operation: Operation | None = None

    def run(self) -> None:
        """Leaves the entry block alone in the region."""
        entry, order = self._region.entry, _reverse_postorder(self._region.entry)
        for number, block in enumerate(order):
            self._nodes[block] = _Node(block, number)
        for block in self._region.blocks:
            if block not in self._nodes:
                for operation in block.operations:
                    operation.drop_uses()
        self._exit = len(order)
        self._find_dominators(order)
        outcome = self._emit(self._nodes[entry], entry)
        last = self._exit_operation
        assert last is not None
        Rewriter(entry, None, last.location).make(last.name, outcome.targets[self._exit], (), last.attributes)
        self._region.blocks[:] = [entry]

    # -- the graph -----------------------------------------------------------------------------------------------
    def _find_dominators(self, order: Sequence[Block]) -> None:
        """Immediate dominators (Cooper, Harvey, Kennedy: one round is enough in a reducible graph), then merges."""
        back: list[tuple[_Node, _Node, Operation]] = []
        for block in order:
            node = self._nodes[block]
            for successor in block.terminator.successors:
                target = self._nodes[successor.block]
                target.ways_in += 1
                if target.number <= node.number:
                    target.header = True
                    back.append((node, target, block.terminator))
                elif target.dominator is None:
                    target.dominator = node
                else:
                    target.dominator = _common(target.dominator, node)
        for node, target, branch in back:
            above: _Node | None = node
            while above is not None and above is not target:
                above = above.dominator
            if above is None:
                raise UnsupportedOperation(
                    branch, "it is part of a loop that is entered in two places", "enter the loop at its head only"
                )
        for block in order:
            node = self._nodes[block]
            if node.dominator is not None and (node.ways_in > 1 or node.header):
                node.dominator.merges.append(node)

    # -- emission ------------------------------------------------------------------------------------------------
    def _emit(self, node: _Node, into: Block) -> _Outcome:
        """Puts all that ``node`` dominates at the end of ``into``."""
        *operations, branch = node.block.operations
        node.block.operations = []
        Rewriter(into).insert(operations)
        outcome = self._branch(branch, into)
        for merge in node.merges:
            outcome = self._at_merge(merge, outcome, branch, into)
        return outcome

    def _branch(self, branch: Operation, into: Block) -> _Outcome:
        branch.drop_uses()
        if definition_of(branch).end is not End.BRANCH:
            known = self._exit_operation
            if known is not None and known.name != branch.name:
                raise UnsupportedOperation(branch, f"other paths end in '{known.name}'", "end all of them alike")
            self._exit_operation = known or branch
            return _Outcome({self._exit: list(branch.operands)})
        if branch.name == "cf.br":
            return self._follow(branch.successors[0], into)
        if branch.name == "cf.cond_br":
            then, otherwise = Block(), Block()
            return self._join(
                branch,
                branch["condition"],
                then,
                self._follow(branch.successors[0], then),
                otherwise,
                self._follow(branch.successors[1], otherwise),
                into,
            )
        default, *cases = branch.successors
        return self._cases(branch, list(zip(branch.attribute("case_values"), cases, strict=True)), default, into)

    def _cases(
        self, branch: Operation, cases: Sequence[tuple[int, Successor]], default: Successor, into: Block
    ) -> _Outcome:
        if not cases:
            return self._follow(default, into)
        (value, successor), *rest = cases
        then, otherwise = Block(), Block()
        condition = _equal(into, branch.operands[0], value, branch)
        return self._join(
            branch,
            condition,
            then,
            self._follow(successor, then),
            otherwise,
            self._cases(branch, rest, default, otherwise),
            into,
        )

    def _follow(self, successor: Successor, into: Block) -> _Outcome:
        node = self._nodes[successor.block]
        if node.ways_in > 1 or node.header:
            return _Outcome({node.number: list(successor.arguments)})
        for argument, value in zip(node.block.arguments, successor.arguments, strict=True):
            argument.replace_uses(value)
        return self._emit(node, into)

    def _at_merge(self, merge: _Node, outcome: _Outcome, branch: Operation, into: Block) -> _Outcome:
        """Goes on after a merge: under an ``scf.if``, where control might not want to go there."""
        values = outcome.targets.pop(merge.number)
        if not outcome.targets:
            return self._enter(merge, values, branch, into)
        assert outcome.selector is not None
        condition = _equal(into, outcome.selector, merge.number, branch)
        then, otherwise = Block(), Block()
        return self._join(branch, condition, then, self._enter(merge, values, branch, then), otherwise, outcome, into)

    def _enter(self, node: _Node, values: Sequence[Value], branch: Operation, into: Block) -> _Outcome:
        if node.header:
            return self._loop(node, values, branch, into)
        for argument, value in zip(node.block.arguments, values, strict=True):
            argument.replace_uses(value)
        return self._emit(node, into)

    def _join(
        self, branch: Operation, condition: Value, then: Block, a: _Outcome, otherwise: Block, b: _Outcome, into: Block
    ) -> _Outcome:
        """The ``scf.if`` whose regions are ``then`` and ``otherwise``, with what both hand on."""
        joined: dict[int, list[Value]] = {}
        differing: list[tuple[list[Value], int]] = []
        yields: tuple[list[Value], list[Value]] = ([], [])
        for number in sorted(a.targets.keys() | b.targets.keys()):
            left, right = a.targets.get(number), b.targets.get(number)
            values = joined[number] = list(left or right or ())
            for index, value in enumerate(values):
                if left is not None and right is not None:
                    if left[index] is right[index]:
                        continue
                elif not _inside(value, then if right is None else otherwise):
                    continue
                differing.append((values, index))
                yields[0].append(_poison(then, value.type) if left is None else left[index])
                yields[1].append(_poison(otherwise, value.type) if right is None else right[index])
        types = [values[index].type for values, index in differing]
        if len(joined) > 1:
            types.append(PLAIN_TYPES["i32"])
            yields[0].append(_selector(a, then))
            yields[1].append(_selector(b, otherwise))
        regions = [_region(then, "scf.yield", yields[0]), Region()]
        if types or otherwise.operations:
            regions[1] = _region(otherwise, "scf.yield", yields[1])
        rewriter = Rewriter(into, None, branch.location)
        results = rewriter.make("scf.if", [condition], types, regions=regions).results
        for (values, index), result in zip(differing, results, strict=False):
            values[index] = result
        return _Outcome(joined, results[-1] if len(joined) > 1 else None)

    def _loop(self, node: _Node, initial: Sequence[Value], branch: Operation, into: Block) -> _Outcome:
        """The ``scf.while`` that runs all that ``node`` dominates until control wants to go elsewhere."""
        before, after = Block(arguments=node.block.arguments), Block()
        for argument in before.arguments:
            argument.owner = before
        outcome = self._emit(node, before)
        following = outcome.targets.pop(node.number)
        if not outcome.targets:
            raise UnsupportedOperation(branch, "it enters a loop that is never left", "give the loop an end")
        assert outcome.selector is not None
        again = _equal(before, outcome.selector, node.number, branch)
        passed = list(following)
        leaving: list[tuple[list[Value], int]] = []
        for values in outcome.targets.values():
            for index, value in enumerate(values):
                if _inside(value, before):
                    leaving.append((values, index))
                    passed.append(value)
        if len(outcome.targets) > 1:
            passed.append(outcome.selector)
        after.arguments = [Value(value.type, after, index) for index, value in enumerate(passed)]
        regions = [
            _region(before, "scf.condition", [again, *passed]),
            _region(after, "scf.yield", after.arguments[: len(following)]),
        ]
        rewriter = Rewriter(into, None, branch.location)
        results = rewriter.make("scf.while", initial, [value.type for value in passed], regions=regions).results
        for (values, index), result in zip(leaving, results[len(following) :], strict=False):
            values[index] = result
        return _Outcome(outcome.targets, results[-1] if len(outcome.targets) > 1 else None)


def _reverse_postorder(entry: Block) -> list[Block]:
    """The blocks that can be reached, each before those that it branches to, but for branches back."""
    order: list[Block] = []
    seen = {entry}
    path = [(entry, iter(entry.terminator.successors))]
    while path:
        block, rest = path[-1]
        for successor in rest:
            target = successor.block
            if target not in seen:
                seen.add(target)
                path.append((target, iter(target.terminator.successors)))
                break
        else:
            order.append(block)
            path.pop()
    return order[::-1]


def _common(a: _Node, b: _Node) -> _Node:
    """The nearest node that dominates both."""
    while a is not b:
        if a.number < b.number:
            a, b = b, a
        assert a.dominator is not None
        a = a.dominator
    return a


def _inside(value: Value, block: Block) -> bool:
    """Whether ``value`` is defined in ``block`` or in a region inside it."""
    owner = value.owner
    operation = owner if isinstance(owner, Operation) else owner.holder
    return owner is block or (operation is not None and block.holds(operation))


def _region(block: Block, terminator: str, values: Sequence[Value]) -> Region:
    """A region of ``block`` alone, ended by ``terminator``."""
    Rewriter(block).make(terminator, values)
    return region_of(block)


def _selector(outcome: _Outcome, block: Block) -> Value:
    """The number of the target that ``outcome`` wants, as a value in ``block``."""
    return outcome.selector or Rewriter(block).integer(next(iter(outcome.targets)))


def _poison(block: Block, type_: Type) -> Value:
    return Rewriter(block).make("ub.poison", types=[type_]).result


def _equal(block: Block, value: Value, number: int, branch: Operation) -> Value:
    operands = [value, Rewriter(block).integer(number, value.type)]
    rewriter = Rewriter(block, None, branch.location)
    return rewriter.make("arith.cmpi", operands, [PLAIN_TYPES["i1"]], {"predicate": "eq"}).result
