"""The claims about every value of a function, through branches and loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from ...ttgir.ir import Block, Function, Operation, Region, Value
from . import integers, tensors  # noqa: F401 - fill the table
from .hints import with_hints
from .info import AxisInfo, columns, meet, unknown
from .rule_table import RULES

#: After this many rounds over a loop, what still changes is given up.
MAX_ROUNDS = 4


class AxisInfoAnalysis:
    """The claims about every value of ``function``: ``analysis[value]``. Runs once, over the whole function. Without
    one nothing is known of any value."""

    def __init__(self, function: Function | None) -> None:
        self._known: dict[Value, AxisInfo] = {}
        if function is not None and function.body is not None:
            for argument, attributes in zip(function.body.entry.arguments, function.argument_attributes, strict=True):
                self._known[argument] = with_hints(unknown(argument.type), attributes)
            self._region(function.body)

    def __getitem__(self, value: Value) -> AxisInfo:
        """What is known of ``value``; nothing, where the analysis does not reach."""
        found = self._known.get(value)
        return unknown(value.type) if found is None else found

    def _values(self, values: Iterable[Value]) -> list[AxisInfo]:
        return [self[value] for value in values]

    def _region(self, region: Region) -> None:
        for block in region.blocks:
            self._block(block)

    def _block(self, block: Block) -> None:
        known = self._known
        for operation in block.operations:
            structured = _STRUCTURED.get(operation.name)
            if structured is not None:
                structured(self, operation)
                continue
            for region in operation.regions:
                self._region(region)
            if not operation.results:
                continue
            rule = RULES.get(operation.name)
            hints = operation.attributes if len(operation.results) == 1 else {}
            for result in operation.results:
                info = unknown(result.type) if rule is None else rule(operation, self._values(operation.operands))
                known[result] = with_hints(info, hints) if hints else info

    def _define(self, values: Sequence[Value], infos: Sequence[AxisInfo]) -> None:
        for value, info in zip(values, infos, strict=True):
            self._known[value] = info

    def _for(self, operation: Operation) -> None:
        """``scf.for``: operands lower bound, upper bound, step, initial values."""
        body = operation.regions[0].entry
        lower, step = self[operation["lowerBound"]], self[operation["step"]]
        counter = body.arguments[0]
        self._known[counter] = replace(
            unknown(counter.type), divisibility=(min(lower.divisibility[0], step.divisibility[0]),)
        )

        def around(carried: Sequence[AxisInfo]) -> list[AxisInfo]:
            self._define(body.arguments[1:], carried)
            self._block(body)
            return self._values(body.terminator.operands)

        self._define(operation.results, self._fixpoint(self._values(operation.operands[3:]), around))

    def _while(self, operation: Operation) -> None:
        """``scf.while``: the first region ends in ``scf.condition``, which passes values to the second and out."""
        before, after = (region.entry for region in operation.regions)

        def around(carried: Sequence[AxisInfo]) -> list[AxisInfo]:
            self._define(before.arguments, carried)
            self._block(before)
            self._define(after.arguments, self._values(before.terminator.operands[1:]))
            self._block(after)
            return self._values(after.terminator.operands)

        self._fixpoint(self._values(operation.operands), around)
        self._define(operation.results, self._values(before.terminator.operands[1:]))

    def _if(self, operation: Operation) -> None:
        """``scf.if``: a result may be what either region yields."""
        for region in operation.regions:
            self._region(region)
        if operation.results:
            ends = [self._values(region.entry.terminator.operands) for region in operation.regions]
            self._define(operation.results, [meet(*pair) for pair in zip(*ends, strict=True)])

    def _fixpoint(
        self, initial: Sequence[AxisInfo], around: Callable[[Sequence[AxisInfo]], list[AxisInfo]]
    ) -> list[AxisInfo]:
        """Claims that hold before and after every round of a loop, from the claims before the first."""
        carried = list(initial)
        rounds = 0
        while True:
            found = [meet(old, new) for old, new in zip(carried, around(carried), strict=True)]
            if found == carried:
                return carried
            rounds += 1
            if rounds >= MAX_ROUNDS:
                found = [
                    new if new == old else columns([(1, 1, 1)] * old.rank)
                    for old, new in zip(carried, found, strict=True)
                ]
            carried = found


_STRUCTURED: dict[str, Callable[[AxisInfoAnalysis, Operation], None]] = {
    "scf.for": AxisInfoAnalysis._for,
    "scf.while": AxisInfoAnalysis._while,
    "scf.if": AxisInfoAnalysis._if,
}
