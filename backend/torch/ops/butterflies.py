"""The text of a kernel that does one pass of a Fourier transform: a discrete Fourier transform of a few elements (a
butterfly, written out) for each lane, in the order of Stockham's algorithm, which needs no reversal of digits.

A transform of n = R m elements, of which passes before this one have combined p, reads of each lane k < m the elements
k + j m (j < R), multiplies them by the roots of unity w_{p R}^(j (k mod p)), transforms them, and writes them p apart
from (k - k mod p) R + k mod p on (C. Van Loan, Computational Frameworks for the FFT, 1992, section 1.7).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from functools import cache

from triton.runtime.jit import JITFunction

from .source import kernel_of

#: Elements that a lane transforms at most, and the greatest prime among their factors.
LARGEST, LARGEST_PRIME = 16, 13

#: A number's parts, each the name of a tile; None is 0.
_Complex = tuple[str | None, str | None]
_ZERO: _Complex = (None, None)


class Source(Enum):
    """What a transform reads: complex numbers, real ones, or the conjugates of the first half of numbers whose
    transform is real, from which the other half follows."""

    COMPLEX = "complex"
    REAL = "real"
    HALF = "half"


@dataclass(frozen=True, slots=True)
class FourierPass:
    """What a pass does. ``first``: nothing was combined before. ``weighted``: elements are multiplied by the table
    ``before``, and there are only ``whole`` of them. ``last``: results are scaled, and the first ``kept`` of them
    written. ``finished``: results are multiplied by the table ``after``. ``real``: only their real parts are written.
    ``symmetric``: they come from real numbers, so the first and the middle one are real. ``inner``:
    dimensions lie between the elements in memory."""

    radix: int
    first: bool = True
    source: Source = Source.COMPLEX
    weighted: bool = False
    last: bool = True
    finished: bool = False
    real: bool = False
    symmetric: bool = False
    inner: bool = False

    @property
    def arguments(self) -> list[str]:
        """The kernel's, except for BLOCK."""
        found = ["out_re", *(() if self.real else ("out_im",)), "x_re"]
        found += ["x_im"] if self.source is not Source.REAL else []
        found += ["roots", "p", "apart"] if not self.first else []
        found += ["before"] if self.weighted else []
        found += ["after"] if self.finished else []
        found += ["whole"] if self.weighted or self.symmetric or self.source is Source.HALF else []
        found += ["kept", "scale_re", "scale_im"] if self.last else []
        found += ["m", "lanes", "stride_xo", "stride_xn", "stride_oo", "stride_on"]
        return [*found, *(("inner", "stride_xi", "stride_oi") if self.inner else ())]

    def kernel(self) -> JITFunction:
        """The kernel of the pass, with ``arguments`` and BLOCK, the lanes of a program."""
        return _kernel(self)


@cache
def _kernel(step: FourierPass) -> JITFunction:
    lines = [
        "lane = (tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)) * BLOCK + tl.arange(0, BLOCK)",
        "mask = lane < lanes",
    ]
    if step.inner:
        lines += ["i, line = lane % inner, lane // inner"]
    else:
        lines += ["line = lane"]
    lines += ["k, o = line % m, line // m"]
    between = (" + i * stride_xi", " + i * stride_oi") if step.inner else ("", "")
    lines += [f"x_at, out_at = o * stride_xo{between[0]}, o * stride_oo{between[1]}"]
    if step.first:
        lines += [f"to = k * {step.radix}"]
    else:
        lines += ["mod = k % p", f"to = (k - mod) * {step.radix} + mod"]
    lines += _reading(step)
    text = _Butterfly(lines)
    results = text.transform([_loaded(step, j) for j in range(step.radix)])
    for q, result in enumerate(results):
        lines += _writing(step, q, result)
    arguments = ", ".join([*step.arguments, "BLOCK: tl.constexpr"])
    return kernel_of("fft_pass", f"def fft_pass({arguments}):\n" + "".join(f"    {line}\n" for line in lines))


def _loaded(step: FourierPass, j: int) -> _Complex:
    real = step.source is Source.REAL and not step.weighted and step.first
    return f"re{j}", None if real else f"im{j}"


def _reading(step: FourierPass) -> list[str]:
    """Lines that assign re0, im0, re1 …"""
    lines = []
    for j in range(step.radix):
        lines += [f"e = k + {j} * m", "here = mask & (e < whole)" if step.weighted else "here = mask"]
        if step.source is Source.HALF:
            lines += ["past = 2 * e > whole", "at = x_at + tl.where(past, whole - e, e) * stride_xn"]
        else:
            lines += ["at = x_at + e * stride_xn"]
        lines += [f"re{j} = tl.load(x_re + at, mask=here, other=0.0)"]
        if step.source is not Source.REAL:
            lines += [f"im{j} = tl.load(x_im + at, mask=here, other=0.0)"]
        if step.source is Source.HALF:
            lines += [f"im{j} = tl.where((e == 0) | (2 * e == whole), 0.0, tl.where(past, im{j}, -im{j}))"]
        if step.weighted:
            lines += [
                "u = tl.load(before + 2 * e, mask=here, other=0.0)",
                "v = tl.load(before + 2 * e + 1, mask=here, other=0.0)",
            ]
            lines += _product(j, real=step.source is Source.REAL)
        if j and not step.first:
            lines += [
                f"t = mod * {j} * apart",
                "u, v = tl.load(roots + 2 * t, mask=mask), tl.load(roots + 2 * t + 1, mask=mask)",
                *_product(j, real=False),
            ]
    return lines


