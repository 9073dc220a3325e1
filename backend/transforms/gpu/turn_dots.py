"""Computes transposed what is used transposed alone: ``trans(f(a · b))`` becomes ``f(bᵀ · aᵀ)`` in TTIR.

The gradients of attention's keys and values multiply the transposed weights of a tile, and weights are a function of a
dot. A lane has its elements of a dot's result as it needs them for the left operand of another one, but not for that of
the transposed tile, which would go through shared memory.

What a transposed value is computed from is followed up to dots, constants, and numbers of a row or a column, through
loads. It is computed transposed if nothing else needs what a dot or a load gives on the way. Sums of products are over
the same K, in the same order.
"""

from __future__ import annotations

from dataclasses import replace

from ...analysis.axis_info.hints import turned as turned_hints
from ...ttgir.attribute_values import DenseArray
from ...ttgir.ir import DenseAttr, Module, Operation, Value
from ...ttgir.operations import definition_of
from ...ttgir.types import TensorType, Type
from ..rewriting import Rewriter, erase_unused

_TURNED = (1, 0)


def turn_dots(module: Module) -> bool:
    """Rewrites every dot whose result is only used transposed, as operands of other dots. Whether there were any."""
    clusters: dict[Operation, set[Operation]] = {}
    known: dict[Value, bool | None] = {}
    for operation in module.walk():
        if _transposes(operation) and _feeds_dots(operation.result):
            found = _between(operation["src"], known)
            if found and any(one.name == "tt.dot" for one in found):
                clusters[operation] = found
    while spoilt := [end for end, cluster in clusters.items() if not _is_closed(cluster, clusters)]:
        for end in spoilt:
            del clusters[end]
    turned: dict[Value, Value] = {}
    for end in clusters:
        end.result.replace_uses(_turn(end["src"], turned))
        end.erase()
    erase_unused({operation for cluster in clusters.values() for operation in cluster})
    return bool(clusters)


def _transposes(operation: Operation) -> bool:
    return operation.name == "tt.trans" and tuple(operation.attribute("order")) == _TURNED


def _feeds_dots(value: Value) -> bool:
    """Whether it is an operand of dots, as it is or through elementwise operations, and nothing else."""
    pending, seen = [value], {value}
    while pending:
        one = pending.pop()
        for use in one.uses:
            if use.name == "tt.dot" and one in use.operands[:2]:
                continue
            if not _is_elementwise(use):
                return False
            if use.result not in seen:
                seen.add(use.result)
                pending.append(use.result)
        if not one.uses:
            return False
    return True


def _is_elementwise(operation: Operation) -> bool:
    return (
        definition_of(operation).elementwise
        and not definition_of(operation).effects
        and not operation.regions
        and len(operation.results) == 1
    )


def _is_load(operation: Operation) -> bool:
    return operation.name == "tt.load" and not operation.attribute("isVolatile")


def _between(value: Value, known: dict[Value, bool | None]) -> set[Operation] | None:
    """The operations from dots and loads to ``value``, both among them; None if ``value`` cannot be computed
    transposed. ``known``: of each value whether there are any, or None."""
    pending = [value]
    while pending:
        one = pending[-1]
        sources = _sources(one) if one not in known else []
        before = [source for source in sources or [] if source not in known]
        if before:
            pending += before
            continue
        pending.pop()
        if one not in known:
            known[one] = None if sources is None else _reaches(one, [known[source] for source in sources])
    if known[value] is None:
        return None
    found = set[Operation]()
    pending = [value]
    while pending:
        one = pending.pop()
        if known[one] and isinstance(one.owner, Operation) and one.owner not in found:
            found.add(one.owner)
            pending += _sources(one) or []
    return found


def _sources(value: Value) -> list[Value] | None:
    """What is computed transposed for the transpose of ``value``; None if that cannot be computed."""
    owner, type_ = value.owner, value.type
    if not isinstance(type_, TensorType):
        return []
    if not isinstance(owner, Operation) or type_.rank != 2:
        return None
    if owner.name in ("tt.splat", "tt.expand_dims") or _transposes(owner):
        return []
    if owner.name == "arith.constant":
        attribute = owner.attribute("value")
        return [] if isinstance(attribute, DenseAttr) and attribute.splat else None
    if owner.name == "tt.dot":
        a, b, sums = owner.operands
        return [sums] if a.tensor.element == b.tensor.element else None
    return owner.operands if owner.name == "tt.broadcast" or _is_elementwise(owner) or _is_load(owner) else None


def _reaches(value: Value, before: list[bool | None]) -> bool | None:
    if None in before:
        return None
    return any(before) or (isinstance(value.owner, Operation) and value.owner.name in ("tt.dot", "tt.load"))


def _is_closed(cluster: set[Operation], clusters: dict[Operation, set[Operation]]) -> bool:
    """Whether only what is computed transposed uses the results of ``cluster``."""
    return all(
        use in clusters or any(use in other for other in clusters.values())
        for operation in cluster
        for use in operation.result.uses
    )


def _turn(value: Value, turned: dict[Value, Value]) -> Value:
    """The transpose of a value that _between() allows, made behind it."""
    pending = [value]
    while pending:
        one = pending[-1]
        sources = [] if _is_turned(one, turned) else _sources(one)
        assert sources is not None
        before = [source for source in sources if not _is_turned(source, turned)]
        if before:
            pending += before
            continue
        pending.pop()
        if not _is_turned(one, turned):
            turned[one] = _made(one, turned)
    return turned.get(value, value)


def _is_turned(value: Value, turned: dict[Value, Value]) -> bool:
    return value in turned or not isinstance(value.type, TensorType)


def _made(value: Value, turned: dict[Value, Value]) -> Value:
    """The transpose of a value whose sources are turned."""
    owner = value.owner
    assert isinstance(owner, Operation)
    if _transposes(owner):
        return owner["src"]
    attributes = turned_hints(owner.attributes, _TURNED)
    operands = [turned.get(operand, operand) for operand in owner.operands]
    if owner.name == "tt.dot":
        a, b = owner.operands[:2]
        operands[:2] = _transposed(b, owner, turned), _transposed(a, owner, turned)
    elif owner.name == "tt.expand_dims":
        attributes |= {"axis": 1 - int(owner.attribute("axis"))}
    elif owner.name == "arith.constant":
        value = owner.attribute("value")
        attributes |= {"value": replace(value, type=_turned_type(value.type))}
    types = [_turned_type(value.type)]
    return Rewriter.after(owner).copy(owner, operands=operands, types=types, attributes=attributes).result


def _transposed(operand: Value, dot: Operation, turned: dict[Value, Value]) -> Value:
    """The transpose of a dot's operand: what it is the transpose of, or a tt.trans where it is made."""
    if operand in turned:
        return turned[operand]
    owner = operand.owner
    if isinstance(owner, Operation) and _transposes(owner):
        return owner["src"]
    place = Rewriter.after(owner) if isinstance(owner, Operation) else Rewriter.before(dot)
    made = place.make("tt.trans", [operand], [_turned_type(operand.type)], {"order": DenseArray(_TURNED)})
    if isinstance(owner, Operation):
        turned[operand] = made.result
    return made.result


def _turned_type(type_: Type) -> TensorType:
    assert isinstance(type_, TensorType)
    return TensorType(type_.shape[::-1], type_.element)
