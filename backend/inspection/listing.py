"""A kernel's SPIR-V as something to read: names, lines of the user's source in between, what is nested indented."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from pathlib import Path

from ..spirv import opcodes as op
from ..spirv.decode import DecodedInstruction, decode
from ..spirv.disassemble import heading_lines
from .instructions import placed
from .kernels import STAGES, CachedKernel, NotInCache, find

#: What was decided of a kernel before it was emitted (planning/show.py).
PLAN = "plan"
#: What can be shown of a kernel: the stages in the cache, and the plan between them.
SHOWN = (*STAGES[:-1], PLAN, STAGES[-1])

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


def _module_text(path: Path) -> str:
    try:
        return listing(path.read_bytes())
    except OSError as error:
        raise NotInCache(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{path} is not a SPIR-V module: {error}") from None


def stage_text(kernel: CachedKernel, stage: str) -> str:
    """One of SHOWN of a kernel in the cache. Raises NotInCache where the cache does not have it, ValueError where the
    kernel cannot be planned."""
    if stage == PLAN:
        from .plan import plan_of  # needs Triton's compiled library

        return plan_of(kernel)
    return _module_text(kernel.path(stage)) if stage == "spv" else kernel.text(stage)


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
