"""``tt.load`` and ``tt.store``: which registers go together in one access, and under which mask."""

from __future__ import annotations

from itertools import groupby

from ..abi.report_buffer import SPARE_AT, ZERO_AT
from ..planning.plans import GlobalAccess
from ..ttgir.ir import Operation
from ..ttgir.types import element_type
from .global_memory import load_elements, store_elements
from .index_arithmetic import owns
from .lowering import Lowering
from .registry import lowers


def _checked(
    ctx: Lowering, operation: Operation, addresses: list[int], masks: list[int], place: int
) -> tuple[list[int], list[int]]:
    """The addresses to access, which are ``place`` for elements outside of their tensors, and whether each is inside;
    as they are, and nothing, where accesses are not checked."""
    if ctx.bounds is None:
        return addresses, []
    inside = ctx.bounds.check(ctx, operation, addresses, masks)
    return (ctx.bounds.divert(ctx, addresses, inside, place) if inside else addresses), inside


@lowers("tt.load")
def _load(ctx: Lowering, operation: Operation) -> None:
    pointer, mask, other = operation["ptr"], operation.optional("mask"), operation.optional("other")
    type_ = element_type(operation.result.type)
    width = ctx.plan_of(operation, GlobalAccess).width
    addresses = ctx.addresses(pointer, width)
    count = len(addresses) * width
    volatile = bool(operation.attribute("isVolatile"))
    masks = ctx.registers(mask) if mask else [ctx.module.boolean(True)] * count
    # Without ``other`` the element is unspecified; zero is what upstream's GPU backends give.
    others = ctx.registers(other) if other else [ctx.module.null(ctx.type_id(type_))] * count
    addresses, inside = _checked(ctx, operation, addresses, masks, ZERO_AT)
    results: list[int] = []
    for condition, group in groupby(zip(masks[::width], addresses, strict=True), key=lambda pair: pair[0]):
        members = [address for _, address in group]

        def load(members: list[int] = members) -> list[int]:
            return [element for address in members for element in load_elements(ctx, address, type_, width, volatile)]

        results += ctx.f.if_(condition, load, defaults=others[len(results) : len(results) + len(members) * width])
    if inside and other:
        results = [ctx.f.select(*choice) for choice in zip(inside, results, others, strict=True)]
    ctx.define(operation.result, results)


@lowers("tt.store")
def _store(ctx: Lowering, operation: Operation) -> None:
    pointer, value, mask = operation["ptr"], operation["value"], operation.optional("mask")
    type_ = element_type(value.type)
    width = ctx.plan_of(operation, GlobalAccess).width
    addresses, values = ctx.addresses(pointer, width), ctx.registers(value)
    owner = owns(ctx, pointer.type)
    masks = ctx.registers(mask) if mask else [ctx.module.boolean(True)] * len(values)
    addresses, _ = _checked(ctx, operation, addresses, masks, SPARE_AT)
    for condition, group in groupby(range(len(addresses)), key=lambda number: masks[number * width]):
        members = list(group)

        def store(members: list[int] = members) -> list[int]:
            for number in members:
                store_elements(ctx, addresses[number], type_, values[number * width : (number + 1) * width])
            return []

        ctx.f.if_(ctx.f.logical_and(owner, condition), store)
