"""``triton-spirv profile script.py``: every launch of a script with the device's own time."""

from __future__ import annotations

import argparse
import math
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from .. import settings
from ..analysis.pointer_roots import Roots, pointer_roots
from ..analysis.work import Work, launch_work
from ..availability import requested_here
from ..launching.expected_time import arguments_of, function_of
from ..runtime.device_choice import selected
from ..runtime.emulated.counting import Counts, counted
from ..runtime.files import given_path, write_whole
from ..runtime.reports.outside import Extent, extent
from ..ttgir.ir import Function
from .known import Launched, figures
from .speed import speed_of
from .trace import HostSpan, Launch, chrome_trace, event_of, host_recorded, host_text, timed
from .user_programs import add_program, exit_status, named, not_there, run_program
from .verdict import AGAIN, limits

#: Launches whose times are read together, so that a long run does not keep an event for each.
_GATHERED = 512

#: Keys of a kernel's ``launch_metadata`` that count floating-point operations, as upstream's profiler reads them.
_FLOPS = ("flops", "flops8", "flops16", "flops32", "flops64")


@dataclass
class Recorder:
    """Launch hooks of Triton's that take timestamps before and after each launch."""

    launches: list[Launch] = field(default_factory=list)
    host: list[HostSpan] = field(default_factory=list)
    #: Copies on other streams than a device's first one.
    copies: list[Launch] = field(default_factory=list)
    #: Host seconds that the hooks took.
    own: float = 0.0

    def __post_init__(self) -> None:
        from ..runtime.streams import make_event

        self._make_event = make_event
        self._first: Any = None
        self._pending: list[tuple[Launch, Any, Any]] = []
        self._here = threading.local()
        self._lock = threading.Lock()

    def enter(self, metadata: Any) -> None:
        """Before a launch."""
        start = time.perf_counter()
        known: Mapping[str, Any] = metadata.get() if metadata is not None else {}
        launch = Launch(
            str(known.get("name", "?")),
            tuple(getattr(self._here, "grid", ())),
            start,
            threading.get_ident(),
            float(sum(known.get(key, 0) for key in _FLOPS)),
            float(known.get("bytes", 0)),
        )
        launch.kernel, launch.arguments = getattr(self._here, "kernel", None), getattr(self._here, "arguments", ())
        event = self._make_event(enable_timing=True)
        event.record()
        with self._lock:
            if self._first is None:
                self._first = event
        self._here.open = launch, event
        self.own += time.perf_counter() - start

    def leave(self, _: Any) -> None:
        """After a launch."""
        start = time.perf_counter()
        launch, begin = self._here.open
        launch.host_seconds = start - launch.host_begin
        end = self._make_event(enable_timing=True)
        end.record()
        with self._lock:
            self._pending.append((launch, begin, end))
            self.launches.append(launch)
            if len(self._pending) >= 2 * _GATHERED:
                self._read(_GATHERED)
        self.own += time.perf_counter() - start

    @contextmanager
    def copying(self, copy: Launch) -> Iterator[None]:
        """Around a copy on a stream."""
        begin, end = self._make_event(enable_timing=True), self._make_event(enable_timing=True)
        begin.record()
        yield
        end.record()
        copy.host_seconds = time.perf_counter() - copy.host_begin
        with self._lock:
            self._first = self._first or begin
            self._pending.append((copy, begin, end))
            self.copies.append(copy)

    def _read(self, count: int) -> None:
        for launch, begin, end in self._pending[:count]:
            launch.begin = self._first.elapsed_time(begin)
            launch.milliseconds = begin.elapsed_time(end)
        del self._pending[:count]

    def run(self, program: Path | str, arguments: list[str]) -> BaseException | None:
        """Runs a script, or a module by its name, as ``__main__`` with the hooks; what it raised."""
        from triton import knobs
        from triton.compiler.compiler import CompiledKernel

        original, here = CompiledKernel.launch_metadata, self._here

        def with_grid(kernel: Any, grid: Any, stream: Any, *args: Any) -> Any:
            here.grid, here.kernel = grid, kernel
            here.arguments = tuple(arg if isinstance(arg, int | float) else extent(arg) for arg in args)
            if kernel.module is None:
                with timed(self.host, "load", kernel.name):
                    kernel._init_handles()
            return original(kernel, grid, stream, *args)

        CompiledKernel.launch_metadata = with_grid
        knobs.runtime.launch_enter_hook.add(self.enter)
        knobs.runtime.launch_exit_hook.add(self.leave)
        try:
            with host_recorded(self.host, self.copying):
                raised = run_program(program, arguments)
        finally:
            knobs.runtime.launch_enter_hook.remove(self.enter)
            knobs.runtime.launch_exit_hook.remove(self.leave)
            CompiledKernel.launch_metadata = original
            self._read(len(self._pending))
        estimate(self.launches)
        return raised


