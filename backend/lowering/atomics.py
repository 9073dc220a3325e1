"""Atomic operations on device memory: one invocation acts for each element; the others receive its result.

What the device has no instruction for is a compare-and-swap loop on the 32- or 64-bit word that holds the element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ..layouts.element_sizes import bits_in_memory
from ..layouts.linear import LinearLayout
from ..planning.memory_pools import first_element
from ..planning.plans import Atomic, Shared
from ..spirv import opcodes as op
from ..spirv.opcodes import Capability_, Glsl, Scope, Semantics
from ..ttgir.ir import Operation, Value
from ..ttgir.types import FloatType, IntegerType, TensorType, Type, element_type
from .arith import choose_float, float_binary
from .errors import UnsupportedOperation, missing
from .index_arithmetic import coordinates, owns
from .lowering import Lowering
from .registry import lowers
from .rolled import in_turn
from .scratch import take

#: Kinds that 32- and 64-bit integers have an instruction for.
INTEGER_KIND = {
    "add": op.AtomicIAdd,
    "and": op.AtomicAnd,
    "or": op.AtomicOr,
    "xor": op.AtomicXor,
    "max": op.AtomicSMax,
    "min": op.AtomicSMin,
    "umax": op.AtomicUMax,
    "umin": op.AtomicUMin,
    "exch": op.AtomicExchange,
}

FLOAT_ADD_CAPABILITY = {32: Capability_.AtomicFloat32AddEXT, 64: Capability_.AtomicFloat64AddEXT}

#: Host and device agree on memory only between launches, so ``sys`` is as far as the device reaches.
SCOPES = {"cta": Scope.Workgroup, "gpu": Scope.Device, "sys": Scope.Device}

#: New value of a word's element, from the old one: what a compare-and-swap loop repeats.
Update = Callable[[int], int]


def _scope(ctx: Lowering, operation: Operation) -> int:
    ctx.module.capability(Capability_.VulkanMemoryModelDeviceScope)
    return ctx.module.uint(SCOPES[operation.attribute("scope")])


def _relaxed(ctx: Lowering) -> int:
    """The semantics of every atomic instruction. Acquire and release are barriers around it (see _act): Mesa's CPU
    driver treats semantics on an instruction as a barrier of the whole workgroup, wherever it stands, so that a
    compare-and-swap loop with them loses updates (Mesa 22.3; tests/device/test_atomics.py has the case)."""
    return ctx.module.uint(Semantics.Relaxed)


def _pointer(ctx: Lowering, address: int, width: int) -> int:
    module = ctx.module
    if width == 64:
        if not ctx.capabilities.has("int64_atomics"):
            raise missing(ctx.capabilities.driver, "has no 64-bit atomics", "int64_atomics")
        module.capability(Capability_.Int64Atomics)
    return ctx.device_pointer(address, module.int(width))


def swap_loop(ctx: Lowering, pointer: int, width: int, scope: int, update: Update) -> int:
    """Replaces the word at ``pointer`` by ``update(word)``; gives the word that was replaced."""
    f, module = ctx.f, ctx.module
    word = module.int(width)
    first = f.effect(op.AtomicLoad, word, pointer, scope, _relaxed(ctx))

    def attempt(carried: list[int]) -> tuple[int, list[int]]:
        expected = carried[0]
        found = f.effect(
            op.AtomicCompareExchange, word, pointer, scope, _relaxed(ctx), _relaxed(ctx), update(expected), expected
        )
        return f.compare(op.INotEqual, found, expected), [found]

    return f.loop_with_results([first], attempt, lambda passed: passed)[0]


def _within_word(ctx: Lowering, address: int, element_bits: int, scope: int, update: Update) -> int:
    """Updates an element narrower than a word: the loop is on the aligned word that holds it."""
    f, module = ctx.f, ctx.module
    place = f.shl(f.and_(f.zero_extend(address, 32), module.uint(3)), 3)
    base = f.and_(address, module.uint(~3, 64))
    mask = f.binary(op.ShiftLeftLogical, module.uint((1 << element_bits) - 1), place)
    keep = f.xor(mask, module.uint(-1))

    def element(word: int) -> int:
        return f.zero_extend(f.binary(op.ShiftRightLogical, word, place), element_bits)

    def replace(word: int) -> int:
        new = f.zero_extend(update(element(word)), 32)
        return f.or_(f.and_(word, keep), f.binary(op.ShiftLeftLogical, new, place))

    return element(swap_loop(ctx, _pointer(ctx, base, 32), 32, scope, replace))


def new_value(ctx: Lowering, kind: str, type_: Type, value: int) -> Update:
    """What ``kind`` makes of an element's old bits, as bits."""
    f, module = ctx.f, ctx.module
    bits_type = module.int(bits_in_memory(type_))
    type_id = ctx.type_id(type_)
    if kind == "exch":
        return lambda old: f.bitcast(value, bits_type)
    if isinstance(type_, FloatType):
        if kind == "fadd":
            rule = float_binary(ctx, op.FAdd, type_)
        elif kind in ("max", "min"):
            number = Glsl.NMax if kind == "max" else Glsl.NMin
            rule = lambda a, b: choose_float(ctx, number, False, type_, a, b)  # noqa: E731
        else:
            raise NotImplementedError(
                f"atomic '{kind}' is for integers, and the elements are {type_}; use pointers to integers"
            )
        return lambda old: f.bitcast(rule(f.bitcast(old, type_id), value), bits_type)
    compare = {"max": op.SGreaterThan, "min": op.SLessThan, "umax": op.UGreaterThan, "umin": op.ULessThan}.get(kind)
    if compare:
        return lambda old: f.select(f.compare(compare, old, value), old, value)
    opcode = {"add": op.IAdd, "and": op.BitwiseAnd, "or": op.BitwiseOr, "xor": op.BitwiseXor}[kind]
    return lambda old: f.binary(opcode, old, value)


