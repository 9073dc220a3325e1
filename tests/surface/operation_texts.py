"""Operations that upstream's compiler knows and no kernel of Triton's makes: short modules in MLIR's generic form.

Upstream's parser reads them and its printer writes them again, in the form that this backend's reader has to know.
``SCALAR``: operations of scalars, which go through every stage from TTIR; ``MODULES``: whole modules of TTIR or TTGIR;
``REFUSED``: modules of TTGIR with operations that are refused, each by its name.
"""

from dataclasses import dataclass
from pathlib import Path

from tests.filecheck import directives, sections

#: Operand types > result types → operations.
_SCALAR = {
    "f32>f32": "math.acos math.acosh math.asin math.asinh math.atan math.atanh math.cbrt math.cosh math.erfc "
    "math.expm1 math.log10 math.log1p math.round math.roundeven math.sinh math.tan math.tanh math.trunc",
    "f32,f32>f32": "math.atan2 math.copysign math.powf",
    "f32,f32,f32>f32": "math.clampf",
    "f32,i32>f32": "math.fpowi",
    "f32>f32,f32": "math.sincos",
    "f32>i1": "math.isfinite math.isinf math.isnan math.isnormal",
    "i32>i32": "math.ctlz math.ctpop math.cttz",
    "i32,i32>i32": "math.ipowi arith.ceildivsi arith.ceildivui arith.floordivsi",
    "i32,i32>i32,i32": "arith.mulsi_extended arith.mului_extended",
    "i32,i32>i32,i1": "arith.addui_extended arith.subui_extended",
    "f32>i32": "arith.bitcast",
    "i32>index": "arith.index_cast arith.index_castui",
}

#: Operation → its operand types and result types.
SCALAR: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    name: (tuple(operands.split(",")), tuple(results.split(",")))
    for types, names in _SCALAR.items()
    for operands, _, results in [types.partition(">")]
    for name in names.split()
}


def scalar_module(name: str) -> str:
    """A kernel that loads the operands of operation ``name``, and stores its results."""
    operands, results = SCALAR[name]
    arguments = [f"%p{place}: !tt.ptr<{type_}>" for place, type_ in enumerate(operands)]
    kept = ["i32" if type_ == "index" else type_ for type_ in results]
    arguments += [f"%q{place}: !tt.ptr<{type_}>" for place, type_ in enumerate(kept)]
    lines = [f"  %x{place} = tt.load %p{place} : !tt.ptr<{type_}>" for place, type_ in enumerate(operands)]
    values = ", ".join(f"%x{place}" for place in range(len(operands)))
    names = ", ".join(f"%y{place}" for place in range(len(results)))
    lines.append(f'  {names} = "{name}"({values}) : ({", ".join(operands)}) -> ({", ".join(results)})')
    for place, type_ in enumerate(results):
        value = f"%y{place}"
        if type_ == "index":
            back = "arith.index_castui" if name == "arith.index_cast" else "arith.index_cast"
            lines.append(f"  %z{place} = {back} {value} : index to i32")
            value = f"%z{place}"
        lines.append(f"  tt.store %q{place}, {value} : !tt.ptr<{kept[place]}>")
    body = "\n".join(lines)
    return f"module {{\ntt.func public @k({', '.join(arguments)}) {{\n{body}\n  tt.return\n}}\n}}\n"


@dataclass(frozen=True)
class Text:
    """A module, and the operations that it stands for. ``stage``: ttir or ttgir."""

    makes: str
    module: str
    stage: str


_LAYOUTS = """
#rows = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#columns = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [4, 2], warpsPerCTA = [1, 4], order = [0, 1]}>
#one = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [8], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#turned = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
"""
_MODULE = (
    '"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "spirv:vulkan1.3", '
    '"ttg.threads-per-warp" = 8 : i32'
)


def _texts() -> dict[str, tuple[Text, ...]]:
    """The sections of the files of texts/, whose layouts are those above."""
    found = {}
    for name, several in sections(Path(__file__).parent / "texts"):
        told = [(directives(section), section) for section in several]
        found[name] = tuple(
            Text(said["MAKES"], f"module {{\n{section}}}\n", "ttir")
            if said.get("STAGE") == "ttir"
            else Text(said["MAKES"], f"{_LAYOUTS}\nmodule attributes {{{_MODULE}}} {{\n{section}}}\n", "ttgir")
            for said, section in told
        )
    return found


MODULES, REFUSED = _texts().values()
