"""Every environment variable that this project reads: its name, what it may be, its default, and what it does.

To add one, add a row here, read it as ``settings.NAME.get()``, and run ``python -m docs.generate_settings``, which
writes the tables of docs/settings.md and docs/internals/building.md. Tests find a variable that is read elsewhere, and
a table that is not current.

An empty value is the same as none. This module imports nothing of the project, so that every part of it, the build
tools included, can read it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

PREFIX = "TRITON_SPIRV_"

#: What switches a flag on and off, in upper or lower case: the words of ``triton.knobs``, and their opposites.
ON = frozenset({"1", "true", "yes", "y", "on"})
OFF = frozenset({"0", "false", "no", "n", "off"})

#: For whom a variable is: the users of the wheel, or those who build and test it.
USERS, DEVELOPERS = "users", "developers"

T = TypeVar("T")

_log = logging.getLogger(__name__)


class SettingError(ValueError):
    """An environment variable of this project has a value that it cannot have."""


@dataclass(frozen=True)
class Setting(Generic[T]):
    """One variable. ``parse`` raises ValueError with what the value must be; ``shown`` is how tables write it."""

    name: str
    parse: Callable[[str], T]
    default: T
    shown: str
    help: str
    audience: str = USERS

    def get(self) -> T:
        """The value in the environment, or the default. Raises SettingError, which names the variable."""
        if not _warned:
            warn_of_unknown()
        text = os.environ.get(self.name)
        if text is None or not (text := text.strip()):
            return self.default
        try:
            return self.parse(text)
        except ValueError as error:
            raise SettingError(f"{self.name} {error}, not {text!r}") from None


def flag(text: str) -> bool:
    """Whether a flag is on. Raises ValueError for anything but a word of ON or OFF."""
    word = text.lower()
    if word not in ON and word not in OFF:
        raise ValueError("must be 0 or 1")
    return word in ON


def races(text: str) -> str:
    """Which races are looked for: "", SHARED, PROGRAMS, EQUAL or ALL. Raises ValueError."""
    word = text.lower()
    if word in (PROGRAMS, EQUAL, ALL):
        return word
    if word not in ON and word not in OFF:
        raise ValueError(f"must be 0, 1, {PROGRAMS}, {EQUAL} or {ALL}")
    return SHARED if word in ON else ""


def one_of(*values: str) -> Callable[[str], str]:
    """A parser that accepts one of ``values``, at least two."""

    def parse(text: str) -> str:
        if text not in values:
            raise ValueError(f"must be {', '.join(values[:-1])} or {values[-1]}")
        return text

    return parse


def seconds(text: str) -> float:
    """A time above 0 and below 1e9 s, about 30 years. Raises ValueError."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1e9:
        raise ValueError("must be a number of seconds above 0")
    return value


def count(text: str) -> int:
    """A number from 1 to 1024. Raises ValueError."""
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise ValueError("must be a number from 1 to 1024")
    return int(text)


def seed(text: str) -> int:
    """A number from 0 to 2^31 - 1. Raises ValueError."""
    if not text.isdecimal() or int(text) >= 2**31:
        raise ValueError("must be a number from 0 to 2147483647")
    return int(text)


def names(text: str) -> tuple[str, ...]:
    """Names with commas between them."""
    return tuple(name for part in text.split(",") if (name := part.strip()))


#: Ways in which host memory reaches a kernel (runtime/context.py), and CUDA's memory (runtime/cuda/).
ZERO_COPY, IMPORTED, STAGED, SHARE = "zero-copy", "imported", "staged", "share"

#: What happens where a torch operation runs on the CPU (torch/device/cpu_fallback.py).
ALLOW, TELL, WARN, ERROR = "allow", "tell", "warn", "error"

#: What happens where a file has no choice of autotuning (launching/tuned_choices.py).
MEASURE, REFUSE = "measure", "refuse"

#: Races that are looked for: in shared memory, between programs, with writes of equal values, and both of the first.
SHARED, PROGRAMS, EQUAL, ALL = "shared", "programs", "equal", "all"


def _switch(name: str, text: str, audience: str = USERS) -> Setting[bool]:
    """A flag that is off by default."""
    return Setting(name, flag, False, "1", text, audience)


