"""``tt.scan``: carries out the plan of layouts/scan_plans.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..layouts.element_sizes import bits_in_memory
from ..layouts.scan_plans import PART, AcrossLanes, AcrossRegisters, AcrossWarps
from ..planning.memory_pools import first_element
from ..planning.plans import Conversion, Scan
from ..spirv import opcodes as op
from ..ttgir.ir import Operation
from ..ttgir.types import Type, element_type
from .convert_layout import convert_registers
from .index_arithmetic import apply_bases, coordinates, not_duplicate
from .lowering import Lowering
from .regions import combiner
from .registry import lowers
from .scratch import take
from .shuffle import shuffle

#: One id an operand.
State = list[int]
Combine = Callable[[Sequence[int], Sequence[int]], State]


@lowers("tt.scan")
def _scan(ctx: Lowering, operation: Operation) -> None:
    types = [element_type(operand.type) for operand in operation.operands]
    plan = ctx.plan_of(operation, Scan)
    operands = [ctx.registers(operand) for operand in operation.operands]
    scan = _Scan(ctx, plan, types, combiner(ctx, operation))
    results = scan.run(_converted(ctx, plan.before, operands, types))
    results = _converted(ctx, plan.after, results, types)
    for result, registers in zip(operation.results, results, strict=True):
        ctx.define(result, registers)


def _converted(
    ctx: Lowering, plans: tuple[Conversion, ...], tensors: list[list[int]], types: list[Type]
) -> list[list[int]]:
    """The registers of each tensor in another layout, where ``plans`` has one for each."""
    if not plans:
        return tensors
    return [
        convert_registers(ctx, plan, registers, type_)
        for plan, registers, type_ in zip(plans, tensors, types, strict=True)
    ]


@dataclass(slots=True)
class _Before:
    """What comes before a chunk of registers. ``exists``: a boolean id."""

    total: State
    exists: int


class _Scan:
    """One scan under way. A chunk is what the first run of registers joined; the combination of all that comes before
    it is kept apart until the end, so that each register is combined with it once."""

    def __init__(self, ctx: Lowering, plan: Scan, types: list[Type], combine: Combine) -> None:
        assert plan.steps is not None
        self.ctx, self.plan, self.types, self.combine = ctx, plan.steps, types, combine
        self.places = list(plan.places)

    def run(self, operands: list[list[int]]) -> list[list[int]]:
        """The registers of each operand, scanned."""
        plan = self.plan
        values = [[[operand[register] for operand in operands] for register in group] for group in plan.groups]
        steps = list(plan.steps)
        chunk = 1
        if steps and isinstance(steps[0], AcrossRegisters):
            first = steps.pop(0)
            assert isinstance(first, AcrossRegisters)
            chunk = 1 << first.bits
            for line in values:
                for place in range(len(line)):
                    if place % chunk:
                        line[place] = self.combine(line[place - 1], line[place])
        # Totals of the blocks of each group, and what comes before each chunk.
        totals = [[line[place] for place in range(chunk - 1, len(line), chunk)] for line in values]
        before: list[list[_Before | None]] = [[None] * len(line) for line in totals]
        for number, step in enumerate(steps):
            last = number == len(steps) - 1
            if isinstance(step, AcrossRegisters):
                self._registers(totals, before, 1 << step.bits, last)
            elif isinstance(step, AcrossLanes):
                # With one register a chunk the scan across lanes is the result itself.
                inclusive = values if chunk == 1 and number == 0 else None
                self._lanes(step, totals, before, inclusive, last)
            else:
                self._warps(step, totals, before, last)
        for line, preceding in zip(values, before, strict=True):
            for place, value in enumerate(line):
                line[place] = self._after(preceding[place // chunk], value)
        return [[values[group][place][number] for group, place in plan.results] for number in range(len(operands))]

    # -- values and what comes before them -----------------------------------------------------------------------
    def _select(self, condition: int, true: State, false: State) -> State:
        return [self.ctx.f.select(condition, a, b) for a, b in zip(true, false, strict=True)]

    def _after(self, before: _Before | None, value: State) -> State:
        """``value`` with all that comes before it."""
        if before is None:
            return value
        return self._select(before.exists, self.combine(before.total, value), value)

    def _prepend(self, before: list[_Before | None], chunks: range, earlier: _Before) -> None:
        """Puts ``earlier`` before what already comes before each of ``chunks``."""
        f = self.ctx.f
        known: dict[int, _Before] = {}
        for chunk in chunks:
            inner = before[chunk]
            if inner is None:
                before[chunk] = earlier
                continue
            joined = known.get(id(inner))
            if joined is None:
                both = self.combine(earlier.total, inner.total)
                total = self._select(inner.exists, self._select(earlier.exists, both, inner.total), earlier.total)
                joined = known[id(inner)] = _Before(total, f.logical_or(inner.exists, earlier.exists))
            before[chunk] = joined

    # -- steps ---------------------------------------------------------------------------------------------------
    def _registers(self, totals: list[list[State]], before: list[list[_Before | None]], count: int, last: bool) -> None:
        always = self.ctx.module.boolean(True)
        for group, blocks in enumerate(totals):
            chunks = len(before[group]) // len(blocks)
            joined = []
            for start in range(0, len(blocks), count):
                total = blocks[start]
                for block in range(start + 1, start + count):
                    self._prepend(before[group], range(block * chunks, (block + 1) * chunks), _Before(total, always))
                    if not (last and block == start + count - 1):
                        total = self.combine(total, blocks[block])
                joined.append(total)
            totals[group] = joined

    def _lanes(
        self,
        step: AcrossLanes,
        totals: list[list[State]],
        before: list[list[_Before | None]],
        inclusive: list[list[State]] | None,
        last: bool,
    ) -> None:
        """Each lane whose bit is set takes the value of the last lane of the block before."""
        ctx, f, module = self.ctx, self.ctx.f, self.ctx.module
        flipped = step.mask if self.plan.reverse else 0
        place = f.xor(ctx.lane, module.uint(flipped))  # the place of the lane, in scan order
        sources, later = [], []
        low = 0
        for mask in step.masks:
            origin = f.and_(f.or_(place, module.uint(low)), module.uint(~mask))
            sources.append(f.xor(origin, module.uint(flipped)))
            later.append(f.compare(op.INotEqual, f.and_(place, module.uint(mask)), module.uint(0)))
            low |= mask
        own = f.and_(place, module.uint(step.mask))
        rest = f.and_(place, module.uint(~step.mask))
        previous = f.and_(f.sub(own, module.uint(1)), module.uint(step.mask))
        previous_lane = f.xor(f.or_(previous, rest), module.uint(flipped))
        last_lane = f.xor(f.or_(place, module.uint(step.mask)), module.uint(flipped))
        exists = f.compare(op.INotEqual, own, module.uint(0))
        for group, blocks in enumerate(totals):
            chunks = len(before[group]) // len(blocks)
            for block, total in enumerate(blocks):
                scanned = total
                for source, is_later in zip(sources, later, strict=True):
                    earlier = [shuffle(ctx, value, source) for value in scanned]
                    scanned = self._select(is_later, self.combine(earlier, scanned), scanned)
                if inclusive is not None:
                    inclusive[group][block] = scanned
                else:
                    earlier = [shuffle(ctx, value, previous_lane) for value in scanned]
                    self._prepend(before[group], range(block * chunks, (block + 1) * chunks), _Before(earlier, exists))
                blocks[block] = scanned if last else [shuffle(ctx, value, last_lane) for value in scanned]

    def _warps(
        self, step: AcrossWarps, totals: list[list[State]], before: list[list[_Before | None]], last: bool
    ) -> None:
        ctx, f, module, shared = self.ctx, self.ctx.f, self.ctx.module, self.ctx.shared
        sizes = [bits_in_memory(type_) // 8 for type_ in self.types]
        starts = [take(ctx, place) for place in self.places.pop(0)]
        ends = [start + step.size * size for start, size in zip(starts, sizes, strict=True)]
        stores, loads = coordinates(ctx, step.store, 0), coordinates(ctx, step.load, 0)
        flat = [total for blocks in totals for total in blocks]

        width = min(step.width, *(shared.width_limit(type_) for type_ in self.types))

        def place_of(offset: int, start: int, size: int) -> int:
            """The number of an access."""
            return f.shr(f.add(offset, module.uint(first_element(start, size))), width.bit_length() - 1)

        def write() -> list[int]:
            for first in range(0, len(flat), width):
                totals = zip(*flat[first : first + width], strict=True)
                for type_, some, start, size, end in zip(self.types, totals, starts, sizes, ends, strict=True):
                    shared.store(ctx, type_, place_of(stores[first], start, size), some, end, start)
            return []

        f.if_(not_duplicate(ctx, step.duplicate_lanes, step.duplicate_warps), write)
        ctx.barrier()
        parts = step.load.images(PART)
        # This warp's place among those that are joined, in scan order.
        bits = [0] * len(step.load.inputs["warp"])
        for index, mask in enumerate(step.masks):
            bits[mask.bit_length() - 1] = 1 << index
        number = apply_bases(f, ctx.warp, bits)
        if self.plan.reverse:
            parts.reverse()
            number = f.xor(number, module.uint(len(parts) - 1))
        exists = f.compare(op.INotEqual, number, module.uint(0))
        own = [f.compare(op.IEqual, number, module.uint(part)) for part in range(len(parts))]

        def read(first: int, part: int) -> list[State]:
            """The totals of ``width`` blocks."""
            place = f.add(loads[first], module.uint(part))
            found = [
                shared.load(ctx, type_, place_of(place, start, size), width, end, start)
                for type_, start, size, end in zip(self.types, starts, sizes, ends, strict=True)
            ]
            return [list(total) for total in zip(*found, strict=True)]

        block_number = 0
        for group, blocks in enumerate(totals):
            chunks = len(before[group]) // len(blocks)
            for block in range(len(blocks)):
                if block_number % width == 0:
                    together = [read(block_number, part) for part in (parts[:-1] if last else parts)]
                found = [totals[block_number % width] for totals in together]
                block_number += 1
                running = earlier = found[0]
                for index in range(1, len(parts)):
                    if index > 1:
                        earlier = self._select(own[index], running, earlier)
                    if index < len(found):
                        running = self.combine(running, found[index])
                self._prepend(before[group], range(block * chunks, (block + 1) * chunks), _Before(earlier, exists))
                blocks[block] = running
