"""The order of straight code that computes the elements of one array from those of others.

A tensor that gets another layout is read from an array as a whole, exchanged between lanes, and written to another one:
first all loads, then all of each step, and all stores. So many vectors do not fit into registers. Elements that come
from the same elements are computed together instead, the loads right before and the stores right behind.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..spirv import opcodes as op
from ..spirv.grammar import opcodes
from ..spirv.opcodes import StorageClass
from .decoded_module import KernelModule, ModuleInstruction
from .divergence import operands_of

_PURE = frozenset(f"Op{name}" for name, code in opcodes().items() if code in op.PURE) | {
    "OpAccessChain",
    "OpGroupNonUniformShuffle",
    "OpGroupNonUniformShuffleXor",
    "OpGroupNonUniformBroadcast",
}
_OWN = (StorageClass.Function, StorageClass.Private)

#: Stores of a run that fewer registers hold are left where they are.
_FEWEST = 24


def in_groups(program: KernelModule, body: Sequence[ModuleInstruction]) -> list[ModuleInstruction]:
    """The instructions of a block in an order in which fewer values are kept at a time."""
    found: list[ModuleInstruction] = []
    run: list[ModuleInstruction] = []
    for item in body:
        if item.name in _PURE or (item.name in ("OpLoad", "OpStore") and _variable(program, item)):
            run.append(item)
        else:
            found += _grouped(program, run)
            found.append(item)
            run = []
    return found + _grouped(program, run)


def _variable(program: KernelModule, item: ModuleInstruction) -> int:
    """The array of the invocation's own that is accessed, 0 for other memory."""
    pointer = item.operands[0]
    definition = program.definitions.get(pointer)
    if definition is not None and definition.name == "OpAccessChain":
        pointer = definition.operands[0]
    variable = program.variables.get(pointer)
    return pointer if variable is not None and variable.storage in _OWN else 0


def _grouped(program: KernelModule, run: list[ModuleInstruction]) -> list[ModuleInstruction]:
    stores = [item for item in run if item.name == "OpStore"]
    loaded = {_variable(program, item) for item in run if item.name == "OpLoad"}
    if len(stores) < _FEWEST or any(_variable(program, item) in loaded for item in stores):
        return run
    known = {item.result: item for item in run if item.result}
    sources: dict[int, frozenset[int]] = {}
    for item in run:  # operands come before their users
        if item.result:
            parts = [sources[operand] for operand in operands_of(item) if operand in sources]
            sources[item.result] = frozenset([item.result]) if item.name == "OpLoad" else frozenset().union(*parts)
    groups: dict[frozenset[int], list[ModuleInstruction]] = {}
    for item in stores:
        groups.setdefault(sources.get(item.operands[1], frozenset()), []).append(item)
    if len(groups) == 1 or len(groups) == len(stores):
        return run
    found: list[ModuleInstruction] = []
    done: set[int] = set()

    def make(item: ModuleInstruction) -> None:
        """Adds an instruction behind what it needs."""
        pending = [item]
        while pending:
            needed = [known[one] for one in operands_of(pending[-1]) if one in known and one not in done]
            if needed:
                pending += needed[::-1]
                continue
            last = pending.pop()
            if last.result not in done:
                found.append(last)
                if last.result:
                    done.add(last.result)

    for group in groups.values():
        for item in group:
            make(item)
    for item in run:
        if item.result and item.result not in done:
            make(item)
    return found
