"""Launches that are compared with the reference's."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import Any

from ...abi.launch_arguments import FIRST_ARGUMENT, LaunchArgument
from ...cpu.objects import WHEN_LOADED
from ...options import SPIRVOptions
from ...reference import ITEMS, KEPT, NAMES, item_of
from ...runtime.context import Context
from ...runtime.errors import ValuesDiffer
from ...runtime.launches.graph import capturing
from ...runtime.launches.launch import Entry, LaunchWrapper
from ...runtime.native_module import native
from ...ttgir.ir import Module
from ...ttgir.parser import parse_module
from .bisection import Found, find
from .differences import Difference, difference, movement, nudged, worst
from .host_copies import Pointer, Storage, Untold, pointers
from .launch_report import report
from .skipped import adds_floats_in_any_order, computed_in, is_smooth, why_not, writing_place

_log = logging.getLogger(__name__)
_told: set[tuple[str, str]] = set()
#: How often the reference runs from nudged memory where a value differs, and how often where one still does: of many
#: elements, one in 3^8 may not move in 8 runs what has few values. No more bytes are kept of all of these runs.
_NUDGES, _NUDGED = (8, 32), 1 << 31

#: Bytes of stack, as a processor's own threads have: a gradient of flash-linear-attention's takes 9.7 million.
_STACK = 16 << 20

#: Set while launches are compared: what copying memory launches itself is not.
_COMPARING: ContextVar[bool] = ContextVar("values are compared", default=False)

#: What comparisons of this process found, whatever became of the errors, and how many launches were compared.
found_here: list[ValuesDiffer] = []
compared_here = 0
#: Called with a kernel's source and its worst() difference, of each launch that is compared.
observers: list[Callable[[Any, float], None]] = []


class ValuesLauncher(LaunchWrapper):
    """Launches a kernel as ``launch`` does, then the reference with the same arguments and memory, and compares. What
    is left in memory is what ``launch`` wrote.

    ``source``, ``metadata``: the kernel's; ``entries``: as make_launcher's; ``make`` makes a launcher for the metadata
    of the kernel compiled with other options. Raises ValuesDiffer.
    """

    def __init__(
        self,
        context: Context,
        launch: Callable[..., None],
        source: Any,
        metadata: Any,
        entries: Sequence[Entry],
        make: Callable[[Any], Callable[..., None]],
    ) -> None:
        self._context, self._launch, self._source, self._metadata = context, launch, source, metadata
        self._entries, self._make = entries, make
        self._kernels: dict[tuple[str, ...], Any] = {}
        self._variants: dict[str, tuple[Any, Callable[..., None]]] = {}

    def __call__(self, *args: Any) -> None:
        """Launches as what make_launcher() gives does."""
        if _COMPARING.get() or capturing(self._context) is not None:
            self._launch(*args)
            return
        token = _COMPARING.set(True)
        try:
            self._compared(args)
        finally:
            _COMPARING.reset(token)

    # -- variants ------------------------------------------------------------------------------------------------
    def _compiled(self, without: Collection[str]) -> Any:
        """The kernel compiled without some items more than it is, before the device has it. Raises what compiling
        raises."""
        import triton
        from triton.compiler import ASTSource

        left_out = tuple(name for name in NAMES if name in without or name in self._metadata.without)
        if left_out not in self._kernels:
            options = {entry.name: getattr(self._metadata, entry.name) for entry in fields(SPIRVOptions)}
            options |= {"check_values": False, "reference": False, "without": left_out}
            source = self._source if isinstance(self._source, ASTSource) else self._source.path
            later = WHEN_LOADED.set(True)
            try:
                with triton.knobs.compilation.scope():
                    triton.knobs.compilation.store_binary_only = False  # its TTGIR is read
                    self._kernels[left_out] = triton.compile(source, target=self._metadata.target, options=options)
            finally:
                WHEN_LOADED.reset(later)
        return self._kernels[left_out]

    def _variant(self, without: Collection[str]) -> tuple[Any, Callable[..., None]]:
        """Such a kernel, which the device has, and its launcher."""
        compiled = self._compiled(without)
        if compiled.hash not in self._variants:
            compiled._init_handles()
            self._variants[compiled.hash] = compiled, self._make(compiled.metadata)
        return self._variants[compiled.hash]

    @cached_property
    def _items(self) -> list[str]:
        """What is on in the usual kernel, and off in the reference."""
        return [name for name in NAMES if name not in KEPT and name not in self._metadata.without]

    @cached_property
    def _reference(self) -> Module:
        """The reference's TTGIR."""
        return parse_module(self._compiled(self._items).asm["ttgir"], f"{self._metadata.name}.ttgir")

    @cached_property
    def _why_not(self) -> str:
        """Why the kernel is not compared at all; empty if it is."""
        try:
            reason = why_not(self._reference)
            if not reason:
                self._variant(self._items)
            return reason
        except Exception as error:  # whatever the compiler raises: the usual kernel runs all the same
            return f"the reference cannot be compiled ({_first_line(error)})"

    # -- a launch ------------------------------------------------------------------------------------------------
    def _compared(self, args: tuple[Any, ...]) -> None:
        reason = self._why_not
        arguments: list[Pointer] = []
        storages: list[Storage] = []
        if not reason:
            try:
                arguments, storages = pointers(args, self._entries)
            except Untold as error:
                reason = str(error)
        if reason:
            self._say(reason)
            self._launch(*args)
            return
        global compared_here
        compared_here += 1
        run = _Run(self._context, storages, args)
        usual = run.after(self._launch, args[LaunchArgument.FUNCTION])
        try:
            self._compare(run, arguments, usual)
        finally:
            run.put_back(usual)

    def _say(self, reason: str) -> None:
        """Tells once for a kernel why it is not compared."""
        if (self._metadata.name, reason) not in _told:
            _told.add((self._metadata.name, reason))
            _log.warning("kernel '%s': its values are not compared: %s", self._metadata.name, reason)

    def _compare(self, run: _Run, arguments: list[Pointer], usual: list[Any]) -> None:
        computed = computed_in(self._reference)
        written = self._metadata.written_arguments
        if written is not None:
            arguments = sorted(arguments, key=lambda one: one.number not in written)
        try:
            expected = run.of_variant(self._variant(self._items))
        except native().KernelFault as error:  # without rewrites it takes more stack, which its thread may not have
            return self._say(f"the reference faults ({_first_line(error)})")
        found = difference(arguments, run.before, usual, expected, computed)
        for observe in observers:
            observe(self._source, worst(arguments, usual, expected))
        if found is None:
            return
        again = run.after(self._launch, run.args[LaunchArgument.FUNCTION])
        unstable = difference(arguments, run.before, usual, again, set()) is not None or any(
            (one != other).any() for one, other in zip(usual, again, strict=True)
        )
        if unstable and adds_floats_in_any_order(self._reference):
            self._say("it adds floats atomically, and two launches of it differ")
            return

        near, roundings = list[list[Any]](), 0.0
        for last in _NUDGES:
            if not unstable and found is not None:
                more, roundings = self._near(run, arguments, computed, range(len(near), last))
                near += more
                found = difference(arguments, run.before, usual, expected, computed, near, roundings)
        if found is None:
            _log.info("kernel '%s': terms cancel, and the reference is as uncertain", self._metadata.name)
            return

        def is_right(without: Collection[str]) -> bool | None:
            try:
                values = run.of_variant(self._variant(without))
            except Exception as error:
                _log.info("without %s: %s", ", ".join(without), _first_line(error))
                return None
            return difference(arguments, run.before, values, expected, computed, near, roundings) is None

        self._raise(run, found, Found((), None) if unstable else find(self._items, is_right), unstable)

    def _near(
        self, run: _Run, arguments: list[Pointer], computed: set[str], seeds: range
    ) -> tuple[list[list[Any]], float]:
        """What the reference writes from memory with floats rounded otherwise, and how many times what moves
        is rounding; nothing if it faults, of much, or where floats become whole numbers, which may be outside then."""
        variant = self._variant(self._items)
        is_nudged = sum(map(len, run.before)) * seeds.stop <= _NUDGED and "arith.fpto" not in variant[0].asm["ttgir"]
        types, roundings = movement(arguments, computed, is_smooth(self._reference))
        memories = (nudged(arguments, run.before, types, seed) for seed in seeds if is_nudged)
        try:
            return [run.of_variant(variant, one) for one in memories], roundings
        except native().KernelFault:
            return [], roundings

    def _raise(self, run: _Run, found: Difference, items: Found, unstable: bool) -> None:
        place = writing_place(self._reference, found.pointer.number) or _place_of(self._source)
        file, line = place or ("", 0)
        where = f"{Path(file).name}:{line}: " if file else ""
        name, argument = self._metadata.name, found.pointer.name
        message = (
            f"{where}kernel '{name}': {argument}[{found.index}] is {_number(found.usual)} optimised and "
            f"{_number(found.reference)} by the reference; {found.count} of {found.written} elements differ\n"
            f"{_cause(items, unstable)}"
        )
        facts = {
            "kernel": name,
            "argument": argument,
            "index": found.index,
            "usual": found.usual,
            "reference": found.reference,
            "file": file,
            "line": line,
            "items": items.names,
        }
        compiled = self._variant(self._items)[0]
        told = report(message, facts, compiled, self._metadata, run.args, self._entries, run.before, run.storages)
        error = ValuesDiffer(message, **facts, report=told)
        found_here.append(error)
        raise error


