"""Operations that upstream's compiler knows and no kernel of Triton's makes: short modules in MLIR's generic form.

Upstream's parser reads them and its printer writes them again, in the form that this backend's reader has to know.
``SCALAR``: operations of scalars, which go through every stage from TTIR; ``MODULES``: whole modules of TTIR or TTGIR;
``REFUSED``: modules of TTGIR with operations that are refused, each by its name.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    """A module's body, and the operations that it stands for. ``stage``: ttir or ttgir."""

    makes: str
    arguments: str
    body: str
    stage: str = "ttgir"

    @property
    def module(self) -> str:
        """The whole text."""
        kernel = f"tt.func public @k({self.arguments}) {{\n{self.body}\n  tt.return\n}}"
        if self.stage == "ttir":
            return f"module {{\n{kernel}\n}}\n"
        return f"{_LAYOUTS}\nmodule attributes {{{_MODULE}}} {{\n{kernel}\n}}\n"


_MODULE = (
    '"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "spirv:vulkan1.3", '
    '"ttg.threads-per-warp" = 8 : i32'
)
_LAYOUTS = """
#rows = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#columns = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [4, 2], warpsPerCTA = [1, 4], order = [0, 1]}>
#one = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [8], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#turned = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
"""

_FLAT = "!ttg.memdesc<128xf32, #flat, #smem, mutable>"
_FLAT_ROOM = f'  %room = "ttg.local_alloc"() : () -> {_FLAT}\n'
_VALUES = """  %value = arith.constant dense<1.0> : tensor<128xf32, #one>
  %at = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #one>
"""
_SQUARE = "!ttg.memdesc<16x16xf32, #shared, #smem, mutable>"
_SQUARE_ROOM = f'  %room = "ttg.local_alloc"() : () -> {_SQUARE}\n'

MODULES = (
    Text(
        "cf.switch",
        "%p: !tt.ptr<i32>",
        """  %flag = tt.load %p : !tt.ptr<i32>
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  cf.switch %flag : i32, [
    default: ^end(%one : i32),
    3: ^three
  ]
^three:
  %more = arith.addi %flag, %two : i32
  cf.br ^end(%more : i32)
^end(%result: i32):
  tt.store %p, %result : !tt.ptr<i32>""",
        "ttir",
    ),
    Text(
        "ub.unreachable",
        "%flag: i1",
        """  cf.cond_br %flag, ^never, ^end
^never:
  "ub.unreachable"() : () -> ()
^end:""",
        "ttir",
    ),
    Text(
        "ttg.local_store ttg.local_dealloc ttg.memdesc_trans",
        "%p: !tt.ptr<f32>",
        """  %value = arith.constant dense<1.0> : tensor<16x16xf32, #rows>
  %room = "ttg.local_alloc"() : () -> !ttg.memdesc<16x16xf32, #shared, #smem, mutable>
  "ttg.local_store"(%value, %room) :
      (tensor<16x16xf32, #rows>, !ttg.memdesc<16x16xf32, #shared, #smem, mutable>) -> ()
  %turned = "ttg.memdesc_trans"(%room) {order = array<i32: 1, 0>} :
      (!ttg.memdesc<16x16xf32, #shared, #smem, mutable>) -> !ttg.memdesc<16x16xf32, #turned, #smem, mutable>
  %back = "ttg.local_load"(%turned) :
      (!ttg.memdesc<16x16xf32, #turned, #smem, mutable>) -> tensor<16x16xf32, #rows>
  "ttg.local_dealloc"(%room) : (!ttg.memdesc<16x16xf32, #shared, #smem, mutable>) -> ()
  %at = tt.splat %p : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>, #rows>
  tt.store %at, %back : tensor<16x16x!tt.ptr<f32>, #rows>""",
    ),
    Text(
        "ttg.memdesc_reshape",
        "%p: !tt.ptr<f32>",
        """  %value = arith.constant dense<1.0> : tensor<256xf32, #one>
  %room = ttg.local_alloc %value : (tensor<256xf32, #one>) -> !ttg.memdesc<256xf32, #flat, #smem>
  %square = "ttg.memdesc_reshape"(%room) :
      (!ttg.memdesc<256xf32, #flat, #smem>) -> !ttg.memdesc<16x16xf32, #shared, #smem>
  %back = ttg.local_load %square : !ttg.memdesc<16x16xf32, #shared, #smem> -> tensor<16x16xf32, #rows>
  %at = tt.splat %p : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>, #rows>
  tt.store %at, %back : tensor<16x16x!tt.ptr<f32>, #rows>""",
    ),
    Text(
        "ttg.memdesc_index ttg.memdesc_subslice ttg.memdesc_reinterpret",
        "%at: i32, %p: !tt.ptr<i32>",
        f"""  %rooms = "ttg.local_alloc"() : () -> !ttg.memdesc<2x16x16xf32, #shared, #smem, mutable>
  %room = "ttg.memdesc_index"(%rooms, %at) :
      (!ttg.memdesc<2x16x16xf32, #shared, #smem, mutable>, i32) -> {_SQUARE}
  %value = arith.constant dense<1.0> : tensor<8x16xf32, #rows>
  %part = "ttg.memdesc_subslice"(%room) <{{offsets = array<i32: 8, 0>}}> :
      ({_SQUARE}) -> !ttg.memdesc<8x16xf32, #shared, #smem, mutable, 16x16>
  ttg.local_store %value, %part : tensor<8x16xf32, #rows> -> !ttg.memdesc<8x16xf32, #shared, #smem, mutable, 16x16>
  %other = "ttg.memdesc_reinterpret"(%room) : ({_SQUARE}) -> !ttg.memdesc<16x16xi32, #shared, #smem, mutable>
  %back = ttg.local_load %other : !ttg.memdesc<16x16xi32, #shared, #smem, mutable> -> tensor<16x16xi32, #rows>
  %to = tt.splat %p : !tt.ptr<i32> -> tensor<16x16x!tt.ptr<i32>, #rows>
  tt.store %to, %back : tensor<16x16x!tt.ptr<i32>, #rows>""",
    ),
    Text(
        "ttg.local_gather ttg.local_scatter",
        "%p: !tt.ptr<f32>",
        f"""{_FLAT_ROOM}{_VALUES}  "ttg.local_scatter"(%room, %value, %at) <{{axis = 0 : i32}}> :
      ({_FLAT}, tensor<128xf32, #one>, tensor<128xi32, #one>) -> ()
  %back = "ttg.local_gather"(%room, %at) <{{axis = 0 : i32}}> :
      ({_FLAT}, tensor<128xi32, #one>) -> tensor<128xf32, #one>
  %to = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #one>
  tt.store %to, %back : tensor<128x!tt.ptr<f32>, #one>""",
    ),
    Text(
        "ttg.local_atomic_scatter_rmw",
        "%p: !tt.ptr<f32>",
        f"""{_FLAT_ROOM}{_VALUES}  %old = "ttg.local_atomic_scatter_rmw"(%room, %value, %at)
      <{{atomic_rmw_op = 5 : i32, axis = 0 : i32}}> :
      ({_FLAT}, tensor<128xf32, #one>, tensor<128xi32, #one>) -> tensor<128xf32, #one>
  %to = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #one>
  tt.store %to, %old : tensor<128x!tt.ptr<f32>, #one>""",
    ),
    Text(
        "ttg.warp_id ttg.global_scratch_alloc",
        "%p: !tt.ptr<i32>",
        """  %warp = "ttg.warp_id"() : () -> i32
  %room = "ttg.global_scratch_alloc"() <{nbytes = 64 : i32, alignment = 16 : i32}> : () -> !tt.ptr<i8>
  %words = tt.bitcast %room : !tt.ptr<i8> -> !tt.ptr<i32>
  tt.store %words, %warp : !tt.ptr<i32>
  %back = tt.load %words : !tt.ptr<i32>
  tt.store %p, %back : !tt.ptr<i32>""",
    ),
)

