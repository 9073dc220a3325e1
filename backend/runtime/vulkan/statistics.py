"""What a driver says about a kernel that it compiled (VK_KHR_pipeline_executable_properties): registers, spills, code.

Drivers keep this only for a pipeline that is created with flags that ask for it, which may cost time and the pipeline
cache. So it comes from its own pipeline, made when somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ...driver_quirks import DRIVERS, OTHER
from ..modules.module_info import read_module
from .loader import check, new, vulkan
from .pipeline import create_module, create_pipeline

EXTENSION = "VK_KHR_pipeline_executable_properties"
#: The feature of VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR that a device must have.
FEATURE = "pipelineExecutableInfo"

_CAPTURE_STATISTICS, _CAPTURE_REPRESENTATIONS = 0x40, 0x80  # of VkPipelineCreateFlagBits
#: VkPipelineExecutableStatisticFormatKHR → the member of VkPipelineExecutableStatisticValueKHR that holds the value.
_FORMATS = ("b32", "i64", "u64", "f64")

Found = TypeVar("Found")


@dataclass(frozen=True)
class Statistic:
    """One figure, by the driver's own name, with the driver's own explanation."""

    name: str
    value: int | float | bool
    description: str = ""


@dataclass(frozen=True)
class Representation:
    """The kernel in a form of the driver's: an intermediate representation, or the device's instructions."""

    name: str
    text: str
    description: str = ""


@dataclass(frozen=True)
class Executable:
    """What the driver made of a kernel: one program, as a rule. ``subgroup_size``: 0 where it does not say."""

    name: str
    subgroup_size: int
    statistics: tuple[Statistic, ...]
    representations: tuple[Representation, ...] = ()


def executables(
    device: Any, layout: Any, spirv: bytes, subgroup_size: int, texts: bool = False, chooses_size: bool = True
) -> list[Executable]:
    """Compiles a module on a VkDevice that has FEATURE enabled, and asks. ``texts``: for representations, too.
    ``chooses_size``: DeviceInfo.chooses_subgroup_size.

    Raises ValueError on a damaged module, RuntimeError if the driver refuses it or does not answer.
    """
    vk = vulkan()
    module = create_module(device, spirv)
    flags = _CAPTURE_STATISTICS | (_CAPTURE_REPRESENTATIONS if texts else 0)
    try:
        # Without a cache: a pipeline that comes from there may have no statistics.
        info = read_module(spirv)
        pipeline = create_pipeline(device, layout, vk.ffi.NULL, module, info, subgroup_size, flags, chooses_size)
        try:
            return _of_pipeline(device, pipeline, texts)
        finally:
            vk.lib.vkDestroyPipeline(device, pipeline, vk.ffi.NULL)
    finally:
        vk.lib.vkDestroyShaderModule(device, module, vk.ffi.NULL)


def plausible(driver: str, found: Iterable[Executable]) -> list[Executable]:
    """The executables without figures that cannot be what the driver calls them (``most`` in driver_quirks.py)."""
    most = DRIVERS.get(driver, OTHER).most
    return [
        replace(one, statistics=tuple(row for row in one.statistics if row.value <= most.get(row.name, row.value)))
        for one in found
    ]


def registers_and_spills(driver: str, found: Iterable[Executable]) -> tuple[int | None, int | None]:
    """A kernel's registers of an invocation, and its spills, in Triton's sense: ``n_regs``, ``n_spills``.

    Which of a driver's figures they are is in driver_quirks.py. None if the driver has no such figure.
    """
    known = DRIVERS.get(driver, OTHER)
    figures = {one.name: int(one.value) for executable in found for one in executable.statistics}
    registers = next((figures[name] for name in known.register_statistics if name in figures), None)
    spills = [figures[name] for name in known.spill_statistics if name in figures]
    return registers, sum(spills) if spills else None


def _of_pipeline(device: Any, pipeline: Any, texts: bool) -> list[Executable]:
    whole = new("VkPipelineInfoKHR")
    whole.pipeline = pipeline

    def named(row: Any) -> Executable:
        return Executable(_text(row.name), int(row.subgroupSize), ())

    found = _all(device, "Properties", "VkPipelineExecutablePropertiesKHR", whole, named)
    for index, executable in enumerate(found):
        one = new("VkPipelineExecutableInfoKHR")
        one.pipeline, one.executableIndex = pipeline, index
        statistics = _all(device, "Statistics", "VkPipelineExecutableStatisticKHR", one, _statistic)
        representations = _representations(device, one) if texts else []
        found[index] = replace(executable, statistics=tuple(statistics), representations=tuple(representations))
    return found


def _statistic(row: Any) -> Statistic:
    member = _FORMATS[row.format]
    value = getattr(row.value, member)
    return Statistic(_text(row.name), bool(value) if member == "b32" else value, _text(row.description))


def _representations(device: Any, executable: Any) -> list[Representation]:
    """The representations that are text. The first call gives their sizes, the second one fills them."""
    ffi = vulkan().ffi
    buffers: list[Any] = []

    def make_room(row: Any) -> None:
        buffers.append(ffi.new("char[]", max(1, row.dataSize)))
        row.pData = buffers[-1]

    def read(row: Any) -> Representation | None:
        if not row.isText:
            return None
        text = bytes(ffi.buffer(row.pData, row.dataSize)).split(b"\0")[0].decode(errors="replace")
        return Representation(_text(row.name), text, _text(row.description))

    struct = "VkPipelineExecutableInternalRepresentationKHR"
    return [one for one in _all(device, "InternalRepresentations", struct, executable, read, make_room) if one]


def _all(
    device: Any,
    what: str,
    struct: str,
    about: Any,
    read: Callable[[Any], Found],
    make_room: Callable[[Any], None] | None = None,
) -> list[Found]:
    """What ``vkGetPipelineExecutable<what>KHR`` lists, each row as ``read`` makes it. ``make_room`` prepares each row,
    as a first call fills it, for a second one."""
    vk = vulkan()
    ffi = vk.ffi
    name = f"vkGetPipelineExecutable{what}KHR"
    address = vk.lib.vkGetDeviceProcAddr(device, name.encode())
    if address == ffi.NULL:
        raise RuntimeError(f"the driver offers {EXTENSION}, but not {name}")
    function = ffi.cast(f"VkResult(*)(VkDevice, {ffi.typeof(about).item.cname} const*, uint32_t*, {struct}*)", address)
    count = ffi.new("uint32_t*")
    check(function(device, about, count, ffi.NULL), name)
    rows = ffi.new(f"{struct}[]", max(1, count[0]))
    for row in rows:
        row.sType = new(struct).sType
    check(function(device, about, count, rows), name)
    if make_room is not None:
        for index in range(count[0]):
            make_room(rows[index])
        check(function(device, about, count, rows), name)
    return [read(rows[index]) for index in range(count[0])]


def _text(letters: Any) -> str:
    return str(vulkan().ffi.string(letters).decode(errors="replace"))
