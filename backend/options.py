"""Compile options: this backend's own, and other backends' options, which launches written for them pass."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from .settings import (
    ALL,
    CHECK_BOUNDS,
    CHECK_RACES,
    CHECK_VALUES,
    DEBUG_INFO,
    DISORDER,
    EQUAL,
    MATRIX_UNITS,
    NATIVE_MATH,
    PROGRAMS,
    REFERENCE,
    SHARED,
    Setting,
    emulated_profile,
)

if TYPE_CHECKING:
    import argparse

_log = logging.getLogger(__name__)

_REGISTERS = "a Vulkan driver allots registers itself"
_PTX = "no PTX is made"
_MATRIX = "it chooses among AMD's matrix instructions"
_SCHEDULE = "the driver's compiler schedules instructions"

#: Options of upstream's CUDA and AMD backends that change no result and have no meaning here, with the reason.
FOREIGN: dict[str, str] = {
    "maxnreg": _REGISTERS,
    "sched4reg": _REGISTERS,
    "ptx_version": _PTX,
    "ptx_options": _PTX,
    "enable_reflect_ftz": "devices say themselves whether they flush subnormal numbers",
    "min_shared_mem": "a kernel gets the shared memory that it uses",
    "clc": "Vulkan cannot cancel launches of a cluster",
    "waves_per_eu": _REGISTERS,
    "matrix_instr_nonkdim": _MATRIX,
    "kpack": _MATRIX,
    "allow_flush_denorm": "devices say themselves whether they flush subnormal numbers",
    "schedule_hint": _SCHEDULE,
    "llvm_fn_attrs": "no LLVM IR is made",
    "wgp_cu_mode": _SCHEDULE,
}

_said: set[str] = set()


@dataclass(frozen=True)
class Choice:
    """What belongs to a compile option that users choose. ``help``: of its option of the command line; empty if it has
    none there, or one that is not a compilation's alone. ``short``: another name there. ``setting``: what counts where
    a launch does not say, by what ``says`` makes of its value. ``recorded``: the JSON of a compiled kernel tells it.
    ``fact``: what the inspect page calls it, if it has it."""

    help: str = ""
    short: str = ""
    setting: Setting[Any] | None = None
    says: Callable[[Any], Any] = lambda value: value
    recorded: bool = True
    fact: str = ""


def choice(default: Any, **entries: Any) -> Any:
    """A field of SPIRVOptions that users choose, by its default and the entries of its Choice."""
    return field(default=default, metadata={"choice": Choice(**entries)})


@dataclass(frozen=True)
class SPIRVOptions:
    """Compile options: what upstream's GPU backends have and means something here, and what its front end reads."""

    num_warps: int = choice(4, help="subgroups of a program (4)", short="-w")
    num_ctas: int = 1
    num_stages: int = choice(3, help="stages of pipelined loops (3)")
    warp_size: int = 32
    enable_fp_fusion: bool = choice(True)
    debug: bool = choice(False, help="keep tl.device_assert")
    #: Assert that 8-, 16- and 32-bit integers do not overflow; without ``debug`` it changes nothing, as upstream.
    sanitize_overflow: bool = False
    arch: str = ""
    backend_name: str = "spirv"
    ir_override: str | None = None
    extern_libs: tuple[tuple[str, str], ...] = ()
    supported_fp8_dtypes: tuple[str, ...] = ("fp8e5", "fp8e4nv", "fp8e5b16", "fp8e4b8", "fp8e4b15")
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    default_dot_input_precision: str = "ieee"
    allowed_dot_input_precisions: tuple[str, ...] = ("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6")
    max_num_imprecise_acc_default: int = 0
    launch_cooperative_grid: bool = False
    launch_pdl: bool = False
    instrumentation_mode: str = ""
    fpsan_homomorphic_casts: bool = False
    check_bounds: bool = choice(
        False,
        help="check every access against the tensors that are passed, at the cost of speed",
        setting=CHECK_BOUNDS,
        fact="bounds checked",
    )
    check_races: bool = choice(
        False,
        help="check every access to shared memory for races, at the cost of speed",
        setting=CHECK_RACES,
        says=lambda races: races in (SHARED, ALL),
        fact="races checked",
    )
    #: Launches are compared with those of the reference: launching/values/.
    check_values: bool = choice(False, setting=CHECK_VALUES, recorded=False)
    #: Look for races between programs (native/cpu/program_races.h); EQUAL: also for writes of equal values.
    check_program_races: bool | str = choice(
        False, setting=CHECK_RACES, says=lambda races: EQUAL if races == EQUAL else races in (PROGRAMS, ALL)
    )
    #: Subgroups in another order, by a number, so that a missing barrier shows.
    disorder: int = choice(0, setting=DISORDER, recorded=False)
    #: Source lines and names of variables in the module.
    debug_info: bool = choice(False, setting=DEBUG_INFO, recorded=False)
    #: Whether dots use the device's matrix units: planning/matrix_unit_choice.py.
    matrix_units: str = choice("auto", setting=MATRIX_UNITS, recorded=False)
    #: Whether exponentials are the device's own: planning/native_math.py.
    native_math: str = choice("auto", setting=NATIVE_MATH, recorded=False)
    #: Nothing is left on but what a kernel needs, and what its tests cover in full: reference.py.
    reference: bool = choice(
        False,
        help="leave out all optional passes, rewrites and analyses, at the cost of speed",
        setting=REFERENCE,
        fact="reference",
    )
    #: What is left out, by the names that reference.py has in their order.
    without: tuple[str, ...] = ()
    #: A launch is a part of the grid: launching/split_grid.py asks for it where a grid is too large.
    split_grid: bool = False

    def __post_init__(self) -> None:
        for name in ("num_warps", "num_ctas", "num_stages"):
            if not hasattr(value := getattr(self, name), "__index__"):
                raise TypeError(f"{name}={value!r} must be an integer, not of type {type(value).__name__}")
        if self.num_warps < 1 or self.num_warps & (self.num_warps - 1):
            raise ValueError(f"num_warps={self.num_warps} must be a power of two")
        if self.num_stages < 0:
            raise ValueError(f"num_stages={self.num_stages} must not be negative")
        if self.check_program_races not in (False, True, EQUAL):
            raise ValueError(f"check_program_races={self.check_program_races!r} must be True, False or {EQUAL!r}")
        if self.num_ctas != 1:
            raise ValueError(
                f"num_ctas={self.num_ctas}: the SPIR-V backend supports num_ctas=1 only, because Vulkan "
                "has no clusters of workgroups"
            )
        if self.launch_cooperative_grid:
            raise ValueError("launch_cooperative_grid=True: Vulkan cannot promise that a whole grid is resident")
        if self.instrumentation_mode:
            raise ValueError(
                f"instrumentation_mode={self.instrumentation_mode!r}: the SPIR-V backend has no instrumentation"
            )

    def has(self, item: str) -> bool:
        """Whether an optional item is not left out."""
        return item not in self.without

    @property
    def checks(self) -> frozenset[str]:
        """What a kernel checks while it runs: the names of the options ``check_…`` that are on. Values are compared
        around it, and its code is the usual one."""
        prefix = "check_"
        checks = {name[len(prefix) :] for name in _NAMES if name.startswith(prefix) and getattr(self, name)}
        return frozenset(checks - {"values"})

    def hash(self) -> str:
        """A digest of all options that decide the code."""
        kept = sorted(item for item in self.__dict__.items() if item[0] not in FOREIGN)
        text = "-".join(f"{name}={value}" for name, value in kept)
        return hashlib.sha256(text.encode()).hexdigest()


