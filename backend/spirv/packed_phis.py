"""Lets selections and loops carry words rather than the elements that are packed in them.

A tile of halves that is loaded in one iteration and stored to shared memory in the next is a phi for each half: it is
taken out of its word before the phi and put back after it. Drivers hold each half in a register of its own in between.
Here the packing is moved through the phi: where the packed elements are phis of one block, and what arrives from at
least one predecessor is what such a word was taken apart into, the word is the phi, and the elements are taken out of
it where they are used one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from . import opcodes as op
from .encode import Instruction
from .module import ModuleBuilder

#: A value by its id, or what it is made of: an opcode of ``_PACKING``, the type, and the parts.
Node: TypeAlias = "int | tuple[int | Node, ...]"

#: What packs elements.
_PACKING = frozenset({op.CompositeConstruct, op.Bitcast})
#: What ends a block, or stands right before its end.
_ENDS = frozenset({op.Branch, op.BranchConditional, op.SelectionMerge, op.LoopMerge})
#: All that is looked at.
_CONCERNED = _PACKING | _ENDS | {op.Label, op.Phi, op.CompositeExtract}


def carry_words(module: ModuleBuilder, body: list[Instruction], entry: int) -> list[Instruction]:
    """``body``, the instructions of a function behind the label of its ``entry``, with words carried where only their
    elements were. Results keep their ids."""
    narrow = {type_id for type_id, (kind, width) in module.kinds.items() if kind in ("int", "float") and width < 32}
    if not any(instruction[0] == op.Phi and instruction[1] in narrow for instruction in body):
        return body
    return _Words(module, body, entry, narrow).rewritten()


def _leaves(node: Node) -> Iterator[int]:
    if isinstance(node, int):
        yield node
        return
    for part in node[2:]:
        yield from _leaves(part)


@dataclass
class _Joined:
    """A word that becomes a phi: its id, what it is made of, the block, and the node that arrives from each
    predecessor. ``made``: the nodes that no value is there for, by predecessor."""

    id: int
    node: tuple[int | Node, ...]
    block: int
    incoming: dict[int, int] = field(default_factory=dict)
    made: dict[int, Node] = field(default_factory=dict)


class _Words:
    def __init__(self, module: ModuleBuilder, body: list[Instruction], entry: int, narrow: set[int]) -> None:
        self._module, self._body, self._entry = module, body, entry
        self._definitions: dict[int, Instruction] = {}
        #: Narrow phi → its block.
        self._block: dict[int, int] = {}
        #: Block → how many loops it is in; a loop's header is in it.
        self._depth = {entry: 0}
        #: What is packed of such phis, and the block, in the function's order.
        self._packed: list[tuple[int, int]] = []
        concerned: set[int] = set()
        block = entry
        ends: list[int] = []
        #: The places of labels, phis and ends of blocks, and of what may become a phi.
        self._places: list[int] = []
        for place in [place for place, instruction in enumerate(body) if instruction[0] in _CONCERNED]:
            instruction = body[place]
            opcode = instruction[0]
            if opcode == op.CompositeExtract:
                self._definitions[instruction[2]] = instruction
                continue
            if opcode not in _PACKING:
                self._places.append(place)
            if opcode == op.Label:
                block = instruction[2]
                if ends and block == ends[-1]:
                    ends.pop()
                self._depth[block] = len(ends)
            elif opcode == op.LoopMerge:
                ends.append(instruction[3])
                self._depth[block] = len(ends)
            elif opcode == op.Phi:
                if instruction[1] in narrow:
                    self._block[instruction[2]] = block
                    concerned.add(instruction[2])
                self._definitions[instruction[2]] = instruction
            elif opcode in _PACKING:
                self._definitions[instruction[2]] = instruction
                if not concerned.isdisjoint(instruction[3:]):
                    concerned.add(instruction[2])
                    self._packed.append((instruction[2], block))
                    self._places.append(place)
        self._nodes: dict[int, Node] = {}
        #: Value → whether it is a constant.
        self._constants: dict[int, bool] = {}
        self._joined: dict[Node, _Joined] = {}
        #: Block → instructions after its phis.
        self._taken_apart: dict[int, list[Instruction]] = {}
        self._gone: set[int] = set()

    def rewritten(self) -> list[Instruction]:
        """The body with every word carried that can be. The largest come first: they are defined last."""
        for value, block in reversed(self._packed):
            self._carry(value, self._depth[block])
        return self._placed() if self._joined else self._body

    # -- what becomes a phi --------------------------------------------------------------------------------------
    def _carry(self, value: int, depth: int) -> None:
        """Makes the packed ``value``, which is ``depth`` loops deep, a phi where that is right and saves work."""
        node = self._node(value)
        if isinstance(node, int) or node in self._joined or self._common_block(node) is None:
            return
        tried: dict[Node, _Joined] = {}
        self._join(node, value, tried)
        planned = {joined.id for joined in tried.values()}
        arriving = {word for joined in tried.values() for word in joined.incoming.values()} - planned
        if all(self._constant(word) for word in arriving):
            return  # no word is there to carry
        if any(self._depth[block] > depth for joined in tried.values() for block in joined.made):
            return  # it would be packed in each round, instead of once behind the loop
        self._gone.add(value)
        self._joined |= tried
        for joined in tried.values():
            self._take_apart(joined.node, joined.id, joined.block)

    def _node(self, value: int) -> Node:
        """What packs ``value``, down to elements."""
        known = self._nodes.get(value)
        if known is None:
            definition = self._definitions.get(value)
            if definition is None or definition[0] not in _PACKING:
                return value
            known = (definition[0], definition[1], *(self._node(part) for part in definition[3:]))
            self._nodes[value] = known
        return known

    def _common_block(self, node: Node) -> int | None:
        """The block whose phis a node packs, besides constants; None where it packs anything else."""
        common: int | None = None
        for leaf in _leaves(node):
            if not self._constant(leaf):
                block = self._block.get(leaf)
                if block is None or (common is not None and block != common):
                    return None
                common = block
        return common

    def _constant(self, value: int) -> bool:
        known = self._constants.get(value)
        if known is None:
            module = self._module
            known = value in module.constants or value == module.null(module.type_of[value])
            self._constants[value] = known
        return known

    def _join(self, node: tuple[int | Node, ...], value: int, tried: dict[Node, _Joined]) -> int | None:
        """Adds the phi ``value`` for ``node`` to ``tried``, and those that it needs; None where ``node`` is none of
        one block's phis."""
        block = self._common_block(node)
        if block is None:
            return None
        joined = tried[node] = _Joined(value, node, block)
        phis = [leaf for leaf in _leaves(node) if leaf in self._block]
        arriving = {phi: _incoming(self._definitions[phi]) for phi in phis}
        for predecessor in arriving[phis[0]]:
            word = self._substituted(node, {phi: values[predecessor] for phi, values in arriving.items()})
            if isinstance(word, int):
                joined.incoming[predecessor] = word
                continue
            known = tried.get(word) or self._joined.get(word)
            found = known.id if known else self._join(word, self._module.id(), tried)
            if found is None:
                joined.made[predecessor] = word
            else:
                joined.incoming[predecessor] = found
        return value

    def _substituted(self, node: Node, values: dict[int, int]) -> Node:
        """``node`` with phis replaced by ``values``, and what takes apart and packs again left out."""
        module = self._module
        if isinstance(node, int):
            return values.get(node, node)
        opcode, type_id = node[:2]
        assert isinstance(opcode, int) and isinstance(type_id, int)
        parts = [self._substituted(part, values) for part in node[2:]]
        whole = self._source(parts[0], opcode, 0)
        if whole is not None and module.type_of[whole] == type_id:
            if all(self._source(part, opcode, index) == whole for index, part in enumerate(parts)):
                return whole
        if all(isinstance(part, int) and part == module.null(module.type_of[part]) for part in parts):
            return module.null(type_id)
        return (opcode, type_id, *parts)

    def _source(self, part: Node, opcode: int, index: int) -> int | None:
        """The value that ``part`` is component ``index`` of, or the other view of, as ``opcode`` packs it."""
        definition = self._definitions.get(part) if isinstance(part, int) else None
        if definition is None:
            return None
        if opcode == op.Bitcast:
            return definition[3] if definition[0] == op.Bitcast else None
        return definition[3] if definition[0] == op.CompositeExtract and definition[4:] == [index] else None

    # -- what the elements become --------------------------------------------------------------------------------
    def _take_apart(self, node: Node, value: int, block: int) -> None:
        """Makes the phis that ``node`` packs parts of ``value``."""
        if isinstance(node, int):
            return
        for index, part in enumerate(node[2:]):
            if isinstance(part, int) and part not in self._block:
                continue  # a constant, or taken out of another word already
            type_id = self._module.type_of[part] if isinstance(part, int) else part[1]
            assert isinstance(type_id, int)
            result = part if isinstance(part, int) else self._module.id()
            words = [op.Bitcast, type_id, result, value] if node[0] == op.Bitcast else []
            words = words or [op.CompositeExtract, type_id, result, value, index]
            self._module.type_of[result] = type_id
            self._definitions[result] = words
            self._taken_apart.setdefault(block, []).append(words)
            if isinstance(part, int):
                del self._block[part]
                self._gone.add(part)
            else:
                self._take_apart(part, result, block)

    # -- the new body --------------------------------------------------------------------------------------------
    def _placed(self) -> list[Instruction]:
        phis: dict[int, list[Instruction]] = {}
        ends: dict[int, list[Instruction]] = {}
        for joined in self._joined.values():
            words = [(self._made(node, ends.setdefault(at, [])), at) for at, node in joined.made.items()]
            words += [(word, at) for at, word in joined.incoming.items()]
            type_id = joined.node[1]
            assert isinstance(type_id, int)
            self._module.type_of[joined.id] = type_id
            phi = [op.Phi, type_id, joined.id, *(word for pair in words for word in pair)]
            phis.setdefault(joined.block, []).append(phi)
        result: list[Instruction] = []
        block, gone = self._entry, self._gone
        pending: list[Instruction] = []  # what goes behind the phis of this block
        done = 0
        for place in self._places:
            instruction = self._body[place]
            opcode = instruction[0]
            if pending and (place > done or opcode != op.Phi):
                result += pending
                pending = []
            result += self._body[done:place]
            done = place + 1
            if opcode == op.Label:
                block = instruction[2]
                result.append(instruction)
                result += phis.get(block, ())
                pending = self._taken_apart.get(block, [])
            elif opcode in _ENDS:
                result += ends.pop(block, ())
                result.append(instruction)
            elif instruction[2] not in gone:
                result.append(instruction)
        return result + pending + self._body[done:]

    def _made(self, node: Node, instructions: list[Instruction]) -> int:
        """The id of ``node``, whose packing is appended to ``instructions``."""
        if isinstance(node, int):
            return node
        opcode, type_id = node[:2]
        assert isinstance(opcode, int) and isinstance(type_id, int)
        parts = [self._made(part, instructions) for part in node[2:]]
        result = self._module.id()
        self._module.type_of[result] = type_id
        instructions.append([opcode, type_id, result, *parts])
        return result


def _incoming(phi: Instruction) -> dict[int, int]:
    """Predecessor → the value that arrives from it."""
    return dict(zip(phi[4::2], phi[3::2], strict=True))
