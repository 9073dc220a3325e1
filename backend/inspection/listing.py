"""A kernel's SPIR-V as something to read: names, lines of the user's source in between, what is nested indented."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from pathlib import Path

from ..capabilities import Capabilities
from ..errors import LoweringError, UnsupportedOperation
from ..spirv import opcodes as op
from ..spirv.debug_reading import InlinedCalls
from ..spirv.decode import DecodedInstruction, decode
from ..spirv.disassemble import disassembled, heading_lines
from .kernels import STAGES, CachedKernel, NotInCache, find

#: What was decided of a kernel before it was emitted (planning/show.py).
PLAN = "plan"
#: What can be shown of a kernel: the stages in the cache, and the plan between them.
SHOWN = (*STAGES[:-1], PLAN, STAGES[-1])

#: Columns that each selection or loop adds.
_INDENT = 2


def listing(spirv: bytes) -> str:
    """The disassembly of a module. Raises ValueError on what is not a whole SPIR-V module."""
    instructions = list(decode(spirv))
    return "\n".join([*heading_lines(spirv), *_nested(instructions, disassembled(instructions))]) + "\n"


def _nested(instructions: list[DecodedInstruction], lines: list[str]) -> Iterator[str]:
    files = {entry.result: str(entry.operands[0].value) for entry in instructions if entry.opcode == op.String}
    calls = InlinedCalls(instructions)
    merges: list[int] = []
    last: tuple[object, ...] = ()
    callers: list[tuple[str, int]] = []
    for instruction, line in zip(instructions, lines, strict=True):
        if instruction.opcode == op.Label and merges and merges[-1] == instruction.result:
            merges.pop()
        depth = _INDENT * len(merges)
        if instruction.opcode == op.Line:
            file, number = files.get(int(instruction.operands[0].value), "?"), int(instruction.operands[1].value)
            if (file, number, *callers) != last:
                last = (file, number, *callers)
                called = "".join(f" from {Path(name).name}:{line}" for name, line in callers)
                yield f"{' ' * depth}; {Path(file).name}:{number}{called}: {linecache.getline(file, number).strip()}"
            continue
        if calls.describes(instruction):
            found = calls.callers(instruction)
            callers = callers if found is None else found
            continue
        if instruction.opcode == op.Label:
            callers = []
        if instruction.opcode == op.NoLine or (instruction.opcode == op.String and "\n" in line):
            continue  # a text of several lines is a whole source
        yield " " * depth + line
        if instruction.opcode in (op.SelectionMerge, op.LoopMerge):
            merges.append(int(instruction.operands[0].value))


def _module_text(path: Path) -> str:
    try:
        return listing(path.read_bytes())
    except OSError as error:
        raise NotInCache(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{path} is not a SPIR-V module: {error}") from None


def stage_text(kernel: CachedKernel, stage: str) -> str:
    """One of SHOWN of a kernel in the cache. Raises NotInCache where the cache does not have it."""
    if stage == PLAN:
        return _plan_text(kernel)
    path = kernel.path(stage)
    if stage == "spv":
        return _module_text(path)
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        there = ", ".join(name for name in STAGES if kernel.path(name).exists())
        raise NotInCache(f"the cache has no stage {stage!r} of kernel {kernel.name}, only {there}") from None


def _plan_text(kernel: CachedKernel) -> str:
    ttgir = stage_text(kernel, "ttgir")
    ttir = stage_text(kernel, "ttir") if kernel.path("ttir").exists() else None
    from .plan import plan_of  # needs Triton's compiled library

    try:
        capabilities = Capabilities.parse(str(kernel.metadata["target"]["arch"]))
        return plan_of(ttgir, capabilities, kernel.metadata, ttir)
    except (UnsupportedOperation, LoweringError, RuntimeError) as error:
        raise ValueError(f"kernel {kernel.name}, {kernel.key}, cannot be planned again: {error}") from error


def text_of(wanted: str, stage: str) -> str:
    """What ``triton-spirv disassemble`` prints: of a ``.spv`` file, or of a kernel in Triton's cache.

    Raises NotInCache where there is no such kernel or file, ValueError where the file is not SPIR-V or the kernel
    cannot be planned.
    """
    path = Path(wanted)
    if path.suffix == ".spv" or path.is_file():
        if stage != "spv":
            raise NotInCache(f"{wanted} is a file, which has no stage {stage!r}: name a kernel of the cache")
        return _module_text(path)
    return stage_text(find(wanted), stage)
