"""``tt.dot`` on plain multiply-adds: the accumulator is blocked, each lane owns all of K for its rows and columns.

The loop over K is a loop in the emitted code. Its body holds as many steps as keep it under the target's budget of
multiply-adds: unrolled further it would only take longer to compile. Where there are more accumulators than the target
keeps in registers, rectangles of them are updated one after the other, each by a loop of its own.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..layouts.linear import LinearLayout, unflatten
from ..spirv import opcodes as op
from ..spirv.function import LOOP_CONTROL_DONT_UNROLL
from ..spirv.opcodes import Glsl, StorageClass
from ..ttgir.encodings import BlockedEncoding
from ..ttgir.ir import Operation, Value
from ..ttgir.types import FloatType, IntegerType, TensorType, Type
from .elements import element_type
from .errors import UnsupportedOperation
from .floats import convert, is_native
from .linear import apply_bases, combine, image, thread_part
from .registry import lowers
from .shared import buffer_end, buffer_layout, element_index, padded
from .shared_memory import SharedOperand

if TYPE_CHECKING:
    from .context import Context

#: Gives the element of an operand at (batch, row or column) of this lane and a step of K.
Fetch = Callable[[tuple[int, ...], int], int]


@dataclass(frozen=True)
class Place:
    """Where one accumulator register lies in its tile, counted from the lane's own origin."""

    batch: tuple[int, ...]
    row: int
    column: int


def _places(layout: LinearLayout) -> list[Place]:
    points = (unflatten(place, layout.shape) for place in layout.images("register"))
    return [Place(point[:-2], point[-2], point[-1]) for point in points]


@lowers("tt.dot")
def _dot(ctx: Context, operation: Operation) -> None:
    a, b, accumulator = operation.operands
    type_ = accumulator.type
    assert isinstance(type_, TensorType) and isinstance(a.type, TensorType)
    if not isinstance(type_.encoding, BlockedEncoding):
        raise UnsupportedOperation(operation, f"an accumulator with encoding {type_.encoding} is not supported")
    inputs, result = element_type(a.type), type_.element
    compute = _compute_type(operation, inputs, result)
    places = _places(ctx.layout(type_))
    steps = a.type.shape[-1]
    rows = _operand(ctx, a, axis=-2, k_axis=-1, compute=compute)
    columns = _operand(ctx, b, axis=-1, k_axis=-2, compute=compute)
    multiply_add = _multiply_add(ctx, compute)
    totals = [_to(ctx, value, result, compute) for value in ctx.registers(accumulator)]
    parts = _parts(places, ctx.options.dot_registers)
    unroll = steps
    while unroll > 1 and unroll * len(places) > ctx.options.dot_unroll:
        unroll //= 2
    if unroll < steps:
        rows, columns = rows.indexed(), columns.indexed()
    for part in parts:
        chosen = [places[register] for register in part]
        left_keys = list(dict.fromkeys((*place.batch, place.row) for place in chosen))
        right_keys = list(dict.fromkeys((*place.batch, place.column) for place in chosen))

        def step(totals: list[int], fetch_row: Fetch, fetch_column: Fetch, k: int, chosen: list[Place] = chosen,
                 left_keys: list[tuple[int, ...]] = left_keys,
                 right_keys: list[tuple[int, ...]] = right_keys) -> list[int]:
            left = {key: fetch_row(key, k) for key in left_keys}
            right = {key: fetch_column(key, k) for key in right_keys}
            return [multiply_add(left[*place.batch, place.row], right[*place.batch, place.column], total)
                    for place, total in zip(chosen, totals, strict=True)]

        initial = [totals[register] for register in part]
        if unroll == steps:
            zero = ctx.module.uint(0)
            fetch_row, fetch_column = rows.at(zero, steps), columns.at(zero, steps)
            for k in range(steps):
                initial = step(initial, fetch_row, fetch_column, k)
        else:
            initial = _loop_over_k(ctx, steps, unroll, initial, rows, columns, step)
        for register, total in zip(part, initial, strict=True):
            totals[register] = total
    ctx.define(operation.result, [_to(ctx, total, compute, result) for total in totals])


