"""The text of addresses, evaluated: it gives where torch has an element, in 64 bits where 32 do not reach."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
import torch
from triton.backends.spirv.torch.ops.addressing import NARROW, Addresses, Walk
from triton.backends.spirv.torch.ops.strided_shapes import Dims, collapsed, expanded

_TENSORS: list[tuple[Dims, Dims]] = [
    ((3, 4, 5), (20, 5, 1)),
    ((3, 4, 5), (1, 3, 12)),
    ((3, 1, 5), (10, 7, 2)),
    ((4, 5), (0, 1)),
    ((3, 4, 5), (0, 0, 0)),
    ((), ()),
    ((1, 1, 1), (9, 9, 9)),
]


def _addresses(shape: Dims, tensors: list[tuple[Dims, Dims]]) -> tuple[Addresses, list[Walk], Dims]:
    sizes, steps = collapsed(shape, [expanded(*tensor, shape) for tensor in tensors])
    walk = Walk("number", "i", "mask", sizes, steps)
    return Addresses([f"t{n}" for n in range(len(tensors))], [walk], {}), [walk], sizes


@pytest.mark.parametrize("pair", [*itertools.combinations(_TENSORS, 2)])
def test_every_element_of_every_tensor_is_met_once(pair: Any) -> None:
    shape = torch.broadcast_shapes(pair[0][0], pair[1][0])
    addresses, walks, sizes = _addresses(shape, list(pair))
    texts = [addresses.place(f"t{n}") for n in range(2)]
    found, count = [], torch.Size(sizes).numel()
    for number in range(count):
        names: dict[str, Any] = {**addresses.integers, "number": number, "t0_p": 0, "t1_p": 0}
        exec("\n".join(walks[0].indices()), names)
        found.append(tuple(eval(text, names) for text in texts))
    steps = [expanded(*tensor, shape) for tensor in pair]
    wanted = [
        tuple(sum(i * step for i, step in zip(index, of, strict=True)) for of in steps)
        for index in itertools.product(*map(range, shape))
    ]
    assert sorted(found) == sorted(wanted)


@pytest.mark.parametrize(
    ("shape", "strides", "wide"),
    [
        ((NARROW,), (1,), False),
        ((NARROW + 1,), (1,), True),
        ((1 << 16, 1 << 16), (0, 1), True),
        ((3, 5), ((1 << 30) - (1 << 16) - 8, 1), False),
        ((4, 5), ((1 << 30) - (1 << 16), 1), True),
        ((2, 5), (1, 1 << 29), True),
        ((0, 5), (1 << 40, 1), False),
    ],
)
def test_integers_have_as_many_bits_as_the_last_element_needs(shape: Dims, strides: Dims, wide: bool) -> None:
    addresses, walks, sizes = _addresses(shape, [(shape, strides)])
    assert addresses.wide is wide
    if 0 in shape:
        return
    text = addresses.place("t0")
    generator = random.Random(3)
    for index in [tuple(n - 1 for n in shape), *(tuple(map(generator.randrange, shape)) for _ in range(9))]:
        wanted = sum(i * step for i, step in zip(index, strides, strict=True))
        order = sorted((d for d, n in enumerate(shape) if n != 1), key=lambda d: -strides[d])
        number = 0
        for d in order:
            number = number * shape[d] + index[d]
        names: dict[str, Any] = {**addresses.integers, "number": number, "t0_p": 0}
        exec("\n".join(walks[0].indices()), names)
        assert eval(text, names) == wanted
        assert wide or 0 <= wanted < 2**31
