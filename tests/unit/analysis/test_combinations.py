"""Which combinations commute: texts of which it is known, and random ones against all numbers of two bits."""

import itertools
import random

import pytest
from triton.backends.spirv.analysis.combinations import agrees, commutes
from triton.backends.spirv.ttgir.ir import Operation, Region
from triton.backends.spirv.ttgir.parser import parse_module

TEXT = """
#l = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [8], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 8 : i32} {
tt.func public @k(ARGUMENTS) {
  %r:COUNT = "tt.reduce"(VALUES) <{axis = 0 : i32}> ({
  ^bb0(PARTS):
BODY
    tt.reduce.return RETURNED : TYPES
  }) : (TENSORS) -> (TYPES)
  tt.return
}
}
"""


def combination(types: tuple[str, ...], body: str, returned: str) -> Region:
    """The region whose arguments are %a0, %a1, … and %b0, %b1, …"""
    tensors = [f"tensor<8x{type_}, #l>" for type_ in types]
    parts = [f"%{side}{number}: {type_}" for side in "ab" for number, type_ in enumerate(types)]
    text = TEXT
    for name, value in {
        "ARGUMENTS": ", ".join(f"%x{number}: {type_}" for number, type_ in enumerate(tensors)),
        "COUNT": str(len(types)),
        "VALUES": ", ".join(f"%x{number}" for number in range(len(types))),
        "PARTS": ", ".join(parts),
        "BODY": body,
        "RETURNED": returned,
        "TYPES": ", ".join(types),
        "TENSORS": ", ".join(tensors),
    }.items():
        text = text.replace(name, value)
    function = parse_module(text).functions["k"]
    assert function.body is not None
    return function.body.entry.operations[0].regions[0]


