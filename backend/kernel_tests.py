"""Tests of users' kernels under pytest: checks by name, devices, and a table of what was launched.

``pytest_plugin/`` imports this file once a run asks for it. ``CHECKS`` has the settings that a check is made of. A
whole run has them in its environment. A test with the marker has them as options of its launches, because a kernel that
was launched before keeps what it was compiled with.
"""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from triton import knobs
from triton.compiler import CompiledKernel
from triton.runtime.jit import JITFunction

from . import settings
from .capabilities import profiles
from .launching.values.values_launcher import observers
from .options import CHOICES
from .settings import Setting

#: A check's name → the settings that make it, and their values.
CHECKS: Mapping[str, Mapping[Setting[Any], str]] = {
    "bounds": {settings.CHECK_BOUNDS: "1"},
    "races": {settings.CHECK_RACES: settings.ALL},
    "values": {settings.CHECK_VALUES: "1"},
    "disorder": {settings.DISORDER: "1"},
}

#: Where the errors of checks are defined.
_OF_CHECKS = f"{__package__}.runtime."
#: The side on which the table's columns are flush.
_SIDES = "<><>>"
#: The name of the plugin below, and of what its workers tell.
PLUGIN = "triton-kernel-tests"
#: The word for all profiles of GPUs.
EMULATED = "emulated"


@dataclasses.dataclass
class CountedKernel:
    """What is known of a kernel. ``checks``: name of a check → how many launches had it. ``worst``: how far values were
    from the reference's, as launching/values/ measures it; None if none were compared. ``compile_seconds``: of the
    compiler, without what was read from the cache."""

    launches: int = 0
    checks: dict[str, int] = dataclasses.field(default_factory=dict)
    worst: float | None = None
    compile_seconds: float = 0.0

    def add(self, other: CountedKernel) -> None:
        self.launches += other.launches
        for name, launches in other.checks.items():
            self.checks[name] = self.checks.get(name, 0) + launches
        if other.worst is not None:
            self.worst = max(other.worst, self.worst or 0.0)
        self.compile_seconds += other.compile_seconds

    def checked(self) -> str:
        """The checks of its launches; of those that only some launches had, how many."""
        counts = sorted(self.checks.items())
        return ", ".join(name if n == self.launches else f"{name} ({n})" for name, n in counts) or "none"


