"""The text of addresses, evaluated: it gives where torch has an element, in 64 bits where 32 do not reach."""

import itertools
import random
from typing import Any

import pytest
import torch
from triton.backends.spirv.torch.device.native_module import torch_native
from triton.backends.spirv.torch.device.tensor_memory import tensor_forms
from triton.backends.spirv.torch.ops.addressing import NARROW, Addresses, Walk
from triton.backends.spirv.torch.ops.strided_shapes import Dims

expanded, collapsed = torch_native().expanded, torch_native().collapsed

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


def test_what_cannot_be_broadcast_is_refused() -> None:
    for shape, to in (((3,), (4,)), ((2, 3), (3,)), ((1, 2, 3), (2, 3)), ((0,), (3,)), ((3,), (0,))):
        with pytest.raises(RuntimeError, match="cannot be broadcast to"):
            expanded(shape, (1,) * len(shape), to)
    assert expanded((1, 3), (9, 2), (4, 5, 3)) == (0, 0, 2)
    assert expanded((1,), (5,), (0,)) == (0,)


_Forms = list[tuple[torch.Tensor, str]]


def _forms(shape: Dims) -> _Forms:
    """Tensors of rows and columns, and their roles; empty where there is none."""
    (rows, columns), on = shape, {"device": "spirv"}
    return [
        (torch.empty(shape, **on), "a"),
        (torch.empty(rows, 1, **on), "r"),
        (torch.empty(columns, **on), "c"),
        (torch.empty(1, columns, **on), ""),
        (torch.empty(rows, columns + 1, **on)[:, 1:], ""),
        (torch.empty(columns, rows, **on).t(), ""),
        (torch.empty(shape, **on)._neg_view(), ""),
        (torch.empty(rows, **on), ""),
        (torch.empty(shape), ""),
        (torch.empty(shape, dtype=torch.complex64, **on), ""),
    ]


def test_roles_of_tensors() -> None:
    shape = (3, 5)
    for (one, first), (other, second) in itertools.product(_forms(shape), repeat=2):
        found = tensor_forms().roles({"x": one}, {"y": other}, shape, 1)
        assert found == ((first + second).encode() if first and second else None)
        plain = [x.is_contiguous() and x.device.type == "spirv" and not x.is_complex() for x in (one, other)]
        plain += [not x.is_neg() for x in (one, other)]
        assert tensor_forms().are_alike((one,), [other]) is (all(plain) and one.shape == other.shape)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda on: torch.empty(3, 4, **on).expand(2, 3, 4), "share memory"),
        (lambda on: torch.empty(9, **on).as_strided((3, 3), (2, 1)), "share memory"),
        (lambda on: torch.empty(9, **on).as_strided((3, 3), (3, 1)), None),
        (lambda on: torch.empty(20, **on).as_strided((3, 3), (5, 2)), None),
        (lambda on: torch.empty(0, 3, **on).expand(4, 0, 3), None),
        (lambda on: torch.empty(3, **on)._neg_view(), "not those in memory"),
        (lambda on: torch.empty(3), "another device"),
        (lambda on: torch.empty(3, dtype=torch.complex64, **on), "do not know"),
        (lambda on: torch.empty(3, dtype=torch.float8_e5m2, **on), "do not know"),
        (lambda on: torch.empty(3, dtype=torch.float64, **on), "float64"),
    ],
)
def test_what_kernels_cannot_write(make: Any, reason: str | None) -> None:
    """Nor read, unless only its elements share memory."""
    tensor, plain = make({"device": "spirv"}), torch.empty(2, device="spirv")
    for outputs, tensors, written in (
        ((tensor,), (plain,), True),
        ((plain,), (tensor,), False),
        ((plain, tensor), (), True),
    ):
        found = tensor_forms().fault(outputs, tensors, False)
        wanted = None if reason == "share memory" and not written else reason
        assert (found is None) is (wanted is None) and (wanted is None or wanted in found)
    assert tensor_forms().fault((torch.empty(3, dtype=torch.float64, device="spirv"),), (), True) is None


def test_the_form_of_integers() -> None:
    """As counted here: of strides but for 1, and of what is heeded, whether all are multiples of 16."""
    form = torch_native().form_of_integers
    generator = random.Random(5)
    values = [0, 1, 2, 16, 48, 2**31 - 1, 2**31, -(2**31), 2**40, 2**70, 1.5, None, True]
    for _ in range(400):
        strides, heeded, others = ([generator.choice(values) for _ in range(generator.randrange(4))] for _ in range(3))
        integers = [one for one in (*strides, *others) if type(one) is int]
        even = [one for one in (*(s for s in strides if s != 1 or s is True), *heeded) if type(one) is int]
        wide = any(not -(2**31) < one < 2**31 for one in integers)
        found = form(strides, heeded, others, ("x",))
        assert found[:2] == (wide, all(one % 16 == 0 and one < 2**63 for one in even))
        assert found[2:] == (*[type(one) is int and one == 1 for one in strides], "x")


def test_new_memory_is_refused_as_torch_does() -> None:
    for call in (
        lambda: torch.empty(-1, device="spirv"),
        lambda: torch.empty(2**62, 4, device="spirv"),
        lambda: torch.empty(2**62, 0, 2**62, device="spirv"),
        lambda: torch.empty_strided((3,), (-1,), device="spirv"),
        lambda: torch.empty_strided((3,), (2**62,), device="spirv"),
    ):
        with pytest.raises(RuntimeError):
            call()
    for size, stride in (((2, 0, 3), (3, 3, 1)), ((), ()), ((0,), (1,)), ((1, 1), (1, 1)), ((2, 3), (3, 1))):
        made = torch.empty(size, device="spirv")
        assert (made.shape, made.stride()) == (size, stride)
        assert made.untyped_storage().nbytes() == 4 * made.numel()
    assert torch.empty_strided((2, 3), (7, 2), device="spirv").untyped_storage().nbytes() == 4 * 12
