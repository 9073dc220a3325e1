"""Arithmetic, comparisons, conversions and choices: element by element."""

from __future__ import annotations

from collections.abc import Callable

from .decoded_module import ModuleInstruction
from .divergence import Key
from .registry import translates
from .translation import Translation

#: Operations of two operands of the result's type.
_BINARY = {
    "OpIAdd": "add",
    "OpISub": "sub",
    "OpIMul": "mul",
    "OpFAdd": "fadd",
    "OpFSub": "fsub",
    "OpFMul": "fmul",
    "OpFDiv": "fdiv",
    "OpFRem": "frem",
    "OpBitwiseAnd": "and",
    "OpBitwiseOr": "or",
    "OpBitwiseXor": "xor",
    "OpLogicalAnd": "and",
    "OpLogicalOr": "or",
    "OpLogicalNotEqual": "xor",
}
_SHIFTS = {"OpShiftLeftLogical": "shl", "OpShiftRightLogical": "lshr", "OpShiftRightArithmetic": "ashr"}
_DIVISIONS = {"OpUDiv": "udiv", "OpSDiv": "sdiv", "OpUMod": "urem", "OpSRem": "srem"}
#: Operations of two operands of another type.
_COMPARISONS = {
    "OpIEqual": "icmp eq",
    "OpINotEqual": "icmp ne",
    "OpSLessThan": "icmp slt",
    "OpSLessThanEqual": "icmp sle",
    "OpSGreaterThan": "icmp sgt",
    "OpSGreaterThanEqual": "icmp sge",
    "OpULessThan": "icmp ult",
    "OpULessThanEqual": "icmp ule",
    "OpUGreaterThan": "icmp ugt",
    "OpUGreaterThanEqual": "icmp uge",
    "OpLogicalEqual": "icmp eq",
    **{
        f"OpF{ordered}{name}": f"fcmp {letter}{condition}"
        for ordered, letter in (("Ord", "o"), ("Unord", "u"))
        for name, condition in {
            "Equal": "eq",
            "NotEqual": "ne",
            "LessThan": "lt",
            "LessThanEqual": "le",
            "GreaterThan": "gt",
            "GreaterThanEqual": "ge",
        }.items()
    },
}
#: Conversion → for a narrower result, and for a wider one.
_WIDTHS = {"OpSConvert": ("trunc", "sext"), "OpUConvert": ("trunc", "zext"), "OpFConvert": ("fptrunc", "fpext")}
#: What gives some number for one outside of the type's range, as on every device, and must not give LLVM's poison.
_CONVERSIONS = {
    "OpConvertSToF": "sitofp",
    "OpConvertUToF": "uitofp",
    "OpConvertFToS": "fptosi",
    "OpConvertFToU": "fptoui",
}
#: The LLVM instructions of these and of others that are one: of the operands, their type {of} and the result's {to}.
_INSTRUCTIONS = {
    **{name: f"{instruction} {{to}} {{}}, {{}}" for name, instruction in _BINARY.items()},
    **{name: f"{instruction} {{of}} {{}}, {{}}" for name, instruction in _COMPARISONS.items()},
    **{name: f"{instruction} {{of}} {{}} to {{to}}" for name, instruction in _CONVERSIONS.items()},
    "OpFNegate": "fneg {to} {}",
    "OpIsNan": "fcmp uno {of} {0}, {0}",
}
#: A divisor that is wider is divided by as an integer, each lane by itself.
_DIVIDED_AS_DOUBLE = 32


def _each(t: Translation, item: ModuleInstruction, rule: Callable[[list[str], str, str], str]) -> None:
    """Has ``rule`` make each scalar of the result: of the operands, of the type that they have, and of the result's."""
    operands = [t.keys(operand) for operand in item.operands]
    for index, key in enumerate(t.keys(item.result)):
        sources = [found[index if len(found) > 1 else 0] for found in operands]
        t.compute(key, sources, rule)


@translates(*_INSTRUCTIONS)
def _instruction(t: Translation, item: ModuleInstruction) -> None:
    text = _INSTRUCTIONS[item.name]
    _each(t, item, lambda values, of, to: t.code.emit(text.format(*values, of=of, to=to)))


@translates(*_SHIFTS)
def _shift(t: Translation, item: ModuleInstruction) -> None:
    old, new = (t.type_name(t.keys(operand)[0]) for operand in (item.operands[1], item.operands[0]))

    def shifted(values: list[str], of: str, to: str) -> str:
        count = values[1]
        if old != new:
            cast = "zext" if int(old[1:]) < int(new[1:]) else "trunc"
            count = t.code.emit(f"{cast} {to.replace(new, old)} {count} to {to}")
        return t.code.emit(f"{_SHIFTS[item.name]} {to} {values[0]}, {count}")

    _each(t, item, shifted)


@translates("OpNot", "OpLogicalNot")
def _invert(t: Translation, item: ModuleInstruction) -> None:
    scalar = t.type_name(t.keys(item.result)[0])
    _each(t, item, lambda values, of, to: t.code.emit(f"xor {to} {values[0]}, {t.splat_literal(to, scalar, -1)}"))


