"""What a function of TTIR or TTGIR computes, by NumPy, whatever its encodings say: so that rewrites are tested by what
they leave the same.

What the axis analysis claims of a value, hints among it, is checked on every value that is computed: a hint that a
rewrite leaves on a value that it is not true of is found, whether or not anything relies on it.

Every value is an array, of no dimensions for a scalar. Pointers are addresses in a memory of bytes, in which each array
that is passed has its own place; what is read or written elsewhere is an error. What is undefined (elements that a
mask leaves out, ``ub.poison``, new buffers) is garbage that shows in results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from triton.backends.spirv.analysis.axis_info import AxisInfoAnalysis
from triton.backends.spirv.analysis.axis_info.info import step_of, unknown
from triton.backends.spirv.ttgir.ir import Block, DenseAttr, FloatBits, Function, Module, Operation, Region, Value
from triton.backends.spirv.ttgir.types import (
    FloatType,
    IndexType,
    IntegerType,
    MemDescType,
    PointerType,
    TensorType,
    Type,
)

from tests.claims import check_claims

Array = np.ndarray[Any, Any]
_FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
#: Bytes between the arrays in memory, so that no access goes past one into the next.
_GAP = 4096


@dataclass(frozen=True)
class Pointers:
    """An argument that is a tensor of pointers: to the elements ``places`` of ``array``."""

    array: Array
    places: Array


@dataclass(frozen=True)
class Outcome:
    """``results`` of a function, and what it leaves in the arrays that were passed, in their order."""

    results: list[Array]
    arrays: list[Array]

    def same(self, other: Outcome) -> None:
        """Fails where another outcome differs in a bit."""
        for one, two in zip([*self.results, *self.arrays], [*other.results, *other.arrays], strict=True):
            np.testing.assert_array_equal(one, two)


def run(source: Module | Function, *arguments: Any, name: str = "k", steps: int = 1_000_000) -> Outcome:
    """Runs a function on arrays, for its arguments that are pointers, on ``Pointers``, tensors and numbers."""
    functions = source.functions if isinstance(source, Module) else {source.name: source}
    with np.errstate(all="ignore"):
        return _Run(functions, steps).launch(functions[name], arguments)


def dtype_of(type_: Type) -> Any:
    """The type of NumPy's numbers for a type or its elements; pointers are addresses."""
    element = type_.element if isinstance(type_, TensorType | MemDescType) else type_
    if isinstance(element, IntegerType):
        return np.dtype(bool) if element.width == 1 else np.dtype(f"i{element.width // 8}")
    if isinstance(element, FloatType):
        return np.dtype(_FLOATS[element.name])
    assert isinstance(element, PointerType | IndexType), element
    return np.dtype(np.int64)


def _garbage(type_: Type) -> Array:
    shape = type_.shape if isinstance(type_, TensorType | MemDescType) else ()
    dtype = dtype_of(type_)
    bits = 0x5A5A5A5A5A5A5A5A >> (64 - 8 * dtype.itemsize)
    return np.full(shape, np.nan if dtype.kind == "f" else bits, dtype)


def _unsigned(array: Array) -> Array:
    return array if array.dtype == bool else array.view(f"u{array.dtype.itemsize}")


def _divided(a: Array, b: Array) -> Array:
    quotient = np.abs(a.astype(object)) // np.abs(np.where(b == 0, 1, b).astype(object))
    return np.asarray(np.where((a < 0) == (b < 0), quotient, -quotient)).astype(a.dtype)


