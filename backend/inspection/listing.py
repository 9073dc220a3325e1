"""A kernel's SPIR-V as something to read: names, lines of the user's source in between, what is nested indented."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from pathlib import Path

from ..capabilities import Capabilities
from ..driver_quirks import DRIVERS, OTHER
from ..runtime.device_choice import choose, devices
from ..runtime.files import given_path
from ..spirv import opcodes as op
from ..spirv.decode import DecodedInstruction, decode
from ..spirv.disassemble import heading_lines
from .compilers import asked
from .kernels import STAGES, CachedKernel, NotInCache, NotPlannable, find
from .nvidia_code import NoMachineCode
from .placed_instructions import placed

#: What was decided of a kernel before it was emitted (planning/show.py).
PLAN = "plan"
#: What the device's driver makes of the module (compilers.py).
MACHINE = "machine"
#: What can be shown of a kernel: the stages in the cache, the plan between them, and what comes after them.
SHOWN = (*STAGES[:-1], PLAN, STAGES[-1], MACHINE)

#: Columns that each selection or loop adds.
_INDENT = 2


def listing(spirv: bytes) -> str:
    """The disassembly of a module. Raises ValueError on what is not a whole SPIR-V module."""
    return "\n".join([*heading_lines(spirv), *_nested(list(decode(spirv)))]) + "\n"


def _nested(instructions: list[DecodedInstruction]) -> Iterator[str]:
    last: tuple[tuple[str, int], ...] = ()
    for one in placed(instructions):
        indent = " " * (_INDENT * one.depth)
        if one.frames and one.frames != last:
            last = one.frames
            (file, number), *callers = one.frames
            called = "".join(f" from {Path(name).name}:{line}" for name, line in callers)
            yield f"{indent}; {Path(file).name}:{number}{called}: {linecache.getline(file, number).strip()}"
        if one.entry.opcode == op.String and "\n" in one.text:
            continue  # a text of several lines is a whole source
        yield indent + one.text


def machine_text(spirv: bytes, capabilities: Capabilities) -> str:
    """The device's instructions, as the driver that ``capabilities`` name compiles a module, below its statistics.
    Raises NoMachineCode."""
    driver = capabilities.driver
    name = DRIVERS.get(driver, OTHER).machine_code
    if not name:
        known = ", ".join(sorted(one for one, row in DRIVERS.items() if row.machine_code))
        raise NoMachineCode(f"the driver {driver} shows no machine code; these do: {known}")
    answer = asked(spirv, capabilities)
    found = [(one, text) for one in answer.executables for text in one.representations if text.name == name]
    if not found:
        raise NoMachineCode(answer.why or f"{answer.device} shows no {name!r}")
    lines = [f"// {answer.device}"]
    for executable, representation in found:
        lines += [f"// {row.name:<28} {row.value!s:>6}  {row.description}".rstrip() for row in executable.statistics]
        lines += ["//", representation.text]
    return "\n".join(lines)


def capabilities_in_use() -> Capabilities:
    """The capabilities of the device that kernels run on. Raises DeviceUnavailable."""
    device, _ = choose(devices())
    assert device.capabilities is not None
    return device.capabilities


def _module(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise NotInCache(f"{path} cannot be read: {error.strerror}") from None


def _module_text(path: Path) -> str:
    try:
        return listing(_module(path))
    except ValueError as error:
        raise ValueError(f"{path} is not a SPIR-V module: {error}") from None


def stage_text(kernel: CachedKernel, stage: str) -> str:
    """One of SHOWN of a kernel in the cache. Raises NotInCache if the cache does not have it, ValueError if the
    kernel cannot be planned, NoMachineCode where its driver does not show it."""
    if stage == PLAN:
        from .plan import plan_of  # needs Triton's compiled library

        return plan_of(kernel)
    if stage == MACHINE:
        capabilities = Capabilities.parse(str(kernel.metadata["target"]["arch"]))
        spirv = kernel.path("spv").read_bytes()
        return machine_text(_with_lines(kernel, spirv) if capabilities.processor else spirv, capabilities)
    return _module_text(kernel.path(stage)) if stage == "spv" else kernel.text(stage)


def _with_lines(kernel: CachedKernel, spirv: bytes) -> bytes:
    """The module ``spirv`` of a kernel with the lines of its source, which its instructions are the same with; without
    them where another version of this backend emitted it."""
    from ..lowering.entry_point import emit
    from .plan import cached_plan  # needs Triton's compiled library

    try:
        emitted = emit(cached_plan(kernel), lines=True)
    except NotPlannable:
        return spirv
    return emitted.with_lines or spirv if emitted.spirv == spirv else spirv


def text_of(wanted: str, stage: str) -> str:
    """What ``triton-spirv disassemble`` prints: of a ``.spv`` file, or of a kernel in Triton's cache.

    Raises NotInCache if there is no such kernel or file, ValueError if the file is not SPIR-V or the kernel
    cannot be planned, NoMachineCode if the driver does not show it, DeviceUnavailable if a file's machine code is
    asked for and no device can be used.
    """
    path = given_path(wanted)
    if path.suffix == ".spv" or path.is_file():
        if stage == MACHINE:
            return machine_text(_module(path), capabilities_in_use())
        if stage != "spv":
            raise NotInCache(f"{wanted} is a file, which has no stage {stage!r}: name a kernel of the cache")
        return _module_text(path)
    return stage_text(find(wanted), stage)