def _product(j: int, real: bool) -> list[str]:
    """Multiply an element, which may be ``real``, by u + i v."""
    if real:
        return [f"re{j}, im{j} = re{j} * u, re{j} * v"]
    return [f"re{j}, im{j} = re{j} * u - im{j} * v, re{j} * v + im{j} * u"]


def _writing(step: FourierPass, q: int, result: _Complex) -> list[str]:
    re, im = (part or "tl.zeros_like(re0)" for part in result)
    lines = [f"re, im = {re}, {im}", f"e = to + {q} * p" if not step.first else f"e = to + {q}"]
    there = "mask"
    if step.last:
        lines += ["there = mask & (e < kept)"]
        there = "there"
    if step.finished:
        lines += [
            f"u, v = tl.load(after + 2 * e, mask={there}), tl.load(after + 2 * e + 1, mask={there})",
            "re, im = re * u - im * v, re * v + im * u",
        ]
    if step.last:
        lines += ["re, im = re * scale_re, im * scale_im"]
    if step.symmetric:
        lines += ["im = tl.where((e == 0) | (2 * e == whole), 0.0, im)"]
    lines += ["at = out_at + e * stride_on", f"tl.store(out_re + at, re, mask={there})"]
    return lines if step.real else [*lines, f"tl.store(out_im + at, im, mask={there})"]


class _Butterfly:
    """Writes transforms of named numbers as lines. What is known to be 0 is not computed with."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._count = 0

    def transform(self, x: list[_Complex]) -> list[_Complex]:
        """The discrete Fourier transform of ``x``, by transforms of factors of its size."""
        n = len(x)
        if n == 1:
            return x
        if n == 2:
            return [self._sum(x[0], x[1]), self._difference(x[0], x[1])]
        a = 2 if n == 4 else 4 if n % 4 == 0 else next(d for d in range(2, n + 1) if n % d == 0)
        if a == n:
            return self._of_a_prime(x)
        b = n // a
        parts = [self.transform(x[start::a]) for start in range(a)]
        found: list[_Complex] = [_ZERO] * n
        for q in range(b):
            turned = [self._turned(part[q], start * q, n) for start, part in enumerate(parts)]
            found[q::b] = self.transform(turned)
        return found

    def _of_a_prime(self, x: list[_Complex]) -> list[_Complex]:
        """Elements j and n - j are multiplied by conjugate numbers."""
        n = len(x)
        pairs = [(self._sum(x[j], x[n - j]), self._difference(x[j], x[n - j])) for j in range(1, n // 2 + 1)]
        total = x[0]
        for both, _ in pairs:
            total = self._sum(total, both)
        found: list[_Complex] = [total] + [_ZERO] * (n - 1)
        for q in range(1, n // 2 + 1):
            even, odd = x[0], _ZERO
            for j, (both, apart) in enumerate(pairs, 1):
                cosine, sine = root(j * q, n)
                even = self._sum(even, (self._times(both[0], cosine), self._times(both[1], cosine)))
                odd = self._sum(odd, (self._times(apart[1], -sine), self._times(apart[0], sine)))
            found[q], found[n - q] = self._sum(even, odd), self._difference(even, odd)
        return found

    def _turned(self, x: _Complex, t: int, n: int) -> _Complex:
        """x w_n^t."""
        re, im = x
        quarters, rest = divmod(4 * t, n)
        if not rest:
            for _ in range(quarters % 4):
                re, im = im, self._less(None, re)
            return re, im
        cosine, sine = root(t, n)
        return (
            self._less(self._times(re, cosine), self._times(im, sine)),
            self._plus(self._times(re, sine), self._times(im, cosine)),
        )

    def _sum(self, a: _Complex, b: _Complex) -> _Complex:
        return self._plus(a[0], b[0]), self._plus(a[1], b[1])

    def _difference(self, a: _Complex, b: _Complex) -> _Complex:
        return self._less(a[0], b[0]), self._less(a[1], b[1])

    def _plus(self, a: str | None, b: str | None) -> str | None:
        return self._named(f"{a} + {b}") if a and b else a or b

    def _less(self, a: str | None, b: str | None) -> str | None:
        return a if b is None else self._named(f"{a} - {b}" if a else f"-{b}")

    def _times(self, a: str | None, factor: float) -> str | None:
        return None if a is None else self._named(f"{a} * {factor!r}")

    def _named(self, text: str) -> str:
        self._count += 1
        self._lines.append(f"v{self._count} = {text}")
        return f"v{self._count}"


def root(t: int, n: int) -> tuple[float, float]:
    """The parts of exp(-2 pi i t / n), computed from the nearest quarter of a turn."""
    quarters, rest = divmod(4 * (t % n) + n // 2, n)
    angle = (rest - n // 2) * (math.pi / 2) / n
    turns = ((1.0, 0.0), (0.0, -1.0), (-1.0, 0.0), (0.0, 1.0))
    (u, v), (re, im) = turns[quarters % 4], (math.cos(angle), -math.sin(angle))
    return re * u - im * v, re * v + im * u


@cache
def radices(n: int) -> tuple[int, ...] | None:
    """The fewest factors of n, none of which a lane is not given at once, the largest first; None if a prime factor
    is too large."""
    if n == 1:
        return ()
    best: tuple[int, ...] | None = None
    for radix in range(min(n, LARGEST), 1, -1):
        rest = radices(n // radix) if n % radix == 0 and _largest_prime(radix) <= LARGEST_PRIME else None
        if rest is not None and (best is None or len(rest) + 1 < len(best)):
            best = (radix, *rest)
    return best


def _largest_prime(n: int) -> int:
    return next(d for d in range(n, 0, -1) if n % d == 0 and all(d % e for e in range(2, d)))
