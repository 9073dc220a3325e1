"""Kernels whose values cannot be compared, and what others compute in."""

from __future__ import annotations

from typing import Any

from ...analysis.pointer_range import is_pointer
from ...analysis.pointer_roots import Roots, pointer_roots
from ...transforms.kernel_function import kernel_of
from ...ttgir.ir import Module, Operation, Value
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
#: Operations that round to another type, those behind which a value is the same, and prefixes of those whose results
#: jump where an operand hardly changes.
_ROUNDING = frozenset({"arith.truncf", "tt.fp_to_fp"})
_PLACING = frozenset(
    {"arith.select", "ttg.convert_layout", "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.splat", "tt.trans"}
)
_JUMPING = ("arith.cmpf", "arith.remf", "math.floor", "math.ceil", "math.round", "math.trunc", "tt.extern")


def why_not(module: Module) -> str:
    """Why the values of a kernel cannot be compared; empty if they can."""
    for operation in module.walk():
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
    """The float types, by MLIR's names, that a kernel computes in; tf32 where its dots may round to it. A type that
    results are rounded to when they are stored, and that nothing reads again, is none."""
    found = set()
    kernel = kernel_of(module)
    roots = pointer_roots(kernel) if kernel.body is not None else {}
    read = [roots.get(operation["ptr"], ()) for operation in module.walk() if operation.name == "tt.load"]
    unread = {number for some in roots.values() for number in some}.difference(*read) if all(read) else set[int]()
    for operation in module.walk():
        if operation.name.startswith(_COMPUTING) and operation.name not in _MOVING:
            for result in operation.results:
                element = _element(result)
                if isinstance(element, FloatType) and not (
                    operation.name in _ROUNDING and _is_only_stored(result, roots, unread)
                ):
                    found.add(element.name)
        if operation.name == "tt.dot" and "tf32" in str(operation.attribute("inputPrecision")):
            if str(_element(operation["a"])) == "f32":
                found.add("tf32")
    return found


def _element(value: Value) -> Any:
    return value.type.element if isinstance(value.type, TensorType) else value.type


def _is_only_stored(value: Value, roots: Roots, unread: set[int]) -> bool:
    """Whether a value goes to the memory of ``unread`` arguments alone."""
    for user in value.uses:
        if user.name == "tt.store":
            to = roots.get(user["ptr"], ())
            if not to or not unread.issuperset(to):
                return False
        elif user.name not in _PLACING or not _is_only_stored(user.result, roots, unread):
            return False
    return True


def is_smooth(module: Module) -> bool:
    """Whether the floats that a kernel computes jump nowhere: half the change of an argument changes them by half."""
    return not any(operation.name.startswith(_JUMPING) for operation in module.walk())


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
    return any(_atomic_kind(operation) == "fadd" for operation in module.walk())


def _atomic_kind(operation: Operation) -> str:
    return str(operation.attribute("atomic_rmw_op")) if operation.name == "tt.atomic_rmw" else ""