_TOKEN = "!ttg.async.token"
_WORKERS = """  "ttg.warp_specialize"() <{partitionNumWarps = array<i32: 4>}> ({
    "ttg.warp_yield"() : () -> ()
  }, {
    "ttg.warp_specialize.partitions"() ({
      "ttg.warp_return"() : () -> ()
    }) : () -> ()
  }) : () -> ()"""
_MASKED = """  %flag = arith.constant true
  %kept = "ttg.mask"(%flag) ({
    %inner = arith.constant 1.0 : f32
    "ttg.mask.return"(%inner) : (f32) -> ()
  }) : (i1) -> f32"""


def _converted(name: str, operand: str, result: str) -> str:
    return f'  %x = tt.load %p0 : !tt.ptr<{operand}>\n  %y = "{name}"(%x) : ({operand}) -> {result}'


def _scaled(name: str, operand: str, result: str) -> str:
    return (
        f"  %x = tt.load %p0 : !tt.ptr<{operand}>\n  %byte = arith.constant 127 : i8\n"
        "  %scale = arith.bitcast %byte : i8 to f8E8M0FNU\n"
        f'  %y = "{name}"(%x, %scale) : ({operand}, f8E8M0FNU) -> {result}'
    )


REFUSED = (
    Text(
        "ttg.async_copy_global_to_local",
        "%p: !tt.ptr<f32>",
        f"""{_FLAT_ROOM}  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #one>
  %token = "ttg.async_copy_global_to_local"(%ps, %room) <{{operandSegmentSizes = array<i32: 1, 1, 0, 0>}}> :
      (tensor<128x!tt.ptr<f32>, #one>, {_FLAT}) -> {_TOKEN}""",
    ),
    Text("ttg.async_commit_group", "", f'  %token = "ttg.async_commit_group"() : () -> {_TOKEN}'),
    Text("ttg.async_wait", "", f'  %token = "ttg.async_wait"() <{{num = 0 : i32}}> : () -> {_TOKEN}'),
    Text("ttg.warp_specialize ttg.warp_specialize.partitions ttg.warp_return ttg.warp_yield", "", _WORKERS),
    Text("ttg.mask ttg.mask.return", "", _MASKED),
    Text(
        "ttg.predicate_stage",
        "%i: i32, %n: i32, %step: i32",
        """  %flag = "ttg.predicate_stage"(%i, %n, %step) <{maxStage = 2 : i32, stage = 1 : i32}> :
      (i32, i32, i32) -> i1""",
    ),
    Text(
        "ttg.inline_asm",
        "%x: i32",
        """  %y = "ttg.inline_asm"(%x) <{asm_string = "mov", constraints = "=r,r", pure = false}> : (i32) -> i32""",
    ),
    Text("arith.convertf", "%p0: !tt.ptr<f16>", _converted("arith.convertf", "f16", "bf16")),
    Text("arith.flush_denormals", "%p0: !tt.ptr<f32>", _converted("arith.flush_denormals", "f32", "f32")),
    Text("arith.scaling_extf", "%p0: !tt.ptr<f8E5M2>", _scaled("arith.scaling_extf", "f8E5M2", "f32")),
    Text("arith.scaling_truncf", "%p0: !tt.ptr<f32>", _scaled("arith.scaling_truncf", "f32", "f8E5M2")),
    Text("cf.assert", "%flag: i1", """  "cf.assert"(%flag) <{msg = "no"}> : (i1) -> ()"""),
)
