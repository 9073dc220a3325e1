"""Random numbers at the ends of their distributions' support, and in the tails."""

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from triton.backends.spirv.torch.ops.elementwise import Body, run

from . import distribution_tails

pytestmark = pytest.mark.usefixtures("no_fallbacks")

#: Words at which something begins or ends, and some between.
_WORDS = [0, 1, 2, 1 << 16, (1 << 30) - 1, 1 << 30, (1 << 31) - 1, 1 << 31, 3 << 30, (1 << 32) - 2, (1 << 32) - 1]
_WORDS += [123456789, 3735928559]


def _uniform(high: int, low: int) -> Any:
    return (mpmath.mpf(high) * 2**32 + low + mpmath.mpf(0.5)) / mpmath.mpf(2) ** 64


def _normal(a: int, b: int, c: int, d: int) -> Any:
    signed = (b if b < 1 << 31 else b - (1 << 32)) + (d + mpmath.mpf(0.5)) / 2**32
    return mpmath.sqrt(-2 * mpmath.log(_uniform(a, c))) * mpmath.sin(mpmath.pi / 2 * signed / 2**31)


_EXACT: dict[str, Callable[..., Any]] = {
    "unit": _uniform,
    "exponential": lambda a, b: -mpmath.log(_uniform(a, b)),
    "cauchy": lambda a, b: -mpmath.cot(mpmath.pi * _uniform(a, b)),
    "normal": _normal,
}


@pytest.mark.parametrize("name", _EXACT)
def test_numbers_of_words(name: str) -> None:
    """Every distribution at both ends of its random bits, against its exact quantiles."""
    names = ("a", "b", "c", "d")[: 4 if name == "normal" else 2]
    rows = [*product(_WORDS, repeat=2)] if name != "normal" else [*product(_WORDS, _WORDS, _WORDS[::3], _WORDS[::3])]
    given = {
        word: torch.tensor(column, dtype=torch.int64).to(torch.uint32).view(torch.int32).to("spirv")
        for word, column in zip(names, zip(*rows, strict=True), strict=True)
    }
    lines = [f"{word} = {word}.to(tl.uint32, bitcast=True)" for word in names]
    out = torch.empty(len(rows), device="spirv")
    run(Body("\n".join((*lines, f"out = draw.{name}({', '.join(names)})"))), {"out": out}, given, torch.int32)
    with mpmath.workprec(120):
        exact = np.array([float(_EXACT[name](*row)) for row in rows])
    np.testing.assert_allclose(out.cpu().numpy(), exact, rtol=2e-6, atol=1e-37)
    assert torch.isfinite(out).all()


#: Places of seed 0 at which ``tl.rand`` is below 2^-25, so that 1 less it rounds to 1.
_NEARLY_0 = [38471471, 48643752, 55573990]


@pytest.mark.parametrize("place", _NEARLY_0)
def test_an_exponential_number_is_never_0(place: int) -> None:
    generator = torch.Generator(device="spirv").manual_seed(0)
    weights = torch.tensor([0.0, 1.0, 1.0, 1.0], device="spirv")
    for count in (1, 3):
        generator.set_offset(place)
        assert 0 not in torch.multinomial(weights, count, generator=generator).tolist()
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        generator.set_offset(place)
        drawn = torch.empty(4, dtype=dtype, device="spirv").exponential_(1.0, generator=generator).tolist()
        assert all(0 < number < math.inf for number in drawn)
        drawn = torch.empty(1 << 20, dtype=dtype, device="spirv").exponential_(1e6, generator=generator).min().item()
        assert drawn > 0
    generator.set_offset(place)
    assert (torch.empty(4, device="spirv").geometric_(0.25, generator=generator) >= 1).all()


@pytest.mark.parametrize("replacement", [False, True])
def test_categories_of_weight_0_are_never_drawn(replacement: bool) -> None:
    """Of 50,000 categories in the order of a model's vocabulary, of which the greater part is cut off."""
    torch.manual_seed(3)
    weights = torch.rand(50_000)
    for zeros in (torch.rand(50_000) < 0.5, torch.rand(50_000) < 0.999):
        cut = torch.where(zeros, 0.0, weights).to("spirv")
        for _ in range(8):
            found = torch.multinomial(cut, 40 if not replacement else 1 << 17, replacement)
            assert (cut.gather(0, found) > 0).all()


@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize(
    "weights", [[0, 2e-38, 0, 4e-38], [0, 1e-30, 1e30, 0], [0, 0, 3e38, 0], [0, 3e38, 1e37, 1e-37]], ids=str
)
def test_weights_of_any_size(weights: list[float], replacement: bool) -> None:
    lines = torch.tensor(weights, device="spirv").expand(2000, 4)
    drawn = torch.multinomial(lines, sum(weight > 0 for weight in weights), replacement)
    assert (lines.gather(1, drawn) > 0).all()


def test_chances_at_both_ends() -> None:
    torch.manual_seed(2)
    assert not torch.empty(1 << 20, device="spirv").bernoulli_(0.0).any()
    assert torch.empty(1 << 20, device="spirv").bernoulli_(1.0).all()
    p = torch.tensor([0.0, 1.0], device="spirv").repeat(1 << 19)
    assert torch.equal(torch.bernoulli(p), p)
    rare = sum(int(torch.empty(1 << 22, dtype=torch.bool, device="spirv").bernoulli_(1e-6).sum()) for _ in range(8))
    expected = 1e-6 * 8 * (1 << 22)
    assert abs(rare - expected) < 6 * expected**0.5 + 3


@pytest.mark.parametrize("name", distribution_tails.DISTRIBUTIONS)
def test_tails(name: str) -> None:
    torch.manual_seed(1)
    assert [*distribution_tails.wrong(name, 1 << 24)] == []
