"""Races between programs: the compile option ``check_program_races``. The kernel itself is as usual: the CPU device
looks at its accesses (native/cpu/program_races.h), and its module tells what that needs to know."""

from __future__ import annotations

from ..abi.block import FIRST_PROGRAM, REPORTS, ArgumentBlock, hidden_arguments
from ..abi.report_buffer import places
from ..abi.watch_note import WatchNote
from ..settings import EQUAL
from ..ttgir.ir import UNKNOWN, Function
from ..ttgir.types import PointerType
from .lowering import Lowering


def begin_watch(ctx: Lowering, kernel: Function) -> None:
    """Has the report buffer have a part for a race."""
    ctx.reports.message("program_races", UNKNOWN, arguments=_pointers(kernel))


def note_watch(ctx: Lowering, kernel: Function, block: ArgumentBlock, scratch: bool) -> None:
    """Notes in the module where the launch's arguments have what is needed. ``scratch``: as hidden_arguments()'."""
    assert kernel.body is not None
    options = ctx.options.asked
    own = len(kernel.body.entry.arguments)
    hidden = dict(zip(hidden_arguments(scratch, True, options.split_grid), block.offsets[own:], strict=True))
    parts, size = places(ctx.reports.messages)
    first = hidden.get(FIRST_PROGRAM[0], 0)
    pointers = tuple(block.offsets[number] for number in _pointers(kernel))
    equal = options.check_program_races == EQUAL
    ctx.module.note(WatchNote(hidden[REPORTS], parts["program_races"], size, equal, first, pointers).text())


def _pointers(kernel: Function) -> list[int]:
    """The numbers of the arguments that are addresses."""
    assert kernel.body is not None
    return [
        number for number, argument in enumerate(kernel.body.entry.arguments) if isinstance(argument.type, PointerType)
    ]
