"""What the words of an instruction are: ids, literals and enumerants, by Khronos' grammar (grammar.txt)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple, TypeAlias

#: Operand kinds whose words are ids (section 3.1 of the grammar's kinds; the result and its type come first).
IDS = frozenset({"IdRef", "IdScope", "IdMemorySemantics", "IdResult", "IdResultType"})
STRING = "LiteralString"
#: A number whose type, and so whose width, is that of another operand.
TYPED_NUMBER = "LiteralContextDependentNumber"
#: The opcode of the operation that OpSpecConstantOp does; that operation's operands follow.
SPEC_OPCODE = "LiteralSpecConstantOpInteger"
EXT_INSTRUCTION = "LiteralExtInstInteger"
_SWITCH_CASE = "PairLiteralIntegerIdRef"


class UnknownInstruction(ValueError):
    """An opcode that the grammar does not have."""


class Expected(NamedTuple):
    """An operand as the grammar states it; ``quantifier`` is empty, ``?`` for at most one, ``*`` for any number."""

    kind: str
    quantifier: str = ""


class Shape(NamedTuple):
    """An instruction: its name without Op, whether it has a result type and a result, and the operands after them."""

    name: str
    typed: bool
    result: bool
    operands: tuple[Expected, ...]


class Enumerant(NamedTuple):
    """A named number of an enumeration, and the operands that its presence adds."""

    name: str
    parameters: tuple[Expected, ...]


class Word(NamedTuple):
    """An operand of an instruction: its kind, and the words ``[start, end)`` of the operands that it takes."""

    kind: str
    start: int
    end: int


def _expected(kinds: Sequence[str]) -> tuple[Expected, ...]:
    return tuple(Expected(kind.rstrip("?*"), kind[len(kind.rstrip("?*")) :]) for kind in kinds)


@cache
def _tables() -> tuple[list[str], ...]:
    """The rows of instructions, of operand kinds and of extended instruction sets."""
    _, *tables = Path(__file__).with_name("grammar.txt").read_text(encoding="ascii").split("\n\n")
    return tuple(table.splitlines() for table in tables)


@cache
def _instructions() -> dict[int, list[str]]:
    rows = (line.split() for line in _tables()[0])
    return {int(number): rest for number, *rest in rows}


@cache
def _kinds() -> tuple[dict[str, dict[int, Enumerant]], frozenset[str], dict[str, tuple[Expected, ...]]]:
    """(enumerants of each enumeration, those that are masks, parts of each composite kind)."""
    enumerations: dict[str, dict[int, Enumerant]] = {}
    masks, composites = set(), {}
    current: dict[int, Enumerant] = {}
    for line in _tables()[1]:
        first, name, *rest = line.split()
        if first == "composite":
            composites[name] = _expected(rest)
        elif first in ("mask", "value"):
            current = enumerations[name] = {}
            if first == "mask":
                masks.add(name)
        else:
            current[int(first)] = Enumerant(name, _expected(rest))
    return enumerations, frozenset(masks), composites


@lru_cache(None)
def shape(opcode: int) -> Shape:
    """The shape of an instruction. Raises UnknownInstruction."""
    row = _instructions().get(opcode)
    if row is None:
        raise UnknownInstruction(f"the grammar of SPIR-V has no instruction {opcode}")
    name, *kinds = row
    rest = [kind for kind in kinds if kind not in ("IdResultType", "IdResult")]
    return Shape(name, "IdResultType" in kinds, "IdResult" in kinds, _expected(rest))


@cache
def opcodes() -> dict[str, int]:
    """Name of an instruction, without Op → its opcode."""
    return {name: opcode for opcode, (name, *_) in _instructions().items()}


def enumerants(kind: str) -> dict[int, Enumerant]:
    """The enumerants of an enumeration by number; empty for other kinds."""
    return _kinds()[0].get(kind, {})


def is_mask(kind: str) -> bool:
    """Whether the numbers of an enumeration are bits that one operand may combine."""
    return kind in _kinds()[1]


@cache
def extended(name: str) -> dict[int, str]:
    """The instructions of an extended instruction set by number; empty for a set that is not in the table."""
    sets: dict[str, dict[int, str]] = {}
    for line in _tables()[2]:
        first, rest = line.split()
        if first == "set":
            current = sets[rest] = {}
        else:
            current[int(first)] = rest
    return sets.get(name, {})


def _parameters(kind: str, number: int) -> tuple[Expected, ...]:
    """The operands that follow an enumerant, or the bits of a mask from the lowest up."""
    known = enumerants(kind)
    if not is_mask(kind):
        return known[number].parameters if number in known else ()
    return tuple(
        parameter for bit, entry in known.items() if bit and number & bit == bit for parameter in entry.parameters
    )


def string_end(words: Sequence[int], start: int) -> int:
    """Where the literal string that begins at ``start`` ends: after its first word with a zero byte (section 2.2.1)."""
    for place in range(start, len(words)):
        word = words[place]
        if not (word & 0xFF and word & 0xFF00 and word & 0xFF0000 and word & 0xFF000000):
            return place + 1
    raise ValueError("a literal string has no end")


def walk(opcode: int, operands: Sequence[int], selector_words: int = 1) -> Iterator[Word]:
    """The operands after the result, one after the other, those that enumerants add included. ``selector_words`` is
    the width of OpSwitch's literals. Raises ValueError on missing and on left-over words."""
    name, _, _, stated = shape(opcode)
    composites = _kinds()[2]
    expected = list(reversed(stated))
    at, count = 0, len(operands)
    while expected:
        kind, quantifier = expected.pop()
        if at == count:
            if quantifier:
                continue
            raise ValueError(f"Op{name} ends before its operand of kind {kind}")
        if quantifier == "*":
            expected.append(Expected(kind, quantifier))
        if kind in composites:
            if kind == _SWITCH_CASE:
                end = at + selector_words
                yield Word(TYPED_NUMBER, at, end)
                at, kind = end, "IdRef"
            else:
                expected.extend(reversed(composites[kind]))
                continue
        if at == count:
            raise ValueError(f"Op{name} ends before its operand of kind {kind}")
        end = at + 1
        if kind == STRING:
            end = string_end(operands, at)
        elif kind == TYPED_NUMBER:
            end = count
        elif kind == SPEC_OPCODE:
            expected.extend(reversed(shape(operands[at]).operands))
        elif kind not in IDS:
            expected.extend(reversed(_parameters(kind, operands[at])))
        yield Word(kind, at, end)
        at = end
    if at != count:
        raise ValueError(f"Op{name} has {count - at} words too many")


