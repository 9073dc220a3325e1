"""What is measured: kernels on data of one size, the same in torch and NumPy, and what is to be reached."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import triton
from torch.nn import functional

from benchmarks.cpu import kernels
from examples import flash_attention, fused_softmax, layer_norm, matmul

BLOCK = 1024


@dataclass
class Case:
    """``run`` computes ``out``; ``others``: the same by name; ``expected``: in float64, with the largest absolute
    ``error`` that is allowed. ``bytes_moved`` or ``operations`` of a run. ``goal``: the ratio to the best of the others
    that is to be reached."""

    name: str
    goal: float
    run: Callable[[], object]
    out: torch.Tensor
    expected: Any
    others: dict[str, Callable[[], object]]
    bytes_moved: int = 0
    operations: int = 0
    error: float = 0.0


@dataclass
class _Data:
    """Random tensors, the same each time."""

    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def normal(self, *shape: int) -> torch.Tensor:
        return torch.from_numpy(self.random.standard_normal(shape, dtype=np.float32))

    def integers(self, most: int, count: int) -> torch.Tensor:
        return torch.from_numpy(self.random.integers(0, most, count).astype(np.int64))


def _elementwise(data: _Data) -> Iterator[Case]:
    n = (1 << 21) - 5
    x, y, out = data.normal(n), data.normal(n), torch.zeros(n)
    grid = (triton.cdiv(n, BLOCK),)
    yield Case(
        "add",
        0.9,
        lambda: kernels.add[grid](x, y, out, n, BLOCK=BLOCK),
        out,
        x.double() + y.double(),
        {"torch": lambda: torch.add(x, y, out=out), "numpy": lambda: np.add(x.numpy(), y.numpy(), out=out.numpy())},
        bytes_moved=12 * n,
        error=1e-6,
    )
    copied = torch.zeros(n)
    yield Case(
        "copy",
        0.9,
        lambda: kernels.copy[grid](x, copied, n, BLOCK=BLOCK),
        copied,
        x,
        {"torch": lambda: copied.copy_(x), "numpy": lambda: np.copyto(copied.numpy(), x.numpy())},
        bytes_moved=8 * n,
    )

    def chained(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        value = torch.clamp(a * b + a, min=0) * 0.5 - b
        return torch.where(value > 1, value * value, value + a)

    result = torch.zeros(n)
    yield Case(
        "chain",
        0.9,
        lambda: kernels.chain[grid](x, y, result, n, BLOCK=BLOCK),
        result,
        chained(x.double(), y.double()),
        {"torch": lambda: chained(x, y)},
        bytes_moved=12 * n,
        error=1e-4,
    )
    for name, kernel, function in (("exp", kernels.exponential, torch.exp), ("gelu", kernels.gelu, functional.gelu)):
        target = torch.zeros(n)
        yield Case(
            name,
            0.9,
            lambda kernel=kernel, target=target: kernel[grid](x, target, n, BLOCK=BLOCK),  # type: ignore[misc]
            target,
            function(x.double()),
            {"torch": lambda function=function: function(x)},  # type: ignore[misc]
            bytes_moved=8 * n,
            error=1e-4,
        )
    numbers, generator = torch.zeros(n), np.random.Generator(np.random.Philox(1))
    yield Case(
        "uniform",
        0.9,
        lambda: kernels.uniform[grid](numbers, n, 7, BLOCK=BLOCK),
        numbers,
        None,
        {
            "torch": lambda: numbers.uniform_(),
            "numpy": lambda: generator.random(n, dtype=np.float32, out=numbers.numpy()),
        },
        bytes_moved=4 * n,
    )


def _rows(data: _Data) -> Iterator[Case]:
    m, n = 512, 1000
    x, out = data.normal(m, n), torch.zeros(m, n)
    weight, bias = data.normal(n), data.normal(n)
    mean, rstd = torch.zeros(m), torch.zeros(m)
    yield Case(
        "softmax",
        0.8,
        lambda: fused_softmax.softmax(x, out, m, n),
        out,
        torch.softmax(x.double(), 1),
        {"torch": lambda: torch.softmax(x, 1)},
        bytes_moved=8 * m * n,
        error=1e-6,
    )
    normal = torch.zeros(m, n)
    yield Case(
        "layer norm",
        0.8,
        lambda: layer_norm.layer_norm(x, normal, weight, bias, mean, rstd, m, n),
        normal,
        functional.layer_norm(x.double(), (n,), weight.double(), bias.double()),
        {"torch": lambda: functional.layer_norm(x, (n,), weight, bias)},
        bytes_moved=8 * m * n,
        error=1e-4,
    )
    scaled = torch.zeros(m, n)
    yield Case(
        "rms norm",
        0.8,
        lambda: kernels.rms_norm[(m,)](x, weight, scaled, n, n, 1e-5, BLOCK=BLOCK),
        scaled,
        functional.rms_norm(x.double(), (n,), weight.double(), 1e-5),
        {"torch": lambda: functional.rms_norm(x, (n,), weight, 1e-5)},
        bytes_moved=8 * m * n,
        error=1e-4,
    )
    for maximum in (False, True):
        word = "max" if maximum else "sum"
        reduced = torch.zeros(m)
        yield Case(
            f"{word} of rows",
            0.8,
            lambda maximum=maximum, reduced=reduced: kernels.reduce_rows[(m,)](  # type: ignore[misc]
                x, reduced, n, MAXIMUM=maximum, BLOCK=BLOCK
            ),
            reduced,
            x.double().amax(1) if maximum else x.double().sum(1),
            {
                "torch": lambda maximum=maximum: x.amax(1) if maximum else x.sum(1),  # type: ignore[misc]
                "numpy": lambda maximum=maximum: x.numpy().max(1) if maximum else x.numpy().sum(1),  # type: ignore[misc]
            },
            bytes_moved=4 * m * n,
            error=1e-3,
        )
        columns = torch.zeros(n)
        yield Case(
            f"{word} of columns",
            0.8,
            lambda maximum=maximum, columns=columns: kernels.reduce_columns[(triton.cdiv(n, 128),)](  # type: ignore[misc]
                x, columns, m, n, MAXIMUM=maximum, ROWS=16, COLUMNS=128
            ),
            columns,
            x.double().amax(0) if maximum else x.double().sum(0),
            {
                "torch": lambda maximum=maximum: x.amax(0) if maximum else x.sum(0),  # type: ignore[misc]
                "numpy": lambda maximum=maximum: x.numpy().max(0) if maximum else x.numpy().sum(0),  # type: ignore[misc]
            },
            bytes_moved=4 * m * n,
            error=1e-3,
        )


def _matmul(data: _Data) -> Iterator[Case]:
    for m, n, k, dtype, goal in (
        (512, 512, 512, torch.float32, 0.8),
        (1024, 1024, 1024, torch.float32, 0.8),
        (1823, 781, 333, torch.float32, 0.8),
        (512, 512, 512, torch.float16, 0.7),
        (512, 512, 512, torch.bfloat16, 0.7),
    ):
        a, b = data.normal(m, k), data.normal(k, n)
        left, right, out = a.to(dtype), b.to(dtype), torch.zeros(m, n, dtype=dtype)
        yield Case(
            f"matmul {m}x{n}x{k} {str(dtype).removeprefix('torch.')}",
            goal,
            lambda left=left, right=right, out=out, size=(m, n, k): matmul.matmul(left, right, out, *size),  # type: ignore[misc]
            out,
            left.double() @ right.double(),
            {
                "torch": lambda a=a, b=b: torch.matmul(a, b),  # type: ignore[misc]
                "numpy": lambda a=a, b=b: np.matmul(a.numpy(), b.numpy()),  # type: ignore[misc]
            },
            operations=2 * m * n * k,
            error={torch.float32: 1e-3, torch.float16: 0.2, torch.bfloat16: 1.0}[dtype],
        )
    batches, m, n, k = 16, 128, 128, 96
    a, b, out = data.normal(batches, m, k), data.normal(batches, k, n), torch.zeros(batches, m, n)
    yield Case(
        "batched matmul 16x128x128x96",
        0.8,
        lambda: kernels.batched[(2, 2, batches)](a, b, out, m, n, k, M=64, N=64, K=32),
        out,
        a.double() @ b.double(),
        {"torch": lambda: torch.matmul(a, b)},
        operations=2 * batches * m * n * k,
        error=1e-3,
    )


def _attention(data: _Data) -> Iterator[Case]:
    heads, length = 8, 512
    for head in (64, 128):
        for causal in (False, True):
            for dtype in (torch.float32, torch.float16):
                q, k, v = (data.normal(heads, length, head) for _ in range(3))
                given = [tensor.to(dtype) for tensor in (q, k, v)]
                out, sums = torch.zeros(heads, length, head, dtype=dtype), torch.zeros(heads, length)
                scale = head**-0.5

                def run(given=given, out=out, sums=sums, head=head, scale=scale, causal=causal) -> None:  # type: ignore[no-untyped-def]
                    flash_attention.forward(*given, out, sums, heads, length, head, scale, causal, 64)

                def reference(q=q, k=k, v=v, causal=causal) -> torch.Tensor:  # type: ignore[no-untyped-def]
                    return functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=causal)[0]

                yield Case(
                    f"attention {head} {'causal ' if causal else ''}{str(dtype).removeprefix('torch.')}",
                    0.8,
                    run,
                    out,
                    reference(*(tensor.double() for tensor in given), causal),
                    {"torch": reference},
                    operations=4 * heads * length * length * head // (2 if causal else 1),
                    error=1e-4 if dtype == torch.float32 else 2e-2,
                )
    yield _gradients(data)


def _gradients(data: _Data) -> Case:
    heads, length, head = 4, 512, 64
    q, k, v, grad = (data.normal(heads, length, head) for _ in range(4))
    out, sums, product = torch.zeros_like(q), torch.zeros(heads, length), torch.zeros(heads, length)
    grads = [torch.zeros_like(q) for _ in range(3)]
    flash_attention.forward(q, k, v, out, sums, heads, length, head, head**-0.5, True, 64)
    leaves = [tensor[None].clone().requires_grad_() for tensor in (q, k, v)]
    wide = [tensor[None].double().requires_grad_() for tensor in (q, k, v)]

    def backward(inputs: list[torch.Tensor], given: torch.Tensor) -> Any:
        result = functional.scaled_dot_product_attention(*inputs, is_causal=True)
        return torch.autograd.grad(result, inputs, given)

    result = functional.scaled_dot_product_attention(*leaves, is_causal=True)
    return Case(
        "attention 64 causal gradients",
        0.8,
        lambda: flash_attention.backward(
            q, k, v, out, grad, sums, product, *grads, heads, length, head, head**-0.5, True, 64
        ),
        grads[1],
        backward(wide, grad[None].double())[1][0],
        {"torch": lambda: torch.autograd.grad(result, leaves, grad[None], retain_graph=True)},
        operations=10 * heads * length * length * head // 2,
        error=1e-3,
    )


def _places(data: _Data) -> Iterator[Case]:
    n = 1 << 18
    x, out, spare = data.normal(n), torch.zeros(n), torch.zeros(n)
    index, permutation = data.integers(n, n), torch.from_numpy(data.random.permutation(n))
    grid = (triton.cdiv(n, BLOCK),)
    yield Case(
        "gather",
        0.5,
        lambda: kernels.gather[grid](x, index, out, n, BLOCK=BLOCK),
        out,
        x[index],
        {"torch": lambda: torch.take(x, index), "numpy": lambda: np.take(x.numpy(), index.numpy())},
        bytes_moved=16 * n,
    )
    scattered, expected = torch.zeros(n), torch.zeros(n)
    expected[permutation] = x
    yield Case(
        "scatter",
        0.5,
        lambda: kernels.scatter[grid](x, permutation, scattered, n, BLOCK=BLOCK),
        scattered,
        expected,
        {"torch": lambda: spare.scatter_(0, permutation, x)},
        bytes_moved=16 * n,
    )
    table, words, rows = data.normal(5000, 256), data.integers(5000, 1024), torch.zeros(1024, 256)
    yield Case(
        "embedding",
        0.5,
        lambda: kernels.embedding[(1024,)](table, words, rows, 256, BLOCK=256),
        rows,
        table[words],
        {"torch": lambda: functional.embedding(words, table)},
        bytes_moved=8 * 1024 * 256,
    )
    wide, turned = data.normal(500, 1000), torch.zeros(1000, 500)
    yield Case(
        "transpose",
        0.5,
        lambda: kernels.transpose[(16, 32)](wide, turned, 500, 1000, TILE=32),
        turned,
        wide.t(),
        {"torch": lambda: wide.t().contiguous(), "numpy": lambda: np.ascontiguousarray(wide.numpy().T)},
        bytes_moved=8 * 500 * 1000,
    )


def _scans(data: _Data) -> Iterator[Case]:
    m, n = 512, 1000
    x, out = data.normal(m, n), torch.zeros(m, n)
    yield Case(
        "cumsum",
        0.5,
        lambda: kernels.cumulative[(m,)](x, out, n, BLOCK=BLOCK),
        out,
        x.double().cumsum(1),
        {"torch": lambda: x.cumsum(1), "numpy": lambda: np.cumsum(x.numpy(), 1)},
        bytes_moved=8 * m * n,
        error=1e-3,
    )
    places = torch.zeros(m, dtype=torch.int32)
    yield Case(
        "argmax",
        0.5,
        lambda: kernels.largest[(m,)](x, places, n, BLOCK=BLOCK),
        places,
        x.argmax(1),
        {"torch": lambda: x.argmax(1), "numpy": lambda: np.argmax(x.numpy(), 1)},
        bytes_moved=4 * m * n,
    )
    count = 1 << 18
    numbers, bins = data.integers(256, count).int(), torch.zeros(256, dtype=torch.int32)

    def counted() -> None:
        bins.zero_()
        kernels.histogram[(triton.cdiv(count, BLOCK),)](numbers, bins, count, BINS=256, BLOCK=BLOCK)

    yield Case(
        "histogram",
        0.5,
        counted,
        bins,
        torch.bincount(numbers, minlength=256),
        {
            "torch": lambda: torch.bincount(numbers, minlength=256),
            "numpy": lambda: np.bincount(numbers.numpy(), minlength=256),
        },
        bytes_moved=4 * count,
    )
    rows, sorted_ = data.normal(256, 1000), torch.zeros(256, 1000)
    yield Case(
        "sort",
        0.2,
        lambda: kernels.sort[(256,)](rows, sorted_, 1000, BLOCK=BLOCK),
        sorted_,
        rows.sort(1).values,
        {"torch": lambda: torch.sort(rows, 1), "numpy": lambda: np.sort(rows.numpy(), 1)},
        bytes_moved=8 * 256 * 1000,
    )
    best = torch.zeros(256, 16)
    yield Case(
        "top-k",
        0.2,
        lambda: kernels.top[(256,)](rows, best, 1000, K=16, BLOCK=BLOCK),
        best,
        rows.topk(16).values,
        {"torch": lambda: torch.topk(rows, 16)},
        bytes_moved=4 * 256 * 1000,
    )


#: Families of cases by name.
FAMILIES: dict[str, Callable[[_Data], Iterator[Case]]] = {
    "elementwise": _elementwise,
    "rows": _rows,
    "matmul": _matmul,
    "attention": _attention,
    "places": _places,
    "scans": _scans,
}


def cases(families: list[str]) -> Iterator[Case]:
    """The cases of some families, made one after the other."""
    for family in families:
        yield from FAMILIES[family](_Data())