_COMPARISONS: dict[str, Callable[[Array, Array], Any]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
_BINARY: dict[str, Callable[[Array, Array], Any]] = {
    "addi": np.add, "subi": np.subtract, "muli": np.multiply, "andi": np.bitwise_and, "ori": np.bitwise_or,
    "xori": np.bitwise_xor, "maxsi": np.maximum, "minsi": np.minimum, "shli": np.left_shift, "shrsi": np.right_shift,
    "divsi": _divided, "remsi": lambda a, b: a - _divided(a, b) * b,
    "divui": lambda a, b: (_unsigned(a) // _unsigned(b)).view(a.dtype),
    "remui": lambda a, b: (_unsigned(a) % _unsigned(b)).view(a.dtype),
    "addf": np.add, "subf": np.subtract, "mulf": np.multiply, "divf": np.divide, "maximumf": np.maximum,
    "minimumf": np.minimum, "maxnumf": np.fmax, "minnumf": np.fmin,
}  # fmt: skip
_UNARY: dict[str, Callable[[Array], Any]] = {
    "negf": np.negative, "exp": np.exp, "exp2": np.exp2, "log": np.log, "sin": np.sin, "cos": np.cos, "sqrt": np.sqrt,
    "absf": np.abs, "absi": np.abs, "floor": np.floor, "ceil": np.ceil,
}  # fmt: skip
_CASTS = frozenset("extsi sitofp fptosi extf truncf trunci index_cast".split())
#: Operations that give their first operand, in another encoding or as a view of its bytes.
_SAME = frozenset({"ttg.convert_layout", "ttg.local_load", "tt.unsplat", "spirv.collect"})
_NOTHING = frozenset({"ttg.barrier", "ttg.local_dealloc", "tt.print", "llvm.intr.assume"})


class _Run:
    """One run: its memory, the values so far, and how many steps are left."""

    def __init__(self, functions: dict[str, Function], steps: int) -> None:
        self._functions, self._left = functions, steps
        self._memory, self._written = np.zeros(0, np.uint8), np.zeros(0, bool)
        self._arrays: list[tuple[int, Array]] = []
        self._values: dict[Value, Any] = {}
        self._claims = [AxisInfoAnalysis(function) for function in functions.values()]

    def launch(self, function: Function, arguments: Sequence[Any]) -> Outcome:
        assert function.body is not None
        passed = [
            self._argument(argument, value.type)
            for argument, value in zip(arguments, function.body.entry.arguments, strict=True)
        ]
        results = [np.array(result) for result in self._region(function.body, passed)[1]]
        left = [self._memory[at : at + one.nbytes].view(one.dtype).reshape(one.shape) for at, one in self._arrays]
        return Outcome(results, left)

    def _argument(self, argument: Any, type_: Type) -> Array:
        if isinstance(argument, Pointers):
            return self._placed(argument.array) + argument.places * argument.array.itemsize
        if isinstance(type_, PointerType):
            return np.asarray(self._placed(argument))
        return np.asarray(argument).astype(dtype_of(type_))

    def _placed(self, array: Array) -> int:
        at = len(self._memory) + _GAP
        self._memory = np.concatenate([self._memory, np.zeros(_GAP, np.uint8), array.reshape(-1).view(np.uint8)])
        self._written = np.concatenate([self._written, np.zeros(_GAP, bool), np.ones(array.nbytes, bool)])
        self._arrays.append((at, array))
        return at

    def _bytes(self, addresses: Array, size: int) -> Array:
        """The numbers of the bytes at ``addresses``."""
        found = np.asarray(addresses)[..., None] + np.arange(size)
        assert ((found >= 0) & (found < len(self._memory))).all() and self._written[found].all(), "out of bounds"
        return found

    # -- control ---------------------------------------------------------------------------------------------------
    def _region(self, region: Region, arguments: Sequence[Any]) -> tuple[Operation, list[Any]]:
        """The terminator that leaves the region, and its operands."""
        block = region.entry
        while True:
            self._define(block.arguments, arguments)
            for operation in block.operations[:-1]:
                self._left -= 1
                assert self._left > 0, "this does not end"
                self._define(operation.results, self._results(operation))
            last = block.terminator
            if not last.successors:
                return last, [self._values[operand] for operand in last.operands]
            block, arguments = self._branch(last)

    def _define(self, values: Sequence[Value], given: Sequence[Any]) -> None:
        """What is claimed of ``ub.poison`` is what suits best, whatever else may come to the same place."""
        self._values.update(zip(values, given, strict=True))
        for value, one in zip(values, given, strict=True):
            for analysis in self._claims:
                claimed = analysis[value]
                if claimed != unknown(value.type) and not np.array_equal(one, _garbage(value.type)):
                    check_claims(claimed, np.asarray(one), step_of(value.type))

    def _branch(self, last: Operation) -> tuple[Block, list[Any]]:
        chosen = 0
        if last.name == "cf.cond_br":
            chosen = 0 if self._values[last.operands[0]] else 1
        elif last.name == "cf.switch" and (case := int(self._values[last.operands[0]])) in (
            cases := last.attributes["case_values"]
        ):
            chosen = cases.index(case) + 1
        successor = last.successors[chosen]
        return successor.block, [self._values[argument] for argument in successor.arguments]

    def _results(self, operation: Operation) -> Sequence[Any]:
        operands = [self._values[operand] for operand in operation.operands]
        dialect, _, short = operation.name.partition(".")
        if operation.name in _NOTHING:
            return []
        if operation.name in _SAME:
            return [np.array(operands[0]).reshape(_shape(operation.result))]
        if dialect in ("arith", "math") and short in _BINARY:
            return [np.asarray(_BINARY[short](*operands))]
        if dialect in ("arith", "math") and short in _UNARY:
            return [np.asarray(_UNARY[short](*operands))]
        if short in _CASTS:
            return [operands[0].astype(dtype_of(operation.result.type))]
        rule = getattr(self, f"_{dialect}_{short}".replace(".", "_"), None)
        assert rule is not None, f"{operation.name} is not interpreted"
        given = rule(operation, *operands)
        return given if isinstance(given, list) else [] if given is None else [np.asarray(given)]

    def _scf_for(self, loop: Operation, lower: Any, upper: Any, step: Any, *carried: Any) -> list[Any]:
        at, current = lower, list(carried)
        while at < upper:
            current = self._region(loop.regions[0], [at, *current])[1]
            at = at + step
        return current

    def _scf_while(self, loop: Operation, *carried: Any) -> list[Any]:
        current = list(carried)
        while True:
            again, *current = self._region(loop.regions[0], current)[1]
            if not again:
                return current
            current = self._region(loop.regions[1], current)[1]

    def _scf_if(self, operation: Operation, condition: Any) -> list[Any]:
        taken = operation.regions[0 if condition else 1]
        return self._region(taken, [])[1] if taken.blocks else []

    def _tt_call(self, call: Operation, *operands: Any) -> list[Any]:
        body = self._functions[call.attributes["callee"]].body
        assert body is not None
        return self._region(body, operands)[1]

    # -- arithmetic ------------------------------------------------------------------------------------------------
    def _arith_constant(self, operation: Operation) -> Any:
        value, type_ = operation.attributes["value"], operation.result.type
        if not isinstance(value, DenseAttr):
            return _numbers([value], type_)[0]
        numbers = _numbers(value.values, type_)
        return (
            np.broadcast_to(numbers[0], _shape(operation.result))
            if value.splat
            else numbers.reshape(_shape(operation.result))
        )

    def _arith_cmpi(self, operation: Operation, a: Any, b: Any) -> Any:
        predicate = operation.attributes["predicate"]
        if predicate[0] == "u":
            a, b = _unsigned(a), _unsigned(b)
        return _COMPARISONS[predicate[-2:]](a, b)

    def _arith_cmpf(self, operation: Operation, a: Any, b: Any) -> Any:
        predicate = operation.attributes["predicate"]
        unordered = np.isnan(a) | np.isnan(b)
        return np.where(unordered, predicate[0] == "u", _COMPARISONS[predicate[-2:]](a, b))

    def _arith_select(self, operation: Operation, condition: Any, one: Any, other: Any) -> Any:
        return np.where(condition, one, other)

    def _arith_extui(self, operation: Operation, value: Any) -> Any:
        return _unsigned(value).astype(dtype_of(operation.result.type))

    def _ub_poison(self, operation: Operation) -> Any:
        return _garbage(operation.result.type)

    # -- shapes ----------------------------------------------------------------------------------------------------
    def _tt_make_range(self, operation: Operation) -> Any:
        return np.arange(operation.attributes["start"], operation.attributes["end"], dtype=np.int32)

    def _tt_splat(self, operation: Operation, value: Any) -> Any:
        return np.broadcast_to(value, _shape(operation.result))

    _tt_broadcast = _tt_splat

    def _tt_expand_dims(self, operation: Operation, value: Any) -> Any:
        return np.expand_dims(value, operation.attributes["axis"])

    def _tt_reshape(self, operation: Operation, value: Any) -> Any:
        return value.reshape(_shape(operation.result))

    def _tt_trans(self, operation: Operation, value: Any) -> Any:
        return value.transpose(operation.attributes["order"])

    _ttg_memdesc_trans = _tt_trans

    def _tt_join(self, operation: Operation, one: Any, other: Any) -> Any:
        return np.stack([one, other], -1)

    def _tt_split(self, operation: Operation, value: Any) -> Any:
        return [value[..., 0], value[..., 1]]

    def _tt_gather(self, operation: Operation, source: Any, indices: Any) -> Any:
        return np.take_along_axis(source, indices, operation.attributes["axis"])

    # -- memory ----------------------------------------------------------------------------------------------------
    def _tt_get_program_id(self, operation: Operation) -> Any:
        return np.zeros((), np.int32)

    def _tt_addptr(self, operation: Operation, pointer: Any, offset: Any) -> Any:
        return pointer + offset.astype(np.int64) * _pointee(operation.result.type).itemsize

    def _tt_load(self, operation: Operation, pointer: Any, *others: Any) -> Any:
        dtype, result = _pointee(operation.operands[0].type), np.array(_garbage(operation.result.type))
        mask = np.broadcast_to(others[0] if operation.segments[1] else True, pointer.shape)
        if operation.segments[2]:
            result[...] = others[-1]
        found = self._memory[self._bytes(pointer[mask], dtype.itemsize)]
        result[mask] = np.ascontiguousarray(found).view(dtype)[..., 0]
        return result

    def _tt_store(self, operation: Operation, pointer: Any, value: Any, mask: Any = True) -> None:
        mask = np.broadcast_to(mask, pointer.shape)
        where = self._bytes(pointer[mask], value.dtype.itemsize)
        self._memory[where] = np.ascontiguousarray(value[mask])[..., None].view(np.uint8)

    def _ttg_local_alloc(self, operation: Operation, value: Any = None) -> Any:
        return np.array(_garbage(operation.result.type) if value is None else value)

    def _ttg_local_store(self, operation: Operation, value: Any, buffer: Any) -> None:
        buffer[...] = value

    # -- what goes along a dimension ---------------------------------------------------------------------------------
    def _tt_dot(self, operation: Operation, a: Any, b: Any, c: Any) -> Any:
        return (a.astype(c.dtype) @ b.astype(c.dtype) + c).astype(c.dtype)

    def _tt_reduce(self, operation: Operation, *operands: Any) -> list[Any]:
        axis = operation.attributes["axis"]
        return self._combined(operation, [np.moveaxis(operand, axis, 0) for operand in operands])

    def _combined(self, operation: Operation, operands: Sequence[Any]) -> list[Any]:
        """What the region of an operation makes of the operands' elements along their first dimension."""
        found = [operand[0] for operand in operands]
        for number in range(1, len(operands[0])):
            found = self._region(operation.regions[0], [*found, *(operand[number] for operand in operands)])[1]
        return found

    def _tt_scan(self, operation: Operation, *operands: Any) -> list[Any]:
        axis, back = operation.attributes["axis"], -1 if operation.attributes["reverse"] else 1
        moved = [np.moveaxis(operand, axis, 0)[::back] for operand in operands]
        found = [[operand[0] for operand in moved]]
        for number in range(1, len(moved[0])):
            following = [operand[number] for operand in moved]
            found.append(self._region(operation.regions[0], [*found[-1], *following])[1])
        return [np.moveaxis(np.stack(row)[::back], 0, axis) for row in zip(*found, strict=True)]

    # -- this backend's own: strips ---------------------------------------------------------------------------------
    def _spirv_spill(self, operation: Operation, value: Any) -> Any:
        return np.array(value)

    def _spirv_array(self, operation: Operation) -> Any:
        return np.array(_garbage(operation.result.type))

    def _spirv_strip(self, operation: Operation, array: Any, at: Any) -> Any:
        return np.array(_part(array, operation.attributes["dim"], int(at), _shape(operation.result)))

    def _spirv_put(self, operation: Operation, array: Any, strip: Any, at: Any) -> None:
        _part(array, operation.attributes["dim"], int(at), strip.shape)[...] = strip

    def _spirv_assign(self, operation: Operation, array: Any, value: Any) -> None:
        array[...] = value

    _spirv_copy = _spirv_assign

    def _spirv_multiply(self, operation: Operation, total: Any, *factors: Any) -> None:
        a, b = map(np.transpose, factors[:2], operation.attributes["turned"])
        total[...] = a @ b + (total if operation.attributes["adds"] else 0)

    def _spirv_fold(self, operation: Operation, *operands: Any) -> list[Any]:
        *both, at = operands
        dim, count = operation.attributes["dim"], len(both) // 2
        parts = [
            np.stack(np.split(strip, strip.shape[dim] // tile.shape[dim], dim))
            for tile, strip in zip(both[:count], both[count:], strict=True)
        ]
        if at:
            parts = [np.concatenate([tile[None], part]) for tile, part in zip(both[:count], parts, strict=True)]
        return self._combined(operation, parts)


def _shape(value: Value) -> tuple[int, ...]:
    return value.type.shape if isinstance(value.type, TensorType | MemDescType) else ()


def _pointee(type_: Type) -> Any:
    pointer = type_.element if isinstance(type_, TensorType) else type_
    assert isinstance(pointer, PointerType)
    return dtype_of(pointer.pointee)


def _part(array: Array, dim: int, start: int, shape: tuple[int, ...]) -> Array:
    """The part of ``array`` of the extent of ``shape`` along ``dim``, from ``start``."""
    return array[(slice(None),) * dim + (slice(start, start + shape[dim]),)]


def _numbers(values: Sequence[Any], type_: Type) -> Array:
    dtype = dtype_of(type_)
    if any(isinstance(value, FloatBits) for value in values):
        bits = [value.bits if isinstance(value, FloatBits) else value for value in values]
        return np.array(bits, f"u{dtype.itemsize}").view(dtype)
    return np.array([int(value) if dtype.kind in "ib" else value for value in values]).astype(dtype)
