"""Special functions in float32, against float64 on the CPU: the bound is a multiple of float32's precision, of the
value's size and of how much an error of half a unit in the argument's last place makes.
"""

from __future__ import annotations

from collections.abc import Callable

import mpmath
import pytest
import torch

pytestmark = pytest.mark.usefixtures("no_fallbacks", "compiled")

_EVERYWHERE = torch.cat((torch.linspace(-9.97, 9.93, 401), torch.tensor([0.0, -0.0, 1e-6, 30.0, 85.0, 1e4, 1e30])))
_POSITIVE = torch.cat((torch.linspace(0.01, 20, 401), torch.tensor([1e-4, 100.0, 1e4])))

_ALL_POSITIVE = torch.cat((_POSITIVE, torch.linspace(20.1, 85, 101), torch.tensor([2.0, 8.0, 1e-30, 1e30])))
_AIRY = torch.cat((torch.linspace(-30, 12, 601), torch.tensor([-5.0, 2.0, 0.0, 100.0, -1e3, 1e30])))


def _airy(x: torch.Tensor) -> torch.Tensor:
    """torch's own, and in float64 mpmath's: torch's is wrong by 3e-6 at -2.1."""
    if x.dtype == torch.float32:
        return torch.special.airy_ai(x)
    return torch.tensor([float(mpmath.airyai(value)) for value in x.tolist()], dtype=x.dtype)


_Function = Callable[[torch.Tensor], torch.Tensor]
#: (function, arguments, units in the last place of 1 + |value|).
_CASES: dict[str, tuple[_Function, torch.Tensor, int]] = {
    "digamma": (torch.digamma, _EVERYWHERE, 8),
    "trigamma": (lambda x: torch.polygamma(1, x), _POSITIVE, 16),
    "polygamma 4": (lambda x: torch.polygamma(4, x), _POSITIVE, 32),
    "zeta": (lambda x: torch.special.zeta(x + 1.5, torch.full_like(x, 2.5)), _POSITIVE, 32),
    "i0": (torch.i0, _EVERYWHERE[_EVERYWHERE.abs() < 87], 1),
    "i0e": (torch.special.i0e, _EVERYWHERE, 8),
    "i1": (torch.special.i1, _EVERYWHERE[_EVERYWHERE.abs() < 87], 1),
    "i1e": (torch.special.i1e, _EVERYWHERE, 8),
    "j0": (torch.special.bessel_j0, _EVERYWHERE[_EVERYWHERE.abs() < 1e8], 8),
    "j1": (torch.special.bessel_j1, _EVERYWHERE[_EVERYWHERE.abs() < 1e8], 8),
    "y0": (torch.special.bessel_y0, _ALL_POSITIVE[_ALL_POSITIVE < 1e8], 8),
    "y1": (torch.special.bessel_y1, _ALL_POSITIVE[_ALL_POSITIVE < 1e8], 8),
    "k0": (torch.special.modified_bessel_k0, _ALL_POSITIVE, 8),
    "k1": (torch.special.modified_bessel_k1, _ALL_POSITIVE, 8),
    "scaled k0": (torch.special.scaled_modified_bessel_k0, _ALL_POSITIVE, 8),
    "scaled k1": (torch.special.scaled_modified_bessel_k1, _ALL_POSITIVE, 8),
    "spherical j0": (torch.special.spherical_bessel_j0, _EVERYWHERE, 4),
    "airy": (_airy, _AIRY, 8),
    "log_ndtr": (torch.special.log_ndtr, _EVERYWHERE[_EVERYWHERE.abs() < 50], 16),
}


@pytest.mark.parametrize("name", _CASES)
def test_values(name: str) -> None:
    function, x, units = _CASES[name]
    exact, found = function(x.double()), function(x.to("spirv")).cpu().double()
    size = torch.finfo(torch.float32)
    whole = exact.abs() < size.max
    assert torch.equal(found.isnan(), exact.isnan())
    near = (function(torch.nextafter(x, x + 1).double()) - exact).abs() + (
        function(torch.nextafter(x, x - 1).double()) - exact
    ).abs()
    bound = units * size.eps * (1 + exact.abs()) + near.nan_to_num(0, 0, 0)
    assert ((found - exact).abs() <= bound)[whole].all(), (x[whole], ((found - exact).abs() / bound)[whole].max())