_DEFAULTS = {entry.name: entry.default for entry in fields(SPIRVOptions)}
_NAMES = _DEFAULTS.keys()


#: The compile options that users choose.
CHOICES: dict[str, Choice] = {entry.name: entry.metadata["choice"] for entry in fields(SPIRVOptions) if entry.metadata}


#: What the environment says for emulated devices.
_EMULATED: dict[str, object] = {"debug_info": True, "disorder": 0}


def add_choices(parser: argparse.ArgumentParser) -> None:
    """The options of a command line that compiles."""
    for name, entry in CHOICES.items():
        if entry.help:
            flags = [*filter(None, [entry.short]), f"--{name.replace('_', '-')}"]
            default = _DEFAULTS[name]
            if isinstance(default, bool):
                default = None if entry.setting else default
                parser.add_argument(*flags, action="store_true", default=default, help=entry.help)
            else:
                parser.add_argument(*flags, type=int, default=default, metavar="N", help=entry.help)


def chosen(options: argparse.Namespace) -> dict[str, object]:
    """The compile options that such a command line asks for."""
    return {name: getattr(options, name) for name, entry in CHOICES.items() if entry.help}


def with_settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """``options`` with what the environment says for those that are not there."""
    asked = {name: entry for name, entry in CHOICES.items() if name not in options}
    said = {name: entry.says(entry.setting.get()) for name, entry in asked.items() if entry.setting}
    if emulated_profile() is not None:  # whose faults name lines, and which orders subgroups itself
        said |= {name: value for name, value in _EMULATED.items() if name in said}
    return {**options, **said}


def own(options: Mapping[str, Any]) -> dict[str, Any]:
    """The ``options`` that are this backend's and not None."""
    return {name: value for name, value in options.items() if name in _NAMES and value is not None}


def with_foreign(known: SPIRVOptions, options: Mapping[str, Any]) -> SPIRVOptions:
    """``known`` with the ``options`` that FOREIGN names as attributes, so that a launch may pass them: Triton
    refuses what the options do not have. That one has no effect is logged once per process."""
    for name in options.keys() & FOREIGN.keys():
        value = options[name]
        object.__setattr__(known, name, value)
        if value and name not in _said:
            _said.add(name)
            _log.info("the option %s=%r has no effect on the SPIR-V backend: %s", name, value, FOREIGN[name])
    return known