class _Run:
    """Launches from the same memory. ``before``: the bytes of all ``storages`` before the launch with ``args``."""

    def __init__(self, context: Context, storages: list[Storage], args: tuple[Any, ...]) -> None:
        self._context, self.storages, self.args = context, storages, args
        self.before = [one.read(context) for one in storages]
        self._fresh, self._is_deep = True, False

    def after(self, launch: Callable[..., None], function: Any, memory: Sequence[Any] | None = None) -> list[Any]:
        """The bytes after a launch from that memory, or from other."""
        if not self._fresh or memory:
            self.put_back(memory or self.before)
        self._fresh = False
        args = list(self.args)
        args[LaunchArgument.FUNCTION] = function
        launch(*args)
        return [one.read(self._context) for one in self.storages]

    def of_variant(self, variant: tuple[Any, Callable[..., None]], memory: Sequence[Any] | None = None) -> list[Any]:
        """The bytes after a launch of a variant from that memory, or from other. Launch hooks are not told of it. Code
        that nothing optimised may take more stack than its thread has: then it runs in one that has more."""
        compiled, launch = variant

        def unhooked(*args: Any) -> None:
            hooks = LaunchArgument.LAUNCH_METADATA
            launch(*args[:hooks], *[None] * (FIRST_ARGUMENT - hooks), *args[FIRST_ARGUMENT:])

        if not self._is_deep:
            try:
                return self.after(unhooked, compiled.function, memory)
            except native().KernelFault as error:
                if not error.overflow:
                    raise
                self._is_deep = True
        before = threading.stack_size(_STACK)
        try:
            with ThreadPoolExecutor(1) as pool:
                ran = pool.submit(copy_context().run, self.after, unhooked, compiled.function, memory)
        finally:
            threading.stack_size(before)
        return ran.result()

    def put_back(self, values: Sequence[Any]) -> None:
        """Puts bytes into all storages."""
        for one, bytes_ in zip(self.storages, values, strict=True):
            one.write(self._context, bytes_)


