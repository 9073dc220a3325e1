"""A kernel's machine code for a processor: each instruction beside the line of the source it was made for, and what the
code does in its loops, as LLVM's comments tell them."""

from __future__ import annotations

import functools
import linecache
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..capabilities import Capabilities
from ..cpu.host import host_of
from ..cpu.machine import assembly
from ..cpu.module_translation import translate
from ..driver_quirks import DRIVERS
from ..runtime.vulkan.statistics import Executable, Representation, Statistic
from .stage_lines import Line

_FILE = re.compile(r'\t\.file\t(\d+) "(.*?)"(?: "(.*?)")?')
_PLACE = re.compile(r"\t\.loc\t(\d+) (\d+)")
_FUNCTION = re.compile(r'"?([^\s".][^\s"]*)"?:\s*(?:[#;]|//) @')
_END = re.compile(r"\.Lfunc_end\d+:")
_LABEL = re.compile(r"\.L\w+:")
_INSTRUCTION = re.compile(r"\t([a-z]\S*)")
#: Instructions on vectors: of AVX, whose names begin with a v, and of NEON, which name a vector register.
_VECTOR = re.compile(r"\tv|\t\S+\t(?:\{ )?v\d+\.|\t\S+\tq\d+")
_STACK = re.compile(r"\tsubq\t\$(\d+), %rsp|\tsub\tsp, sp, #(\d+)")
#: In the comments behind a label: the innermost loop that its instructions are in.
_HEADER, _IN_LOOP = re.compile(r"Loop Header: Depth="), re.compile(r"in Loop: Header=(BB\w+)")
#: Of the kernel's entry: the loop over programs, in which a short one is (module_translation.py).
_PROGRAMS = re.compile(r"Header(?:=BB\w+|:) Depth=1\b")
_CALL = re.compile(r"\s+(?:call\w*|bl)\s+\*?(\S+)")
#: Of AVX2 and AVX-512, and calls of functions that do it by elements where the processor cannot (spread_access.py).
_GATHER = re.compile(r"\s+(?:\w*(?:gather|scatter)|(?:call\w*|bl)\s+(?:gather|scatter)_)")
_SPILL = re.compile(r"(?:16|32|64)-byte (?:\w+ )?Spill")
#: Registers of vectors by their bits, the widest first; and one element of such a register.
_WIDTHS = ((512, re.compile(r"%zmm")), (256, re.compile(r"%ymm")), (128, re.compile(r"%xmm|\b[qv]\d+")))
_ONE = re.compile(r" v?(?:mov|add|sub|mul|div|max|min|cmp|ucomi|cvt\w*|f\w+\d*)(s[sd])\b")
#: Places in memory, not on the stack and not among constants: of x86, whose stores have them last, and of aarch64.
_MEMORY = re.compile(r"\((?!%rsp|%rip)[^)]*\)|\[(?!sp)[^\]]*\]")


@dataclass(frozen=True)
class MachineLine(Line):
    """A line of machine code. ``function``: the one that it is in; ``loop``: the header of its innermost loop, or "";
    ``gathers``: it gathers or scatters, or calls a function that does; ``bits``: of the widest vector that it names."""

    function: str = ""
    loop: str = ""
    gathers: bool = False
    bits: int = 0


@functools.lru_cache(maxsize=1)  # the page asks twice
def code_lines(spirv: bytes, capabilities: Capabilities) -> tuple[tuple[MachineLine, ...], int]:
    """The functions of a module's machine code, and bytes of scratch memory of a thread. The module may have lines of
    its source. Raises Untranslatable, InvalidCode and NoHostTarget."""
    host = host_of(capabilities.processor)
    kernel = translate(spirv, host, capabilities.subgroup_size)
    return tuple(map(_told, _read(assembly(kernel.text, host, kernel.quick), kernel.name))), kernel.scratch


def _told(line: MachineLine) -> MachineLine:
    text = line.text.partition("#")[0]
    gathers = _GATHER.match(text) is not None
    bits = 0 if _ONE.search(text) else next((bits for bits, name in _WIDTHS if name.search(text)), 0)
    return replace(line, gathers=gathers, bits=bits)


def _read(text: str, entry: str) -> Iterator[MachineLine]:
    """Lines of LLVM's assembly, without directives. ``entry``: the function that runs programs."""
    files: dict[str, str] = {}
    here, label, inside = MachineLine(""), "", False
    for line in text.splitlines():
        if match := _FILE.match(line):
            folder, name = (match[2], match[3]) if match[3] is not None else ("", match[2])
            files[match[1]] = os.path.join(folder, name)
        elif match := _PLACE.match(line):
            known = match[1] in files and match[2] != "0"
            here = replace(here, places=(f"{files[match[1]]}:{match[2]}",) if known else ())
        elif match := _FUNCTION.match(line):
            inside, here = True, MachineLine("", (), match[1])
            yield replace(here, text=f"{match[1]}:")
        elif _END.match(line):
            inside = False
        elif inside and (_LABEL.match(line) or line.startswith(("# %", "// %"))):
            if not line.startswith((".Ltmp", ".Lfunc")):
                label, here = line.partition(":")[0].removeprefix(".L"), replace(here, loop="")
            if line.startswith(".L") and not line.startswith((".Ltmp", ".Lfunc")):
                yield replace(here, text=line.partition("#")[0].partition("//")[0].rstrip(), places=())
        elif inside and _INSTRUCTION.match(line):
            yield replace(here, text=_spaced(line))
        if inside and (_HEADER.search(line) or _IN_LOOP.search(line)):
            match = _IN_LOOP.search(line)
            loop = "" if here.function == entry and _PROGRAMS.search(line) else match[1] if match else label
            here = replace(here, loop=loop)