def _modify(ctx: Lowering, operation: Operation, scope: int, type_: Type, address: int, value: int) -> int:
    """One read-modify-write; gives the old element."""
    f, module = ctx.f, ctx.module
    kind = operation.attribute("atomic_rmw_op")
    width = bits_in_memory(type_)
    type_id = ctx.type_id(type_)
    if width < 32:
        old = _within_word(ctx, address, width, scope, new_value(ctx, kind, type_, value))
        return f.bitcast(old, type_id)
    if kind == "exch" or isinstance(type_, IntegerType):
        word = module.int(width)
        old = f.effect(
            INTEGER_KIND[kind], word, _pointer(ctx, address, width), scope, _relaxed(ctx), f.bitcast(value, word)
        )
        return f.bitcast(old, type_id)
    if kind == "fadd" and ctx.capabilities.has(f"float{width}_atomic_add"):
        module.extension("SPV_EXT_shader_atomic_float_add")
        module.capability(FLOAT_ADD_CAPABILITY[width])
        return f.effect(op.AtomicFAddEXT, type_id, ctx.device_pointer(address, type_id), scope, _relaxed(ctx), value)
    return f.bitcast(
        swap_loop(ctx, _pointer(ctx, address, width), width, scope, new_value(ctx, kind, type_, value)), type_id
    )


def _exchange(ctx: Lowering, scope: int, type_: Type, address: int, expected: int, value: int) -> int:
    """One compare-and-swap by bits; gives the old element."""
    f, module = ctx.f, ctx.module
    width = bits_in_memory(type_)
    type_id, word = ctx.type_id(type_), module.int(width)
    wanted, new = f.bitcast(expected, word), f.bitcast(value, word)
    if width < 32:
        old = _within_word(
            ctx, address, width, scope, lambda found: f.select(f.compare(op.IEqual, found, wanted), new, found)
        )
        return f.bitcast(old, type_id)
    old = f.effect(
        op.AtomicCompareExchange, word, _pointer(ctx, address, width), scope, _relaxed(ctx), _relaxed(ctx), new, wanted
    )
    return f.bitcast(old, type_id)


# -- which invocation acts ---------------------------------------------------------------------------------------
def _act(
    ctx: Lowering,
    operation: Operation,
    type_: Type,
    operands: Sequence[Value],
    one: Callable[..., int],
    mask: Sequence[Value] = (),
) -> None:
    """Runs ``one(address, *values)`` in the invocation that owns each element, between the barriers that its memory
    semantics ask for, and defines the result, of ``type_``, in all that hold the element. ``operands``: those whose
    values these are; ``mask``: the operand, or none."""
    f, module, pointer = ctx.f, ctx.module, operation["ptr"]
    addresses, values = ctx.addresses(pointer), [ctx.registers(operand) for operand in operands]
    masks = masks_of(ctx, mask, len(addresses))
    sem = operation.attribute("sem")
    owner = owns(ctx, pointer.type)
    zero = module.null(ctx.type_id(type_))
    if ctx.bounds is not None:
        inside = ctx.bounds.check(ctx, operation, addresses, masks)
        masks = [f.logical_and(mask, within) for mask, within in zip(masks, inside, strict=True)] if inside else masks
    if sem in ("release", "acq_rel"):
        ctx.barrier(global_memory=True, scope=Scope.Device)
    used = bool(operation.results and operation.result.uses)
    rows = [(f.logical_and(owner, mask), *row) for mask, *row in zip(masks, addresses, *values, strict=True)]

    def act(mine: int, *row: int) -> list[int]:
        found = f.if_(mine, lambda: [one(*row)], defaults=[zero])
        return found if used else []

    types = [f.type_of(zero)] if used else []
    results = in_turn(ctx, ctx.plan_of(operation, Atomic).updates, rows, types, act)
    if sem in ("acquire", "acq_rel"):
        ctx.barrier(global_memory=True, scope=Scope.Device)
    if used:
        found = [result for (result,) in results]
        ctx.define(operation.result, share(ctx, operation, type_, found, owner, pointer.type))
    elif operation.results:
        ctx.define(operation.result, [zero] * len(rows))


