"""Functions for accesses whose places are known at run time only, and for masks on hosts without instructions for them.

They are not inlined: LLVM takes longer than linear time for a block that has many of them.
"""

from __future__ import annotations

from .translation import Translation


def _entered(t: Translation, name: str, text: str) -> str:
    if name not in t.code.helpers:
        t.code.helpers[name] = text
    return name


def _neighbours(t: Translation, size: int) -> str:
    """Lines that find out whether all active lanes have the places that neighbouring elements have: %near. %first is
    lane 0's place then."""
    bits, offsets = f"i{t.lanes}", t.constant_vector("i64", [size * lane for lane in range(t.lanes)])
    vector = t.spread("i64")
    return f"""
  %lowest = sub {vector} %places, {offsets}
  %active = bitcast {t.mask_type} %mask to {bits}
  %lane = call {bits} @llvm.cttz.{bits}({bits} %active, i1 false)
  %index = urem {bits} %lane, {t.lanes}
  %first = extractelement {vector} %lowest, {bits} %index
  %one = insertelement {vector} poison, i64 %first, i32 0
  %all = shufflevector {vector} %one, {vector} poison, <{t.lanes} x i32> zeroinitializer
  %same = icmp eq {vector} %lowest, %all
  %bits = bitcast {t.mask_type} %same to {bits}
  %rest = xor {bits} %active, -1
  %either = or {bits} %bits, %rest
  %near = icmp eq {bits} %either, -1
  %full = icmp eq {bits} %active, -1
"""


def gather(t: Translation, name: str, size: int) -> str:
    """The function that loads elements of any places: (places, mask, what other lanes get)."""
    type_, suffix, lanes = t.spread(name), t.suffix(name), t.lanes
    pointers, places = f"<{lanes} x ptr>", t.spread("i64")
    masked, apart = f"@llvm.masked.{{}}.{suffix}.p0", f"@llvm.masked.{{}}.{suffix}.v{lanes}p0"
    t.code.declarations |= {
        f"declare i{lanes} @llvm.cttz.i{lanes}(i{lanes}, i1)",
        f"declare {type_} @llvm.masked.load.{suffix}.p0(ptr, {t.mask_type}, {type_})",
        f"declare {type_} @llvm.masked.gather.{suffix}.v{lanes}p0({pointers}, {t.mask_type}, {type_})",
    }
    return _entered(
        t,
        f"gather_{name}",
        f"""define internal {type_} @gather_{name}({places} %places, {t.mask_type} %mask, {type_} %other) noinline {{
entry:{_neighbours(t, size)}  br i1 %near, label %together, label %apart
together:
  %pointer = inttoptr i64 %first to ptr
  br i1 %full, label %whole, label %part
whole:
  %a = load {type_}, ptr %pointer, align {size}
  ret {type_} %a
part:
  %b = call {type_} {masked.format("load")}(ptr align {size} %pointer, {t.mask_type} %mask, {type_} %other)
  ret {type_} %b
apart:
  %pointers = inttoptr {places} %places to {pointers}
  %c = call {type_} {apart.format("gather")}({pointers} align {size} %pointers, {t.mask_type} %mask, {type_} %other)
  ret {type_} %c
}}""",
    )


def scatter(t: Translation, name: str, size: int) -> str:
    """The function that stores elements at any places, lane by lane: (values, places, mask)."""
    type_, suffix, lanes = t.spread(name), t.suffix(name), t.lanes
    pointers, places = f"<{lanes} x ptr>", t.spread("i64")
    masked, apart = f"@llvm.masked.{{}}.{suffix}.p0", f"@llvm.masked.{{}}.{suffix}.v{lanes}p0"
    t.code.declarations |= {
        f"declare i{lanes} @llvm.cttz.i{lanes}(i{lanes}, i1)",
        f"declare void @llvm.masked.store.{suffix}.p0({type_}, ptr, {t.mask_type})",
        f"declare void @llvm.masked.scatter.{suffix}.v{lanes}p0({type_}, {pointers}, {t.mask_type})",
    }
    return _entered(
        t,
        f"scatter_{name}",
        f"""define internal void @scatter_{name}({type_} %values, {places} %places, {t.mask_type} %mask) noinline {{
entry:{_neighbours(t, size)}  br i1 %near, label %together, label %apart
together:
  %none = icmp eq i{lanes} %active, 0
  br i1 %none, label %done, label %some
some:
  %pointer = inttoptr i64 %first to ptr
  br i1 %full, label %whole, label %part
whole:
  store {type_} %values, ptr %pointer, align {size}
  ret void
part:
  call void {masked.format("store")}({type_} %values, ptr align {size} %pointer, {t.mask_type} %mask)
  ret void
apart:
  %pointers = inttoptr {places} %places to {pointers}
  call void {apart.format("scatter")}({type_} %values, {pointers} align {size} %pointers, {t.mask_type} %mask)
  ret void
done:
  ret void
}}""",
    )


def masked_load(t: Translation, name: str, size: int) -> str:
    """The function that loads the active lanes' elements of neighbouring ones: (pointer, mask, what others get)."""
    type_, suffix = t.spread(name), t.suffix(name)
    t.code.declarations.add(f"declare {type_} @llvm.masked.load.{suffix}.p0(ptr, {t.mask_type}, {type_})")
    return _entered(
        t,
        f"load_{name}",
        f"""define internal {type_} @load_{name}(ptr %pointer, {t.mask_type} %mask, {type_} %other) noinline {{
  %a = call {type_} @llvm.masked.load.{suffix}.p0(ptr align {size} %pointer, {t.mask_type} %mask, {type_} %other)
  ret {type_} %a
}}""",
    )


def masked_store(t: Translation, name: str, size: int) -> str:
    """The function that stores the active lanes' elements: (values, pointer, mask)."""
    type_, suffix = t.spread(name), t.suffix(name)
    t.code.declarations.add(f"declare void @llvm.masked.store.{suffix}.p0({type_}, ptr, {t.mask_type})")
    return _entered(
        t,
        f"store_{name}",
        f"""define internal void @store_{name}({type_} %values, ptr %pointer, {t.mask_type} %mask) noinline {{
  call void @llvm.masked.store.{suffix}.p0({type_} %values, ptr align {size} %pointer, {t.mask_type} %mask)
  ret void
}}""",
    )
