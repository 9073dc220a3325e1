"""Which pointers can be held as 32-bit byte offsets from the kernel argument that they come from.

A kernel argument with ``tt.pointer_range = 32`` points into one allocation of less than 2³¹ bytes, and the kernel
accesses nothing through it but that allocation (docs/limits.md). All pointers that come from it, through whichever
operations, form its *web*. If a web has no other source and no pointer of it is used for anything but accesses,
each is held as ``offset``, a 32-bit integer, and ``argument + sign_extend(offset)`` is the address of an access.

Why that is exact, whatever overflows on the way. Let D be the distance in bytes of a pointer from the argument as the
64-bit arithmetic of TTGIR has it: a sum of terms ``sign_extend(index) · size``. The offset is computed by the same
sums and products on the low 32 bits of each term, and ``sign_extend(index)`` has the low 32 bits of ``index`` (also of
an index of 64 bits, which is cut off). Reduction modulo 2³² commutes with sums and products, so offset ≡ D modulo
2³², no matter which of them wrap around. Argument and accessed address lie in one allocation of less than 2³¹ bytes,
either one before the other, so −2³¹ < D < 2³¹, and the only number in that range that is congruent to D is
``sign_extend(offset)``. Nothing is asked of lanes that a mask turns off: their D may be anything, and their address is
not used. A pointer that leaves the kernel's view, as a number or into memory, need not lie in the allocation:
such a web is held in 64 bits. So are all in a kernel that converts pointers to integers, since it may reach one
allocation from another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..abi.argument_properties import RANGE, RANGE_BITS
from ..ttgir.ir import Function, Operation, Value
from ..ttgir.operations import Pointers, definition_of
from ..ttgir.types import PointerType, TensorType


def is_pointer(value: Value) -> bool:
    """Whether a value is a pointer, or a tensor of pointers."""
    type_ = value.type
    return isinstance(type_.element if isinstance(type_, TensorType) else type_, PointerType)


def carried(operation: Operation) -> Iterable[tuple[Sequence[Sequence[Value]], Sequence[Sequence[Value]]]]:
    """(targets, sources) of a loop or branch: each value of a target list is one of those at its place in the source
    lists."""
    blocks = [region.entry for region in operation.regions if region.blocks]
    ends = [block.terminator.operands for block in blocks]
    if operation.name == "scf.for":
        yield (blocks[0].arguments[1:], operation.results), (operation.operands[3:], ends[0])
    elif operation.name == "scf.while":
        yield (blocks[0].arguments,), (operation.operands, ends[1])
        yield (blocks[1].arguments, operation.results), (ends[0][1:],)
    elif operation.results:
        yield (operation.results,), ends


class _Webs:
    """Disjoint sets of pointers. ``sources`` counts where a set's pointers come from."""

    def __init__(self) -> None:
        self._parent: dict[Value, Value] = {}
        self._wide: set[Value] = set()
        self.members = self._parent.keys()

    def root(self, value: Value) -> Value:
        """What stands for the web of ``value``."""
        parent = self._parent
        above = parent.setdefault(value, value)
        while above is not value:
            parent[value] = parent[above]
            value, above = above, parent[above]
        return value

    def join(self, values: Iterable[Value]) -> None:
        """Makes one web of the webs of those values that are pointers."""
        roots = [self.root(value) for value in values if is_pointer(value)]
        for root in roots[1:]:
            self._parent[self.root(root)] = self.root(roots[0])

    def widen(self, values: Iterable[Value]) -> None:
        """The webs of these values, where they are pointers, are held in 64 bits."""
        self._wide.update(value for value in values if is_pointer(value))

    def wide_roots(self) -> set[Value]:
        """What stands for the webs that are held in 64 bits."""
        return {self.root(value) for value in self._wide}


def pointer_bases(function: Function) -> dict[Value, Value]:
    """Pointer → the kernel argument that it is held as a 32-bit offset from; those arguments themselves are in it too.
    Pointers that are held in 64 bits are not."""
    assert function.body is not None
    arguments = function.body.entry.arguments
    narrow = {
        argument
        for index, argument in enumerate(arguments)
        if function.argument_attribute(index, RANGE) == RANGE_BITS and is_pointer(argument)
    }
    if not narrow:
        return {}
    webs = _Webs()
    for operation in function.walk():
        if operation.name == "tt.ptr_to_int":
            return {}
        _add(webs, operation)
    webs.widen(argument for argument in arguments if argument not in narrow)
    wide = webs.wide_roots()
    bases: dict[Value, Value] = {}
    for argument in narrow:
        root = webs.root(argument)
        if bases.setdefault(root, argument) is not argument:
            wide.add(root)
    return {
        value: bases[root] for value in list(webs.members) if (root := webs.root(value)) in bases and root not in wide
    }


def _add(webs: _Webs, operation: Operation) -> None:
    match definition_of(operation).pointers:
        case Pointers.KEPT:
            webs.join((*operation.operands, *operation.results))
            if operation.name == "tt.bitcast" and is_pointer(operation["src"]) is not is_pointer(operation.result):
                webs.widen((*operation.operands, *operation.results))
        case Pointers.ACCESSED:
            webs.widen(operation.operands[1:])
            webs.widen(operation.results)
        case Pointers.CARRIED:
            for targets, sources in carried(operation):
                for values in zip(*targets, *sources, strict=True):
                    webs.join(values)
        case Pointers.ENDED:
            pass
        case _:
            webs.widen(operation.operands)
            webs.widen(operation.results)