def share(ctx: Lowering, operation: Operation, type_: Type, results: list[int], owner: int, holder: Type) -> list[int]:
    """Gives each owner's results to the invocations that hold copies of its elements. ``holder``: a type of their
    layout, or a scalar."""
    plan = ctx.plan_of(operation, Shared)
    if not plan.scratch:
        return results
    f, module, shared = ctx.f, ctx.module, ctx.shared
    size = bits_in_memory(type_) // 8
    layout = (
        ctx.layout(holder)
        if isinstance(holder, TensorType)
        else LinearLayout.from_flat(
            {
                "register": [],
                "lane": [0] * (ctx.subgroup_size.bit_length() - 1),
                "warp": [0] * (ctx.num_warps.bit_length() - 1),
            },
            (),
        )
    )
    flat = LinearLayout.from_flat(layout.inputs, (layout.size,))
    offset = take(ctx, plan.scratch[0])
    places = [f.add(place, module.uint(first_element(offset, size))) for place in coordinates(ctx, flat, 0)]
    end = offset + layout.size * size

    def write() -> list[int]:
        for place, value in zip(places, results, strict=True):
            shared.store(ctx, type_, place, [value], end, offset)
        return []

    f.if_(owner, write)
    ctx.barrier()
    return [shared.load(ctx, type_, place, 1, end, offset)[0] for place in places]


def masks_of(ctx: Lowering, mask: Sequence[Value], count: int) -> list[int]:
    """``mask``: the operand, or none."""
    return ctx.registers(mask[0]) if mask else [ctx.module.boolean(True)] * count


@lowers("tt.atomic_rmw", "tt.atomic_store")
def _atomic_update(ctx: Lowering, operation: Operation) -> None:
    _, value = operation.operands[:2]
    type_, scope = element_type(value.type), _scope(ctx, operation)
    update = _modify if operation.name == "tt.atomic_rmw" else _write
    mask = operation.operand_group("mask")
    _act(ctx, operation, type_, [value], partial(update, ctx, operation, scope, type_), mask)


@lowers("tt.atomic_cas")
def _atomic_cas(ctx: Lowering, operation: Operation) -> None:
    _, *operands = operation.operands
    type_, scope = element_type(operands[1].type), _scope(ctx, operation)
    _act(ctx, operation, type_, operands, partial(_exchange, ctx, scope, type_))


@lowers("tt.atomic_load")
def _atomic_load(ctx: Lowering, operation: Operation) -> None:
    type_, scope = element_type(operation.result.type), _scope(ctx, operation)
    _act(ctx, operation, type_, [], partial(_read, ctx, scope, type_), operation.operand_group("mask"))


def _read(ctx: Lowering, scope: int, type_: Type, address: int) -> int:
    f, module = ctx.f, ctx.module
    width = bits_in_memory(type_)
    if width < 32:
        place = f.shl(f.and_(f.zero_extend(address, 32), module.uint(3)), 3)
        pointer = _pointer(ctx, f.and_(address, module.uint(~3, 64)), 32)
        word = f.effect(op.AtomicLoad, module.u32, pointer, scope, _relaxed(ctx))
        return f.bitcast(f.zero_extend(f.binary(op.ShiftRightLogical, word, place), width), ctx.type_id(type_))
    word = f.effect(op.AtomicLoad, module.int(width), _pointer(ctx, address, width), scope, _relaxed(ctx))
    return f.bitcast(word, ctx.type_id(type_))


def _write(ctx: Lowering, operation: Operation, scope: int, type_: Type, address: int, value: int) -> int:
    """An atomic store; gives a value that means nothing. Narrow elements share a word with others, so that theirs is a
    compare-and-swap loop."""
    f, module = ctx.f, ctx.module
    width = bits_in_memory(type_)
    if width < 32:
        bits = f.bitcast(value, module.int(width))
        _within_word(ctx, address, width, scope, lambda _: bits)
    else:
        f.do(op.AtomicStore, _pointer(ctx, address, width), scope, _relaxed(ctx), f.bitcast(value, module.int(width)))
    return module.null(ctx.type_id(type_))


@lowers("tt.atomic_poll")
def _atomic_poll(ctx: Lowering, operation: Operation) -> None:
    """Loads until the element is as expected. The result is what the last load found: a driver that ends loops early
    (docs/limits.md) gives False, not a wrong True."""
    expected, timeout = operation["expected"], operation.optional("timeout")
    once = timeout is not None and ctx.module.constants.get(ctx.scalar(timeout)) == 0
    if timeout is not None and not once:
        raise UnsupportedOperation(
            operation,
            "Vulkan guarantees no clock, so a timeout cannot be measured",
            "poll without timeout_ns, or with timeout_ns=0 in your own loop",
        )
    type_, scope, f = element_type(expected.type), _scope(ctx, operation), ctx.f

    def poll(address: int, expected: int) -> int:
        def found(_: list[int]) -> tuple[int, list[int]]:
            value = _read(ctx, scope, type_, address)
            equal = f.compare(op.IEqual, value, expected)
            return f.logical_not(equal), [equal]

        if once:
            return found([])[1][0]
        return f.loop_with_results([], found, lambda _: [])[0]

    _act(ctx, operation, IntegerType(1), [expected], poll)
