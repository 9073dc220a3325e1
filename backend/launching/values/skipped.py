"""Kernels whose values cannot be compared, and what others compute in."""

from __future__ import annotations

from collections.abc import Iterator

from ...analysis.pointer_range import is_pointer
from ...analysis.pointer_roots import pointer_roots
from ...transforms.kernel_function import kernel_of
from ...ttgir.ir import Module, Operation
from ...ttgir.types import FloatType, TensorType

#: Operation → why a kernel that has it is not run a second time.
_REASONS = {
    "tt.print": "it prints",
    "tt.elementwise_inline_asm": "it has inline assembly",
    "tt.int_to_ptr": "it makes pointers of numbers, whose memory is not known",
}
#: Operations whose results depend on what other programs did before.
_ATOMIC = frozenset({"tt.atomic_rmw", "tt.atomic_cas"})
#: Prefixes of operations that compute, and of those among them that round nothing.
_COMPUTING = ("arith.", "math.", "tt.fp_to_fp", "tt.dot", "tt.extern_elementwise", "tt.precise_", "tt.atomic_rmw")
_MOVING = frozenset({"arith.constant", "arith.select", "arith.bitcast", "arith.extf"})


def _walk(module: Module) -> Iterator[Operation]:
    for function in module.functions.values():
        yield from function.walk()


def why_not(module: Module) -> str:
    """Why the values of a kernel cannot be compared; empty if they can."""
    for operation in _walk(module):
        if operation.name in _REASONS:
            return _REASONS[operation.name]
        if operation.name in _ATOMIC and any(result.uses for result in operation.results):
            return "it uses what atomic operations return, which depends on the order of programs"
        if _atomic_kind(operation) == "exch":
            return "its atomic exchanges depend on the order of programs"
        if operation.name == "tt.load" and any(is_pointer(result) for result in operation.results):
            return "it loads pointers, whose memory is not known"
    return ""


def computed_in(module: Module) -> set[str]:
    """The float types, by MLIR's names, that a kernel computes in; tf32 where its dots may round to it."""
    found = set()
    for operation in _walk(module):
        if operation.name.startswith(_COMPUTING) and operation.name not in _MOVING:
            for result in operation.results:
                element = result.type.element if isinstance(result.type, TensorType) else result.type
                if isinstance(element, FloatType):
                    found.add(element.name)
        if operation.name == "tt.dot" and "tf32" in str(operation.attribute("inputPrecision")):
            found.add("tf32")
    return found


def writing_place(module: Module, number: int) -> tuple[str, int] | None:
    """The file and the line of the first store through argument ``number`` of the kernel; None if it is not known."""
    kernel = kernel_of(module)
    if kernel.body is None:
        return None
    roots = pointer_roots(kernel)
    for operation in kernel.walk():
        if operation.name in ("tt.store", "tt.atomic_rmw", "tt.atomic_cas", "tt.atomic_store"):
            if number in roots.get(operation["ptr"], ()) and operation.location.file:
                return operation.location.file, operation.location.line
    return None


def adds_floats_in_any_order(module: Module) -> bool:
    """Whether a kernel adds floats atomically, in an order that changes from launch to launch."""
    return any(_atomic_kind(operation) == "fadd" for operation in _walk(module))


def _atomic_kind(operation: Operation) -> str:
    return str(operation.attribute("atomic_rmw_op")) if operation.name == "tt.atomic_rmw" else ""
