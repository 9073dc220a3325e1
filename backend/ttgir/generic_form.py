"""MLIR's generic form: ``"name"(operands)[successors] <{properties}> ({regions}) {attributes} : type``."""

from __future__ import annotations

from typing import Any

from .ir import Block, Operation, Region, Successor, Value
from .operation_reader import OperationReader
from .operations import OPERATIONS, WORST

#: Operations whose regions see no names from outside.
_ISOLATED = frozenset({"ttg.warp_specialize.partitions", "tt.func", "builtin.module"})


def generic(parser: OperationReader, start: int) -> Operation:
    """The operation whose quoted name is the token ``start``, the one that was read last."""
    name = _unquoted(parser, parser.items[start], start)
    parser.expect("(")
    operands = parser.uses()
    parser.expect(")")
    targets: list[Block] = []
    if parser.accept("["):
        targets.append(parser.successor())
        while parser.accept(","):
            targets.append(parser.successor())
        parser.expect("]")
    attributes: dict[str, Any] = {}
    if parser.accept("<"):
        attributes = parser.reader.dictionary(parser)
        parser.expect(">")
    regions: list[Region] = []
    if parser.accept("("):
        regions.append(parser.region(isolated=name in _ISOLATED))
        while parser.accept(","):
            regions.append(parser.region(isolated=name in _ISOLATED))
        parser.expect(")")
    if parser.items[parser.i] == "{":
        at = parser.i
        for key, value in parser.reader.dictionary(parser).items():
            if key in attributes:
                parser.error(f"attribute '{key}' is given twice", at)
            attributes[key] = value
    parser.expect(":")
    at = parser.i
    type_ = parser.reader.function_type(parser)
    if len(type_.inputs) != len(operands):
        parser.error(f"{len(operands)} operands, but {len(type_.inputs)} operand types", at)
    for operand, input_type in zip(operands, type_.inputs, strict=True):
        parser.bind(operand, input_type, at)
    row = OPERATIONS.get(name, WORST).syntax
    segments = attributes.pop("operandSegmentSizes", None)
    attributes.pop("resultSegmentSizes", None)
    if row is not None:
        row.complete(parser, attributes, start)
        if row.results_of(list(type_.results)) is None:
            parser.error(f"'{name}' has another number of results", at)
        if segments is None:
            segments = row.split(len(operands))
    elif "." not in name:
        parser.error(f"unknown operation '{name}'", start)
    if segments is None:
        segments = (1,) * len(operands) if row is None else None
    if segments is None or sum(segments) != len(operands) or (row and len(segments) != len(row.operands)):
        parser.error(f"'{name}' has another number of operands than the {len(operands)} given", start)
    return Operation.make(
        name,
        operands,
        list(type_.results),
        attributes,
        tuple(segments),
        regions,
        _successors(parser, name, targets, operands, segments, attributes, start),
    )


def _successors(
    parser: OperationReader,
    name: str,
    targets: list[Block],
    operands: list[Value],
    segments: tuple[int, ...],
    attributes: dict[str, Any],
    start: int,
) -> list[Successor]:
    """``targets`` with the operands that each is passed."""
    if not targets:
        return []
    counts = {
        "cf.br": segments,
        "cf.cond_br": segments[1:],
        "cf.switch": (*segments[1:2], *attributes.get("case_operand_segments", ())),
    }.get(name)
    if counts is None or len(counts) != len(targets):
        parser.error(f"'{name}' has other successors than the {len(targets)} given", start)
    found, at = [], len(operands) - sum(counts)
    for target, count in zip(targets, counts, strict=True):
        found.append(Successor(target, operands[at : at + count]))
        at += count
    return found


def _unquoted(parser: OperationReader, literal: str, at: int) -> str:
    """The operation name inside the quotes of the generic form."""
    name = literal[1:-1]
    if not name or not all(part.isidentifier() for part in name.split(".")):
        parser.fail("expected an operation name", at)
    return name
