"""Fourier transforms against NumPy's in float64 and the CPU's: values, strides, gradients, how many launches."""

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from triton.backends.spirv.torch.ops.butterflies import radices, root

from .conftest import compare

pytestmark = pytest.mark.usefixtures("compiled")

_ON_DEVICE = pytest.mark.usefixtures("no_fallbacks")
_TOLERANCE = (2e-5, 2e-5)


def _numbers(*shape: int, dtype: torch.dtype = torch.complex64) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(sum(shape)))


def _close(found: torch.Tensor, exact: Any) -> None:
    """A relative error, of the norm, of half a unit in the last place for each level of a transform by twos."""
    values = found.cpu().numpy()
    eps = np.finfo(values.real.dtype).eps
    assert values.shape == exact.shape
    error = np.linalg.norm(values - exact) / max(np.linalg.norm(exact), 1e-300)
    assert error <= 0.5 * eps * (2 + math.log2(max(exact.shape[-1], 1))), error / eps


#: Sizes with the launches of a transform: powers of two, factors that differ, squares, primes (by a chirp), 2^20.
_LAUNCHES = {1: 1, 2: 1, 3: 1, 7: 1, 11: 1, 13: 1, 16: 1, 17: 4, 30: 2, 37: 4, 45: 2, 49: 2, 74: 4, 210: 2, 256: 2}
_LAUNCHES |= {243: 3, 1000: 3, 1024: 3, 2003: 6, 4096: 3, 10007: 8, 30030: 4, 1 << 20: 5}


@_ON_DEVICE
@pytest.mark.parametrize("n", _LAUNCHES)
def test_sizes(n: int, launches: list[Any]) -> None:
    x = _numbers(3 if n < 1 << 16 else 1, n)
    there = x.to("spirv")
    launches.clear()
    found = torch.fft.fft(there)
    assert len(launches) == _LAUNCHES[n]
    _close(found, np.fft.fft(x.numpy().astype(np.complex128)))
    _close(torch.fft.ifft(there), np.fft.ifft(x.numpy().astype(np.complex128)))