def checks_of(text: str) -> tuple[str, ...]:
    """The names in a list with commas. Raises pytest.UsageError for one that is no check."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in CHECKS:
            raise pytest.UsageError(f"there is no check {name!r} of kernels; the checks are {', '.join(CHECKS)}")
    if not names:
        raise pytest.UsageError(f"no check of kernels is named; the checks are {', '.join(CHECKS)}")
    return names


def devices_of(text: str) -> tuple[str, ...]:
    """The devices in a list with commas, each once, as TRITON_SPIRV_DEVICE names them."""
    found: dict[str, None] = {}
    for name in filter(None, (part.strip() for part in text.split(","))):
        found |= dict.fromkeys(_gpus() if name == EMULATED else [name])
    if not found:
        raise pytest.UsageError("--triton-device names no device")
    return tuple(found)


def _gpus() -> list[str]:
    return [f"{settings.EMULATE}{name}" for name, profile in profiles().items() if not profile.capabilities.processor]


def run_each(config: pytest.Config, devices: tuple[str, ...]) -> int:
    """Run pytest once for each device, with the arguments of this run. Gives the first status that is not 0. A file of
    JUnit's has the suites of all runs, each with its device's name."""
    status = 0
    junit: str | None = config.getoption("xmlpath", None)
    suites = ElementTree.Element("testsuites")
    for device in devices:
        print(f"\n{'=' * 20} {device} {'=' * 20}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            results = Path(folder) / "results.xml"
            command = [sys.executable, "-m", "pytest", *config.invocation_params.args, f"--triton-device={device}"]
            command += [f"--junitxml={results}"] if junit else []
            done = subprocess.run(command, cwd=config.invocation_params.dir, check=False)
            if results.exists():
                for suite in ElementTree.parse(results).getroot().iter("testsuite"):
                    suite.set("name", device)
                    suites.append(suite)
        status = status or done.returncode
        if done.returncode in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.USAGE_ERROR):
            break
    if junit:
        Path(junit).parent.mkdir(parents=True, exist_ok=True)
        ElementTree.ElementTree(suites).write(junit, encoding="utf-8", xml_declaration=True)
    return status


class KernelTests:
    """Checks and counts the launches of a process. ``kernels``: what the table at the end shows."""

    def __init__(self, config: pytest.Config, kernels: dict[str, CountedKernel]) -> None:
        if knobs.runtime.interpret:
            raise pytest.UsageError(
                "TRITON_INTERPRET is set: kernels that are interpreted have no checks and no device"
            )
        self._config = config
        self._root = config.rootpath
        self._open: list[dict[str, CountedKernel]] = [kernels]
        self._lock = threading.Lock()
        #: The launch options of the test that is running, and the checks that they are.
        self._options: dict[str, Any] = {}
        self._checks: tuple[str, ...] = ()
        self._of_test: dict[str, CountedKernel] = {}
        self._undo: list[Callable[[], object]] = []
        self._set("TRITON_SPIRV_BACKEND", "1", unless="TRITON_DEFAULT_BACKEND")
        if device := config.getoption("triton_device"):
            for one in devices_of(device)[:1]:
                self._set(settings.DEVICE.name, one)
        self._always = checks_of(asked) if (asked := config.getoption("triton_checks")) is not None else ()
        for name in self._always:
            for setting, value in CHECKS[name].items():
                self._set(setting.name, value)
        if hasattr(config, "workerinput"):  # the workers share the processors
            self._set(settings.CPU_THREADS.name, "1", unless=settings.CPU_THREADS.name)
        self._watch()

    def _set(self, variable: str, value: str, unless: str | None = None) -> None:
        """An environment variable for the run, but for one that the user has set ``unless``."""
        if unless and os.environ.get(unless):
            return
        before = os.environ.get(variable)
        os.environ[variable] = value
        if before is None:
            self._undo.append(lambda: os.environ.pop(variable, None))
        else:
            self._undo.append(lambda: os.environ.update({variable: before}))

    def _watch(self) -> None:
        """Sees launches and compilations of Triton's."""
        run, metadata, listener = JITFunction.run, CompiledKernel.launch_metadata, knobs.compilation.listener

        def launch(function: Any, *args: Any, **keywords: Any) -> Any:
            __tracebackhide__ = True
            try:
                return run(function, *args, **{**self._options, **keywords})
            except Exception as error:
                if type(error).__module__.startswith(_OF_CHECKS):
                    error.__traceback__ = None  # the frames are this package's; the message has the kernel's line
                raise

        def launched(kernel: Any, *args: Any) -> Any:
            if name := self._name(kernel.src):
                self._count(name, CountedKernel(1, dict.fromkeys((*self._always, *self._checks), 1)))
            return metadata(kernel, *args)

        def compiled(**told: Any) -> None:
            if listener is not None:
                listener(**told)
            if not told["cache_hit"] and (name := self._name(told["src"])):
                self._count(name, CountedKernel(compile_seconds=told["times"].total / 1e6))

        def nothing(_: Any) -> None:
            """A hook: with one, every launch goes through ``launch_metadata``."""

        def compared(source: Any, worst: float) -> None:
            if name := self._name(source):
                self._count(name, CountedKernel(worst=worst))

        observers.append(compared)
        JITFunction.run, CompiledKernel.launch_metadata = launch, launched
        knobs.compilation.listener = compiled
        knobs.runtime.launch_enter_hook.add(nothing)

        def undo() -> None:
            observers.remove(compared)
            JITFunction.run, CompiledKernel.launch_metadata = run, metadata
            knobs.compilation.listener = listener
            knobs.runtime.launch_enter_hook.remove(nothing)

        self._undo.append(undo)

    def _name(self, source: Any) -> str | None:
        """FILE:FUNCTION of a kernel; None for the backend's own."""
        function = getattr(getattr(source, "fn", None), "fn", None)
        if function is None or function.__module__.startswith("triton."):
            return None
        path = Path(function.__code__.co_filename)
        if not path.is_file():
            return None
        shown = path.relative_to(self._root) if path.is_relative_to(self._root) else path
        return f"{shown.as_posix()}:{function.__qualname__.rpartition('.')[2]}"

    def _count(self, name: str, more: CountedKernel) -> None:
        with self._lock:
            for kernels in self._open:
                kernels.setdefault(name, CountedKernel()).add(more)

    @contextmanager
    def counting(self) -> Iterator[dict[str, CountedKernel]]:
        """The kernels that are launched from here on."""
        kernels: dict[str, CountedKernel] = {}
        self._open.append(kernels)
        try:
            yield kernels
        finally:
            self._open = [one for one in self._open if one is not kernels]

    def torch_device(self) -> Any:
        """The ``torch.device`` whose tensors kernels take."""
        import torch
        from triton.runtime import driver

        return torch.device(driver.active.get_active_torch_device())

    def check_markers(self, items: list[pytest.Item]) -> None:
        """Raises pytest.UsageError for a marker that names no check."""
        for item in items:
            _marked(item)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._checks = _marked(item)
        self._options = _launch_options(self._checks)
        with self.counting() as self._of_test:
            try:
                return (yield)
            finally:
                self._checks, self._options = (), {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        try:
            return (yield)
        finally:
            if self._of_test:
                item.user_properties.append(("triton.device", _device(self._config)))
            for name, kernel in self._of_test.items():
                said = f"{name}, launches: {kernel.launches}, checks: {kernel.checked()}"
                item.user_properties.append(("triton.kernel", said))

    def pytest_sessionfinish(self) -> None:
        if hasattr(self._config, "workerinput"):
            told = {name: vars(one) for name, one in self._open[0].items()}
            self._config.workeroutput[PLUGIN] = told  # type: ignore[attr-defined]

    def pytest_unconfigure(self) -> None:
        for undo in reversed(self._undo):
            undo()


def _marked(item: pytest.Item) -> tuple[str, ...]:
    """The checks of a test's marker."""
    marker = item.get_closest_marker("triton")
    if marker is None:
        return ()
    given = [*marker.args, *marker.kwargs.values()]
    if len(given) != 1 or not {*marker.kwargs} <= {"checks"} or not isinstance(given[0], str):
        raise pytest.UsageError(f'{item.nodeid}: write the marker as @pytest.mark.triton(checks="{",".join(CHECKS)}")')
    return checks_of(given[0])


def _launch_options(checks: tuple[str, ...]) -> dict[str, Any]:
    """What checks are as options of a launch."""
    values = {setting: value for name in checks for setting, value in CHECKS[name].items()}
    return {
        name: choice.says(choice.setting.parse(values[choice.setting]))
        for name, choice in CHOICES.items()
        if choice.setting is not None and choice.setting in values
    }


def _device(config: pytest.Config) -> str:
    return config.getoption("triton_device") or os.environ.get(settings.DEVICE.name) or "the default device"


def add_all(total: dict[str, CountedKernel], told: Mapping[str, Mapping[str, Any]]) -> None:
    """Add what another process has counted."""
    for name, one in told.items():
        total.setdefault(name, CountedKernel()).add(CountedKernel(**one))


def title(config: pytest.Config) -> str:
    """The heading of the table."""
    return f"kernels on {_device(config)}"


def table(kernels: Mapping[str, CountedKernel]) -> list[str]:
    """A line for each kernel, under the columns' names; a sentence if none was launched."""
    if not kernels:
        return ["no kernel was launched"]
    rows = [("kernel", "launches", "checks", "worst difference", "compile s")]
    rows += [
        (name, str(one.launches), one.checked(), _number(one.worst), f"{one.compile_seconds:.2f}")
        for name, one in sorted(kernels.items())
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{cell:{_SIDES[n]}{widths[n]}}" for n, cell in enumerate(row)) for row in rows]


def _number(worst: float | None) -> str:
    return "" if worst is None else f"{worst:.1e}" if worst else "0"
