"""How the pointers of a kernel are held, and what accesses through them are checked against."""

from __future__ import annotations

from dataclasses import dataclass

from ..analysis.overwriting import orders_device_memory
from ..analysis.pointer_range import is_pointer, pointer_bases
from ..analysis.pointer_roots import pointer_roots, written_arguments
from ..ttgir.ir import Function, Value
from ..ttgir.operations import Effect, definition_of


@dataclass(frozen=True)
class PointerPlan:
    """What is decided of a kernel's pointers.

    ``bases``: pointer → the argument that it is held as a 32-bit byte offset from (analysis/pointer_range.py); others
    are 64-bit addresses. ``roots``: pointer → the numbers of the arguments whose tensors an access through it has to
    stay in; None where accesses are not checked. ``written``: the numbers of the arguments that the kernel may write
    through; None: any. ``communicates``: invocations may exchange values through device memory, so that no access may
    be private to one (SPIR-V specification, section 3.26, NonPrivatePointer).
    """

    bases: dict[Value, Value]
    roots: dict[Value, tuple[int, ...]] | None
    written: list[int] | None
    communicates: bool

    def summary(self, kernel: Function) -> str:
        """A few words; "" for a kernel without pointers."""
        assert kernel.body is not None
        arguments = [argument for argument in kernel.body.entry.arguments if is_pointer(argument)]
        narrow = [argument.name for argument in arguments if argument in self.bases]
        wide = [argument.name for argument in arguments if argument not in self.bases]
        held = [f"32-bit offsets from {', '.join(narrow)}"] if narrow else []
        held += [f"64-bit addresses from {', '.join(wide)}"] if wide else []
        if self.roots is not None and arguments:
            held.append("accesses are checked against the tensors that were passed")
        return "; ".join(held)


def plan_pointers(kernel: Function, check_bounds: bool) -> PointerPlan:
    """``check_bounds``: accesses are checked. A 32-bit offset would bring a pointer that went too far back into its
    tensor, so that none is used then."""
    bases, roots = ({}, pointer_roots(kernel)) if check_bounds else (pointer_bases(kernel), None)
    return PointerPlan(bases, roots, written_arguments(kernel), _communicates(kernel))


def _communicates(kernel: Function) -> bool:
    return any(Effect.ATOMIC in definition_of(one).effects or orders_device_memory(one) for one in kernel.walk())
