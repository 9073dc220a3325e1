"""A kernel's machine code for a processor, as text: each instruction beside the line of the source it was made for."""

from __future__ import annotations

import functools
import linecache
import os
import re
from collections.abc import Iterable, Iterator

from ..capabilities import Capabilities
from ..cpu.host import host_of
from ..cpu.kernel import translate
from ..cpu.machine import assembly
from ..driver_quirks import DRIVERS
from ..runtime.vulkan.statistics import Executable, Representation, Statistic
from .lines import Line

_FILE = re.compile(r'\t\.file\t(\d+) "(.*?)"(?: "(.*?)")?')
_PLACE = re.compile(r"\t\.loc\t(\d+) (\d+)")
_FUNCTION = re.compile(r'"?([^\s".][^\s"]*)"?:\s*(?:[#;]|//) @')
_END = re.compile(r"\.Lfunc_end\d+:")
_LABEL = re.compile(r"\.L\w+:")
_INSTRUCTION = re.compile(r"\t([a-z]\S*)")
#: Instructions on vectors: of AVX, whose names begin with a v, and of NEON, which name a vector register.
_VECTOR = re.compile(r"\tv|\t\S+\t(?:\{ )?v\d+\.|\t\S+\tq\d+")
_STACK = re.compile(r"\tsubq\t\$(\d+), %rsp|\tsub\tsp, sp, #(\d+)")


@functools.lru_cache(maxsize=1)  # the page asks twice
def code_lines(spirv: bytes, capabilities: Capabilities) -> tuple[tuple[Line, ...], int]:
    """The functions of a module's machine code, and bytes of scratch memory of a thread. The module may have lines of
    its source. Raises Untranslatable, InvalidCode and NoHostTarget."""
    host = host_of(capabilities.processor)
    kernel = translate(spirv, host, capabilities.subgroup_size)
    return tuple(_read(assembly(kernel.text, host))), kernel.scratch


def _read(text: str) -> Iterator[Line]:
    """Lines of LLVM's assembly, without directives."""
    files: dict[str, str] = {}
    places: tuple[str, ...] = ()
    inside = False
    for line in text.splitlines():
        if match := _FILE.match(line):
            folder, name = (match[2], match[3]) if match[3] is not None else ("", match[2])
            files[match[1]] = os.path.join(folder, name)
        elif match := _PLACE.match(line):
            known = match[1] in files and match[2] != "0"
            places = (f"{files[match[1]]}:{match[2]}",) if known else ()
        elif match := _FUNCTION.match(line):
            inside, places = True, ()
            yield Line(f"{match[1]}:")
        elif _END.match(line):
            inside = False
        elif inside and _LABEL.match(line):
            if not line.startswith((".Ltmp", ".Lfunc")):
                yield Line(line.partition("#")[0].partition("//")[0].rstrip())
        elif inside and _INSTRUCTION.match(line):
            yield Line(_spaced(line), places)


def _spaced(line: str) -> str:
    name, _, operands = line.strip().partition("\t")
    return f"    {name:<15} {operands}".rstrip()


def executables(spirv: bytes, capabilities: Capabilities) -> list[Executable]:
    """The lines of code in the form of what drivers tell. Raises as code_lines()."""
    lines, scratch = code_lines(spirv, capabilities)
    code = [line.text for line in lines if line.text.startswith(" ")]
    tabbed = ["\t" + re.sub(r"\s+", "\t", text.strip(), count=1) for text in code]
    stack = [int(match[1] or match[2]) for text in tabbed if (match := _STACK.match(text))]
    statistics = (
        Statistic("Instructions", len(code), "of all functions"),
        Statistic("Vector instructions", sum(bool(_VECTOR.match(text)) for text in tabbed), "of them"),
        Statistic("Spills", sum("Spill" in text for text in code), "stores of registers to the stack"),
        Statistic("Stack", max(stack, default=0), "bytes of the largest frame, beside saved registers"),
        Statistic("Scratch", scratch, "bytes of memory of a thread: shared memory, and arrays of tiles"),
    )
    name = DRIVERS[capabilities.driver].machine_code
    shown = Representation(name, _listing(lines), f"instructions of {capabilities.processor}, by LLVM")
    return [Executable("the kernel and its functions", capabilities.subgroup_size, statistics, (shown,))]


def _listing(lines: Iterable[Line]) -> str:
    """The lines, with those of the source in between."""
    shown, last = [], ""
    for line in lines:
        place = line.places[0] if line.places else ""
        if place and place != last:
            file, _, number = place.rpartition(":")
            shown.append(f"  # {os.path.basename(file)}:{number}: {linecache.getline(file, int(number)).strip()}")
            last = place
        shown.append(line.text)
    return "\n".join(shown) + "\n"
