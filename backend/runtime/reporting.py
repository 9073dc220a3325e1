"""Reading what kernels report: assertions are raised, printed values go to stdout.

A kernel that may report is run to its end by each launch, so that what it says is said in order and at its call. Where
all that it can report is a loop that the driver cut short, its launcher may leave the report for later (LaterLauncher).
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from ..abi.launch_arguments import FIRST_ARGUMENT, LaunchArgument
from ..abi.report_buffer import CURSOR, FAILURE, HEADER, RECORD, RECORDS
from .context import Context
from .errors import KernelAssertionError, LoopLimitExceeded
from .extents import bounds_table
from .graph import capturing
from .host_memory import Loan
from .launch import Entry
from .races import race_table

_FLOATS = {"f16": "<e", "f32": "<f", "f64": "<d"}


class ReportingLauncher:
    """Runs a kernel with a report buffer as its last argument, waits, and says what it reported.

    ``messages``: what the kernel's metadata has as ``reports``. ``entries``: as make_launcher's, the buffer's the last.
    Raises KernelAssertionError, LoopLimitExceeded, OutOfBounds and SharedMemoryRace.
    """

    def __init__(
        self,
        context: Context,
        name: str,
        launch: Callable[..., None],
        messages: list[dict[str, Any]],
        entries: Sequence[Entry],
    ) -> None:
        self._context, self._name, self._launch, self._messages = context, name, launch, messages
        self._place = FIRST_ARGUMENT + entries[-1][0][0]
        self._bounds = bounds_table(name, messages, entries)
        self._records = HEADER.size + (self._bounds.bytes if self._bounds else 0)
        self._races = race_table(name, messages, self._records)
        self._records += self._races.bytes if self._races else 0
        prints = any(message["kind"] == "print" for message in messages)
        self._bytes = self._records + (RECORDS * RECORD.size if prints else 0)

    def __call__(self, *args: Any) -> None:
        """As make_launcher's."""
        bounds = self._bounds
        args = (*args, *[None] * (self._place - len(args)))[: self._place]
        extents = bounds.extents(args[FIRST_ARGUMENT:]) if bounds else []
        context, loan = self._context, Loan()
        buffer = loan.take(context.staging_pool, self._bytes)
        races = self._races
        shadow = races.shadow_bytes(args[: LaunchArgument.STREAM]) if races else 0
        noted = (loan.take(context.device_pool, shadow), shadow) if shadow else None
        graph = capturing(context)
        if graph is not None:
            graph.keep(loan)
            self._launch(*args, buffer.address)
            graph.add_report(
                lambda: self._reset(buffer, extents, noted), lambda: partial(self._say, *self._read(buffer), extents)
            )
            return
        since = context.native.submitted
        try:
            self._reset(buffer, extents, noted)
            self._launch(*args, buffer.address)
            context.native.synchronize_host()
            header, records = self._read(buffer)
        except BaseException:
            context.end_loan(loan, since, args)
            raise
        loan.end()
        self._say(header, records, extents)

    def _reset(self, buffer: Any, extents: list[Any], noted: tuple[Any, int] | None = None) -> None:
        """``noted``: the memory that accesses are noted in, and how many bytes of it."""
        bounds, races, address = self._bounds, self._races, 0
        if noted is not None:
            address = noted[0].address
            self._context.native.fill(address, noted[1], 0)
        written = bytes(HEADER.size) + (bounds.pack(extents) if bounds else b"")
        ctypes.memmove(buffer.host, written + (races.pack(address) if races else b""), self._records)

    def _read(self, buffer: Any) -> tuple[bytes, bytes]:
        header = ctypes.string_at(buffer.host, self._records)
        count = HEADER.unpack_from(header)[CURSOR]
        return header, ctypes.string_at(buffer.host + self._records, min(count, RECORDS) * RECORD.size)

    def _say(self, header: bytes, records: bytes, extents: list[Any]) -> None:
        words = HEADER.unpack_from(header)
        failure, count = words[FAILURE], words[CURSOR]
        if count:
            self._print(records, count)
        error = self._failure(self._messages[failure - 1]) if failure else None
        outside = self._bounds.failure(header, extents, self._messages) if self._bounds else None
        race = self._races.failure(header, self._messages) if self._races else None
        found: list[RuntimeError] = [one for one in (race, outside, error) if one is not None]
        for other in found[1:]:
            found[0].add_note(str(other))
        if found:
            raise found[0]

    @property
    def transfers(self) -> dict[str, str]:
        """Which way each pointer argument of the last launch went."""
        return self._launch.transfers  # type: ignore[attr-defined,no-any-return]

    def _failure(self, message: dict[str, Any]) -> RuntimeError:
        place = f"{message['file']}:{message['line']}: " if message["file"] else ""
        if message["kind"] == "loop":
            return LoopLimitExceeded(
                f"{place}kernel '{self._name}': Mesa's CPU driver ended this loop before its condition was false: it "
                "stops an invocation after 65535 iterations of all its loops together, so the result is wrong; does "
                "the loop end? If it does, give each program less work (a larger grid, larger blocks)"
            )
        return KernelAssertionError(f"{place}kernel '{self._name}': assertion failed: {message['text']}")

    def _print(self, records: bytes, count: int) -> None:
        for number, operand, x, y, z, index, low, high in RECORD.iter_unpack(records):
            sys.stdout.write(f"pid ({x}, {y}, {z}) {_line(self._messages[number], operand, index, low | high << 32)}\n")
        if count > RECORDS:
            sys.stderr.write(
                f"kernel '{self._name}': {count - RECORDS} printed values were lost: a launch keeps {RECORDS}\n"
            )
        sys.stdout.flush()


