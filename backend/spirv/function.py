"""The body of one SPIR-V function under construction: basic blocks and structured control flow."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..driver_quirks import NO_FAULTS, Faults
from . import opcodes as op
from .carried_matrices import carry_matrices
from .encode import Instruction, live
from .module import ModuleBuilder
from .packed_phis import carry_words
from .value_numbering import InstructionBuilder

SELECTION_CONTROL_NONE = 0
LOOP_CONTROL_NONE = 0
LOOP_CONTROL_DONT_UNROLL = 2
#: No round depends on another one: one may access what an earlier one updates as it was before.
LOOP_CONTROL_DEPENDENCY_INFINITE = 4


class FunctionBuilder(InstructionBuilder):
    """Appends instructions to a function, one basic block after the other. What was numbered inside a branch or a loop
    body is forgotten at its end, where it dominates nothing any more."""

    def __init__(
        self, module: ModuleBuilder, result: int, parameters: Sequence[int] = (), faults: Faults = NO_FAULTS
    ) -> None:
        super().__init__(module, result, parameters, faults)
        self._entry = module.id()
        self.block = self._entry
        self._terminated = False
        #: Called for every loop: with its condition where that is known, and after the loop with what that call gave.
        self.watch: tuple[Callable[[int], int], Callable[[int], None]] | None = None
        #: Called before a selection or loop begins, and where what it may leave out ends.
        self.settle: Callable[[], None] | None = None
        #: Whether loops carry the matrices that they compute with, and words rather than the elements in them.
        self.carries_matrices, self.carries_words = False, True

    def label(self, block: int) -> None:
        """Starts a block."""
        self._body.append([op.Label, 0, block])
        self.block = block
        self._terminated = False

    def branch(self, target: int) -> None:
        """Ends the block by a jump."""
        self.do(op.Branch, target)
        self._terminated = True

    def return_(self, value: int = 0) -> None:
        """Ends the block by a return."""
        self.do(op.ReturnValue, value) if value else self.do(op.Return)
        self._terminated = True

    @property
    def nesting(self) -> int:
        """How many selections and loops the current block is inside."""
        return len(self._scopes)

    def push_scope(self) -> None:
        """What is numbered from here on holds until the matching pop_scope."""
        self._scopes.append([])

    def pop_scope(self) -> None:
        """Forgets what was numbered since the matching push_scope."""
        for key in self._scopes.pop():
            del self._numbered[key]

    def if_(
        self,
        condition: int,
        then: Callable[[], Sequence[int]],
        otherwise: Callable[[], Sequence[int]] | None = None,
        defaults: Sequence[int] = (),
    ) -> list[int]:
        """A selection. ``then`` and ``otherwise`` emit their blocks and give equally many values of equal types; the
        phis that join them are returned. Without ``otherwise`` the other side's values are ``defaults``."""
        module = self.module
        known = module.constants.get(condition)
        if known is not None:
            chosen = then if known else otherwise
            return list(chosen() if chosen else defaults)
        self._settle()
        true_block, merge = module.id(), module.id()
        false_block = module.id() if otherwise else merge
        start = self.block
        self.do(op.SelectionMerge, merge, SELECTION_CONTROL_NONE)
        self.do(op.BranchConditional, condition, true_block, false_block)
        true_values, true_end = self._arm(true_block, then, merge)
        false_values, false_end = list(defaults), start
        if otherwise:
            false_values, false_end = self._arm(false_block, otherwise, merge)
        self.label(merge)
        return [
            a if a == b else self.effect(op.Phi, module.type_of[a], a, true_end, b, false_end)
            for a, b in zip(true_values, false_values, strict=True)
        ]

    def _settle(self) -> None:
        if self.settle is not None:
            self.settle()

    def _arm(self, block: int, body: Callable[[], Sequence[int]], merge: int) -> tuple[list[int], int]:
        self.label(block)
        self.push_scope()
        values = list(body())
        self._settle()
        self.pop_scope()
        end = self.block
        self.branch(merge)
        return values, end

    def loop(
        self,
        initial: Sequence[int],
        condition: Callable[[list[int]], int],
        body: Callable[[list[int]], Sequence[int]],
        control: int = LOOP_CONTROL_NONE,
    ) -> list[int]:
        """A loop over carried values: while ``condition(values)`` holds, ``values = body(values)``.

        Returns the values at the exit. ``condition`` may emit pure instructions and loads, no control flow.
        """
        return self.loop_with_results(initial, lambda values: (condition(values), values), body, control)

    def loop_with_results(
        self,
        initial: Sequence[int],
        before: Callable[[list[int]], tuple[int, Sequence[int]]],
        after: Callable[[list[int]], Sequence[int]],
        control: int = LOOP_CONTROL_NONE,
    ) -> list[int]:
        """The general loop: ``before(carried)`` gives the condition and the values passed on; while it holds,
        ``after(passed)`` gives the next carried values. Returns the values passed on at the exit."""
        module = self.module
        self._settle()
        header, check, body, latch, merge = (module.id() for _ in range(5))
        start = self.block
        self.branch(header)
        self.label(header)
        phis: list[Instruction] = []
        carried: list[int] = []
        for value in initial:
            result = module.id()
            type_id = module.type_of[value]
            module.type_of[result] = type_id
            phis.append([op.Phi, type_id, result, value, start])
            carried.append(result)
        self._body += phis
        self.do(op.LoopMerge, merge, latch, control)
        self.branch(check)
        self.label(check)
        # The check dominates everything after the loop, so what it numbers stays known.
        condition, passed = before(carried)
        self._settle()
        watched = self.watch[0](condition) if self.watch else 0
        self.do(op.BranchConditional, condition, body, merge)
        self.label(body)
        self.push_scope()
        following = list(after(list(passed)))
        self._settle()
        self.pop_scope()
        self.branch(latch)
        self.label(latch)
        self.branch(header)
        for phi, value in zip(phis, following, strict=True):
            phi += [value, latch]
        self.label(merge)
        if self.watch:
            self.watch[1](watched)
        return list(passed)

    # -- the end -------------------------------------------------------------------------------------------------
    def finish(self) -> list[Instruction]:
        """All instructions of the function, those without a use left out."""
        assert self._terminated, "the last block has no terminator"
        start: list[Instruction] = [[op.Label, 0, self._entry]]
        body = carry_words(self.module, self._body, self._entry) if self.carries_words else self._body
        if self.carries_matrices:
            body = carry_matrices(self.module, body, self._entry)
        return [*self._head, *start, *self._variables, *live(body), [op.FunctionEnd, 0, 0]]