@translates("OpSNegate")
def _negate_integer(t: Translation, item: ModuleInstruction) -> None:
    scalar = t.type_name(t.keys(item.result)[0])
    _each(t, item, lambda values, of, to: t.code.emit(f"sub {to} {t.splat_literal(to, scalar, 0)}, {values[0]}"))


@translates(*_WIDTHS)
def _resize(t: Translation, item: ModuleInstruction) -> None:
    old, new = t.divergence.bits(t.keys(item.operands[0])[0]), t.divergence.bits(t.keys(item.result)[0])
    name = _WIDTHS[item.name][new > old]
    _each(t, item, lambda values, of, to: values[0] if of == to else t.code.emit(f"{name} {of} {values[0]} to {to}"))


@translates("OpIsInf")
def _is_infinite(t: Translation, item: ModuleInstruction) -> None:
    scalar = t.type_name(t.keys(item.operands[0])[0])
    infinity = {"half": 0x7C00, "float": 0x7F800000, "double": 0x7FF << 52}[scalar]

    def rule(values: list[str], of: str, to: str) -> str:
        size = t.code.intrinsic("fabs", of, values[0])
        return t.code.emit(f"fcmp oeq {of} {size}, {t.splat_literal(of, scalar, infinity)}")

    _each(t, item, rule)


@translates("OpBitCount", "OpBitReverse")
def _bits(t: Translation, item: ModuleInstruction) -> None:
    name = {"OpBitCount": "ctpop", "OpBitReverse": "bitreverse"}[item.name]
    old, new = (t.type_name(t.keys(value)[0]) for value in (item.operands[0], item.result))

    def rule(values: list[str], of: str, to: str) -> str:
        found = t.code.intrinsic(name, of, values[0])
        if old == new:
            return found
        return t.code.emit(f"{'trunc' if int(old[1:]) > int(new[1:]) else 'zext'} {of} {found} to {to}")

    _each(t, item, rule)


@translates("OpSelect")
def _select(t: Translation, item: ModuleInstruction) -> None:
    conditions, trues, falses = (t.keys(operand) for operand in item.operands)
    for index, key in enumerate(t.keys(item.result)):
        condition = conditions[index if len(conditions) > 1 else 0]
        shape = t.shape(key)
        if shape is not None and shape.known:
            continue
        if shape is not None:
            values = [t.scalar(source) for source in (condition, trues[index], falses[index])]
            type_ = t.type_name(key)
            t.values[key] = t.code.emit(f"select i1 {values[0]}, {type_} {values[1]}, {type_} {values[2]}")
            continue
        type_ = t.vector_type(key)
        one, other = t.vector(trues[index]), t.vector(falses[index])
        chosen = t.shape(condition)
        if chosen is not None and chosen.uniform:
            text = f"i1 {t.scalar(condition)}"
        else:
            text = f"{t.mask_type} {t.vector(condition)}"
        t.values[key] = t.code.emit(f"select {text}, {type_} {one}, {type_} {other}")


@translates(*_DIVISIONS)
def _divide(t: Translation, item: ModuleInstruction) -> None:
    """An integer quotient or remainder. What a lane divides by 0 is some number: a kernel may choose another one
    afterwards, so no divisor may end the program."""
    scalar = t.type_name(t.keys(item.result)[0])
    width, name = int(scalar[1:]), _DIVISIONS[item.name]
    _each(t, item, lambda values, of, to: _quotient(t, name, scalar, width, values, to))


def _quotient(t: Translation, name: str, scalar: str, width: int, values: list[str], to: str) -> str:
    code, mask = t.code, to.replace(scalar, "i1")
    dividend, divisor = values
    if _is_literal(divisor) and divisor not in ("0", "-1", "zeroinitializer"):
        return code.emit(f"{name} {to} {dividend}, {divisor}")
    wrong = code.emit(f"icmp eq {to} {divisor}, {t.splat_literal(to, scalar, 0)}")
    if name.startswith("s"):  # the smallest number by -1 is out of range
        negative = code.emit(f"icmp eq {to} {divisor}, {t.splat_literal(to, scalar, -1)}")
        smallest = code.emit(f"icmp eq {to} {dividend}, {t.splat_literal(to, scalar, 1 << (width - 1))}")
        both = code.emit(f"and {mask} {negative}, {smallest}")
        wrong = code.emit(f"or {mask} {wrong}, {both}")
    divisor = code.emit(f"select {mask} {wrong}, {to} {t.splat_literal(to, scalar, 1)}, {to} {divisor}")
    if to == scalar or width > _DIVIDED_AS_DOUBLE:
        return code.emit(f"{name} {to} {dividend}, {divisor}")
    # Both are exact as float64, and so is the quotient once its fraction is cut off: that of x by y is at least 1/y
    # away from an integer that it is not, which is more than the rounding of a number below 2^32.
    double, letter = to.replace(scalar, "double"), name[0]
    x, y = (code.emit(f"{letter}itofp {to} {value} to {double}") for value in (dividend, divisor))
    quotient = code.emit(f"fpto{letter}i {double} {code.emit(f'fdiv {double} {x}, {y}')} to {to}")
    if name.endswith("div"):
        return quotient
    return code.emit(f"sub {to} {dividend}, {code.emit(f'mul {to} {quotient}, {divisor}')}")


