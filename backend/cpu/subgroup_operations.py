"""What lanes tell each other, and what they ask of the processor and of imported functions."""

from __future__ import annotations

from .decoded_module import ModuleInstruction
from .errors import Untranslatable
from .registry import translates
from .translation import Translation


@translates("OpGroupNonUniformShuffleXor")
def _shuffle_xor(t: Translation, item: ModuleInstruction) -> None:
    mask = t.shape(t.keys(item.operands[2])[0])
    if mask is None or not (mask.known and mask.uniform):
        raise Untranslatable(t.program.name, "an exchange with a lane that is not known", t.where(item))
    _shuffle_known(t, item, [lane ^ mask.offsets[0] for lane in range(t.lanes)])


@translates("OpGroupNonUniformShuffle")
def _shuffle(t: Translation, item: ModuleInstruction) -> None:
    index = t.keys(item.operands[2])[0]
    shape = t.shape(index)
    if shape is not None and shape.known:
        first = [lane - lane % t.subgroup for lane in range(t.lanes)]
        _shuffle_known(t, item, [base + offset % t.subgroup for base, offset in zip(first, shape.offsets, strict=True)])
        return
    for key, source in zip(t.keys(item.result), t.keys(item.operands[1]), strict=True):
        name = t.type_name(source)
        helper = f"shuffle_{name}"
        if helper not in t.code.helpers:
            t.code.helpers[helper] = _helper(t, helper, name)
        arguments = [(t.spread(name), t.vector(source)), (t.spread("i32"), t.vector(index))]
        t.values[key] = t.code.call(helper, t.spread(name), arguments, declared=True)


def _shuffle_known(t: Translation, item: ModuleInstruction, lanes: list[int]) -> None:
    picked = ", ".join(f"i32 {lane}" for lane in lanes)
    for key, source in zip(t.keys(item.result), t.keys(item.operands[1]), strict=True):
        type_ = t.vector_type(source)
        text = f"shufflevector {type_} {t.vector(source)}, {type_} poison, <{t.lanes} x i32> <{picked}>"
        t.values[key] = t.code.emit(text)


def _helper(t: Translation, helper: str, name: str) -> str:
    """Each lane's number of the lane that it names, by way of memory."""
    type_, lanes = t.spread(name), t.lanes
    first = t.constant_vector("i32", [lane - lane % t.subgroup for lane in range(lanes)])
    lines = []
    for lane in range(lanes):
        before = f"%all{lane - 1}" if lane else "poison"
        lines += [
            f"  %lane{lane} = extractelement <{lanes} x i32> %known, i32 {lane}",
            f"  %place{lane} = getelementptr [{lanes} x {name}], ptr %memory, i32 0, i32 %lane{lane}",
            f"  %found{lane} = load {name}, ptr %place{lane}",
            f"  %all{lane} = insertelement {type_} {before}, {name} %found{lane}, i32 {lane}",
        ]
    body = "\n".join(lines)
    return f"""define internal {type_} @{helper}({type_} %values, <{lanes} x i32> %lanes) noinline {{
  %memory = alloca [{lanes} x {name}], align 64
  %within = and <{lanes} x i32> %lanes, splat (i32 {t.subgroup - 1})
  %known = or <{lanes} x i32> %within, {first}
  store {type_} %values, ptr %memory, align 64
{body}
  ret {type_} %all{lanes - 1}
}}"""


@translates("OpGroupNonUniformBroadcast")
def _broadcast(t: Translation, item: ModuleInstruction) -> None:
    index = t.shape(t.keys(item.operands[2])[0])
    if index is None or not (index.known and index.uniform):
        raise Untranslatable(t.program.name, "an exchange with a lane that is not known", t.where(item))
    lane = index.offsets[0] % t.subgroup
    if t.subgroup != t.lanes:
        _shuffle_known(t, item, [at - at % t.subgroup + lane for at in range(t.lanes)])
        return
    for key, source in zip(t.keys(item.result), t.keys(item.operands[1]), strict=True):
        shape, name = t.shape(source), t.type_name(source)
        if shape is None:
            t.values[key] = t.code.emit(f"extractelement {t.vector_type(source)} {t.vector(source)}, i32 {lane}")
        elif not shape.offsets[lane]:
            t.values[key] = t.scalar(source)
        else:
            t.values[key] = t.code.emit(f"add {name} {t.scalar(source)}, {shape.offsets[lane]}")


@translates("OpGroupNonUniformAny")
def _any(t: Translation, item: ModuleInstruction) -> None:
    (source,) = t.keys(item.operands[1])
    type_, found = t.vector_type(source), t.vector(source)
    if t.subgroup == t.lanes:
        t.values[t.keys(item.result)[0]] = t.code.call(f"llvm.vector.reduce.or.v{t.lanes}i1", "i1", [(type_, found)])
        return
    for bit in (1 << place for place in range(t.subgroup.bit_length() - 1)):
        picked = ", ".join(f"i32 {lane ^ bit}" for lane in range(t.lanes))
        other = t.code.emit(f"shufflevector {type_} {found}, {type_} poison, <{t.lanes} x i32> <{picked}>")
        found = t.code.emit(f"or {type_} {found}, {other}")
    t.values[t.keys(item.result)[0]] = found


@translates("OpReadClockKHR")
def _clock(t: Translation, item: ModuleInstruction) -> None:
    key = t.keys(item.result)[0]
    t.values[key] = t.code.call("llvm.readcyclecounter", "i64", [])


@translates("OpFunctionCall")
def _call(t: Translation, item: ModuleInstruction) -> None:
    name = t.program.imports.get(item.operands[0])
    if name is None:
        raise Untranslatable(t.program.name, "a call of a function", t.where(item))
    arguments = [("ptr", t.pointer(t.scalar(t.keys(operand)[0]))) for operand in item.operands[1:]]
    t.imported.add(name)
    t.code.call(name, "void", arguments, declared=True)
