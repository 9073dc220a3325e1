"""Linear layouts: maps from hardware coordinates to tensor coordinates that are linear over GF(2).

A layout has named input dimensions (``register``, ``lane``, ``warp``; ``offset`` in shared memory), each of a size that
is a power of two, and an output shape whose extents are powers of two. The image of an input is the exclusive or of
the bases of its set bits. Internally a point of the output is its row-major index, so that exclusive or of points is
exclusive or of integers and a reshape keeps every basis.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from .gf2 import Span, combine, inverse, kernel, span_values

Point = tuple[int, ...]


def log2(value: int, what: str = "value") -> int:
    """The exponent of ``value``. Raises ValueError if it is not a power of two."""
    if value < 1 or value & (value - 1):
        raise ValueError(f"{what} {value} is not a power of two")
    return value.bit_length() - 1


def flatten(point: Sequence[int], shape: Sequence[int]) -> int:
    """The row-major index of ``point``."""
    index = 0
    for coordinate, extent in zip(point, shape, strict=True):
        index = index * extent + coordinate
    return index


def unflatten(index: int, shape: Sequence[int]) -> Point:
    """The point of row-major ``index``."""
    point = []
    for extent in reversed(shape):
        point.append(index % extent)
        index //= extent
    return tuple(reversed(point))


class LinearLayout:
    """A linear layout. Immutable and hashable.

    ``inputs`` maps each input dimension to its bases as row-major indices into ``shape``: basis ``i`` is the image of
    ``2**i``.
    """

    __slots__ = ("inputs", "shape", "_bases", "_hash")

    inputs: dict[str, tuple[int, ...]]
    shape: tuple[int, ...]
    _bases: dict[str, tuple[Point, ...]] | None
    _hash: int

    def __init__(self, bases: Mapping[str, Iterable[Sequence[int]]], shape: Sequence[int]) -> None:
        """``bases`` holds one coordinate tuple a basis. Raises ValueError if one lies outside of ``shape``."""
        shape = tuple(shape)
        flat: dict[str, tuple[int, ...]] = {}
        for name, points in bases.items():
            found = []
            for point in points:
                if len(point) != len(shape) or any(not 0 <= c < extent for c, extent in zip(point, shape, strict=True)):
                    raise ValueError(f"basis {tuple(point)} of {name!r} lies outside of shape {shape}")
                found.append(flatten(point, shape))
            flat[name] = tuple(found)
        self._set(flat, shape)

    def _set(self, inputs: dict[str, tuple[int, ...]], shape: tuple[int, ...]) -> None:
        for extent in shape:
            if extent < 1 or extent & (extent - 1):
                raise ValueError(f"extent {extent} of shape {shape} is not a power of two")
        object.__setattr__(self, "inputs", inputs)
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "_bases", None)
        object.__setattr__(self, "_hash", hash((tuple(inputs.items()), shape)))

    @classmethod
    def from_flat(cls, inputs: Mapping[str, Sequence[int]], shape: Sequence[int]) -> LinearLayout:
        """A layout whose bases are given as row-major indices into ``shape``."""
        layout = cls.__new__(cls)
        layout._set({name: tuple(bases) for name, bases in inputs.items()}, tuple(shape))
        limit = layout.size
        for name, bases in layout.inputs.items():
            if bases and max(bases) >= limit:
                raise ValueError(f"basis {max(bases)} of {name!r} lies outside of shape {layout.shape}")
        return layout

    @classmethod
    def identity(cls, name: str, size: int, dim: int = 0, rank: int = 1) -> LinearLayout:
        """Input ``name`` of ``size`` onto output ``dim`` of a tensor of ``rank`` whose other extents are 1."""
        shape = [1] * rank
        shape[dim] = size
        return cls.from_flat({name: [1 << bit for bit in range(log2(size, f"size of {name!r}"))]}, shape)

    @classmethod
    def zeros(cls, name: str, size: int, rank: int = 1) -> LinearLayout:
        """Input ``name`` of ``size``, all of it at the origin of a tensor of ``rank`` whose extents are 1."""
        return cls.from_flat({name: [0] * log2(size, f"size of {name!r}")}, [1] * rank)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"LinearLayout is immutable: cannot set {name!r}")

    def __eq__(self, other: object) -> bool:
        """Equal inputs in the same order, and equal shape."""
        return (
            isinstance(other, LinearLayout)
            and self._hash == other._hash
            and self.shape == other.shape
            and tuple(self.inputs.items()) == tuple(other.inputs.items())
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"LinearLayout({self.bases}, {self.shape})"

    @property
    def rank(self) -> int:
        """Number of output dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of output points."""
        return math.prod(self.shape)

    @property
    def output_bits(self) -> int:
        """log2 of the number of output points."""
        return self.size.bit_length() - 1

    @property
    def bases(self) -> dict[str, tuple[Point, ...]]:
        """The bases of each input, one coordinate tuple each: basis ``i`` is the image of ``2**i``."""
        if self._bases is None:
            shape = self.shape
            points = {name: tuple(unflatten(basis, shape) for basis in bases) for name, bases in self.inputs.items()}
            object.__setattr__(self, "_bases", points)
        assert self._bases is not None
        return self._bases

    def input_size(self, name: str) -> int:
        """Number of points of input ``name``; 1 if there is no such input."""
        return 1 << len(self.inputs.get(name, ()))

    def apply_flat(self, **inputs: int) -> int:
        """The row-major index of the image. An input that is not named counts as 0."""
        point = 0
        for name, value in inputs.items():
            bases = self.inputs[name]
            if value >> len(bases):
                raise ValueError(f"{name} {value} is not below {1 << len(bases)}")
            point ^= combine(bases, value)
        return point

    def apply(self, **inputs: int) -> Point:
        """The image as a coordinate tuple. An input that is not named counts as 0."""
        return unflatten(self.apply_flat(**inputs), self.shape)

    def images(self, name: str) -> list[int]:
        """The row-major indices of the images of 0, 1, 2, … along input ``name``, the others at 0."""
        return span_values(self.inputs.get(name, ()))

    def __mul__(self, other: LinearLayout) -> LinearLayout:
        """The direct product: ``self`` is the inner tile, ``other`` arranges copies of it. Ranks must agree.

        An input that both have takes its low bits from ``self``.
        """
        if self.rank != other.rank:
            raise ValueError(f"a product of layouts of rank {self.rank} and {other.rank}")
        shape = tuple(a * b for a, b in zip(self.shape, other.shape, strict=True))
        inputs = {
            name: tuple(flatten(unflatten(basis, self.shape), shape) for basis in bases)
            for name, bases in self.inputs.items()
        }
        for name, bases in other.inputs.items():
            moved = tuple(
                flatten([c * inner for c, inner in zip(unflatten(basis, other.shape), self.shape, strict=True)], shape)
                for basis in bases
            )
            inputs[name] = inputs.get(name, ()) + moved
        return LinearLayout.from_flat(inputs, shape)

    def compose(self, outer: LinearLayout) -> LinearLayout:
        """``outer`` after ``self``: the inputs of ``outer``, in order, are the dimensions of ``self.shape``."""
        sizes = tuple(1 << len(bases) for bases in outer.inputs.values())
        if sizes != self.shape:
            raise ValueError(f"outputs {self.shape} do not fit the inputs {sizes} of the outer layout")
        columns = outer.flat_columns()
        return LinearLayout.from_flat(
            {name: [combine(columns, basis) for basis in bases] for name, bases in self.inputs.items()}, outer.shape
        )

    def flat_columns(self) -> list[int]:
        """Images of the bits of the row-major index over all inputs: the last input's bits come first."""
        return [basis for bases in reversed(self.inputs.values()) for basis in bases]

    def transpose(self, order: Sequence[int]) -> LinearLayout:
        """Output dimension ``i`` of the result is output dimension ``order[i]`` of this layout."""
        shape = tuple(self.shape[dim] for dim in order)
        if sorted(order) != list(range(self.rank)):
            raise ValueError(f"order {tuple(order)} is not a permutation of {self.rank} dimensions")
        inputs = {}
        for name, bases in self.inputs.items():
            points = (unflatten(basis, self.shape) for basis in bases)
            inputs[name] = [flatten([point[dim] for dim in order], shape) for point in points]
        return LinearLayout.from_flat(inputs, shape)

    def reshape(self, shape: Sequence[int]) -> LinearLayout:
        """The layout of the same elements in row-major order under another shape of the same size."""
        result = LinearLayout.from_flat(self.inputs, shape)
        if result.size != self.size:
            raise ValueError(f"shape {self.shape} cannot be reshaped to {tuple(shape)}")
        return result

    def drop_dim(self, dim: int) -> LinearLayout:
        """Output dimension ``dim`` left out."""
        shape = self.shape[:dim] + self.shape[dim + 1 :]
        inputs = {}
        for name, bases in self.inputs.items():
            points = (unflatten(basis, self.shape) for basis in bases)
            inputs[name] = [flatten(point[:dim] + point[dim + 1 :], shape) for point in points]
        return LinearLayout.from_flat(inputs, shape)

    def without_zeros(self, name: str) -> LinearLayout:
        """The bases of input ``name`` that are zero left out."""
        kept = {
            key: tuple(basis for basis in bases if basis) if key == name else bases
            for key, bases in self.inputs.items()
        }
        return LinearLayout.from_flat(kept, self.shape)

    @property
    def image_rank(self) -> int:
        """log2 of the number of different images."""
        return Span(self.flat_columns()).rank

    @property
    def is_surjective(self) -> bool:
        """Whether every output point is an image."""
        return self.image_rank == self.output_bits

    def free_masks(self) -> dict[str, int]:
        """For each input, the bits whose bases depend on those before them (inputs in order, low bits first).

        Setting those bits to 0 keeps one input for each image.
        """
        span = Span()
        masks = {}
        for name, bases in self.inputs.items():
            masks[name] = sum(1 << bit for bit, basis in enumerate(bases) if not span.add(basis))
        return masks

    def split_mask(self, mask: int) -> dict[str, int]:
        """A mask over all bases, inputs in order and low bits first, as one mask an input."""
        parts = {}
        for name, bases in self.inputs.items():
            parts[name] = mask & ((1 << len(bases)) - 1)
            mask >>= len(bases)
        return parts

    def kernel(self) -> list[dict[str, int]]:
        """A basis of the inputs that map to the origin."""
        return [self.split_mask(mask) for mask in kernel([basis for bases in self.inputs.values() for basis in bases])]

    def solve(self, index: int) -> dict[str, int] | None:
        """An input whose image has row-major ``index``, or None. Prefers low bits of early inputs."""
        mask = Span(basis for bases in self.inputs.values() for basis in bases).solve(index)
        return None if mask is None else self.split_mask(mask)

    def invert(self, name: str = "offset") -> LinearLayout:
        """The inverse of a bijective layout: inputs ``dim0``, ``dim1``, …; its outputs are this layout's inputs.

        ``name`` is not part of the result; it names the layout in the error. Raises ValueError if not bijective.
        """
        try:
            columns = inverse(self.flat_columns(), self.output_bits)
        except ValueError as error:
            raise ValueError(f"the layout of {name} is not bijective: {error}") from None
        inputs: dict[str, tuple[int, ...]] = {}
        end = len(columns)
        for dim, extent in enumerate(self.shape):
            start = end - log2(extent)
            inputs[f"dim{dim}"] = tuple(columns[start:end])
            end = start
        return LinearLayout.from_flat(inputs, [1 << len(bases) for bases in self.inputs.values()])


def same_copies(left: LinearLayout, right: LinearLayout) -> bool:
    """Whether inputs that hold the same element under ``left`` do so under ``right``, and the other way round. Then the
    elements of a tensor in one layout are the other's, in another order."""
    sizes = [{name: len(bases) for name, bases in layout.inputs.items()} for layout in (left, right)]
    if sizes[0] != sizes[1] or left.image_rank != right.image_rank:
        return False
    return all(right.apply_flat(**copy) == 0 for copy in left.kernel())