@_ON_DEVICE
@pytest.mark.parametrize("n", [1, 2, 5, 6, 16, 17, 34, 63, 96])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_real_numbers(n: int, dtype: torch.dtype) -> None:
    x = _numbers(4, n, dtype=dtype)
    exact = np.fft.rfft(x.numpy().astype(np.float64))
    half = torch.fft.rfft(x.to("spirv"))
    _close(half, exact)
    for edge in (half[:, :1], *((half[:, n // 2 :],) if n % 2 == 0 else ())):
        assert not edge.imag.any()
    _close(torch.fft.fft(x.to("spirv")), np.fft.fft(x.numpy().astype(np.float64)))
    _close(torch.fft.ihfft(x.to("spirv")), np.fft.ihfft(x.numpy().astype(np.float64)))
    exact = exact + 1j  # what has no part in a real result is not read
    spectrum = torch.from_numpy(exact).to(half.dtype).to("spirv")
    _close(torch.fft.irfft(spectrum, n), np.fft.irfft(exact, n))
    _close(torch.fft.hfft(spectrum, n), np.fft.hfft(exact, n))


_FUNCTIONS: dict[str, Callable[[torch.Tensor], Any]] = {
    "each dimension": lambda x: [torch.fft.fft(x, dim=d) for d in range(4)],
    "two": lambda x: [torch.fft.fft2(x), torch.fft.fft2(x, dim=(0, 2)), torch.fft.ifft2(x, dim=(1, 0))],
    "all": lambda x: (torch.fft.fftn(x), torch.fft.ifftn(x, norm="ortho"), torch.fft.fftn(x, norm="forward")),
    "cropped and padded": lambda x: (torch.fft.fft(x, 3), torch.fft.fft(x, 9), torch.fft.ifft2(x, (5, 3))),
    "strides": lambda x: (torch.fft.fft(x[:, ::2, 1:]), torch.fft.fft(x.transpose(0, 3)), torch.fft.fftn(x.mT[1:])),
    "pending": lambda x: (torch.fft.fft(x.conj()), torch.fft.ifft(torch._neg_view(x))),
    "repeated": lambda x: torch.fft.fft(x[:, :1].expand(2, 3, 4, 5), dim=2),
    "real": lambda x: [torch.fft.rfft(x.real, dim=d, norm=norm) for d, norm in ((0, "ortho"), (1, "forward"))],
    "real, several": lambda x: (torch.fft.rfftn(x.imag), torch.fft.rfft2(x.real, dim=(2, 0)), torch.fft.fftn(x.real)),
    "half": lambda x: (torch.fft.irfft(x, 7), torch.fft.irfftn(x), torch.fft.irfft2(x, dim=(3, 1), norm="ortho")),
    "conjugates": lambda x: (torch.fft.hfft(x, 8), torch.fft.hfftn(x, dim=(0, 2)), torch.fft.ihfftn(x.real)),
    "one": lambda x: (torch.fft.fft(x[0, 0, 0, :1]), torch.fft.fftn(x[0, 0, 0, 0], dim=())),
}


@_ON_DEVICE
@pytest.mark.parametrize("name", _FUNCTIONS)
def test_values_and_strides_are_the_cpus(name: str) -> None:
    compare(_FUNCTIONS[name], _numbers(2, 3, 4, 5), tolerance=_TOLERANCE)


@_ON_DEVICE
def test_five_dimensions_whose_memory_is_not_walked_as_one() -> None:
    x = _numbers(2, 3, 2, 3, 2).permute(3, 1, 4, 0, 2)
    compare(lambda x: [torch.fft.fftn(x, dim=dims) for dims in ((1, 3), (0, 2), (4, 0, 2))], x, tolerance=_TOLERANCE)


@_ON_DEVICE
@pytest.mark.parametrize("seed", range(4))
def test_any_dimensions_in_any_order(seed: int) -> None:
    """Of memory with gaps, whose dimensions were permuted: each kind of transform, over any of them."""
    draw = random.Random(seed)
    for _ in range(12):
        count = draw.randint(1, 5)
        shape = [draw.randint(1, 5) for _ in range(count)]
        x = _numbers(*(size + draw.randint(0, 1) for size in shape))[tuple(slice(size) for size in shape)]
        x = x.permute(draw.sample(range(count), count))
        dims, scale = draw.sample(range(count), draw.randint(1, count)), draw.randint(0, 2)
        last = max(x.shape[dims[-1]] * 2 - draw.randint(1, 2), 1)
        forward, half = draw.random() < 0.5, draw.random() < 0.5
        for run in (
            lambda x, d=dims, s=scale, way=forward: torch.ops.aten._fft_c2c(x, d, s, way),
            lambda x, d=dims, s=scale, half=half: torch.ops.aten._fft_r2c(x.real, d, s, half),
            lambda x, d=dims, s=scale, n=last: torch.ops.aten._fft_c2r(x, d, s, n),
        ):
            here = run(x)
            there = run(_same_memory(x))
            torch.testing.assert_close(there.cpu(), here, rtol=2e-5, atol=2e-5)
            steps = [[step for step, size in zip(y.stride(), y.shape, strict=True) if size > 1] for y in (there, here)]
            assert steps[0] == steps[1]


def _same_memory(x: torch.Tensor) -> torch.Tensor:
    memory = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage())
    return memory.clone().to("spirv").as_strided(x.shape, x.stride(), x.storage_offset())


@_ON_DEVICE
def test_integers_and_outputs() -> None:
    def run(x: torch.Tensor) -> Any:
        given = torch.empty(6, 5, dtype=torch.complex64, device=x.device).t()
        pair = torch.empty(4, 6, dtype=torch.complex64, device=x.device)
        half = torch.fft.rfft(x, out=pair[:, ::2][:, :3])
        return (
            torch.fft.fft(x, 6, out=given[:4]),
            half,
            torch.fft.irfft(half, 5, out=x.new_empty(4, 5).float()),
            pair[:, ::2],
        )

    compare(run, torch.arange(20).view(4, 5) % 7, tolerance=_TOLERANCE)


@_ON_DEVICE
def test_gradients() -> None:
    def run(x: torch.Tensor, z: torch.Tensor) -> Any:
        x, z = x.detach().requires_grad_(), z.detach().requires_grad_()
        weights = torch.linspace(-1, 1, 4, device=x.device)
        made = torch.fft.rfft(x), torch.fft.fft2(z), torch.fft.irfft(z, 7), torch.fft.ifft(z, norm="ortho")
        total = sum(((y.abs() if y.is_complex() else y) * weights[: y.shape[-2], None]).sum() for y in made)
        total.backward()  # type: ignore[union-attr]
        return x.grad, z.grad

    compare(run, _numbers(4, 6, dtype=torch.float32), _numbers(4, 4), tolerance=(1e-4, 1e-4))


@_ON_DEVICE
def test_short_time_transforms() -> None:
    def run(x: torch.Tensor) -> Any:
        window = torch.hann_window(16, device=x.device)
        how: dict[str, Any] = {"hop_length": 4, "window": window}
        spectrum = torch.stft(x, 16, **how, return_complex=True)
        plain = torch.stft(x, 12, return_complex=True, onesided=False, normalized=True, center=False)
        return spectrum, torch.istft(spectrum, 16, **how, length=x.shape[-1]), plain

    compare(run, _numbers(2, 61, dtype=torch.float32), tolerance=_TOLERANCE)


@_ON_DEVICE
def test_rows_that_are_not_finite_leave_others_alone() -> None:
    x = _numbers(3, 34)
    x[1, 5] = float("nan")
    found = torch.fft.fft(x.to("spirv")).cpu()
    assert found[1].isnan().all()
    _close(found[::2], np.fft.fft(x[::2].numpy().astype(np.complex128)))


@pytest.mark.parametrize("n", [0, -1])
def test_no_numbers_are_refused(n: int) -> None:
    with pytest.raises(RuntimeError, match="Invalid number of data points"):
        torch.fft.fft(torch.zeros(2, 3, device="spirv"), n)


def test_roots_of_unity_are_exact_to_a_unit() -> None:
    for n in (1, 3, 8, 12, 97):
        for t in range(-n, 2 * n):
            exact = np.exp(-2j * np.pi * np.longdouble(t % n) / n) if n > 1 else 1
            assert abs(complex(*root(t, n)) - complex(exact)) < 5e-16
    assert root(3, 12) == (0.0, -1.0)


def test_a_size_has_the_fewest_factors() -> None:
    assert radices(1 << 12) == (16, 16, 16) and radices(13 * 16) == (16, 13)
    assert radices(17) is None and radices(2 * 37) is None
    for n in range(1, 700):
        factors = radices(n)
        assert factors is None or (math.prod(factors) == n and max(factors, default=1) <= 16)
