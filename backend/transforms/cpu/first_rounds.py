"""A loop's first round takes the constant that an accumulator begins with, and no array is filled with it before.

    spirv.assign %array, %zeros                    →    scf.for %i = %from to %to …
    scf.for %i = %from to %to …                           %first = arith.cmpi eq, %i, %from
      scf.for %at = … {spirv.rolled}                      scf.for %at = … {spirv.rolled}
        %strip = spirv.strip %array, %at                    %held = spirv.strip %array, %at
        …                                                   %strip = arith.select %first, %zero, %held
        spirv.put %array, %next, %at                        …
                                                            spirv.put %array, %next, %at
                                                        scf.if %from >= %to
                                                          spirv.assign %array, %zeros

Rows of a normalisation are often no longer than the block: then the only round of their loop reads what was written
just before. On the CPU device each of the two takes as long as the sum itself.
"""

from __future__ import annotations

from ...ttgir.ir import Block, DenseAttr, Function, Operation, Region, Value
from ...ttgir.type_reader import PLAIN_TYPES
from ..rewriting import Rewriter, region_of
from ..strip_loops import ROLLED


def begin_with_constants(function: Function) -> bool:
    """Rewrites ``function`` in place. Whether it has such an array."""
    changed = False
    for assign in [one for one in function.walk() if one.name == "spirv.assign"]:
        array, constant = assign["array"], _constant(assign["value"])
        loop = _next_use(assign)
        if constant is None or loop is None:
            continue
        strips = _strips(array, loop)
        if strips:
            _begin(assign, loop, strips, constant)
            changed = True
    return changed


def _constant(value: Value) -> DenseAttr | None:
    """The one value that all elements of a constant have."""
    owner = value.owner
    if not isinstance(owner, Operation) or owner.name != "arith.constant":
        return None
    dense = owner.attribute("value")
    return dense if isinstance(dense, DenseAttr) and dense.splat else None


def _next_use(assign: Operation) -> Operation | None:
    """The loop in the same block which is the next that uses the array."""
    block, array = assign.block, assign["array"]
    assert block is not None
    for operation in block.operations[block.operations.index(assign) + 1 :]:
        if _uses(operation, array):
            return operation if operation.name == "scf.for" and not operation.flag(ROLLED) else None
    return None


def _uses(operation: Operation, array: Value) -> bool:
    return any(array in inner.operands for inner in operation.walk())


def _strips(array: Value, loop: Operation) -> list[Operation]:
    """What takes the array's strips in each round of ``loop``; nothing unless the round's first use of the array is a
    loop over strips, which writes each strip behind where it has read it."""
    user = next(one for one in loop.regions[0].entry.operations if _uses(one, array))
    if user.name != "scf.for" or not user.flag(ROLLED):
        return []
    inside = user.regions[0].entry
    counter = inside.arguments[0]
    taken: list[Operation] = []
    put = False
    for operation in inside.operations:
        if not _uses(operation, array):
            continue
        if operation.name == "spirv.strip" and operation["at"] is counter and not put:
            taken.append(operation)
        elif operation.name == "spirv.put" and operation["array"] is array and operation["at"] is counter:
            put = True
        else:
            return []
    return taken if put else []


def _begin(assign: Operation, loop: Operation, strips: list[Operation], constant: DenseAttr) -> None:
    start, end = loop.operands[:2]
    body = loop.regions[0].entry
    at_start = Rewriter(body, body.operations[0], loop.location)
    counter = body.arguments[0]
    first = _compare(at_start, "eq", counter, start)
    for strip in strips:
        _choose(strip.result, first, constant)
    behind = Rewriter.after(loop)
    none = _compare(behind, "uge" if loop.flag("unsignedCmp") else "sge", start, end)
    otherwise = Block()
    behind.make("scf.if", [none], regions=[region_of(otherwise), Region()])
    inside = behind.at_end(otherwise)
    inside.make("spirv.assign", list(assign.operands))
    inside.make("scf.yield")
    assign.erase()


def _choose(strip: Value, first: Value, constant: DenseAttr) -> None:
    """Makes the users of ``strip`` use the constant where ``first`` is true."""
    after, type_ = Rewriter.behind(strip), strip.tensor
    value = DenseAttr(type_, constant.values, True)
    begins = after.make("arith.constant", types=[type_], attributes={"value": value}).result
    chosen = after.make("arith.select", [first, begins, strip], [type_])
    strip.replace_uses(chosen.result, by=lambda user: user is not chosen)


def _compare(rewriter: Rewriter, predicate: str, one: Value, other: Value) -> Value:
    return rewriter.make("arith.cmpi", [one, other], [PLAIN_TYPES["i1"]], {"predicate": predicate}).result