def estimate(launches: list[Launch]) -> None:
    """Fills in what launches moved and computed where their kernels do not state it (analysis/work.py)."""
    functions: dict[Any, tuple[Function, Roots] | None] = {}
    known: dict[tuple[Any, ...], tuple[Work, int] | None] = {}
    for launch in launches:
        launch.distinct = launch.moved
        kernel = launch.kernel
        if launch.flops or launch.moved or kernel is None:
            continue
        if kernel not in functions:
            function = function_of(kernel)
            functions[kernel] = None if function is None else (function, pointer_roots(function))
        if (found := functions[kernel]) is None:
            continue
        key = kernel, launch.grid, launch.arguments
        if key not in known:
            arguments = arguments_of(kernel.src, launch.arguments)
            work = launch_work(found[0], arguments, launch.grid, found[1])
            sizes = [one.bytes if isinstance(one, Extent) else 0 for one in arguments]
            known[key] = None if work is None else (work, work.distinct(sizes))
        if (did := known[key]) is not None:
            launch.moved, launch.flops, launch.estimated = float(did[0].moved), float(did[0].operations), True
            launch.distinct = float(did[1])


@dataclass(frozen=True)
class Row:
    """All launches of one specialisation of a kernel. Times in milliseconds of the device: ``first`` is the first
    launch's, ``median`` and ``longest`` are of the others, None if there are none. ``rate``: what is known of the
    speed of the median launch."""

    name: str
    count: int
    total: float
    first: float
    median: float | None
    longest: float | None
    rate: str