class LaterLauncher(ReportingLauncher):
    """A ReportingLauncher that does not wait: its launches share one buffer, which keeps the first failure until
    raise_reports() reads it. For kernels that says_loops() of."""

    def __init__(self, context: Context, *rest: Any) -> None:
        super().__init__(context, *rest)
        self._loan = Loan()
        self._kept = self._loan.take(context.staging_pool, self._bytes)
        self._reset(self._kept, [])

    def __call__(self, *args: Any) -> None:
        """As make_launcher's. Within a graph's capture, and with tensors that others than this device may read, as
        ReportingLauncher's."""
        if capturing(self._context) is not None or any(map(_read_elsewhere, args[FIRST_ARGUMENT:])):
            super().__call__(*args)
            return
        args = (*args, *[None] * (self._place - len(args)))[: self._place]
        self._launch(*args, self._kept.address)
        self._context.unread_reports.add(self)

    def passed_on(self, arguments: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        """The launcher that runs the kernel, and its arguments for these: with the buffer that is read later."""
        place = self._place - FIRST_ARGUMENT
        return self._launch, (*(*arguments, *[None] * (place - len(arguments)))[:place], self._kept.address)

    def read(self) -> None:
        """Raise what launches that are done have reported."""
        header, records = self._read(self._kept)
        if any(header):
            self._reset(self._kept, [])
            self._say(header, records, [])


def _read_elsewhere(argument: Any) -> bool:
    """Whether it is a tensor of torch's that is read with no copy from the device."""
    return getattr(argument, "is_cpu", False) or getattr(argument, "is_cuda", False)


def says_loops(messages: list[dict[str, Any]]) -> bool:
    """Whether all that a kernel can report is that a loop was cut short."""
    return all(message["kind"] == "loop" for message in messages)


def raise_reports(context: Context) -> None:
    """Wait for launches of LaterLaunchers, if there were any since the last call, and raise what they reported: the
    first failure, with the others as its notes."""
    launchers = []
    with suppress(KeyError):  # another thread may take the last one
        while context.unread_reports:
            launchers.append(context.unread_reports.pop())
    if not launchers:
        return
    context.native.synchronize_host()
    first: RuntimeError | None = None
    for launcher in launchers:
        try:
            launcher.read()
        except RuntimeError as error:
            if first is None:
                first = error
            else:
                first.add_note(str(error))
    if first is not None:
        raise first


def _line(message: dict[str, Any], operand: int, index: int, bits: int) -> str:
    """``idx (i, j) prefix value``, as upstream's GPU backends print it."""
    operands = message["operands"]
    if not operands:
        return f"idx (){message['prefix']}"
    facts = operands[operand]
    place = []
    for extent in reversed(facts["shape"]):
        index, coordinate = divmod(index, extent)
        place.append(f"{coordinate:{len(str(extent - 1))}d}")
    which = f"(operand {operand}) " if len(operands) > 1 else ""
    return f"idx ({', '.join(reversed(place))}){message['prefix']}{which}{_value(facts, bits, message['hex'])}"


def _value(facts: dict[str, Any], bits: int, hexadecimal: bool) -> str:
    type_ = facts["type"]
    if type_.startswith("!tt.ptr"):
        return f"0x{bits:016x}"
    width = {"i1": 8, "bf16": 16}.get(type_) or int("".join(filter(str.isdigit, type_.partition("E")[0]))[:2])
    if hexadecimal:
        return f"0x{bits:0{width // 4}x}"
    if type_ == "bf16":
        return f"{struct.unpack('<f', (bits << 16).to_bytes(4, 'little'))[0]:f}"
    if type_ in _FLOATS:
        return f"{struct.unpack(_FLOATS[type_], bits.to_bytes(width // 8, 'little'))[0]:f}"
    if type_.startswith("i") and facts["signed"] and type_ != "i1" and bits >> (width - 1):
        return str(bits - (1 << width))
    return str(bits)