def _spaced(line: str) -> str:
    name, _, operands = line.strip().partition("\t")
    return f"    {name:<15} {operands}".rstrip()


def machine_facts(lines: Iterable[MachineLine]) -> dict[str, Any]:
    """What the code does, as plain data: the bits of its widest vectors, and of each loop of the source, the longest
    first, the place of its most frequent line and how many of a round's instructions there are, work on vectors, gather
    or scatter, call, and store a vector to the stack. What is in several nested loops is the innermost one's."""
    code = [line for line in lines if line.text.startswith(" ")]
    loops: dict[tuple[str, str], list[MachineLine]] = {}
    for line in code:
        if line.loop:
            loops.setdefault((line.function, line.loop), []).append(line)
    placed = [loop for loop in loops.values() if any(line.places for line in loop)]
    return {
        "vector_bits": max((line.bits for line in code), default=0),
        "loops": [
            {
                "places": [Counter(line.places[0] for line in loop if line.places).most_common(1)[0][0]],
                "instructions": len(loop),
                "vectors": sum(line.bits > 0 for line in loop),
                "gathers": sum(line.gathers for line in loop),
                "calls": sum(_CALL.match(line.text) is not None for line in loop),
                "spills": sum(_SPILL.search(line.text) is not None for line in loop),
            }
            for loop in sorted(placed, key=len, reverse=True)
        ],
    }


def machine_accesses(accesses: Iterable[Mapping[str, Any]], lines: Sequence[MachineLine]) -> list[dict[str, Any]]:
    """The loads and stores of drawings.accesses() as the machine code does them: how many bits an instruction moves, of
    those made for the access's line."""
    return [{**entry, "could": False, **_access(entry, lines)} for entry in accesses]


def _access(entry: Mapping[str, Any], lines: Sequence[MachineLine]) -> dict[str, Any]:
    made = [line for line in lines if line.places and line.places[0] in entry["places"]]
    gathers, moving = sum(line.gathers for line in made), [line for line in made if _moves(line.text, entry["what"])]
    bits, one = max((line.bits for line in moving), default=0), entry["bits"] // entry["elements"]
    if gathers:
        return {"bits": one, "why": f"{gathers} gathers or scatters, since the places are not known to be neighbours"}
    if not moving:
        return {"why": "not told apart: in a function that multiplies tiles, or done with another line's"}
    if not bits:
        return {"bits": one, "why": "one value" if entry["scalar"] else "one element at a time"}
    return {"bits": bits, "why": f"{sum(line.bits == bits for line in moving)} instructions on vectors so wide"}


def _moves(text: str, what: str) -> bool:
    """Whether an instruction loads, or stores: aarch64's names say so, and x86's stores name the place last."""
    text = text.partition("#")[0].rstrip()
    match, name = _MEMORY.search(text), text.split(maxsplit=1)[0]
    if match is None or not text.startswith(" ") or name.startswith(("lea", "prefetch")):
        return False
    if match[0].startswith("["):
        return name.startswith("st" if what == "store" else "ld")
    return re.sub(r"\s*\{%k\d\}$", "", text).endswith(match[0]) is (what == "store")


def executables(spirv: bytes, capabilities: Capabilities) -> list[Executable]:
    """The lines of code in the form of what drivers tell. Raises as code_lines()."""
    lines, scratch = code_lines(spirv, capabilities)
    code = [line.text for line in lines if line.text.startswith(" ")]
    tabbed = ["\t" + re.sub(r"\s+", "\t", text.strip(), count=1) for text in code]
    stack = [int(match[1] or match[2]) for text in tabbed if (match := _STACK.match(text))]
    facts = machine_facts(lines)
    says = "instructions: {vectors} on vectors, {gathers} gathers or scatters, {calls} calls, {spills} vectors spilled"
    loops = [
        Statistic(f"Loop at {os.path.basename(loop['places'][0])}", loop["instructions"], says.format(**loop))
        for loop in facts["loops"]
    ]
    statistics = (
        Statistic("Instructions", len(code), "of all functions"),
        Statistic("Vector instructions", sum(bool(_VECTOR.match(text)) for text in tabbed), "of them"),
        Statistic("Vector width", facts["vector_bits"], "bits of the widest register"),
        Statistic("Spills", sum("Spill" in text for text in code), "stores of registers to the stack"),
        Statistic("Stack", max(stack, default=0), "bytes of the largest frame, beside saved registers"),
        Statistic("Scratch", scratch, "bytes of memory of a thread: shared memory, and arrays of tiles"),
        *loops,
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