ARGMAX = """
  %tie = arith.cmpEQ, %a0, %b0 : TYPE
  %lower = arith.cmpi slt, %a1, %b1 : i32
  %first = arith.andi %tie, %lower : i1
  %greater = arith.cmpGT, %a0, %b0 : TYPE
  %take = arith.ori %greater, %first : i1
  %v = arith.select %take, %a0, %b0 : TYPE
  %i = arith.select %take, %a1, %b1 : i32
"""
FAST = """
  %less = arith.cmpi slt, %a0, %b0 : i32
  %v = arith.minsi %a0, %b0 : i32
  %i = arith.select %less, %a1, %b1 : i32
"""
WELFORD = """
  %zero = arith.constant 0.000000e+00 : f32
  %delta = arith.subf %b0, %a0 : f32
  %count = arith.addf %a2, %b2 : f32
  %empty = arith.cmpf oeq, %count, %zero : f32
  %share = arith.divf %b2, %count : f32
  %weight = arith.select %empty, %zero, %share : f32
  %step = arith.mulf %delta, %weight : f32
  %mean = arith.addf %a0, %step : f32
  %sum = arith.addf %a1, %b1 : f32
  %square = arith.mulf %delta, %delta : f32
  %counted = arith.mulf %square, %a2 : f32
  %more = arith.mulf %counted, %weight : f32
  %squares = arith.addf %sum, %more : f32
"""
#: Name → the types, the body, what it returns; whether it commutes, and whether for all numbers.
CASES = {
    "a sum": (("f32",), "%s = arith.addf %a0, %b0 : f32", "%s", True, True),
    "a difference": (("i32",), "%s = arith.subi %a0, %b0 : i32", "%s", False, False),
    "a maximum": (("f32",), "%s = arith.maxnumf %b0, %a0 : f32", "%s", True, False),
    "the first": (("i32",), "", "%a0", False, False),
    "exclusive or, of a constant, too": (
        ("i32",),
        "%c = arith.constant 5 : i32\n%t = arith.xori %c, %b0 : i32\n%s = arith.xori %a0, %t : i32",
        "%s",
        False,  # not in this grouping
        False,
    ),
    "the greatest integer's place": (
        ("i32", "i32"),
        ARGMAX.replace("EQ", "i eq").replace("GT", "i sgt").replace("TYPE", "i32"),
        "%v, %i",
        True,
        True,
    ),
    "the greatest number's place": (
        ("f32", "i32"),
        ARGMAX.replace("EQ", "f oeq").replace("GT", "f ogt").replace("TYPE", "f32"),
        "%v, %i",
        True,
        False,
    ),
    "with orders that contradict": (
        ("i32", "i32"),
        ARGMAX.replace("EQ", "i eq").replace("GT", "i sgt").replace("TYPE", "i32").replace(", %first", ", %lower"),
        "%v, %i",
        False,
        False,
    ),
    "one of the least": (("i32", "i32"), FAST, "%v, %i", False, False),
    "the least alone": (("i32", "i32"), FAST, "%v, %a1", False, False),
    "a product of matrices' first element": (
        ("i32", "i32", "i32", "i32"),
        "%p = arith.muli %a0, %b0 : i32\n%q = arith.muli %a1, %b2 : i32\n%s = arith.addi %p, %q : i32",
        "%s, %s, %s, %s",
        False,
        False,
    ),
    "a sum of two products, one of which may not be rounded": (
        ("f32", "f32"),
        "%p = arith.mulf %a0, %b1 : f32\n%q = arith.mulf %a1, %b0 : f32\n%s = arith.addf %p, %q : f32",
        "%s, %s",
        True,
        False,
    ),
    "means and squares of distances from them": (("f32",) * 3, WELFORD, "%mean, %squares, %count", True, False),
    "the same with a wrong sign": (
        ("f32",) * 3,
        WELFORD.replace("%mean = arith.addf", "%mean = arith.subf"),
        "%mean, %squares, %count",
        False,
        False,
    ),
    "the same where one of two counts is asked for": (
        ("f32",) * 3,
        WELFORD.replace("oeq, %count", "oeq, %b2"),
        "%mean, %squares, %count",
        False,
        False,
    ),
    "a step and a start of a recurrence": (
        ("f32", "f32"),
        "%s = arith.mulf %a0, %b0 : f32\n%t = arith.mulf %b0, %a1 : f32\n%u = arith.addf %t, %b1 : f32",
        "%s, %u",
        False,
        False,
    ),
    "roots of a sum of squares": (
        ("f32",),
        "%p = arith.mulf %a0, %a0 : f32\n%q = arith.mulf %b0, %b0 : f32\n%s = arith.addf %p, %q : f32\n"
        "%r = math.sqrt %s : f32",
        "%r",
        True,
        False,
    ),
    "a sum with a constant that is no finite number": (
        ("f32",),
        "%c = arith.constant 0xFF800000 : f32\n%e = arith.cmpf oeq, %a0, %c : f32\n"
        "%s = arith.addf %b0, %c : f32\n%t = arith.addf %a0, %c : f32\n%r = arith.select %e, %s, %t : f32",
        "%r",
        False,
        False,
    ),
    "the first of those whose distance is 0": (
        ("f32", "i32"),
        "%zero = arith.constant 0.000000e+00 : f32\n%d = arith.subf %a0, %b0 : f32\n%q = arith.mulf %d, %d : f32\n"
        "%tie = arith.cmpf oeq, %q, %zero : f32\n%more = arith.cmpf ogt, %a0, %b0 : f32\n"
        "%v = arith.maxnumf %a0, %b0 : f32\n%g = arith.select %more, %a1, %b1 : i32\n"
        "%i = arith.select %tie, %a1, %g : i32",
        "%v, %i",
        False,
        False,
    ),
    "a root of the first": (("f32",), "%r = math.sqrt %a0 : f32", "%r", False, False),
    "a branch": (
        ("i32",),
        "%c = arith.cmpi sgt, %a0, %b0 : i32\n"
        "%s = scf.if %c -> (i32) {\nscf.yield %a0 : i32\n} else {\nscf.yield %b0 : i32\n}",
        "%s",
        False,
        False,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("types", "body", "returned", "commuting", "agreeing"), CASES.values(), ids=CASES)
def test_combinations(types: tuple[str, ...], body: str, returned: str, commuting: bool, agreeing: bool) -> None:
    region = combination(types, body, returned)
    assert (commutes(region), agrees(region)) == (commuting, agreeing)


BITS = 2  #: of a number
_BOOLEAN = {"andi": lambda a, b: a & b, "ori": lambda a, b: a | b, "xori": lambda a, b: a ^ b}
_COMPARED = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "slt": lambda a, b: _signed(a) < _signed(b),
    "sge": lambda a, b: _signed(a) >= _signed(b),
    "sgt": lambda a, b: _signed(a) > _signed(b),
    "ult": lambda a, b: a < b,
    "ule": lambda a, b: a <= b,
}
_COMBINED = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "minsi": lambda a, b: min(a, b, key=_signed),
    "maxui": max,
    "xori": lambda a, b: a ^ b,
}


