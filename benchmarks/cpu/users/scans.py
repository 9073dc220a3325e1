"""Scans, sorts and random numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
import triton
import triton.language as tl

from benchmarks.cpu.kernels import cumulative, sort, top, uniform
from benchmarks.cpu.users.rows import Data, Row, numba


@triton.jit
def selective_scan(x, decay, b, c, out, steps, width, N: tl.constexpr, BLOCK: tl.constexpr):
    """The recurrence of Mamba: a state of N numbers for each channel, one step after the other."""
    channel, state = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, N)
    h = tl.zeros((BLOCK, N), tl.float32)
    rate = tl.load(decay + channel[:, None] * N + state[None, :])
    for step in range(steps):
        value = tl.load(x + step * width + channel)
        h = h * tl.exp(rate) + value[:, None] * tl.load(b + step * N + state)[None, :]
        tl.store(out + step * width + channel, tl.sum(h * tl.load(c + step * N + state)[None, :], 1))


@triton.jit
def linear_scan(a, x, out, steps, width, BLOCK: tl.constexpr):
    channel = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    h = tl.zeros((BLOCK,), tl.float32)
    for step in range(steps):
        place = step * width + channel
        h = h * tl.load(a + place) + tl.load(x + place)
        tl.store(out + place, h)


@triton.jit
def normal(out, n, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.randn(seed, at), mask=at < n)


def _scan(x, decay, b, c, out):  # type: ignore[no-untyped-def]
    rate, h = np.exp(decay), np.zeros_like(decay)
    for step in range(x.shape[0]):
        for channel in range(x.shape[1]):
            total = x[0, 0] * 0
            for state in range(decay.shape[1]):
                h[channel, state] = h[channel, state] * rate[channel, state] + x[step, channel] * b[step, state]
                total += h[channel, state] * c[step, state]
            out[step, channel] = total


def _linear(a, x, out):  # type: ignore[no-untyped-def]
    h = np.zeros_like(x[0])
    for step in range(x.shape[0]):
        h = h * a[step] + x[step]
        out[step] = h


def rows(data: Data) -> Iterator[Row]:
    """The family's rows."""
    m, n = 512, 1000
    x, out = data.normal(m, n), torch.zeros(m, n)
    yield Row(
        "cumsum 512×1000",
        lambda: cumulative[(m,)](x, out, n, BLOCK=1024),
        out,
        x.double().cumsum(1),
        data.sides(torch.cumsum, x, 1, numpy=lambda: np.cumsum(x.numpy(), 1)),
        1e-3,
    )
    values, ordered, best = data.normal(64, 1000), torch.zeros(64, 1000), torch.zeros(64, 16)
    yield Row(
        "sort 64×1000",
        lambda: sort[(64,)](values, ordered, 1000, BLOCK=1024),
        ordered,
        values.sort(1).values,
        data.sides(torch.sort, values, 1, numpy=lambda: np.sort(values.numpy(), 1)),
    )
    yield Row(
        "top 16 of 64×1000",
        lambda: top[(64,)](values, best, 1000, K=16, BLOCK=1024),
        best,
        values.topk(16).values,
        data.sides(torch.topk, values, 16),
    )
    steps, width, states = 256, 512, 16
    u, decay = data.normal(steps, width), -data.normal(width, states).abs()
    b, c, y = data.normal(steps, states), data.normal(steps, states), torch.zeros(steps, width)

    def recurrence(u, decay, b, c):  # type: ignore[no-untyped-def]
        h, found, rate = torch.zeros_like(decay), [], decay.exp()
        for step in range(len(u)):
            h = h * rate + u[step][:, None] * b[step]
            found.append(h @ c[step])
        return torch.stack(found)

    yield Row(
        "selective scan 256×512×16",
        lambda: selective_scan[(width // 16,)](u, decay, b, c, y, steps, width, N=states, BLOCK=16),
        y,
        recurrence(*(value.double() for value in (u, decay, b, c))),
        {"torch": lambda: recurrence(u, decay, b, c)}
        | ({"numba": run} if (run := numba(_scan, u, decay, b, c, torch.zeros(steps, width))) else {}),
        1e-3,
    )
    a, h = data.normal(steps, width).sigmoid(), torch.zeros(steps, width)

    def linear(a, u):  # type: ignore[no-untyped-def]
        state, found = torch.zeros_like(u[0]), []
        for step in range(len(u)):
            state = state * a[step] + u[step]
            found.append(state)
        return torch.stack(found)

    yield Row(
        "linear recurrence 256×512",
        lambda: linear_scan[(width // 64,)](a, u, h, steps, width, BLOCK=64),
        h,
        linear(a.double(), u.double()),
        {"torch": lambda: linear(a, u)}
        | ({"numba": run} if (run := numba(_linear, a, u, torch.zeros(steps, width))) else {}),
        1e-3,
    )
    count = 1 << 20
    numbers, generator = torch.zeros(count), np.random.Generator(np.random.Philox(1))
    yield Row(
        "uniform numbers",
        lambda: uniform[(count // 1024,)](numbers, count, 7, BLOCK=1024),
        numbers,
        None,
        {
            "torch": lambda: numbers.uniform_(),
            "numpy": lambda: generator.random(count, dtype=np.float32, out=numbers.numpy()),
        },
    )
    yield Row(
        "normal numbers",
        lambda: normal[(count // 1024,)](numbers, count, 7, BLOCK=1024),
        numbers,
        None,
        {
            "torch": lambda: numbers.normal_(),
            "numpy": lambda: generator.standard_normal(count, dtype=np.float32, out=numbers.numpy()),
        },
    )