def test_values_at_the_ends() -> None:
    """As on the CPU, except for I_0 and I_1 of infinity, which the CPU has as NaN."""
    inf, nan = float("inf"), float("nan")
    ends = torch.tensor([inf, -inf, nan, 0.0, -0.0, -3.0], device="spirv")
    for function in (torch.digamma, torch.special.i0e, torch.special.i1e):
        torch.testing.assert_close(function(ends).cpu(), function(ends.cpu()), equal_nan=True)
    for function, found in ((torch.i0, [inf, inf, nan]), (torch.special.i1, [inf, -inf, nan])):
        torch.testing.assert_close(function(ends[:3]).cpu(), torch.tensor(found), equal_nan=True)


@pytest.mark.parametrize("exponent", [1e30, float("inf")])
def test_zeta_of_large_exponents(exponent: float) -> None:
    """Terms below 1 are infinite, those above 1 are 0; torch has NaN for a sum without a term of at least 1."""
    base = torch.tensor([0.3, 1.0, 2.5, -0.7, -3.25, 0.0, float("nan")], device="spirv")
    found = torch.special.zeta(torch.full_like(base, exponent), base).cpu()
    inf = float("inf")
    torch.testing.assert_close(found, torch.tensor([inf, 1.0, 0.0, inf, inf, inf, float("nan")]), equal_nan=True)


def test_greatest_common_divisors() -> None:
    a, b = torch.tensor([12, -18, 0, 7, 0, 2**40]), torch.tensor([18, 12, 5, 0, 0, 2**35 * 3])
    for function in (torch.gcd, torch.lcm):
        assert torch.equal(function(a.to("spirv"), b.to("spirv")).cpu(), function(a, b))


@pytest.mark.parametrize("name", ["bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"])
def test_bessel_functions_of_float64_and_at_the_ends(name: str) -> None:
    """Against mpmath, because torch's are wrong by 2e-8 at 7.3. At the ends the values are the CPU's, except at
    infinity, where the CPU has NaN."""
    inf, nan = float("inf"), float("nan")
    function, exact = getattr(torch.special, name), getattr(mpmath, f"bessel{name[-2]}")
    x = torch.tensor([1e-9, 0.7, 2.0, 5.01, 7.3, 25.0, 99.5], dtype=torch.float64)
    known = torch.tensor([float(exact(int(name[-1]), value)) for value in x.tolist()], dtype=torch.float64)
    torch.testing.assert_close(function(x.to("spirv")).cpu(), known, rtol=1e-12, atol=1e-14)
    ends = torch.tensor([nan, 0.0, -0.0, -3.0])
    torch.testing.assert_close(function(ends.to("spirv")).cpu(), function(ends), equal_nan=True)
    assert function(torch.tensor([inf], device="spirv")).item() == 0


_OTHERS = ("modified_bessel_k0", "modified_bessel_k1", "airy_ai", "spherical_bessel_j0")
_OTHERS += ("scaled_modified_bessel_k0", "scaled_modified_bessel_k1")


@pytest.mark.parametrize("name", _OTHERS)
def test_other_functions_at_the_ends(name: str) -> None:
    inf, nan = float("inf"), float("nan")
    ends = torch.tensor([inf, -inf, nan, 0.0, -0.0, -3.0])
    function = getattr(torch.special, name)
    torch.testing.assert_close(function(ends.to("spirv")).cpu(), function(ends), equal_nan=True)
    integers = torch.arange(1, 7)
    torch.testing.assert_close(function(integers.to("spirv")).cpu(), function(integers), rtol=1e-5, atol=1e-6)


