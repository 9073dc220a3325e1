"""A whole module: SPIR-V to the text of LLVM IR, with the entry that runs a range of programs (docs/cpu.md)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..optional import LLVM_OPTIMISATION
from ..spirv.opcodes import StorageClass
from . import arithmetic, atomic_instructions, cooperative, glsl_functions, loads_and_stores, subgroup_operations  # noqa: F401  (fill the registry)
from . import subgroup_entry as subgroups
from .code import literal, type_name
from .control import NEVER, Control
from .decoded_module import KernelModule
from .emulation import Emulation
from .errors import Untranslatable
from .host import Host
from .program_order import fastest_axis
from .translation import Translation

#: The first line of a function: what stands before its debug information, and the rest.
_DEFINITION = re.compile(r"^(define .*?)((?: !dbg !\d+)? \{)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TranslatedKernel:
    """``text``: LLVM IR with one global function, ``name``. ``scratch``: bytes of memory that each thread has for
    it. ``quick``: LLVM is not to optimise its code."""

    name: str
    text: str
    scratch: int
    quick: bool


def translate(spirv: bytes, host: Host, subgroup: int, emulation: Emulation | None = None) -> TranslatedKernel:
    """The kernel of a SPIR-V module whose subgroups have so many lanes. Raises Untranslatable."""
    program = KernelModule(spirv, emulation)
    t = Translation(program, subgroup, host)
    for variable, value in program.initial.items():
        _begin(t, variable, value)
    Control(t).run()
    places = []
    for variable, offset in sorted(t.places.items()):
        places.append(f"  %offset{variable} = add i64 {_area(t, variable)}, {offset}")
        # LLVM asks of each access whether it could add the offset there, and looks through the whole block for that.
        places.append(f"  %place{variable} = freeze i64 %offset{variable}")
    places += [f"  %place{variable} = ptrtoint ptr @table{variable} to i64" for variable in program.tables]
    tables = [_table(t, variable) for variable in program.tables]
    vectors = f'"prefer-vector-width"="{host.vector_bits}"' + (f' "tune-cpu"="{host.tuned}"' if host.tuned else "")
    # The subgroups of a workgroup share the memory.
    code = t.code.text()
    short = emulation is None and code.count("\n") < _SHORT
    attached, entered, called = (
        f"{comma} !dbg {one}" if one else ""
        for comma, one in (
            ("", t.lines.scope),
            ("", t.lines.entry if short else ""),
            (",", t.lines.call if short else ""),
        )
    )
    quick = LLVM_OPTIMISATION in program.without
    inlined = "noinline optnone" if quick else "alwaysinline" if short else "noinline"
    parameters = _PROGRAM.format(alone="noalias " if emulation is None else "")
    body = "\n".join(
        [
            f"define internal void @program({parameters}) nounwind {inlined} {vectors}{attached} {{",
            "entry:",
            "  %memory = ptrtoint ptr %scratch to i64",
            "  %skipped = zext i32 %subgroup to i64",
            f"  %before = mul i64 %skipped, {t.own_bytes}",
            f"  %behind = add i64 %before, {t.shared_bytes}",
            "  %own = add i64 %memory, %behind",
            f"  {NEVER} = icmp eq i64 %own, 0",
            *places,
            "  br label %start",
            "start:",
            code,
            "end:",
            "  ret void",
            "}",
        ]
    )
    tiles = _tiles(t, host)
    frame = "" if emulation is None else subgroups.FRAME
    run = _RUN.format(called=called) if emulation is None else subgroups.run(t.subgroups, t.shared_bytes)
    fast = fastest_axis(program, t.divergence)
    axes = {"fast": fast, "slow": "x" if fast == "y" else "y", **t.delayed.entry(t.shared_bytes + t.own_bytes)}
    entry = _ENTRY.format(
        parameters=_PARAMETERS, name=f'"{program.name}"', vectors=vectors + entered, run=run, frame=frame, **axes
    )
    entry += t.delayed.updates(program.name, t.shared_bytes + t.own_bytes)
    if emulation is not None:
        entry = subgroups.function() + entry
    parts = [
        *tables,
        *sorted(t.code.declarations | t.delayed.declarations),
        *t.code.helpers.values(),
        *tiles,
        t.delayed.function(),
        body,
        entry,
        "!0 = !{}",
        *t.lines.metadata,
    ]
    text = _DEFINITION.sub(rf"\1 {host.attributes}\2", "\n".join(parts) + "\n")
    return TranslatedKernel(program.name, text, t.scratch_bytes, quick)


def _area(t: Translation, variable: int) -> str:
    return "%memory" if t.program.variables[variable].storage == StorageClass.Workgroup else "%own"


def _begin(t: Translation, variable: int, value: int) -> None:
    """Gives all lanes' copies of a number its initial value."""
    program = t.program
    type_, known = program.types[program.variables[variable].type], program.constants[value]
    if type_.kind not in ("int", "float") or known.parts:
        raise Untranslatable(program.name, "an initial value that is no number")
    name = type_name(type_)
    splat = t.splat_literal(t.spread(name), name, known.bits)
    t.code.do(f"store {t.spread(name)} {splat}, ptr {t.pointer(f'%place{variable}')}, align {program.size(known.type)}")


