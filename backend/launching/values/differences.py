"""Whether what two compilations of a kernel wrote is the same: integers bit by bit, floats as far as rounding goes.

Where terms cancel, rounding goes as far as the reference's results move if what it reads is a unit in the last place
larger or smaller (nudged()). Results that are rounded only as they are stored may be a unit apart, too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...abi.elements import FLOATS, FloatElement
from ...abi.scalars import SCALARS
from .host_copies import Pointer

#: What upstream calls a type of CUDA's that MLIR has no name for.
_E4B15 = FloatElement("fp8e4b15", 8, "fp8e4b15", mantissa=3, bias=15)
_FLOATS = {one.triton: one for one in (*FLOATS.values(), _E4B15) if one.triton}

#: Bits of a mantissa → by how much a result may differ from the reference's, relative to it. Sums in another order, and
#: multiplications that are fused with additions, are rounded otherwise.
_TOLERANCES = {52: 1e-9, 23: 1e-4, 10: 5e-3, 7: 4e-2, 3: 0.3, 2: 0.6}

#: Results near 0 may differ by so much of the largest one, times the tolerance: they are what sums left over.
_OF_LARGEST = 0.01

#: A result may differ by so many times what it moves by where arguments are nudged(): a kernel rounds more than once.
#: Long sums are in float32, and round so much more often.
_ROUNDINGS, _LONG = 4.0, 4

#: So many bits coarser counts what a kernel computes in where nudges by coarser types are scaled to it.
_SLACK = 3

#: So many elements are float64 at a time.
_SLICE = 1 << 20


def _slices(values: Any) -> Iterator[Any]:
    return (values[at : at + _SLICE] for at in range(0, len(values), _SLICE))


def _largest(pointer: Pointer, bits: Any, places: Any = None) -> float:
    """The largest finite number that bits are, at the ``places`` if they are given."""
    parts = _slices(bits) if places is None else (bits[some] for some in _slices(places))
    return max((largest(_values(pointer, part)) for part in parts), default=0.0)


def largest(values: Any) -> float:
    """The largest finite one, without its sign."""
    import numpy

    return float(numpy.abs(values[numpy.isfinite(values)]).max(initial=0.0))


def apart(x: Any, y: Any, allowed: float, largest: float, of_largest: float = _OF_LARGEST) -> Any:
    """Which floats of ``x`` are further from those of ``y`` than ``allowed``, relative to y and a part of the
    ``largest`` result. NaN is as NaN, and an infinity as itself."""
    import numpy

    with numpy.errstate(invalid="ignore", over="ignore"):
        near = numpy.abs(x - y) <= allowed * (numpy.abs(y) + of_largest * largest)
    return ~((near & numpy.isfinite(x) & numpy.isfinite(y)) | (x == y) | (numpy.isnan(x) & numpy.isnan(y)))


def tolerance(pointee: str, computed: Iterable[str] = ()) -> float:
    """How much elements of a Triton type may differ before they are rounded to it, of a kernel that computes in these
    float types (MLIR's names); 0 for integers. tf32 has the mantissa of f16."""
    stored = _FLOATS.get(pointee)
    if stored is None:
        return 0.0
    return _TOLERANCES[_coarsest(computed) or stored.mantissa]


def _coarsest(computed: Iterable[str]) -> int:
    """The bits of the coarsest mantissa; 0 of no types."""
    mantissas = [10 if name == "tf32" else FLOATS[name].mantissa for name in computed]
    return min((bits for bits in mantissas if bits), default=0)


def _mantissa(stored: FloatElement, computed: Iterable[str]) -> int:
    """The bits of the coarsest mantissa, the stored type's included."""
    return min(stored.mantissa, _coarsest(computed) or stored.mantissa)


def movement(pointers: Sequence[Pointer], computed: set[str], smooth: bool) -> tuple[set[str], float]:
    """The types whose units arguments are nudged() by so that all move by as much, and how many times what results move
    by then is rounding: arguments may be coarser than what a kernel computes in, which counts if it is ``smooth``."""
    known = [_FLOATS[one.pointee] for one in pointers if one.pointee in _FLOATS]
    types = computed | {one.name for one in known if one.bytes > 1}
    bits = _coarsest(computed) - _coarsest(types) - _SLACK
    if smooth and bits > 0:
        return types, _ROUNDINGS * 2.0**-bits
    return computed, _ROUNDINGS * (_LONG if _coarsest(computed) >= FLOATS["f32"].mantissa else 1)


@dataclass(frozen=True)
class Difference:
    """The first element of an argument that differs: at ``index``, counted in elements from where the argument begins.
    ``usual`` and ``reference``: its values; ``count``: how many differ, of ``written`` ones."""

    pointer: Pointer
    index: int
    usual: float | int
    reference: float | int
    count: int
    written: int


def difference(
    pointers: Sequence[Pointer],
    before: Sequence[Any],
    usual: Sequence[Any],
    reference: Sequence[Any],
    computed: set[str],
    near: Sequence[Sequence[Any]] = (),
    roundings: float = _ROUNDINGS,
) -> Difference | None:
    """The first argument that differs, with its first element; None if all are the same. ``before``, ``usual``,
    ``reference``: the bytes of all storages before a launch, and after it was run in both ways. ``computed``: the float
    types that the kernel computes in. ``near``: the bytes after the reference ran from nudged() memory, and
    ``roundings`` times what moves there is rounding."""
    for pointer in pointers:
        of = pointer.storage
        others = [one[of] for one in near]
        known, types = _FLOATS.get(pointer.pointee), computed
        if known is not None and sum(one.storage == of for one in pointers) > 1:
            types = computed | {known.name}  # another argument may read what was rounded
        found = _of(pointer, before[of], usual[of], reference[of], others, types, roundings)
        if found is not None:
            return found
    return None


def nudged(pointers: Sequence[Pointer], before: Sequence[Any], computed: Iterable[str], seed: int) -> list[Any]:
    """The memory before a launch with floats that are a unit in the last place larger or smaller, at random: of their
    type, or of the coarsest that the kernel computes in. Whole numbers, which may count or name something, memory that
    is read as several types, and floats of 8 bits stay."""
    import numpy

    random, changed = numpy.random.default_rng(seed), [one.copy() for one in before]
    for pointer in pointers:
        known = _FLOATS.get(pointer.pointee)
        several = any(one.storage == pointer.storage and one.pointee != pointer.pointee for one in pointers)
        if known is None or known.bytes == 1 or several:
            continue
        step = 1 << known.mantissa - _mantissa(known, computed)
        own, target = (_slices(_elements(pointer, one[pointer.storage])) for one in (before, changed))
        for bits, into in zip(own, target, strict=True):
            values = _values(pointer, bits)
            loose = numpy.isfinite(values) & (values != numpy.rint(values)) & (bits << 1 > 2 * step)
            up = random.random(len(bits)) < 0.5
            moved = numpy.where(up, bits + bits.dtype.type(step), bits - bits.dtype.type(step))
            into[loose] = moved[loose]
    return changed


def worst(pointers: Sequence[Pointer], usual: Sequence[Any], reference: Sequence[Any]) -> float:
    """The largest difference of two elements, relative to the reference's and 1 % of its largest one, as a tolerance
    is; infinite if one alone is finite."""
    import numpy

    most = 0.0
    for pointer in pointers:
        bits = [_elements(pointer, one[pointer.storage]) for one in (usual, reference)]
        unequal = numpy.flatnonzero(bits[0] != bits[1])
        if not len(unequal):
            continue
        part = _OF_LARGEST * _largest(pointer, bits[1])
        for places in _slices(unequal):
            x, y = (_values(pointer, one[places]).astype(numpy.float64) for one in bits)
            with numpy.errstate(invalid="ignore", divide="ignore"):
                parts = numpy.abs(x - y) / (numpy.abs(y) + part)
            parts[(x == y) | (numpy.isnan(x) & numpy.isnan(y))] = 0.0
            most = max(most, numpy.where(numpy.isnan(parts), numpy.inf, parts).max())
    return float(most)


def _unit(known: FloatElement, values: Any) -> Any:
    """A unit in the last place of numbers of a type."""
    import numpy

    exponents = numpy.frexp(values)[1] - 1
    return numpy.ldexp(1.0, numpy.maximum(exponents, 1 - known.bias) - known.mantissa)


def _of(
    pointer: Pointer, before: Any, usual: Any, reference: Any, near: list[Any], computed: set[str], roundings: float
) -> Difference | None:
    import numpy

    allowed, known = tolerance(pointer.pointee, computed), _FLOATS.get(pointer.pointee)
    if numpy.array_equal(usual, reference):
        return None
    before, usual, reference = (_elements(pointer, one) for one in (before, usual, reference))
    unequal = numpy.flatnonzero(usual != reference)
    if not len(unequal):
        return None  # bytes that are no whole element
    written = numpy.flatnonzero((usual != before) | (reference != before))
    differ = numpy.ones(len(unequal), bool)
    limit = _largest(pointer, reference, written) if allowed else 0.0
    for some, differs in zip(_slices(unequal), _slices(differ), strict=True) if allowed else ():
        x, y = _values(pointer, usual[some]), _values(pointer, reference[some])
        differs[:] = apart(x, y, allowed, limit)
        with numpy.errstate(invalid="ignore"):
            off = numpy.abs(x - y)
            if known is not None and known.mantissa < _coarsest(computed):  # rounded as it is stored
                off -= numpy.where(numpy.isfinite(off), _unit(known, numpy.maximum(numpy.abs(x), numpy.abs(y))), 0.0)
                differs &= ~(off <= allowed * (numpy.abs(y) + _OF_LARGEST * limit))
            for other in near:
                moved = numpy.abs(_values(pointer, _elements(pointer, other)[some]) - y)
                differs &= ~(numpy.isfinite(moved) & (off <= roundings * moved))
    places = numpy.flatnonzero(differ)
    if not len(places):
        return None
    size = usual.itemsize
    first = places[0]
    # Elements of the argument itself come before those that lie in front of it in its storage.
    inside = places[unequal[places] >= pointer.start // size]
    if len(inside):
        first = inside[0]
    at = unequal[first : first + 1]
    index = int(at[0]) - pointer.start // size
    x, y = (_values(pointer, one[at])[0].item() for one in (usual, reference))
    return Difference(pointer, index, x, y, len(places), len(written))


def _elements(pointer: Pointer, storage: Any) -> Any:
    """The elements of a storage as unsigned integers, so that they are compared by their bits."""
    import numpy

    known = _FLOATS.get(pointer.pointee)
    size = known.bytes if known is not None else SCALARS[pointer.pointee].bytes if pointer.pointee in SCALARS else 1
    rest = storage[pointer.start % size :]
    return rest[: len(rest) // size * size].view(numpy.dtype(f"u{size}"))


def _values(pointer: Pointer, bits: Any) -> Any:
    """What bits mean."""
    import numpy

    known = _FLOATS.get(pointer.pointee)
    if known is None:
        signed = pointer.pointee.startswith("i") and pointer.pointee != "i1"
        return bits.view(f"i{bits.itemsize}") if signed else bits
    if known.name in ("f16", "f32", "f64"):
        return bits.view(f"f{bits.itemsize}").astype(numpy.float64)
    if known.name == "bf16":
        return (bits.astype(numpy.uint32) << 16).view(numpy.float32).astype(numpy.float64)
    return numpy.array([_small(known, number) for number in range(256)])[bits]


def _small(of: FloatElement, bits: int) -> float:
    """The number that 8 bits are. What stands for NaN or an infinity in some types is a large number here: bits that
    differ then differ by much."""
    fraction, exponent = bits & ((1 << of.mantissa) - 1), (bits & 0x7F) >> of.mantissa
    scale = 2.0 ** (max(exponent, 1) - of.bias - of.mantissa)
    return (-1.0 if bits & 0x80 else 1.0) * (fraction + ((1 << of.mantissa) if exponent else 0)) * scale
