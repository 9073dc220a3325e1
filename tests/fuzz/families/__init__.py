"""The families of kernels that are made of steps."""

from tests.fuzz.families import (
    aliasing,
    atomics,
    bounds,
    combining,
    descriptors,
    dots,
    functions,
    indices,
    integers,
    nests,
    overwriting,
    returns,
    rounds,
    shapes,
)
from tests.fuzz.steps import Family

FAMILIES: tuple[Family, ...] = (
    integers.FAMILY,
    combining.FAMILY,
    shapes.FAMILY,
    dots.FAMILY,
    descriptors.FAMILY,
    atomics.FAMILY,
    returns.FAMILY,
    overwriting.FAMILY,
    aliasing.FAMILY,
    rounds.FAMILY,
    nests.FAMILY,
    bounds.FAMILY,
    indices.FAMILY,
    functions.FAMILY,
)
