"""Which kernels of a program take long to compile: processor seconds of each, in Triton, in the driver and to run.

    python -m benchmarks.kernel_times [--count N] [--limit S] -m pytest -n0 tests/surface
    python -m benchmarks.kernel_times -m tests.fuzz --seeds 0:100
    python -m benchmarks.kernel_times script.py ARGUMENT …

The program runs in this process, without Triton's cache and Mesa's. Processes that it starts are not seen. Seconds are
of all threads, so that a busy machine says the same; where threads of the program compile at once, each kernel counts
what the others took meanwhile. "Driver" is what making the pipeline takes, and what the first launch takes longer than
the fastest of the others: Mesa's CPU driver compiles at the first dispatch. A kernel that is launched once shows its
run there. The exit status is the program's; 1 where it is 0 and a kernel took more than ``--limit``.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import runpy
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Processor seconds that no kernel should take to compile on Mesa's CPU driver (docs/internals/performance.md).
LIMIT = 10.0


@dataclass
class KernelTimes:
    """Processor seconds of one module. ``launches``: of each launch, until the device had ended it. ``size``: bytes of
    SPIR-V, 0 where the kernel was refused. ``place``: where it is from."""

    name: str
    place: str
    triton: float = 0.0
    pipeline: float = 0.0
    launches: list[float] = field(default_factory=list)
    size: int = 0
    warps: int = 0

    @property
    def driver(self) -> float:
        """Of the pipeline, and of the first launch what the others did not take."""
        first = self.launches[0] if self.launches else 0.0
        return self.pipeline + max(0.0, first - (self.run or 0.0))

    @property
    def run(self) -> float | None:
        """Of the fastest launch but the first; None if there was no other."""
        return min(self.launches[1:], default=None)

    @property
    def total(self) -> float:
        """To the first result."""
        return self.triton + self.pipeline + (self.launches[0] if self.launches else 0.0)


def _place(source: Any) -> str:
    """The test that runs, or the kernel's file and line."""
    if "PYTEST_CURRENT_TEST" in os.environ:
        return os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]
    code = getattr(getattr(getattr(source, "fn", None), "fn", None), "__code__", None)
    return f"{Path(code.co_filename).name}:{code.co_firstlineno}" if code is not None else ""


class Observer:
    """Watches Triton compile, load and launch kernels of this backend."""

    def __init__(self) -> None:
        self.kernels: list[KernelTimes] = []
        self._by_module: dict[bytes, KernelTimes] = {}
        self._by_function: dict[int, KernelTimes] = {}
        self._here = threading.local()

    def taken(self) -> list[KernelTimes]:
        """The kernels since the last call: what a launch adds to one of them later is not in the next answer."""
        kernels, self.kernels = self.kernels, []
        return kernels

    @contextlib.contextmanager
    def watching(self) -> Iterator[Observer]:
        """Observes what happens in the block, where nothing comes from Triton's cache or, if the driver is not loaded
        yet, from Mesa's."""
        from triton import knobs
        from triton.backends.spirv.compiler import SPIRVBackend
        from triton.compiler.compiler import ASTSource, CompiledKernel

        make_ir, add_stages, init_handles = ASTSource.make_ir, SPIRVBackend.add_stages, CompiledKernel._init_handles
        observer = self

        def observed_make_ir(source: Any, *arguments: Any, **options: Any) -> Any:
            observer._open(source)
            with observer._counted():
                return make_ir(source, *arguments, **options)

        def observed_add_stages(backend: Any, stages: dict[str, Any], options: Any, language: Any) -> None:
            add_stages(backend, stages, options, language)
            for name, stage in stages.items():
                stages[name] = observer._stage(name, stage)

        def observed_init_handles(kernel: Any) -> None:
            fresh, start = kernel.module is None, time.process_time()
            init_handles(kernel)
            times = observer._by_module.get(_digest(kernel.kernel))
            if fresh and times is not None:
                times.pipeline += time.process_time() - start
                times.warps = kernel.metadata.num_warps
                observer._by_function[kernel.function] = times

        ASTSource.make_ir, SPIRVBackend.add_stages = observed_make_ir, observed_add_stages  # type: ignore[method-assign]
        CompiledKernel._init_handles = observed_init_handles
        knobs.runtime.launch_enter_hook.add(self._enter)
        knobs.runtime.launch_exit_hook.add(self._leave)
        try:
            with _without_caches():
                yield self
        finally:
            ASTSource.make_ir, SPIRVBackend.add_stages = make_ir, add_stages  # type: ignore[method-assign]
            CompiledKernel._init_handles = init_handles
            knobs.runtime.launch_enter_hook.remove(self._enter)
            knobs.runtime.launch_exit_hook.remove(self._leave)

    def _open(self, source: Any) -> None:
        self._here.times = KernelTimes(getattr(source, "name", "?"), _place(source))
        self.kernels.append(self._here.times)

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        start = time.process_time()
        try:
            yield
        finally:
            self._here.times.triton += time.process_time() - start

    def _stage(self, name: str, stage: Callable[..., Any]) -> Callable[..., Any]:
        def observed(module: Any, metadata: Any) -> Any:
            if getattr(self._here, "times", None) is None:  # a kernel whose text was written by hand
                self._open(module)
            with self._counted():
                result = stage(module, metadata)
            if name == "spv":
                times, self._here.times = self._here.times, None
                times.name, times.size = metadata["name"], len(result)
                self._by_module[_digest(result)] = times
            return result

        return observed

    def _enter(self, metadata: Any) -> None:
        _synchronize()
        self._here.launched, self._here.start = metadata.get().get("function"), time.process_time()

    def _leave(self, _: Any) -> None:
        _synchronize()
        times = self._by_function.get(self._here.launched)
        if times is not None:
            times.launches.append(time.process_time() - self._here.start)