def rows(launches: list[Launch]) -> list[Row]:
    """A row for each specialisation of each kernel, the one that took most of the device's time first."""
    found = []
    for name, (first, *others) in by_kernel(launches).items():
        others.sort(key=lambda launch: launch.milliseconds)
        middle = others[len(others) // 2] if others else first
        total = first.milliseconds + sum(launch.milliseconds for launch in others)
        median, longest = (middle.milliseconds, others[-1].milliseconds) if others else (None, None)
        found.append(Row(name, 1 + len(others), total, first.milliseconds, median, longest, _rate(middle)))
    return sorted(found, key=lambda row: -row.total)


def by_kernel(launches: list[Launch]) -> dict[str, list[Launch]]:
    """The launches of each specialisation, by what it is called."""
    names, kernels = _names(launches), dict[str, list[Launch]]()
    for launch in launches:
        kernels.setdefault(names[_key(launch)], []).append(launch)
    return kernels


def _launched(name: str, launches: list[Launch]) -> Launched:
    kernel = launches[0].kernel
    counts = None if kernel.module is None else kernel.module.counts
    return Launched(
        name,
        len(launches),
        sum(math.prod(launch.grid) for launch in launches),
        sum(launch.flops for launch in launches),
        any(launch.estimated for launch in launches),
        kernel.metadata.shared,
        None if counts is None else Counts(*counts),
    )


Key = tuple[str, int]


def _key(launch: Launch) -> Key:
    """What tells specialisations apart."""
    return launch.name, id(launch.kernel)


def _names(launches: list[Launch]) -> dict[Key, str]:
    """What each specialisation is called: the kernel's name, and where there are several, how they differ."""
    kernels = {_key(launch): launch.kernel for launch in launches}
    named: dict[str, list[Key]] = {}
    for key in kernels:
        named.setdefault(key[0], []).append(key)
    found = {}
    for name, keys in named.items():
        facts = [_facts(kernels[key]) for key in keys]
        differing = [fact for fact in dict.fromkeys(chain(*facts)) if len({str(one.get(fact)) for one in facts}) > 1]
        for key, known in zip(keys, facts, strict=True):
            told = ", ".join(f"{fact}={known[fact]}" for fact in differing if fact in known)
            found[key] = f"{name}[{told}]" if told else name
    return found


def _facts(kernel: Any) -> dict[str, Any]:
    """What a kernel was specialised for: types and constants by parameter, then options."""
    source = getattr(kernel, "src", None)
    names = getattr(getattr(source, "fn", None), "arg_names", ())
    constants = {path[0]: value for path, value in (getattr(source, "constants", None) or {}).items() if len(path) == 1}
    attributes = {
        path[0]
        for path, value in (getattr(source, "attrs", None) or {}).items()
        if len(path) == 1 and any(name == "tt.divisibility" for name, _ in value)
    }
    facts: dict[str, Any] = {}
    for index, name in enumerate(names):
        type_ = getattr(source, "signature", {}).get(name, "")
        divisible = ":16" if index in attributes and type_ != "constexpr" else ""
        facts[name] = constants[index] if index in constants else f"{type_}{divisible}"
    for option in ("num_warps", "num_stages"):
        facts[option] = getattr(getattr(kernel, "metadata", None), option, None)
    return facts


#: Estimates below it would be shown as 0.0.
_SHOWN = 0.05


def _rate(launch: Launch) -> str:
    seconds = launch.milliseconds / 1e3
    if not seconds:
        return ""
    about, least = ("≈ ", _SHOWN) if launch.estimated else ("", 0.0)
    rates = [(launch.flops / seconds / 1e9, "GFLOP/s"), (launch.moved / seconds / 1e9, "GB/s")]
    if launch.distinct < AGAIN * launch.moved:
        rates.append((launch.distinct / seconds / 1e9, "GB/s of them once"))
    return ", ".join(f"{about}{rate:,.1f} {unit}" for rate, unit in rates if rate > least)


def busy(launches: list[Launch]) -> tuple[float, float]:
    """Milliseconds in which the device ran a launch, and from the first launch's begin to the last one's end."""
    spans = sorted((launch.begin, launch.begin + launch.milliseconds) for launch in launches)
    total, reached = 0.0, spans[0][0] if spans else 0.0
    for begin, end in spans:
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total, reached - spans[0][0] if spans else 0.0


def _busy_text(launches: list[Launch]) -> str:
    total, span = busy(launches)
    return f"busy for {total:.3f} ms of {span:.3f} ms ({total / (span or 1.0):.0%}), from the first launch to the last"


def _microseconds(milliseconds: float | None) -> str:
    return "–" if milliseconds is None else f"{milliseconds * 1e3:.1f}"


_TITLES = ("launches", "total ms", "share", "first µs", "median µs", "longest µs")


def table(launches: list[Launch]) -> str:
    """The rows as text."""
    known = rows(launches)
    total = sum(row.total for row in known) or 1.0
    width = max((len(row.name) for row in known), default=0)
    width = max(width, 20)
    lines = [f"{'kernel':{width}} " + " ".join(f"{title:>10}" for title in _TITLES) + "  rate"]
    for row in known:
        times = [_microseconds(time) for time in (row.first, row.median, row.longest)]
        cells = [str(row.count), f"{row.total:.3f}", f"{row.total / total:.1%}", *times]
        lines.append(f"{row.name:{width}} " + " ".join(f"{cell:>10}" for cell in cells) + f"  {row.rate}".rstrip())
    if any(launch.estimated for launch in launches):
        lines.append(
            "≈ is an estimate from the kernel's loads, stores and arithmetic, masked elements included; what is read "
            "again is left out of what is moved once; launch_metadata states it exactly"
        )
    return "\n".join(lines)


def add_profile(parser: argparse.ArgumentParser) -> None:
    """The options of ``profile``."""
    parser.add_argument(
        "--trace", type=given_path, metavar="FILE.json", help="also write a trace for Perfetto or Chrome"
    )
    parser.add_argument(
        "--roofline",
        action="store_true",
        help="then measure what the device reaches at best, for --trace and `triton-spirv inspect --launches`",
    )
    add_program(parser)


def _banks() -> int:
    """How many banks of shared memory the emulated device has."""
    capabilities = selected().capabilities
    return capabilities.traits.bank_count if capabilities is not None else 0


@requested_here()
def run_profile(options: argparse.Namespace) -> int:
    """``triton-spirv profile``: the script's own exit status, 1 where it could not be profiled."""
    if wrong := not_there(options):
        print(f"triton-spirv profile: error: {wrong}", file=sys.stderr)
        return 1
    if options.trace is not None and not options.trace.absolute().parent.is_dir():
        print(f"triton-spirv profile: error: there is no folder {options.trace.parent}", file=sys.stderr)
        return 1
    emulated = settings.emulated_profile() is not None
    if emulated and (options.trace or options.roofline):
        said = "an emulated device has no times, which --trace and --roofline are about; leave them out"
        print(f"triton-spirv profile: error: {said}", file=sys.stderr)
        return 1
    recorder, banks = Recorder(), _banks() if emulated else 0
    with counted(banks) if emulated else nullcontext():
        raised = recorder.run(*named(options))
    launches = recorder.launches
    if launches and emulated:
        print(figures([_launched(name, of) for name, of in by_kernel(launches).items()], banks), file=sys.stderr)
    elif launches:
        print(table(launches), file=sys.stderr)
        each = recorder.own / len(launches) * 1e6
        print(f"the device was {_busy_text(launches)}", file=sys.stderr)
        print(host_text(recorder.host), file=sys.stderr)
        print(f"{len(launches)} launches; profiling took {each:.1f} µs of the host for each", file=sys.stderr)
    else:
        print("triton-spirv profile: the script launched no Triton kernel", file=sys.stderr)
    peaks = None
    if options.roofline:
        from .peaks import measured  # compiles kernels

        peaks = measured()
        print(peaks.describe(), file=sys.stderr)
        for name, of in by_kernel(launches).items():
            print(f"{name}: {limits(speed_of([event_of(one) for one in of], asdict(peaks)))}", file=sys.stderr)
    if options.trace is not None:
        write_whole(options.trace, chrome_trace(launches + recorder.copies, recorder.host, peaks).encode())
    return exit_status(raised)
