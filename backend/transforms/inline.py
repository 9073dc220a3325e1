"""Calls (``tt.call``) replaced by the body of the function that is called.

Vulkan drivers inline every function of a compute shader, so a SPIR-V function a callee would save code only until
there, and would need tensors as parameters, one a register. A callee's global scratch memory, moreover, starts at an
offset that the call has: another at every call, but a constant in each copy.
"""

from __future__ import annotations

from typing import Any

from ..errors import UnsupportedOperation
from ..ttgir.ir import UNKNOWN, Block, Function, Location, Module, Operation, Region
from .rewriting import Rewriter
from .structure import structure

#: Offsets of an operation in its function's global scratch memory; a call has the offset of its callee's memory.
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
        name = call.attribute("callee")
        callee = self._module.functions[name]
        if callee.body is None:
            raise UnsupportedOperation(call, f"the function '{name}' has no body", "define it in this module")
        if name in self._open:
            chain = " calls ".join(f"'{step}'" for step in [*self._open[self._open.index(name) :], name])
            raise UnsupportedOperation(call, f"it is recursive ({chain})", "use a loop")
        if name not in self._finished:
            self.flatten(callee)
        copier = _Copier(call, block, {name: int(call.attribute(name) or 0) for name in OFFSETS})
        values = dict(zip(callee.body.entry.arguments, call.operands, strict=True))
        *operations, end = callee.body.entry.operations
        for operation in operations:
            copier.copy(operation, values)
        for result, value in zip(call.results, end.operands, strict=True):
            result.replace_uses(values[value])
        call.drop_uses()


class _Copier(Rewriter):
    """Copies operations of a callee: ``offsets`` are added to the attributes of those names, locations are extended by
    that of the call."""

    def __init__(self, call: Operation, block: Block, offsets: dict[str, int]) -> None:
        super().__init__(block)
        self._offsets, self._caller = offsets, call.location
        self._locations: dict[Location, Location] = {UNKNOWN: call.location}

    def attributes_of(self, source: Operation) -> dict[str, Any]:
        moved = {
            name: _moved(place, offset)
            for name, offset in self._offsets.items()
            if offset and (place := source.attribute(name)) is not None
        }
        return source.attributes | moved

    def location_of(self, source: Operation) -> Location:
        return self._called(source.location)

    def _called(self, location: Location) -> Location:
        known = self._locations.get(location)
        if known is None:
            caller = self._called(location.caller) if location.caller else self._caller
            known = self._locations[location] = Location(
                location.file, location.line, location.column, location.name, caller
            )
        return known


def _moved(place: int | tuple[int, ...], offset: int) -> int | tuple[int, ...]:
    return tuple(part + offset for part in place) if isinstance(place, tuple) else place + offset