def _is_literal(text: str) -> bool:
    return not text.startswith("%")


@translates("OpUMulExtended", "OpSMulExtended")
def _extended_product(t: Translation, item: ModuleInstruction) -> None:
    """Low and high half of a product."""
    low, high = t.keys(item.result)
    scalar = t.type_name(low)
    width = int(scalar[1:])
    cast, wide = ("zext" if item.name == "OpUMulExtended" else "sext"), f"i{2 * width}"

    def halves(values: list[str], to: str) -> tuple[str, str]:
        double = to.replace(scalar, wide)
        a, b = (t.code.emit(f"{cast} {to} {value} to {double}") for value in values)
        product = t.code.emit(f"mul {double} {a}, {b}")
        shifted = t.code.emit(f"lshr {double} {product}, {t.splat_literal(double, wide, width)}")
        return tuple(t.code.emit(f"trunc {double} {part} to {to}") for part in (product, shifted))  # type: ignore[return-value]

    sources: list[Key] = [t.keys(operand)[0] for operand in item.operands]
    if t.shape(low) is None:
        found = halves([t.vector(source) for source in sources], t.vector_type(low))
    else:
        found = halves([t.scalar(source) for source in sources], scalar)
    t.values[low], t.values[high] = found


@translates("OpBitcast")
def _bitcast(t: Translation, item: ModuleInstruction) -> None:
    """Bits as another type: also of two words as one of twice the width, and the other way."""
    sources, results = t.keys(item.operands[0]), t.keys(item.result)
    if len(sources) == len(results):
        _each(
            t, item, lambda values, of, to: values[0] if of == to else t.code.emit(f"bitcast {of} {values[0]} to {to}")
        )
    elif len(sources) > len(results):
        _join(t, sources, results)
    else:
        _split(t, sources, results)


def _as_integer(t: Translation, value: str, type_: str, scalar: str, bits: int) -> tuple[str, str]:
    """A value as an integer of its width: (text, type)."""
    integer = type_.replace(scalar, f"i{bits}")
    return (value, type_) if integer == type_ else (t.code.emit(f"bitcast {type_} {value} to {integer}"), integer)


def _join(t: Translation, sources: list[Key], results: list[Key]) -> None:
    each, bits = len(sources) // len(results), t.divergence.bits(sources[0])
    scalar, new, wide = t.type_name(sources[0]), t.type_name(results[0]), f"i{bits * len(sources) // len(results)}"
    for index, key in enumerate(results):
        spread, total = t.shape(key) is None, ""
        to = t.spread(wide) if spread else wide
        for place, source in enumerate(sources[index * each : (index + 1) * each]):
            value = t.vector(source) if spread else t.scalar(source)
            value, type_ = _as_integer(t, value, t.spread(scalar) if spread else scalar, scalar, bits)
            part = t.code.emit(f"zext {type_} {value} to {to}")
            if place:
                part = t.code.emit(f"shl {to} {part}, {t.splat_literal(to, wide, place * bits)}")
                part = t.code.emit(f"or {to} {total}, {part}")
            total = part
        final = t.spread(new) if spread else new
        t.values[key] = total if final == to else t.code.emit(f"bitcast {to} {total} to {final}")


def _split(t: Translation, sources: list[Key], results: list[Key]) -> None:
    each, bits = len(results) // len(sources), t.divergence.bits(results[0])
    scalar, new, narrow = t.type_name(sources[0]), t.type_name(results[0]), f"i{bits}"
    whole = t.divergence.bits(sources[0])
    for index, source in enumerate(sources):
        for place, key in enumerate(results[index * each : (index + 1) * each]):
            spread = t.shape(key) is None
            value = t.vector(source) if spread else t.scalar(source)
            value, type_ = _as_integer(t, value, t.spread(scalar) if spread else scalar, scalar, whole)
            if place:
                value = t.code.emit(f"lshr {type_} {value}, {t.splat_literal(type_, f'i{whole}', place * bits)}")
            to = t.spread(narrow) if spread else narrow
            value = t.code.emit(f"trunc {type_} {value} to {to}")
            final = t.spread(new) if spread else new
            t.values[key] = value if final == to else t.code.emit(f"bitcast {to} {value} to {final}")


@translates("OpCompositeConstruct", "OpCompositeExtract", "OpCompositeInsert", "OpCopyObject")
@translates("OpConvertUToPtr", "OpConvertPtrToU")
def _nothing(t: Translation, item: ModuleInstruction) -> None:
    """What only names scalars anew (divergence.py)."""