def _table(t: Translation, variable: int) -> str:
    """A constant array, which all lanes share."""
    program = t.program
    known, type_ = program.constants[program.tables[variable]], program.types[program.variables[variable].type]
    if type_.kind != "array" or program.types[type_.element].kind not in ("int", "float"):
        raise Untranslatable(program.name, "an initial value that is no array of numbers")
    name = type_name(program.types[type_.element])
    values = [program.constants[part].bits for part in known.parts] or [0] * type_.count
    elements = ", ".join(f"{name} {literal(name, value)}" for value in values)
    return f"@table{variable} = internal constant [{len(values)} x {name}] [{elements}], align 64"


def _tiles(t: Translation, host: Host) -> list[str]:
    """Definitions of the products of tiles that a kernel calls."""
    if not t.imported:
        return []
    from ..abi.tile_products import RoundsProduct, TileProduct
    from .byte_kernels import write_bytes
    from .micro_kernels import define
    from .round_kernels import define_rounds

    texts = []
    for name in sorted(t.imported):
        if (product := TileProduct.parse(name)) is not None:
            text, declarations = define(product, host, write_bytes) if product.factor else define(product, host)
        elif (rounds := RoundsProduct.parse(name)) is not None:
            text, declarations = define_rounds(rounds, host)
        else:
            raise Untranslatable(t.program.name, f"a call of {name}")
        t.code.declarations |= declarations
        texts.append(text)
    return texts


#: Lines of a program that is inlined in the loop over programs, at most. Sparse rows, of 355, take 0.94 of the time so,
#: the scatter add of rows, of 269, 0.87; but cumsum, of 1,568, 1.17, and sums of columns in a loop, of 666, 1.1: what
#: LLVM computes before the loop then is kept on the stack.
_SHORT = 400

_PROGRAM = (
    "ptr noalias readonly align 16 %arguments, i32 %programx, i32 %programy, i32 %programz, "
    "i32 %gridx, i32 %gridy, i32 %gridz, ptr {alone}align 64 %scratch, ptr readonly align 4 %stop, "
    "i32 %subgroup, i1 %alone, ptr %log"
)

_PARAMETERS = (
    "ptr noalias readonly align 16 %arguments, i64 %first, i64 %last, ptr noalias readonly align 4 %grid, "
    "ptr noalias align 64 %scratch, ptr readonly align 4 %stop"
)

_RUN = """\
  call void @program(ptr %arguments, i32 %x, i32 %y, i32 %z, i32 %gx, i32 %gy, i32 %gz, ptr %scratch, ptr %stop, i32 0,
                     i1 %alone, ptr %log){called}
"""

#: Runs programs first ... last-1 of a grid, in the order of program_order.py (backend/native/cpu).
_ENTRY = """define void @{name}({parameters}) nounwind {vectors} {{
entry:
  %gx = load i32, ptr %grid, align 4
  %py = getelementptr i32, ptr %grid, i64 1
  %gy = load i32, ptr %py, align 4
  %pz = getelementptr i32, ptr %grid, i64 2
  %gz = load i32, ptr %pz, align 4
  %pa = getelementptr i32, ptr %grid, i64 3
  %threads = load i32, ptr %pa, align 4
  %alone = icmp eq i32 %threads, 1
  %w1 = zext i32 %g{fast} to i64
  %w2 = zext i32 %g{slow} to i64
  %{fast}0 = urem i64 %first, %w1
  %row = udiv i64 %first, %w1
  %{slow}0 = urem i64 %row, %w2
  %z0 = udiv i64 %row, %w2
  %bx = trunc i64 %x0 to i32
  %by = trunc i64 %y0 to i32
  %bz = trunc i64 %z0 to i32
{begin}{frame}  br label %loop
loop:
  %i = phi i64 [%first, %entry], [%in, %next]
  %x = phi i32 [%bx, %entry], [%xn, %next]
  %y = phi i32 [%by, %entry], [%yn, %next]
  %z = phi i32 [%bz, %entry], [%zn, %next]
  %s = load atomic i32, ptr %stop monotonic, align 4
  %go = icmp eq i32 %s, 0
  br i1 %go, label %run, label %done
run:
{before}{run}  br label %next
next:
  %in = add i64 %i, 1
  %{fast}1 = add i32 %{fast}, 1
  %{fast}w = icmp eq i32 %{fast}1, %g{fast}
  %{fast}n = select i1 %{fast}w, i32 0, i32 %{fast}1
  %{fast}c = zext i1 %{fast}w to i32
  %{slow}1 = add i32 %{slow}, %{fast}c
  %{slow}w = icmp eq i32 %{slow}1, %g{slow}
  %{slow}n = select i1 %{slow}w, i32 0, i32 %{slow}1
  %{slow}c = zext i1 %{slow}w to i32
  %zn = add i32 %z, %{slow}c
  %more = icmp ult i64 %in, %last
  br i1 %more, label %loop, label %done
done:
{end}  ret void
}}
"""