def _parts(places: list[Place], limit: int) -> list[list[int]]:
    """Registers that one loop over K updates: rectangles of rows by columns, as square as fits into ``limit``."""
    if len(places) <= limit:
        return [list(range(len(places)))]
    rows = {key: index for index, key in enumerate(dict.fromkeys((*place.batch, place.row) for place in places))}
    columns = {key: index for index, key in enumerate(dict.fromkeys(place.column for place in places))}
    height, width = len(rows), len(columns)
    while height * width > limit:
        if height >= width:
            height //= 2
        else:
            width //= 2
    parts: dict[tuple[int, int], list[int]] = {}
    for register, place in enumerate(places):
        at = rows[*place.batch, place.row] // height, columns[place.column] // width
        parts.setdefault(at, []).append(register)
    return list(parts.values())


def _loop_over_k(ctx: Context, steps: int, unroll: int, initial: list[int], rows: _Operand, columns: _Operand,
                 step: Callable[[list[int], Fetch, Fetch, int], list[int]]) -> list[int]:
    f, module = ctx.f, ctx.module

    def body(carried: list[int]) -> list[int]:
        k, *totals = carried
        fetch_row, fetch_column = rows.at(k, unroll), columns.at(k, unroll)
        for offset in range(unroll):
            totals = step(totals, fetch_row, fetch_column, offset)
        return [f.add(k, module.uint(unroll)), *totals]

    return f.loop([module.uint(0), *initial], lambda carried: f.compare(op.ULessThan, carried[0], module.uint(steps)),
                  body, LOOP_CONTROL_DONT_UNROLL)[1:]


# -- arithmetic --------------------------------------------------------------------------------------------------
def _compute_type(operation: Operation, inputs: Type, result: Type) -> Type:
    """What products are added in: f32 for half-precision inputs, whatever the result is rounded to in the end."""
    if inputs == IntegerType(8) and result == IntegerType(32):
        return result
    if isinstance(inputs, FloatType) and inputs.name in ("f16", "bf16", "f32"):
        return FloatType("f32")
    if inputs == FloatType("f64"):
        return inputs
    raise UnsupportedOperation(operation, f"a dot of {inputs} into {result} is not supported",
                               "use float16, bfloat16, float32, float64 or int8 operands")


def _to(ctx: Context, value: int, source: Type, target: Type) -> int:
    if isinstance(source, FloatType):
        return convert(ctx, value, source, target)
    return ctx.f.sign_extend(value, 32)


def _multiply_add(ctx: Context, compute: Type) -> Callable[[int, int, int], int]:
    f = ctx.f
    if is_native(compute):
        type_id = ctx.type_id(compute)
        return lambda a, b, c: f.glsl(Glsl.Fma, type_id, a, b, c)
    return lambda a, b, c: f.add(f.mul(a, b), c)


# -- operands ----------------------------------------------------------------------------------------------------
def _operand(ctx: Context, value: Value, axis: int, k_axis: int, compute: Type) -> _Operand:
    lowered = ctx[value]
    if isinstance(lowered, SharedOperand):
        return _InMemory(ctx, lowered, axis, k_axis, compute)
    return _InRegisters(ctx, value, axis, k_axis, compute)


class _Operand:
    """A dot operand: ``at(k, count)`` gives what fetches elements of steps k … k + count - 1."""

    def at(self, k: int, count: int) -> Fetch:
        """``k`` is an id, a multiple of ``count``."""
        raise NotImplementedError

    def indexed(self) -> _Operand:
        """This operand where ``k`` may be any id."""
        return self


class _InRegisters(_Operand):
    """The whole operand is in registers: steps are looked up, so ``k`` must be the constant 0."""

    def __init__(self, ctx: Context, value: Value, axis: int, k_axis: int, compute: Type) -> None:
        layout = ctx.layout(value.type)
        registers = ctx.registers(value)
        source = element_type(value.type)
        self._ctx, self._compute = ctx, compute
        self._elements: dict[tuple[int, ...], int] = {}
        for place, register in zip(layout.images("register"), registers, strict=True):
            point = unflatten(place, layout.shape)
            self._elements[*point[:-2], point[axis], point[k_axis]] = register
        self._convert = lambda element: _to(ctx, element, source, compute)

    def at(self, k: int, count: int) -> Fetch:
        return lambda place, step: self._convert(self._elements[*place, step])

    def indexed(self) -> _Operand:
        elements = {place: self._convert(value) for place, value in self._elements.items()}
        return _InArray(self._ctx, elements, self._ctx.type_id(self._compute))


