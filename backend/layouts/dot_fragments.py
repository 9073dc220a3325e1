"""A dot of tensors as products of matrix fragments, each held by a subgroup: which registers are which components.

A fragment's rows, columns and steps of K need not be neighbours in the tensor: any bits of a coordinate may be a
fragment's, as long as both operands, or an operand and the result, agree on them. What decides is which bits the lanes
hold; the rest is taken from registers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ..matrices import ComponentMap, MatrixConfiguration
from .distributed import LANE, REGISTER, WARP
from .linear import LinearLayout, Point, unflatten

#: Components of a fragment, as numbers of registers. None: zero.
Fragment = tuple[int | None, ...]


@dataclass(frozen=True)
class MatrixDot:
    """``left``, ``right`` and ``result`` are the fragments of A, B, and of C and the result. ``products``: triples of
    numbers of fragments; result += left × right for each, in this order. ``owners[r]`` is the fragment of the result,
    and the component of it, that result register r is."""

    left: tuple[Fragment, ...]
    right: tuple[Fragment, ...]
    result: tuple[Fragment, ...]
    products: tuple[tuple[int, int, int], ...]
    owners: tuple[tuple[int, int], ...]


class _Mismatch(Exception):
    """The layouts do not match the fragments."""


@lru_cache(maxsize=512)
def plan_matrix_dot(
    a: LinearLayout, b: LinearLayout, c: LinearLayout, configuration: MatrixConfiguration
) -> MatrixDot | None:
    """How a dot of ``a`` and ``b`` onto ``c`` (of ranks 2 or more, with equal leading dimensions) is done by
    ``configuration``. None if these layouts do not hold its fragments."""
    try:
        return _plan(a, b, c, configuration)
    except _Mismatch:
        return None


def _plan(a: LinearLayout, b: LinearLayout, c: LinearLayout, configuration: MatrixConfiguration) -> MatrixDot:
    left, right, result = configuration.maps
    # Bit of a fragment's coordinate → bit of the tensor's; 0 where the tensor has no more of them.
    rows: dict[int, int] = {}
    columns: dict[int, int] = {}
    steps: dict[int, int] = {}
    _match_lanes(c, result, rows, columns)
    _match_lanes(a, left, rows, steps)
    _match_lanes(b, right, steps, columns)
    if 0 in steps.values():  # lanes would hold the same step, and add it twice
        raise _Mismatch
    _match_warps(a, b, c)
    _take_registers(rows, configuration.m, c, -2)
    _take_registers(columns, configuration.n, c, -1)
    _take_registers(steps, configuration.k, a, -1)
    at_a, at_b, at_c = (_registers(layout) for layout in (a, b, c))
    taken = {name: sum(set(bits.values())) for name, bits in (("row", rows), ("column", columns), ("step", steps))}

    outer = sorted({point[:-1] for point in at_c if not point[-2] & taken["row"]})
    across = sorted({point[-1] for point in at_c if not point[-1] & taken["column"]})
    along = sorted({point[-1] for point in at_a if not point[-1] & taken["step"]})
    if len(along) << sum(1 for bit in steps.values() if bit) != a.shape[-1]:
        raise _Mismatch

    lefts = {(*row, k): _components((*row, k), left, at_a, (rows, steps), step=1) for k in along for row in outer}
    batches = list(dict.fromkeys(row[:-1] for row in outer))
    rights = {
        (*batch, k, column): _components((*batch, k, column), right, at_b, (steps, columns), step=0)
        for k in along
        for batch in batches
        for column in across
    }
    results = {
        (*row, column): _components((*row, column), result, at_c, (rows, columns), step=2)
        for row in outer
        for column in across
    }
    numbers = [{point: number for number, point in enumerate(some)} for some in (lefts, rights, results)]
    products = tuple(
        (numbers[0][*row, k], numbers[1][*row[:-1], k, column], numbers[2][*row, column])
        for k in along
        for row in outer
        for column in across
    )
    owner = {
        register: (number, component)
        for number, fragment in reversed(list(enumerate(results.values())))
        for component, register in reversed(list(enumerate(fragment)))
    }
    images = [unflatten(index, c.shape) for index in c.images(REGISTER)]
    try:
        owners = tuple(owner[at_c[point]] for point in images)
    except KeyError:
        raise _Mismatch from None
    return MatrixDot(tuple(lefts.values()), tuple(rights.values()), tuple(results.values()), products, owners)


def _match_lanes(layout: LinearLayout, map_: ComponentMap, first: dict[int, int], second: dict[int, int]) -> None:
    """The bits that lanes hold of the last two coordinates."""
    bases = layout.bases[LANE]
    if len(bases) != len(map_.lanes):
        raise _Mismatch
    for basis, (i, j) in zip(bases, map_.lanes, strict=True):
        *batch, x, y = basis
        if any(batch) or (i and j) or (y and not j) or (x and not i):
            raise _Mismatch
        if (i and first.setdefault(i, x) != x) or (j and second.setdefault(j, y) != y):
            raise _Mismatch


def _match_warps(a: LinearLayout, b: LinearLayout, c: LinearLayout) -> None:
    """Each warp must hold the rows and columns of its part of the result, and all of K."""
    for left, right, result in zip(a.bases[WARP], b.bases[WARP], c.bases[WARP], strict=True):
        if left != (*result[:-1], 0) or right != (*result[:-2], 0, result[-1]):
            raise _Mismatch


def _take_registers(bits: dict[int, int], extent: int, layout: LinearLayout, dim: int) -> None:
    """Fills in the bits of a fragment's coordinate, which is below ``extent``, from registers of ``layout`` that move
    along ``dim`` alone: the same bit if there is such a register, else the first that is free, else none."""
    found = [basis[dim] for basis in layout.bases[REGISTER] if basis[dim] and sum(map(bool, basis)) == 1]
    free = [bit for bit in dict.fromkeys(found) if bit & (bit - 1) == 0 and bit not in bits.values()]
    wanted = [1 << place for place in range(extent.bit_length() - 1) if 1 << place not in bits]
    for bit in [bit for bit in wanted if bit in free]:
        bits[bit] = bit
        free.remove(bit)
    for bit in [bit for bit in wanted if bit not in bits]:
        bits[bit] = free.pop(0) if free else 0


def _registers(layout: LinearLayout) -> dict[Point, int]:
    """Element in lane 0 of warp 0 → the first register that holds it."""
    found: dict[Point, int] = {}
    for register, index in enumerate(layout.images(REGISTER)):
        found.setdefault(unflatten(index, layout.shape), register)
    return found


def _components(
    origin: Point,
    map_: ComponentMap,
    registers: dict[Point, int],
    bits: tuple[dict[int, int], dict[int, int]],
    step: int,
) -> Fragment:
    """The registers of the fragment at ``origin``. ``bits``: of its two coordinates; number ``step`` of them is along K
    (2: neither). Beyond the end of K is zero; beyond the last row or column is a copy, which nobody reads."""
    found: list[int | None] = []
    for component in range(1 << len(map_.registers)):
        place = map_.place(component, 0)
        if step < 2 and any(place[step] >> bit.bit_length() - 1 & 1 and not to for bit, to in bits[step].items()):
            found.append(None)
            continue
        x, y = (
            sum(to for bit, to in some.items() if coordinate & bit)
            for coordinate, some in zip(place, bits, strict=True)
        )
        register = registers.get((*origin[:-2], origin[-2] ^ x, origin[-1] ^ y))
        if register is None:
            raise _Mismatch
        found.append(register)
    return tuple(found)
