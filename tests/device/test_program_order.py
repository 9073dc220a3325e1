"""Random programs of a launch that synchronise by atomic operations: whether they race is told as a small model of the
rules of C11 tells it (native/cpu/program_races.cpp, vector_clock.h)."""

import random
from collections.abc import Iterable, Sequence

import pytest
import torch
import triton
import triton.language as tl
from triton.backends.spirv.runtime import ProgramRace

pytestmark = pytest.mark.only_on("CPU", "emulated", "races between programs are looked for where the CPU runs them")

CELLS, FLAGS, STEPS = 3, 2, 8
WRITE, READ, RELAXED, RELEASE, ACQUIRE, BOTH, STORE, LOAD, EXCHANGE = range(9)
FENCED_BEFORE, FENCED_AFTER = {RELEASE, BOTH, STORE, EXCHANGE}, {ACQUIRE, BOTH, LOAD, EXCHANGE}

Step = tuple[int, int]
Clock = dict[int, int]


@triton.jit
def walk(cells, flags, steps, read, STEPS: tl.constexpr):
    program = tl.program_id(0)
    total = 0
    for step in range(STEPS):
        kind = tl.load(steps + (program * STEPS + step) * 2)
        at = tl.load(steps + (program * STEPS + step) * 2 + 1)
        if kind == 0:
            tl.store(cells + at, program * STEPS + step + 1)
        elif kind == 1:
            total += tl.load(cells + at)
        elif kind == 2:
            tl.atomic_add(flags + at, 1, sem="relaxed")
        elif kind == 3:
            tl.atomic_add(flags + at, 1, sem="release")
        elif kind == 4:
            tl.atomic_add(flags + at, 1, sem="acquire")
        elif kind == 5:
            tl.atomic_add(flags + at, 1, sem="acq_rel")
        elif kind == 6:
            tl.atomic_store(flags + at, step, sem="release")
        elif kind == 7:
            total += tl.atomic_load(flags + at, sem="acquire")
        else:
            tl.atomic_xchg(flags + at, step, sem="acq_rel")
    tl.store(read + program, total)


def _joined(one: Clock, other: Clock) -> Clock:
    return {program: max(one.get(program, 0), other.get(program, 0)) for program in one.keys() | other.keys()}


def _races(programs: Sequence[Sequence[Step]], order: Iterable[int]) -> bool:
    """Whether an access of a cell is not ordered after the last one of another program that it conflicts with."""
    published: dict[int, Clock] = {}
    cells: list[dict[str, tuple[int, int]]] = [{} for _ in range(CELLS)]
    for program in order:
        clock: Clock = {}
        seen: Clock = {}
        released: Clock = {}
        for time, (kind, at) in enumerate(programs[program], 1):

            def after(access: tuple[int, int] | None, known: Clock, program: int = program) -> bool:
                return access is None or access[0] == program or known.get(access[0], 0) >= access[1]

            if kind in (WRITE, READ):
                cell = cells[at]
                others = ("writer", "reader", "earlier") if kind == WRITE else ("writer",)
                if not all(after(cell.get(name), clock) for name in others):
                    return True
                if kind == WRITE:
                    cells[at] = {"writer": (program, time)}
                else:
                    last = cell.get("reader")
                    if last is not None and last[0] != program:
                        cell["earlier"] = last
                    cell["reader"] = (program, time)
                continue
            if kind in FENCED_BEFORE:
                clock, seen = _joined(clock, seen), {}
                released = clock | {program: time}
            if kind == STORE:
                published[at] = released
            else:
                seen = _joined(seen, published.get(at, {}))
                if kind != LOAD:
                    published[at] = _joined(published.get(at, {}), released)
            if kind in FENCED_AFTER:
                clock, seen = _joined(clock, seen), {}
                released = clock | {program: time}
    return False


def _random(generator: random.Random) -> list[list[Step]]:
    def step() -> Step:
        kind = generator.choice((WRITE, READ, READ, *range(RELAXED, EXCHANGE + 1)))
        return kind, generator.randrange(CELLS if kind in (WRITE, READ) else FLAGS)

    return [[step() for _ in range(STEPS)] for _ in range(generator.choice((2, 3, 5, 20)))]


def test_random_programs_race_where_nothing_orders_them() -> None:
    generator, seen = random.Random(1), {True: 0, False: 0}
    while min(seen.values()) < 60:
        programs = _random(generator)
        if generator.random() < 0.7:  # few accesses of cells, so that some do not race
            kept = generator.sample(range(len(programs)), 2)
            programs = [
                [step if number in kept or step[0] > READ else (BOTH, 0) for step in steps]
                for number, steps in enumerate(programs)
            ]
        orders = range(len(programs)), range(len(programs) - 1, -1, -1)
        expected = any(_races(programs, order) for order in orders)
        if seen[expected] >= 60:
            continue
        seen[expected] += 1
        arguments = [torch.zeros(CELLS, dtype=torch.int32), torch.zeros(FLAGS, dtype=torch.int32)]
        steps = torch.tensor(programs, dtype=torch.int32)
        read = torch.zeros(len(programs), dtype=torch.int32)
        found = False
        try:
            walk[(len(programs),)](*arguments, steps, read, STEPS=STEPS, check_program_races=True, num_warps=1)
        except ProgramRace:
            found = True
        assert found == expected, programs