def _signed(value: int) -> int:
    return value - (1 << BITS) if value >> BITS - 1 else value


def ordered(rng: random.Random) -> Region:
    """One of two pairs, by some order that may be none."""
    predicates = [rng.choice(list(_COMPARED)) for _ in range(3)]
    lines = [
        f"%c{number} = arith.cmpi {name}, {rng.choice((one, other))} : i{BITS}"
        for number, (name, one, other) in enumerate(
            (name, f"%a{part}, %b{part}", f"%b{part}, %a{part}")
            for name, part in zip(predicates, (0, 0, 1), strict=True)
        )
    ]
    lines.append("%both = arith.andi %c1, %c2 : i1")
    lines.append(f"%take = arith.{rng.choice(('ori', 'xori'))} %c0, %both : i1")
    lines += [f"%r{part} = arith.select %take, %a{part}, %b{part} : i{BITS}" for part in (0, 1)]
    return combination((f"i{BITS}",) * 2, "\n".join(lines), "%r0, %r1")


def drawn(seed: int) -> Region:
    """A combination of pairs, of comparisons and choices above all."""
    rng = random.Random(seed)
    if seed % 2:
        return ordered(rng)
    numbers, truths, lines = ["%a0", "%a1", "%b0", "%b1"], [], []
    for number in range(rng.randint(2, 7)):
        name, pick = f"%v{number}", rng.random()
        if pick < 0.4 or not truths:
            lines.append(
                f"{name} = arith.cmpi {rng.choice(list(_COMPARED))}, "
                f"{rng.choice(numbers)}, {rng.choice(numbers)} : i{BITS}"
            )
            truths.append(name)
        elif pick < 0.6:
            lines.append(f"{name} = arith.{rng.choice(list(_BOOLEAN))} {rng.choice(truths)}, {rng.choice(truths)} : i1")
            truths.append(name)
        elif pick < 0.8:
            lines.append(
                f"{name} = arith.{rng.choice(list(_COMBINED))} {rng.choice(numbers)}, {rng.choice(numbers)} : i{BITS}"
            )
            numbers.append(name)
        else:
            one, other = rng.choice((("%a0", "%b0"), ("%a1", "%b1"), rng.sample(numbers, 2)))
            lines.append(f"{name} = arith.select {truths[-1]}, {one}, {other} : i{BITS}")
            numbers.append(name)
    return combination((f"i{BITS}",) * 2, "\n".join(lines), ", ".join(rng.sample(numbers[-3:], 2)))  # fmt: skip


def computed(operations: list[Operation], terms: dict[object, int]) -> list[int]:
    for operation in operations[:-1]:
        kind, values = operation.name.removeprefix("arith."), [terms[operand] for operand in operation.operands]
        if kind == "cmpi":
            found = int(_COMPARED[operation.attribute("predicate")](*values))
        elif kind == "select":
            found = values[1] if values[0] else values[2]
        elif str(operation.result.type) == "i1":
            found = _BOOLEAN[kind](*values)
        else:
            found = _COMBINED[kind](*values) % (1 << BITS)
        terms[operation.result] = found
    return [terms[value] for value in operations[-1].operands]


def test_what_is_proved_holds_for_all_numbers() -> None:
    proved = 0
    for seed in range(1000):
        region = drawn(seed)
        if not agrees(region):
            continue
        proved += 1
        block = region.entry
        for values in itertools.product(range(1 << BITS), repeat=4):
            one = dict(zip(block.arguments, values, strict=True))
            other = dict(zip(block.arguments, (*values[2:], *values[:2]), strict=True))
            assert computed(block.operations, one) == computed(block.operations, other), seed
    assert proved > 20