@contextlib.contextmanager
def _without_caches() -> Iterator[None]:
    names = "TRITON_CACHE_DIR", "MESA_SHADER_CACHE_DISABLE"
    saved = {name: os.environ[name] for name in names if name in os.environ}
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(zip(names, (folder, "true"), strict=True))
        try:
            yield
        finally:
            for name in names:
                del os.environ[name]
            os.environ.update(saved)


def _digest(module: bytes) -> bytes:
    return hashlib.sha256(module).digest()


def _synchronize() -> None:
    """Waits for the device, but where a graph is recorded: nothing runs then."""
    from triton.backends.spirv.runtime.context import current
    from triton.backends.spirv.runtime.launches.graph import capturing

    context = current()
    if capturing(context) is None:
        context.native.synchronize()


def table(kernels: list[KernelTimes], count: int) -> str:
    """The slowest kernels as text, and how many there were."""
    slowest = sorted(kernels, key=lambda times: -times.total)[:count]
    lines = [f"{'Triton':>8}{'driver':>8}{'run':>8}{'SPIR-V':>9}{'warps':>6}  kernel"]
    for times in slowest:
        run = "" if times.run is None else f"{times.run:.2f}"
        warps = times.warps or ""
        lines.append(
            f"{times.triton:8.2f}{times.driver:8.2f}{run:>8}{times.size:9}{warps:6}  {times.name}  {times.place}"
        )
    total = sum(times.total for times in kernels)
    return "\n".join([*lines, f"{len(kernels)} kernels, {total:.0f} s of processor time to their first results"])


def run_program(arguments: list[str], is_module: bool) -> int:
    """Runs a module or a script with its arguments as ``__main__``; its exit status."""
    sys.argv = arguments
    try:
        if is_module:
            sys.path.insert(0, os.getcwd())
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, str(Path(sys.argv[0]).resolve().parent))
            runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def main() -> None:
    """Runs the program and prints its slowest kernels to stderr."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20, help="how many kernels to show (default: 20)")
    parser.add_argument("--limit", type=float, default=LIMIT, metavar="S", help=f"seconds (default: {LIMIT:g})")
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE", help="a module, its arguments")
    parser.add_argument("script", nargs=argparse.REMAINDER, metavar="SCRIPT.py", help="or a script, its arguments")
    options = parser.parse_args()
    if not options.module and not options.script:
        parser.error("a program is missing: -m MODULE … or SCRIPT.py …")
    observer = Observer()
    with observer.watching():
        status = run_program(options.module or options.script, bool(options.module))
    print(table(observer.kernels, options.count), file=sys.stderr)
    slow = [times for times in observer.kernels if times.total > options.limit]
    if slow:
        print(f"{len(slow)} took more than {options.limit:g} s", file=sys.stderr)
    sys.exit(status or int(bool(slow)))


if __name__ == "__main__":
    main()