# -- which words are ids, fast ---------------------------------------------------------------------------------------
Reader: TypeAlias = Callable[[Sequence[int]], Sequence[int]]

_FIRST = 3  # of encode.Instruction: the opcode, the result's type and the result come before the operands
#: Opcode and number of words → where ids are, for the instructions of which those two say it.
_PLACES: dict[int, tuple[int, ...]] = {}
#: The same and the deciding operand → where ids are, for operands of which only all three say it.
_DECIDED: dict[tuple[int, int], tuple[int, ...]] = {}
#: Opcode and number of words → what reads the ids.
_READERS: dict[int, Reader] = {}


@lru_cache(None)
def _deciding(opcode: int) -> int:
    """The place of the operand whose value decides of what kind those after it are; 0 where the number of words alone
    decides, -1 where more does."""
    place = 0
    for index, (kind, quantifier) in enumerate(shape(opcode).operands):
        adds = any(entry.parameters for entry in enumerants(kind).values())
        if kind in (STRING, SPEC_OPCODE) or (adds and (place or quantifier == "*")):
            return -1
        if adds:
            place = _FIRST + index
    return place


def id_places(instruction: Sequence[int]) -> tuple[int, ...]:
    """Where an instruction as encode.Instruction (opcode, type, result, operands…) has ids among its operands. Raises
    UnknownInstruction, and ValueError where the words do not fit the grammar."""
    size = len(instruction)
    key = instruction[0] << 16 | size
    places = _PLACES.get(key)
    if places is not None:
        return places
    deciding = _deciding(instruction[0])
    decided = (key, instruction[deciding]) if 0 < deciding < size else (key, 0)
    places = _DECIDED.get(decided) if deciding > 0 else None
    if places is None:
        operands = walk(instruction[0], instruction[_FIRST:])
        places = tuple(_FIRST + start for kind, start, _ in operands if kind in IDS)
        if 0 < deciding < size:
            _DECIDED[decided] = places
        elif deciding >= 0:
            _PLACES[key] = places
    return places


def ids(instruction: Sequence[int]) -> Sequence[int]:
    """The ids among an instruction's operands. Raises as ``id_places``."""
    key = instruction[0] << 16 | len(instruction)
    reader = _READERS.get(key)
    if reader is None:
        reader = _READERS[key] = _reader(instruction)
    return reader(instruction)


def ids_of_each(instructions: Sequence[Sequence[int]]) -> list[Sequence[int]]:
    """``ids`` of each of many instructions, in less time."""
    readers = _READERS
    try:
        return [readers[instruction[0] << 16 | len(instruction)](instruction) for instruction in instructions]
    except KeyError:  # one of a kind that was not read before
        return [ids(instruction) for instruction in instructions]


def _reader(instruction: Sequence[int]) -> Reader:
    """What reads the ids of instructions of this opcode and length."""
    deciding = _deciding(instruction[0])
    if deciding < 0:
        return lambda one: [one[place] for place in id_places(one)]
    if not 0 < deciding < len(instruction):
        return _getter(id_places(instruction))
    known: dict[int, Reader] = {}

    def read(one: Sequence[int]) -> Sequence[int]:
        reader = known.get(one[deciding])
        if reader is None:
            reader = known[one[deciding]] = _getter(id_places(one))
        return reader(one)

    return read


def _getter(places: tuple[int, ...]) -> Reader:
    if places == tuple(range(_FIRST, _FIRST + len(places))):
        return itemgetter(slice(_FIRST, _FIRST + len(places)))
    return itemgetter(*places) if len(places) > 1 else lambda instruction: [instruction[place] for place in places]