BACKEND = _switch(
    "TRITON_SPIRV_BACKEND", "use SPIR-V even if CUDA or HIP is active (`TRITON_DEFAULT_BACKEND=spirv` does so too)"
)
DEVICE = Setting[str | None](
    "TRITON_SPIRV_DEVICE",
    str,
    None,
    "<device>",
    "which device: an index, its UUID, `cpu` for the processor itself, or part of the name of a Vulkan device; "
    "`emulate:PROFILE`: a GPU of that profile, emulated; "
    "torchrun's ranks get one each "
    "([running.md](running.md#use-several-devices))",
)
#: What DEVICE begins with to name a device that is emulated.
EMULATE = "emulate:"
COMPILE_ONLY = _switch("TRITON_SPIRV_COMPILE_ONLY", "compile kernels, never run them")
TARGET = Setting(
    "TRITON_SPIRV_TARGET", str, "generic", "<profile>", "with `TRITON_SPIRV_COMPILE_ONLY`: the device profile"
)
VALIDATE = _switch(
    "TRITON_SPIRV_VALIDATE",
    "check every module with spirv-val, and every Vulkan call with the Khronos validation layer",
)
CHECK_BOUNDS = _switch(
    "TRITON_SPIRV_CHECK_BOUNDS",
    "check every access against its tensor: an error with the line instead of corrupted memory",
)
DISORDER = Setting(
    "TRITON_SPIRV_DISORDER",
    seed,
    0,
    "<seed>",
    "number subgroups backwards and delay each differently after every barrier, depending on this number, so that a "
    "missing barrier shows; 0: as usual",
)
CHECK_RACES = Setting(
    "TRITON_SPIRV_CHECK_RACES",
    races,
    "",
    "1",
    "check every access to shared memory: an error with both lines if two invocations race; "
    f"`{PROGRAMS}`: every access to device memory, if two programs of a launch race, on the CPU device and emulated "
    f"ones; `{EQUAL}`: also if they write equal values; `{ALL}`: `1` and `{PROGRAMS}` "
    "([debugging.md](debugging.md#races-between-programs))",
)
CHECK_VALUES = _switch(
    "TRITON_SPIRV_CHECK_VALUES",
    "run each launch by the reference pipeline, too: an error with the pass or rewrite that changes a value "
    "([debugging.md](debugging.md#check-values))",
)
REFERENCE = _switch(
    "TRITON_SPIRV_REFERENCE",
    "compile kernels by the reference pipeline, which leaves out every optional pass, rewrite and analysis: slow code, "
    "to compare values with",
)
DEBUG_INFO = _switch(
    "TRITON_SPIRV_DEBUG_INFO",
    "put source lines and names of variables into modules, for disassembly, validation messages and debuggers",
)
STATISTICS = _switch(
    "TRITON_SPIRV_STATISTICS",
    "ask the driver for each kernel's registers and spills when it is loaded (`kernel.n_regs`, `kernel.n_spills`)",
)
MATRIX_UNITS = Setting(
    "TRITON_SPIRV_MATRIX_UNITS",
    str,
    "auto",
    "0",
    "do not use the device's matrix units for dots; `1`: use them even if they are slow",
)
NATIVE_MATH = Setting(
    "TRITON_SPIRV_NATIVE_MATH",
    str,
    "auto",
    "0",
    "compute `tl.exp` and `tl.exp2` in the same way on every device; by default the device's own instruction is used "
    "if it was measured to be exact to 2.5 units in the last place; `1`: use that instruction however exact it is",
)
SELF_TEST = Setting(
    "TRITON_SPIRV_SELF_TEST",
    str,
    "auto",
    "0",
    "use a driver without its self-test, which runs once by itself on drivers that no kernel ran on here; `1`: run it "
    "on any driver ([devices.md](devices.md#the-self-test))",
)
TIMEOUT = Setting[float | None](
    "TRITON_SPIRV_TIMEOUT",
    seconds,
    None,
    "<seconds>",
    "how long a kernel may run before a wait for it fails, or up to 32 that were submitted together; default: 30 where "
    "CUDA's streams wait for kernels, any time elsewhere",
)
SUBMISSION_SECONDS = Setting[float | None](
    "TRITON_SPIRV_SUBMISSION_SECONDS",
    seconds,
    None,
    "<seconds>",
    "how long work may take that is submitted to the driver together; longer launches are divided; default: half of "
    "what the driver is known to allow, any time on others ([devices.md](devices.md#long-launches))",
)
COMPILE_TIMEOUT = Setting(
    "TRITON_SPIRV_COMPILE_TIMEOUT",
    seconds,
    60.0,
    "<seconds>",
    "processor time that compiling a kernel may take, from Triton's front end to the driver, and a tenth of what it "
    "may take by the clock; not of one with `TRITON_SPIRV_REFERENCE`; default: 60",
)
QUIET = _switch(
    "TRITON_SPIRV_QUIET", "no lines about what takes long: the first kernels of torch, and a device that is a CPU"
)
CPU_THREADS = Setting[int | None](
    "TRITON_SPIRV_CPU_THREADS",
    count,
    None,
    "<count>",
    "how many threads share a launch on the CPU device; default: one for each processor that the process may run on",
)
HOST_MEMORY = Setting[str | None](
    "TRITON_SPIRV_HOST_MEMORY",
    one_of(ZERO_COPY, IMPORTED, STAGED),
    None,
    "<way>",
    f"how host memory reaches kernels: `{ZERO_COPY}`, `{IMPORTED}` or `{STAGED}`; default: the best available",
)
CUDA = Setting(
    "TRITON_SPIRV_CUDA",
    one_of(SHARE, STAGED),
    SHARE,
    STAGED,
    "copy CUDA tensors whose memory cannot be shared, instead of refusing them",
)
TUNED = Setting[str | None](
    "TRITON_SPIRV_TUNED",
    str,
    None,
    "<file>",
    "a file with choices of autotuning: a key that it has is not measured, and what is measured goes into it "
    "([running.md](running.md#choices-of-autotuning-in-a-file))",
)
TUNED_MISSING = Setting(
    "TRITON_SPIRV_TUNED_MISSING",
    one_of(MEASURE, REFUSE),
    MEASURE,
    REFUSE,
    f"with `TRITON_SPIRV_TUNED`: what happens if the file has no choice for a kernel on this device: `{MEASURE}` or "
    f"`{REFUSE}` (an error)",
)
RECORD_KERNELS = Setting[str | None](
    "TRITON_SPIRV_RECORD_KERNELS",
    str,
    None,
    "<file>",
    "add a line to this file for each kernel that is loaded, for `triton-spirv warm` "
    "([running.md](running.md#compile-before-the-first-step))",
)
TORCH_DEVICE = _switch(
    "TRITON_SPIRV_TORCH_DEVICE",
    "make torch's device `spirv` known even if torch has another accelerator, such as CUDA, whose tensors then have no "
    "gradients ([torch.md](torch.md#training-on-cuda-tensors))",
)
TORCH_FALLBACK = Setting(
    "TRITON_SPIRV_TORCH_FALLBACK",
    one_of(ALLOW, TELL, WARN, ERROR),
    ALLOW,
    "<what>",
    f"what happens if a torch operation has no kernel on the device `spirv` and would run on the CPU: `{ALLOW}`, "
    f"`{TELL}` (count each, in one line when the process ends), `{WARN}` (once per operation) or `{ERROR}`",
)
TORCH_COMPILED = _switch(
    "TRITON_SPIRV_TORCH_COMPILED",
    "where the device `spirv` is the processor, compile also those torch operations that torch's own kernels do faster "
    "(for tests of kernels)",
)
WITHOUT = Setting[tuple[str, ...]](
    "TRITON_SPIRV_WITHOUT",
    names,
    (),
    "<item>, …",
    "compile kernels without these passes, rewrites and analyses, of those that are optional (`backend/reference.py`)",
    DEVELOPERS,
)
VERIFY = _switch(
    "TRITON_SPIRV_VERIFY", "check a kernel's TTGIR after each rewrite of this backend, as tests do", DEVELOPERS
)
TOOLS_IN_PLACE = _switch(
    "TRITON_SPIRV_TOOLS_IN_PLACE", "`python -m tools` uses the interpreter that runs it, instead of `.venv`", DEVELOPERS
)
TOOLS_FAULT = Setting[str | None](
    "TRITON_SPIRV_TOOLS_FAULT",
    str,
    None,
    "<point>",
    "`python -m tools` stops at a point of `tools/faults.py`, for tests of interrupted runs",
    DEVELOPERS,
)
WHEEL = Setting[str | None](
    "TRITON_SPIRV_WHEEL", str, None, "<path>", "a built wheel for the tests in `tests/vendor`", DEVELOPERS
)