class _InArray(_Operand):
    """The whole operand is in an indexed array of the invocation's own, because a loop over K reads it."""

    def __init__(self, ctx: Context, elements: dict[tuple[int, ...], int], type_id: int) -> None:
        f, module = ctx.f, ctx.module
        self._ctx, self._type_id = ctx, type_id
        self._steps = 1 + max(place[-1] for place in elements)
        self._first = {place: index * self._steps
                       for index, place in enumerate(dict.fromkeys(place[:-1] for place in elements))}
        self._variable = f.variable(module.array(type_id, len(self._first) * self._steps))
        self._pointer = module.pointer(StorageClass.Function, type_id)
        for place, value in elements.items():
            f.store(self._element(module.uint(self._first[place[:-1]] + place[-1])), value)

    def _element(self, index: int) -> int:
        return self._ctx.f.access(self._pointer, self._variable, index)

    def at(self, k: int, count: int) -> Fetch:
        f, module = self._ctx.f, self._ctx.module
        return lambda place, step: f.load(self._type_id,
                                          self._element(f.add(k, module.uint(self._first[place] + step))))


class _InMemory(_Operand):
    """The operand is in shared memory: each step is read where it is used."""

    def __init__(self, ctx: Context, operand: SharedOperand, axis: int, k_axis: int, compute: Type) -> None:
        self._ctx, self._operand, self._compute = ctx, operand, compute
        self._layout = buffer_layout(operand.buffer.type)
        self._end = buffer_end(operand.buffer)
        offsets = self._layout.offsets.bases
        rank = len(operand.type.shape)
        self._bases = [[basis[0] for basis in offsets[f"dim{dim}"]] for dim in range(rank)]
        self._dims = [*range(rank - 2), rank + axis]
        self._k_bases = self._bases[rank + k_axis]
        self._thread = self._thread_offset()

    def _thread_offset(self) -> tuple[int, int]:
        """What the lane's own origin contributes to the offset: its id, and the bits that it may set."""
        ctx, layout = self._ctx, self._ctx.layout(self._operand.type)
        total, mask = ctx.module.uint(0), 0
        for dim in self._dims:
            origin, origin_mask = thread_part(ctx, layout, dim)
            bases = [basis if origin_mask >> bit & 1 else 0 for bit, basis in enumerate(self._bases[dim])]
            part = apply_bases(ctx.f, origin, bases)
            total = combine(ctx.f, total, mask, part, image(bases))
            mask |= image(bases)
        return total, mask

    def at(self, k: int, count: int) -> Fetch:
        ctx = self._ctx
        f, buffer = ctx.f, self._operand.buffer
        element = self._operand.type.element
        # The low bits of k are zero, so its own part and that of the step within the body do not meet.
        low = count.bit_length() - 1
        high_bases = [0] * low + self._k_bases[low:]
        base, mask = self._thread
        base = combine(f, base, mask, apply_bases(f, k, high_bases), image(high_bases))
        mask |= image(high_bases)
        width = self._width(low)
        known: dict[int, list[int]] = {}

        def fetch(place: tuple[int, ...], step: int) -> int:
            constant = 0
            for dim, coordinate in zip(self._dims, place, strict=True):
                constant ^= _apply(self._bases[dim], coordinate)
            constant ^= _apply(self._k_bases, step)
            lane = constant & (width - 1)
            first = constant - lane
            if first not in known:
                offset = combine(f, base, mask, ctx.module.uint(first), first)
                index = element_index(ctx, buffer, padded(ctx, offset, self._layout))
                loaded = ctx.shared.load(ctx, element, f.shr(index, width.bit_length() - 1), width, self._end,
                                         buffer.byte_offset)
                known[first] = [_to(ctx, value, element, self._compute) for value in loaded]
            return known[first][lane]

        return fetch

    def _width(self, low: int) -> int:
        """Elements that one read may take: offsets that neither the lane nor the high bits of k choose."""
        limit = self._ctx.shared.width_limit(self._operand.type.element)
        for interval, padding in self._layout.padding:
            limit = min(limit, interval & -interval, padding & -padding)
        taken = self._thread[1] | image(self._k_bases[low:])
        chosen = set(self._k_bases[:low])
        layout = self._ctx.layout(self._operand.type)
        for basis in layout.bases["register"]:
            chosen |= {_apply(self._bases[dim], basis[dim]) for dim in self._dims if basis[dim]}
        width = 1
        while width < limit and width in chosen and not taken & width:
            width *= 2
        return width


def _apply(bases: list[int], value: int) -> int:
    total = 0
    for bit, basis in enumerate(bases):
        if value >> bit & 1:
            total ^= basis
    return total
