"""Calls (``tt.call``) replaced by the body of the function that is called.

Vulkan drivers inline every function of a compute shader, so a SPIR-V function a callee would save code only until
there, and would need tensors as parameters, one a register. A callee's global scratch memory, moreover, starts at an
offset that the call has: another at every call, but a constant in each copy.
"""

from __future__ import annotations

from ..errors import UnsupportedOperation
from ..ttgir.ir import UNKNOWN, Block, Function, Location, Module, Operation, Region, Value
from .rewriting import drop_uses, replace_uses
from .structure import structure

#: Offsets of an operation in its function's global scratch memory; a call has those of its callee's.
OFFSETS = ("ttg.global_scratch_memory_offset",)


def single_block_body(function: Function, module: Module) -> None:
    """Rewrites ``function`` so that its body and every region inside is one block without branches and calls.

    The functions that it calls are rewritten too. Raises UnsupportedOperation for recursion, for a callee without a
    body, and for what ``structure`` refuses.
    """
    _Inliner(module).flatten(function)


class _Inliner:
    """``_finished`` are the functions that hold no more calls, ``_open`` those that are being rewritten."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._finished: set[str] = set()
        self._open: list[str] = []

    def flatten(self, function: Function) -> None:
        """Structures ``function`` and inlines its calls."""
        assert function.body is not None
        structure(function.body)
        self._open.append(function.name)
        self._region(function.body)
        self._open.pop()
        self._finished.add(function.name)

    def _region(self, region: Region) -> None:
        for block in region.blocks:
            operations, block.operations = block.operations, []
            for operation in operations:
                if operation.name == "tt.call":
                    self._inline(operation, block)
                    continue
                block.operations.append(operation)
                for inner in operation.regions:
                    self._region(inner)

    def _inline(self, call: Operation, block: Block) -> None:
        name = call.attributes["callee"]
        callee = self._module.functions[name]
        if callee.body is None:
            raise UnsupportedOperation(call, f"the function '{name}' has no body", "define it in this module")
        if name in self._open:
            chain = " calls ".join(f"'{step}'" for step in [*self._open[self._open.index(name) :], name])
            raise UnsupportedOperation(call, f"it is recursive ({chain})", "use a loop")
        if name not in self._finished:
            self.flatten(callee)
        copy = _Copy(
            dict(zip(callee.body.entry.arguments, call.operands, strict=True)),
            {name: int(call.attributes[name]) for name in OFFSETS if call.attributes.get(name)},
            call.location,
        )
        *operations, end = callee.body.entry.operations
        for operation in operations:
            copy.operation(operation, block)
        for result, value in zip(call.results, end.operands, strict=True):
            replace_uses(result, copy.values[value])
        drop_uses(call)


class _Copy:
    """A copy of operations: ``values`` maps the callee's values to the copy's; ``offsets`` are added to the
    attributes of those names; locations are extended by that of the call."""

    def __init__(self, values: dict[Value, Value], offsets: dict[str, int], caller: Location) -> None:
        self.values = values
        self._offsets = offsets
        self._caller = caller
        self._locations: dict[Location, Location] = {UNKNOWN: caller}

    def operation(self, source: Operation, block: Block) -> None:
        """Adds a copy of ``source`` at the end of ``block``."""
        values = self.values
        attributes = source.attributes
        for name, offset in self._offsets.items():
            if name in attributes:
                attributes = attributes | {name: _moved(attributes[name], offset)}
        made = Operation(
            source.name,
            [values[operand] for operand in source.operands],
            [],
            attributes,
            [],
            [],
            source.segments,
            self._location(source.location),
            block,
        )
        for operand in made.operands:
            operand.uses.append(made)
        for result in source.results:
            copied = values[result] = Value(result.type, made, result.index, result.name)
            made.results.append(copied)
        block.operations.append(made)
        for region in source.regions:
            made.regions.append(self._region(region, made))

    def _region(self, source: Region, parent: Operation) -> Region:
        made = Region(parent=parent)
        for block in source.blocks:
            copied = Block(block.label, parent=made)
            for argument in block.arguments:
                value = self.values[argument] = Value(
                    argument.type, copied, argument.index, argument.name, location=argument.location
                )
                copied.arguments.append(value)
            made.blocks.append(copied)
            for operation in block.operations:
                self.operation(operation, copied)
        return made

    def _location(self, location: Location) -> Location:
        known = self._locations.get(location)
        if known is None:
            caller = self._location(location.caller) if location.caller else self._caller
            known = self._locations[location] = Location(
                location.file, location.line, location.column, location.name, caller
            )
        return known


def _moved(place: int | tuple[int, ...], offset: int) -> int | tuple[int, ...]:
    return tuple(part + offset for part in place) if isinstance(place, tuple) else place + offset