SETTINGS: Mapping[str, Setting[object]] = {
    setting.name: setting for setting in tuple(globals().values()) if isinstance(setting, Setting)
}

_warned = False


def unknown(names: Iterable[str]) -> list[str]:
    """A sentence for each of ``names`` that has the project's prefix and is not a setting."""
    strangers = sorted(name for name in names if name.startswith(PREFIX) and name not in SETTINGS)
    if not strangers:
        return []
    from difflib import get_close_matches  # only where something was misspelt: the import takes milliseconds

    sentences = []
    for name in strangers:
        nearest = get_close_matches(name, SETTINGS, n=1, cutoff=0)[0]
        sentences.append(f"the environment variable {name} is not known and has no effect; did you mean {nearest}?")
    return sentences


def warn_of_unknown() -> None:
    """Warns, once per process, about variables in the environment that look like settings but are not."""
    global _warned
    _warned = True
    for sentence in unknown(os.environ):
        _log.warning("%s", sentence)


def table(audience: str) -> str:
    """The settings for one audience as a table in Markdown."""
    rows = [
        f"| `{setting.name}={setting.shown}` | {setting.help} |"
        for setting in SETTINGS.values()
        if setting.audience == audience
    ]
    return "\n".join(["| variable | meaning |", "| --- | --- |", *rows])


def emulated_profile() -> str | None:
    """The profile that TRITON_SPIRV_DEVICE names to be emulated, or the path of its file; None if it names something
    else."""
    named = DEVICE.get() or ""
    return named[len(EMULATE) :] if named.lower().startswith(EMULATE) else None