def _cause(found: Found, unstable: bool) -> str:
    """What changes the value, and what to do."""
    if unstable:
        return (
            "two launches of the same code differ, too, so that nothing can be said of the compiler: look for a race "
            "of the kernel's programs first (TRITON_SPIRV_CHECK_RACES)"
        )
    said = " and ".join(_group(group) for group in found.items)
    names = ", ".join(repr(name) for name in found.names)
    if len(found.names) == 1:
        names += ","
    each = " (any of them is enough)" if len(found.items) > 1 else ""
    changes = "changes the value" if len(found.items) == 1 and len(found.names) == 1 else "change the value"
    text = f"{said} {changes}{each}; "
    if found.right:
        without = "it" if len(found.names) == 1 else "them"
        text += f"without {without} alone the optimised kernel is right: launch it with without=({names}) meanwhile"
    elif found.right is None:
        text += "whether the optimised kernel is right without that alone cannot be said, because it does not compile"
    else:
        text += "without all of that it is still wrong: launch it with reference=True meanwhile"
    reads = sorted({item_of(name).reads for name in found.names} - {""})
    if reads:
        text += f"; it goes by {' and '.join(f'analysis/{one}' for one in reads)}, whose claims may be what is wrong"
    return text


def _group(names: tuple[str, ...]) -> str:
    if len(names) == 1:
        return f"{item_of(names[0])} (number {NAMES.index(names[0]) + 1} of {len(ITEMS)})"
    first, last = names[0], names[-1]
    return f"one of the items from {first!r} to {last!r} (between them nothing compiles)"


def _place_of(source: Any) -> tuple[str, int] | None:
    code = getattr(getattr(getattr(source, "fn", None), "fn", None), "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code is not None else None


def _number(value: float | int) -> str:
    return f"{value:.6g}" if isinstance(value, float) and math.isfinite(value) else str(value)


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
