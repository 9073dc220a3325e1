"""What others report of drivers that have not run kernels here, and what follows from it for a device.

One row a fact, with its source and the conditions under which it holds. ``care_for()`` says what the rows that hold for
a device ask for together. What a row asks for is a precaution: it may cost speed, and changes no result. Drivers on
which the device tests ran are in RAN_HERE; on all others the self-test runs before what it covers is used
(runtime/measuring/trust.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from .matrices import MATRIX_FEATURES

#: Drivers on which this project's device tests ran, and so need no self-test.
RAN_HERE = frozenset({"nvidia_proprietary", "mesa_llvmpipe", "cpu"})

_AMD = 0x1002
_AMD_WINDOWS_OR_AMDVLK = ("amd_proprietary", "amd_open_source")
_ON_AMDGPU = (*_AMD_WINDOWS_OR_AMDVLK, "mesa_radv")

#: Seconds after which the operating system ends a job, with what the job is bound to here: half of it.
_HALF_OF_TWO_SECONDS = 1.0


@dataclass(frozen=True)
class Facts:
    """What a device and its system say, as far as rows ask.

    ``version``: the driver's (version_of()). ``kind``: discrete, integrated, … (device_kind.SORTS). ``system`` and
    ``kernel``: as platform.system(), and the first two numbers of platform.release(). ``least_lanes`` and
    ``most_lanes``: minSubgroupSize and maxSubgroupSize. ``mixed_dots``: whether 8-bit dot products of mixed signs are
    accelerated. ``features``: keys of capabilities.FEATURES that the driver reports. ``unit_threads``: invocations that
    reside on a compute unit, None if it is not told.
    """

    driver: str
    version: tuple[int, ...] = ()
    name: str = ""
    kind: str = "discrete"
    vendor: int = 0
    system: str = "Linux"
    kernel: tuple[int, ...] = ()
    least_lanes: int = 32
    most_lanes: int = 32
    mixed_dots: bool = False
    features: frozenset[str] = frozenset()
    unit_threads: int | None = None


@dataclass(frozen=True)
class Care:
    """Precautions with a device.

    ``asks_matrices``: whether its driver is asked for the properties of its matrix units. ``left_out``: capability
    features that are not used though the driver reports them. ``most_lanes``: subgroups have no more lanes.
    ``job_seconds``: a submission is to take no longer; None:
    any time. ``drains``: each submission waits for the one before. ``imports_host``: host memory may be imported.
    ``holds_allocations``: no allocation is larger than maxMemoryAllocationSize. ``asks_budget``: large allocations ask
    for the memory budget first. ``one_pipeline``: one pipeline is made at a time. ``compute_only``: a
    queue family that takes no graphics is preferred. ``last``: the driver is used only
    where no other one has the GPU. ``verified``: keys of the self-test that must pass even where it would not run.
    """

    asks_matrices: bool = True
    left_out: frozenset[str] = frozenset()
    most_lanes: int | None = None
    job_seconds: float | None = None
    drains: bool = False
    imports_host: bool = True
    holds_allocations: bool = False
    asks_budget: bool = False
    one_pipeline: bool = False
    compute_only: bool = False
    last: bool = False
    verified: frozenset[str] = frozenset()


#: A device of which nothing is reported.
NO_CARE = Care()


def _always(_: Facts) -> bool:
    return True


@dataclass(frozen=True)
class Report:
    """A fact. ``number``: what docs and errors call it. It holds where all conditions do: ``drivers`` (names of
    VkDriverId; empty: all), ``system`` ("": all), ``kernel``: the first version of Linux, ``since`` and ``until``: the
    driver's first and last version, ``where``: the rest. ``care``: what follows. ``instead``: how it is met where that
    is no Care: data of driver_quirks.py, or code for all devices, with its file."""

    number: int
    symptom: str
    source: str
    drivers: tuple[str, ...] = ()
    system: str = ""
    kernel: tuple[int, ...] = ()
    since: tuple[int, ...] = ()
    until: tuple[int, ...] = ()
    where: Callable[[Facts], bool] = field(default=_always)
    condition: str = ""
    care: Care = NO_CARE
    instead: str = ""

    def holds(self, facts: Facts) -> bool:
        """Whether it holds for a device."""
        if self.drivers and facts.driver not in self.drivers:
            return False
        if (self.system and facts.system != self.system) or facts.kernel < self.kernel:
            return False
        # A driver whose version is not told may be any.
        if facts.version and not (self.since <= facts.version and _up_to(facts.version, self.until)):
            return False
        return self.where(facts)


def _up_to(version: tuple[int, ...], until: tuple[int, ...]) -> bool:
    return not until or version[: len(until)] <= until


def _is_before_rdna3(facts: Facts) -> bool:
    """Whether a GPU of AMD is older than RDNA 3, as ggml-vulkan tells generations: RDNA 3 and newer have subgroups of
    32 and 64, and mixed dot products."""
    return not (facts.least_lanes == 32 and facts.most_lanes == 64 and facts.mixed_dots)


def _is_turing(facts: Facts) -> bool:
    """32 warps of 32 a multiprocessor, and matrix units: CUDA Programming Guide, table of technical specifications."""
    return facts.unit_threads == 1024


ROWS: tuple[Report, ...] = (
    Report(
        1,
        "a job may take 2 s (10 s on older versions of Linux), then the device is lost, and the next call fails too",
        "InvokeAI 9539; llama.cpp 27076, 21724; ollama 17870; ggml-vulkan",
        drivers=_ON_AMDGPU,
        system="Linux",
        kernel=(7,),
        care=Care(job_seconds=_HALF_OF_TWO_SECONDS),
    ),
    Report(
        2,
        "Windows resets a GPU whose job takes 2 s (TDR)",
        "llama.cpp 18523",
        system="Windows",
        where=lambda facts: facts.kind != "cpu",
        condition="GPUs",
        care=Care(job_seconds=_HALF_OF_TWO_SECONDS),
    ),
    Report(
        3,
        "asking for the properties of matrix units is an access violation",
        "AMDVLK 422",
        drivers=("amd_proprietary",),
        where=lambda facts: facts.kind == "integrated",
        condition="integrated GPUs",
        care=Care(asks_matrices=False, left_out=MATRIX_FEATURES),
    ),
    Report(
        4,
        "the driver reports matrix units on RDNA 1 and 2, which have none",
        "ggml-vulkan; llama.cpp 11074",
        drivers=_AMD_WINDOWS_OR_AMDVLK,
        where=_is_before_rdna3,
        condition="GPUs before RDNA 3",
        care=Care(left_out=MATRIX_FEATURES),
    ),
    Report(
        5,
        "large tiles of matmul on matrix units are slow",
        "llama.cpp 18763",
        drivers=("amd_proprietary",),
        instead="torch's matmul takes tiles of 64 columns (the driver's row in driver_quirks.py)",
    ),
    Report(
        6,
        "with an NVIDIA and an Intel GPU in one machine, asking for the devices is an access violation",
        "ncnn 6843",
        system="Windows",
        instead="devices are asked in a process of their own first (runtime/vulkan/asking.py)",
    ),
    Report(
        7,
        "matmul on matrix units runs at 0.0007 to 20 times the speed of multiply-adds",
        "llama.cpp 24404",
        drivers=("intel_proprietary_windows",),
        where=lambda facts: facts.least_lanes != 16,
        condition="GPUs before Xe2 (minSubgroupSize 16)",
        care=Care(left_out=MATRIX_FEATURES),
    ),
    Report(
        8,
        "matmul on matrix units hangs",
        "IGCIT 1487",
        drivers=("intel_proprietary_windows",),
        since=(101, 8826),
        until=(101, 8826),
        where=lambda facts: "B70" in facts.name,
        condition="Arc Pro B70",
        care=Care(left_out=MATRIX_FEATURES),
    ),
    Report(
        9,
        "a family of kernels with subgroup operations crashes",
        "ggml-vulkan",
        drivers=("intel_proprietary_windows",),
        since=(101, 8509),
        until=(101, 8860),
        care=Care(verified=frozenset({"subgroups"})),
        instead="layouts are converted through shared memory, whatever the version (the row in driver_quirks.py)",
    ),
    Report(
        10,
        "float16 arithmetic is wrong in one family of kernels",
        "llama.cpp 17106, 18814",
        drivers=("intel_open_source_mesa",),
        care=Care(verified=frozenset({"float16"})),
    ),
    Report(
        11,
        "bfloat16 does not work; padded rows of matrix tiles cost time",
        "ggml-vulkan",
        drivers=("intel_proprietary_windows",),
        care=Care(left_out=frozenset({"bfloat16_matrices"})),
        instead="fragments are not loaded from padded rows (the driver's row in driver_quirks.py)",
    ),
    Report(
        12,
        "the driver's sine of float32 is right to 1e-4 only",
        "numba-vulkan",
        drivers=("intel_open_source_mesa",),
        instead="kernels compute sines themselves; a function of the driver's is used only where it was measured "
        "(runtime/measuring/native_probe.py)",
    ),
    Report(
        13,
        "memory is over-committed: an allocation succeeds, and the submission that uses it loses the device",
        "llama.cpp 29213",
        drivers=("mesa_radv",),
        care=Care(asks_budget=True),
    ),
    Report(
        14,
        "allocations above 2 GiB fail, or succeed above 4 GiB and give wrong values",
        "AMDVLK 413; llama.cpp 16135",
        drivers=_ON_AMDGPU,
        care=Care(holds_allocations=True),
    ),
    Report(
        15,
        "the device-local heap of an integrated GPU is smaller than the memory that it can use",
        "llama.cpp 16832; ollama 15302",
        drivers=_ON_AMDGPU,
        where=lambda facts: facts.kind == "integrated",
        condition="integrated GPUs",
        instead="tensors of integrated GPUs go to the other heap where the first one is full "
        "(native/vulkan/buffers.cpp)",
    ),
    Report(
        16,
        "pipelines that are made in parallel corrupt the process's memory",
        "llama.cpp 22128",
        drivers=("mesa_radv",),
        until=(25, 0, 7),
        where=lambda facts: re.search(r"navi ?21", facts.name, re.IGNORECASE) is not None,
        condition="Navi 21",
        care=Care(one_pipeline=True),
    ),
    Report(
        17,
        "explicit layouts of workgroup memory are offered without 16-bit integers",
        "yuzu 8369",
        drivers=("amd_proprietary",),
        since=(22, 3, 2),
        where=lambda facts: "int16" not in facts.features,
        condition="GPUs without int16 (Polaris)",
        care=Care(left_out=frozenset({"explicit_workgroup_layout"})),
    ),
    Report(
        18,
        "attention on matrix units is compiled wrongly",
        "llama.cpp 19075",
        drivers=("nvidia_proprietary",),
        where=_is_turing,
        condition="Turing",
        care=Care(left_out=MATRIX_FEATURES),
    ),
    Report(
        19,
        "larger kernels are refused with VK_ERROR_UNKNOWN",
        "llama.cpp 12421, 28635",
        drivers=("qualcomm_proprietary",),
        instead="kernels are unrolled less (the driver's row in driver_quirks.py)",
    ),
    Report(
        20,
        "16 KiB of shared memory, 256 invocations, 16 lanes; a long dispatch can crash the system",
        "llama.cpp 26213; raspberrypi/linux 6660",
        drivers=("mesa_v3dv",),
        care=Care(job_seconds=0.25, drains=True),
    ),
    Report(
        21,
        "says 64 lanes on AMD GPUs, where shuffles and arithmetic of subgroups are right with 32 only; imported host "
        "memory is broken; many command buffers in flight crash; atomic additions of floats fail",
        "llama.cpp 20029; ggml-vulkan; quadrants 551",
        drivers=("moltenvk",),
        where=lambda facts: facts.vendor == _AMD,
        condition="AMD GPUs",
        care=Care(most_lanes=32, verified=frozenset({"subgroups"})),
    ),
    Report(
        21,
        "imported host memory is broken, many command buffers in flight crash, and atomic additions of floats fail",
        "llama.cpp 20029; ggml-vulkan; quadrants 551",
        drivers=("moltenvk",),
        care=Care(imports_host=False, drains=True, left_out=frozenset({"float32_atomic_add", "float64_atomic_add"})),
    ),
    Report(
        22,
        "loops over K of a matmul must stay loops",
        "ggml-vulkan",
        drivers=("mesa_honeykrisp",),
        instead="dots are unrolled little (the driver's row in driver_quirks.py)",
    ),
    Report(
        23,
        "a GPU of two drivers is listed twice (RADV and AMDVLK; Dozen beside a native driver)",
        "ggml-vulkan",
        drivers=("mesa_dozen",),
        care=Care(last=True),
        instead="devices with one UUID, or one LUID, are one device (runtime/vulkan/twins.py)",
    ),
    Report(
        24,
        "the first queue family with compute is the graphics queue",
        "VkQueueFamilyProperties of RADV",
        drivers=("mesa_radv",),
        care=Care(compute_only=True),
    ),
)


def rows_for(facts: Facts) -> tuple[Report, ...]:
    """The rows that hold for a device."""
    return tuple(row for row in ROWS if row.holds(facts))


def care_for(facts: Facts) -> Care:
    """What the rows that hold for a device ask for together: the strictest of each."""
    cares = [row.care for row in rows_for(facts)]
    return Care(
        **{entry.name: _strictest(entry.name, [getattr(care, entry.name) for care in cares]) for entry in _CARE}
    )


_CARE = fields(Care)


def _strictest(name: str, asked: list[Any]) -> Any:
    default = getattr(NO_CARE, name)
    if isinstance(default, frozenset):
        return frozenset().union(*asked)
    if isinstance(default, bool):
        return next((value for value in asked if value != default), default)
    numbers = [value for value in asked if isinstance(value, (int, float))]
    return min(numbers, default=None)


def version_of(driver: str, number: int, text: str) -> tuple[int, ...]:
    """A driver's version of VkPhysicalDeviceProperties.driverVersion and driverInfo; () if neither tells it.

    NVIDIA packs it in 10, 8, 8 and 6 bits, Intel's driver for Windows in 18 and 14 (ggml-vulkan, vulkan.gpuinfo.org);
    the others as VK_MAKE_API_VERSION does. AMD's own drivers and Mesa say the version that users know in the text.
    """
    if driver == "nvidia_proprietary":
        return number >> 22, number >> 14 & 0xFF, number >> 6 & 0xFF
    if driver == "intel_proprietary_windows":
        return number >> 14, number & 0x3FFF
    found = re.search(r"\d+(?:\.\d+)+", text)
    if found:
        return tuple(map(int, found[0].split(".")))
    packed = (number >> 22, number >> 12 & 0x3FF, number & 0xFFF)
    return packed if any(packed) else ()


def kernel_version(release: str) -> tuple[int, ...]:
    """The first two numbers of a version of Linux, such as platform.release() gives; () if there are none."""
    found = re.match(r"(\d+)\.(\d+)", release)
    return (int(found[1]), int(found[2])) if found else ()


def table() -> str:
    """The rows as a Markdown table, for docs/devices.md."""
    lines = ["| # | driver | what is reported | what is done about it | source |", "| --- | --- | --- | --- | --- |"]
    for row in ROWS:
        lines.append(f"| {row.number} | {_whom(row)} | {row.symptom} | {_done(row)} | {row.source} |")
    return "\n".join(lines)


def _whom(row: Report) -> str:
    names = ", ".join(row.drivers) or "any"
    if row.system:
        names += f" on {row.system}" + (f" {'.'.join(map(str, row.kernel))} and newer" if row.kernel else "")
    since, until = (".".join(map(str, version)) for version in (row.since, row.until))
    if since and since == until:
        names += f" {since}"
    elif since or until:
        names += (f" from {since}" if since else "") + (f" to {until}" if until else "")
    return names + (f"; {row.condition}" if row.condition else "")


#: How a Care is told, by its field; {} is its value.
_TOLD = {
    "asks_matrices": "matrix units are not asked for",
    "left_out": "not used: {}",
    "most_lanes": "subgroups of at most {}",
    "job_seconds": "submissions of at most {} s",
    "drains": "one submission at a time",
    "imports_host": "no imported host memory",
    "holds_allocations": "no allocation above maxMemoryAllocationSize",
    "asks_budget": "large allocations ask for the memory budget first",
    "one_pipeline": "one pipeline is made at a time",
    "compute_only": "a queue family without graphics is preferred",
    "last": "used only where no other driver has the GPU",
    "verified": "the self-test of {} must pass",
}


def _done(row: Report) -> str:
    told = []
    for entry in _CARE:
        value = getattr(row.care, entry.name)
        if value != getattr(NO_CARE, entry.name):
            text = ", ".join(sorted(value)) if isinstance(value, frozenset) else str(value)
            told.append(_TOLD[entry.name].format(text))
    return "; ".join([*told, *filter(None, [row.instead])])
