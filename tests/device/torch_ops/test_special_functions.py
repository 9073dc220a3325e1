"""Special functions in float32, against float64 on the CPU: the bound is a multiple of float32's precision, of the
value's size and of how much an error of half a unit in the argument's last place makes.
"""

from collections.abc import Callable

import mpmath
import pytest
import torch

pytestmark = pytest.mark.usefixtures("no_fallbacks", "compiled")

_EVERYWHERE = torch.cat((torch.linspace(-9.97, 9.93, 401), torch.tensor([0.0, -0.0, 1e-6, 30.0, 85.0, 1e4, 1e30])))
_POSITIVE = torch.cat((torch.linspace(0.01, 20, 401), torch.tensor([1e-4, 100.0, 1e4])))

_ALL_POSITIVE = torch.cat((_POSITIVE, torch.linspace(20.1, 85, 101), torch.tensor([2.0, 8.0, 1e-30, 1e30])))


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
    "spherical j0": (torch.special.spherical_bessel_j0, _EVERYWHERE, 4),
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