_FAMILIES = [f"{shifted}chebyshev_polynomial_{kind}" for shifted in ("", "shifted_") for kind in "tuvw"]
_FAMILIES += ["hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", _FAMILIES)
def test_polynomials(name: str, dtype: torch.dtype) -> None:
    """The bound is a multiple of the order's square, or of the largest value of the order: a step's error grows in the
    next ones."""
    function = getattr(torch.special, name)
    x = torch.cat((torch.linspace(-1, 1, 41), torch.tensor([0.0, 1.25, -1.5, 2.0]))).to(dtype)[:, None]
    n = torch.tensor([-1, 0, 1, 2, 3, 6, 7, 8, 9, 10, 23]).to(dtype)
    exact, found = function(x.double(), n.double()), function(x.to("spirv"), n.to("spirv")).cpu().double()
    assert found.shape == exact.shape
    bound = 8 * torch.finfo(dtype).eps * (n.double().clamp(min=1) ** 2) * (1 + exact.abs())
    bound = torch.maximum(bound, 4 * torch.finfo(dtype).eps * exact.abs().amax(0))
    assert ((found - exact).abs() <= bound).all(), ((found - exact).abs() / bound).max()


@pytest.mark.parametrize("name", _FAMILIES)
def test_polynomials_at_the_ends(name: str) -> None:
    """Of overflows, limits and numbers that are none, and of numbers, integers and broadcasting."""
    function = getattr(torch.special, name)
    inf = float("inf")
    x, n = torch.tensor([-1.0, 1.0, 2.0, inf, -inf, 0.0])[:, None], torch.tensor([-1.0, 0, 1, 2, 3, 20, 600, 2.7])
    there = function(x.to("spirv"), n.to("spirv")).cpu()
    usual = torch.full(there.shape, True)
    usual[5] = n.abs() < 20  # at 0 the CPU's trigonometry rounds
    assert function(torch.full((3,), float("nan"), device="spirv"), n[2:5].to("spirv")).isnan().all()
    torch.testing.assert_close(there[usual], function(x, n)[usual], rtol=1e-5, atol=1e-5, equal_nan=True)
    integers = torch.arange(-2, 5)
    for left, right in ((integers, 3), (2.5, integers), (integers, integers.flip(0)), (x[:3, 0].double(), 5)):
        one, other = (v.to("spirv") if isinstance(v, torch.Tensor) else v for v in (left, right))
        torch.testing.assert_close(function(one, other).cpu(), function(left, right), rtol=1e-5, atol=1e-5)


def _pairs(a: torch.Tensor, ratio: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """All pairs of a with x, which is so many times a."""
    first, times = torch.meshgrid(a, ratio, indexing="ij")
    return first.contiguous(), (first * times).contiguous()


@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_incomplete_gamma_functions(name: str) -> None:
    """Absolutely within 8 units of 1's last place; relatively by how much an argument's last place changes them."""
    function = getattr(torch, name)
    orders = torch.cat((torch.logspace(-3, 4, 60), torch.tensor([0.5, 1, 2, 5, 31.9, 32, 33, 100, 1e6])))
    a, x = _pairs(orders, torch.cat((torch.logspace(-3, 2, 50), torch.linspace(0.35, 2.5, 60))))
    exact, found = function(a.double(), x.double()), function(a.to("spirv"), x.to("spirv")).cpu().double()
    eps = torch.finfo(torch.float32).eps
    error = (found - exact).abs()
    assert (error / eps).max() < 8
    # The logarithm's derivative is as large as a - x behind x = a, and as large as a log(x / a) at most.
    steep = 8 + (a.double() - x.double()).abs() + a.double() * (x.double() / a.double()).log().abs()
    # Q of a small order is a difference of numbers near 1.
    seen = (exact > 1e-30) & ((a > 0.5) | (name == "igamma"))
    assert (error / (eps * steep * exact))[seen].max() < 4


def test_incomplete_gamma_functions_at_the_ends() -> None:
    numbers = torch.tensor([0.0, -0.0, -1.0, 1.0, float("inf"), float("nan"), 1e-30, 1e30, 50.0])
    a, x = torch.meshgrid(numbers, numbers, indexing="ij")
    for function in (torch.igamma, torch.igammac):
        for kind in (torch.float32, torch.float16, torch.bfloat16):
            one, other = a.to(kind), x.to(kind)
            found = function(one.to("spirv"), other.to("spirv")).cpu()
            expected = function(one.double(), other.double()).to(kind)
            torch.testing.assert_close(
                found, expected, equal_nan=True, rtol=1e-2 if kind != torch.float32 else 1e-5, atol=1e-6
            )
