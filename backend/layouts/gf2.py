"""Linear algebra over GF(2). A vector is a non-negative ``int``: bit ``i`` is coordinate ``i``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def parity(value: int) -> int:
    """The sum of the bits of ``value``, modulo 2."""
    return value.bit_count() & 1


def combine(vectors: Sequence[int], coefficients: int) -> int:
    """The sum of ``vectors[i]`` over the set bits ``i`` of ``coefficients``."""
    total = 0
    while coefficients:
        low = coefficients & -coefficients
        total ^= vectors[low.bit_length() - 1]
        coefficients ^= low
    return total


class Span:
    """A growing subspace that knows how each of its vectors is a sum of those that were added.

    ``added`` counts the vectors that were offered; a solution is a bit mask over their positions.
    """

    __slots__ = ("_rows", "added")

    def __init__(self, vectors: Iterable[int] = ()) -> None:
        self._rows: dict[int, tuple[int, int]] = {}  # leading bit -> (vector, mask over the added vectors)
        self.added = 0
        for vector in vectors:
            self.add(vector)

    @property
    def rank(self) -> int:
        """Dimension of the subspace."""
        return len(self._rows)

    def basis(self) -> list[int]:
        """A basis of the subspace."""
        return [vector for vector, _ in self._rows.values()]

    def reduce(self, vector: int) -> tuple[int, int]:
        """What is left of ``vector`` after subtracting members, and the mask of the added vectors subtracted."""
        rows = self._rows
        rest, mask, kept = vector, 0, 0
        while rest:
            lead = rest.bit_length()
            row = rows.get(lead)
            if row is None:
                bit = 1 << (lead - 1)
                kept |= bit
                rest ^= bit
            else:
                rest ^= row[0]
                mask ^= row[1]
        return kept, mask

    def add(self, vector: int) -> bool:
        """Offer ``vector``; whether the subspace grew."""
        rest, mask = self.reduce(vector)
        mask |= 1 << self.added
        self.added += 1
        if not rest:
            return False
        self._rows[rest.bit_length()] = (rest, mask)
        return True

    def __contains__(self, vector: int) -> bool:
        return self.reduce(vector)[0] == 0

    def solve(self, vector: int) -> int | None:
        """A mask over the added vectors whose sum is ``vector``, or None if there is none."""
        rest, mask = self.reduce(vector)
        return None if rest else mask


def span_values(vectors: Sequence[int]) -> list[int]:
    """The combinations of ``vectors`` over the bits of 0, 1, 2, …"""
    values = [0]
    for vector in vectors:
        values += [value ^ vector for value in values]
    return values


def kernel(vectors: Sequence[int]) -> list[int]:
    """A basis of the masks whose ``combine(vectors, mask)`` is 0."""
    span = Span()
    found = []
    for index, vector in enumerate(vectors):
        rest, mask = span.reduce(vector)
        if rest:
            span.add(vector)
        else:
            found.append(mask | 1 << index)
            span.added += 1
    return found


def transpose(vectors: Sequence[int], bits: int) -> list[int]:
    """The rows of the matrix with columns ``vectors``: bit ``j`` of row ``i`` is bit ``i`` of vector ``j``."""
    rows = [0] * bits
    for column, vector in enumerate(vectors):
        bit = 1 << column
        while vector:
            low = vector & -vector
            rows[low.bit_length() - 1] |= bit
            vector ^= low
    return rows


def annihilator(vectors: Sequence[int], bits: int) -> list[int]:
    """A basis of the functionals ``f`` (masks of ``bits`` coordinates) with ``parity(f & v) == 0`` for every vector."""
    return kernel(transpose(vectors, bits))


def inverse(vectors: Sequence[int], bits: int) -> list[int]:
    """The columns of the inverse of the square matrix with columns ``vectors``. Raises ValueError if singular."""
    span = Span(vectors)
    if len(vectors) != bits or span.rank != bits:
        raise ValueError(f"a matrix of {len(vectors)} columns and rank {span.rank} has no inverse in {bits} dimensions")
    return [span.reduce(1 << index)[1] for index in range(bits)]


def intersection(left: Sequence[int], right: Sequence[int]) -> list[int]:
    """A basis of the intersection of the spans of ``left`` and ``right``, in the order of ``left`` where possible."""
    inside = Span(right)
    result = Span()
    basis = [vector for vector in left if vector in inside and result.add(vector)]
    for mask in kernel([*left, *right]):
        vector = combine(left, mask & ((1 << len(left)) - 1))
        if result.add(vector):
            basis.append(vector)
    return basis


def dual(functionals: Sequence[int], bits: int) -> list[int]:
    """Vectors ``t`` with ``parity(functionals[i] & t[j]) == (i == j)``. The functionals must be independent."""
    columns = Span(transpose(functionals, bits))
    found = [columns.solve(1 << index) for index in range(len(functionals))]
    if None in found:
        raise ValueError("the functionals are not independent")
    return [vector for vector in found if vector is not None]
