"""Eager operations of torch on ``spirv``, where that is the processor, beside the same on torch's CPU device.

Both use one thread. A row has an operation's microseconds of processor time, the least of five turns that the two
devices take in turn, and how many times as fast as torch's ``spirv`` is. The geometric mean stands below.

    python -m benchmarks.operations [PART OF A NAME …] [--compiled] [--below RATIO]

``--compiled`` leaves no operation to torch's own kernels (TRITON_SPIRV_TORCH_COMPILED): where it is faster by more than
their way costs, their condition in ``backend/torch/ops/processor.py`` should know.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from triton.backends.spirv.settings import CPU_THREADS, TORCH_COMPILED

_Operation = tuple[str, Callable[..., Any], Sequence[Any]]
_UNARY = (
    "abs neg exp log1p sin tan asin atan sinh tanh sigmoid erf erfinv lgamma digamma rsqrt sqrt reciprocal floor round "
    "sign log2 expm1 isnan logical_not square"
)
_ACTIVATIONS = "gelu silu mish softplus elu hardswish leaky_relu logsigmoid"
_BINARY = "add mul div atan2 fmod remainder pow maximum eq logical_and hypot copysign nextafter logaddexp floor_divide"
_INTEGERS = "add mul floor_divide remainder bitwise_and gcd maximum eq"
_ALONG = "sum mean amax argmax prod std logsumexp norm cumsum cumprod cummax logcumsumexp softmax log_softmax"
_MATRICES = "inv det eigh svd qr pinv matrix_exp"


def _with_gradients(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*tensors: Any) -> Any:
        leaves = [t.detach().requires_grad_() if t.is_floating_point() else t for t in tensors]
        (function(*leaves) ** 2).sum().backward()
        return leaves[0].grad

    return run


def _operations() -> Iterator[_Operation]:
    """Names, functions and their tensors, on the CPU."""
    import torch
    import torch.nn.functional as F

    def real(*shape: int) -> Any:
        return torch.randn(*shape)

    def index(most: int, *shape: int) -> Any:
        return torch.randint(0, most, shape)

    side = 512
    x, y, m, b, image = real(side**2), real(side**2), real(side, side), real(8, 128, 128), real(4, 16, 56, 56)
    whole, other = index(1000, side**2), index(1000, side**2) + 1
    rows, places, heads = index(side, side), index(side, side, side), real(2, 8, 128, 64)
    for name in _UNARY.split():
        yield name, getattr(torch, name), [x]
    for name in _ACTIVATIONS.split():
        yield name, getattr(F, name), [x]
    for name in _BINARY.split():
        yield name, getattr(torch, name), [x.abs() + 0.1, y]
    for name in _INTEGERS.split():
        yield f"{name}, int64", getattr(torch, name), [whole, other]
    for power in (1, 2, 2.5, -2):
        yield f"x ** {power}", lambda t, p=power: t**p, [x.abs() + 0.1]
    for kind in (torch.bfloat16, torch.float16, torch.float64):
        short = str(kind).removeprefix("torch.")
        yield f"add, {short}", torch.add, [x.to(kind), y.to(kind)]
        yield f"exp, {short}", torch.exp, [x.to(kind)]
        yield f"softmax, {short}", lambda t: t.softmax(1), [m.to(kind)]
        yield f"to {short}", lambda t, kind=kind: t.to(kind), [x]
        yield f"from {short}", lambda t: t.to(torch.float32), [x.to(kind)]
        yield f"linear of 32 rows, {short}", F.linear, [real(32, 1024).to(kind), real(1024, 1024).to(kind)]
    for name in _ALONG.split():
        function = getattr(torch, name)
        for dim in (1, 0):
            yield f"{name} along {dim}", lambda t, f=function, d=dim: f(t, dim=d), [m]
    yield "sum", torch.sum, [x]
    yield "cumsum of int64", lambda t: t.cumsum(0), [whole]
    yield "sort", lambda t: t.sort(1), [m]
    yield "topk", lambda t: t.topk(50), [real(4, 50257)]
    yield "unique", torch.unique, [index(500, side**2)]
    yield "median", lambda t: t.median(1), [m]
    for name, fill in (("zeros_like", torch.zeros_like), ("full_like", lambda t: torch.full_like(t, 3.0))):
        yield name, fill, [x]
    yield "clone", torch.clone, [x]
    yield "transposed, contiguous", lambda t: t.t().contiguous(), [m]
    yield "permuted, contiguous", lambda t: t.permute(0, 2, 1, 3).contiguous(), [heads]
    yield "cat of rows", lambda *t: torch.cat(t), [m, m]
    yield "cat of columns", lambda *t: torch.cat(t, 1), [m, m]
    yield "cat of complex numbers", lambda *t: torch.cat(t, 1), [torch.complex(m, m)] * 2
    yield "stack", lambda *t: torch.stack(t, -1), [m, m]
    yield "flip", lambda t: t.flip(1), [m]
    yield "roll", lambda t: t.roll(3, 1), [m]
    yield "tril", torch.tril, [m]
    yield "repeat_interleave", lambda t: t.repeat_interleave(3, 1), [m]
    yield "pad", lambda t: F.pad(t, (1, 2, 3, 4)), [m]
    yield "unfold", lambda t: t.unfold(1, 8, 4).contiguous(), [m]
    yield "where", torch.where, [x > 0, x, y]
    yield "masked_select", torch.masked_select, [x, x > 0]
    yield "index_select of rows", lambda t, i: t.index_select(0, i), [m, rows]
    yield "index_select of columns", lambda t, i: t.index_select(1, i), [m, rows]
    for dim in (1, 0):
        yield f"gather along {dim}", lambda t, i, d=dim: t.gather(d, i), [m, places]
        yield f"scatter_add along {dim}", lambda t, i, s, d=dim: t.scatter_add(d, i, s), [m, places, m]
    yield "index_add", lambda t, i, s: t.index_add(0, i, s), [m, rows, m]
    yield "embedding", F.embedding, [index(1000, 2048), real(1000, 128)]
    for mode in ("sum", "mean"):
        yield (
            f"embedding_bag, {mode}",
            lambda i, w, mode=mode: F.embedding_bag(i, w, mode=mode),
            [index(1000, 1000, 8), real(1000, 128)],
        )
    yield "mm", torch.mm, [m, m]
    yield "mm of int64", torch.mm, [index(9, 128, 128), index(9, 128, 128)]
    yield "bmm", torch.bmm, [b, b]
    yield "linear of one row", F.linear, [real(1, 1024), real(1024, 1024)]
    yield "attention", F.scaled_dot_product_attention, [heads] * 3
    yield "attention, causal", lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), [heads]
    yield "attention of one row", F.scaled_dot_product_attention, [real(1, 8, 1, 64), *[real(1, 8, 512, 64)] * 2]
    convolutions: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, int]]] = {
        "3×3": ((2, 64, 28, 28), (64, 64, 3, 3), {"padding": 1}),
        "1×1": ((2, 64, 28, 28), (64, 64, 1, 1), {}),
        "7×7 with stride": ((1, 3, 224, 224), (64, 3, 7, 7), {"stride": 2, "padding": 3}),
        "patches": ((2, 3, 224, 224), (192, 3, 16, 16), {"stride": 16}),
        "3×3 of one channel": ((64, 1, 28, 28), (32, 1, 3, 3), {}),
        "3×3 of 14² elements": ((2, 16, 14, 14), (16, 16, 3, 3), {"padding": 1}),
        "four groups": ((2, 64, 28, 28), (64, 16, 3, 3), {"padding": 1, "groups": 4}),
        "depthwise": ((2, 64, 56, 56), (64, 1, 3, 3), {"padding": 1, "groups": 64}),
        "depthwise of 14² elements": ((2, 16, 14, 14), (16, 1, 3, 3), {"padding": 1, "groups": 16}),
    }
    for name, (images, weights, how) in convolutions.items():
        function = lambda t, w, how=how: F.conv2d(t, w, **how)  # noqa: E731
        yield f"convolution, {name}", function, [real(*images), real(*weights)]
        yield f"convolution, {name}, trained", _with_gradients(function), [real(*images), real(*weights)]
    yield (
        "convolution, 3×3, bfloat16",
        lambda t, w: F.conv2d(t, w, padding=1),
        [real(2, 64, 28, 28).bfloat16(), real(64, 64, 3, 3).bfloat16()],
    )
    yield (
        "convolution of lines, depthwise",
        lambda t, w: F.conv1d(t, w, padding=3, groups=256),
        [real(4, 256, 512), real(256, 1, 4)],
    )
    yield "max_pool2d", lambda t: F.max_pool2d(t, 2), [image]
    yield "avg_pool2d", lambda t: F.avg_pool2d(t, 2), [image]
    for mode in ("nearest", "bilinear", "bicubic"):
        yield f"interpolate, {mode}", lambda t, mode=mode: F.interpolate(t, scale_factor=2, mode=mode), [image]
    yield "grid_sample", lambda t, g: F.grid_sample(t, g, align_corners=False), [image, real(4, 56, 56, 2).tanh()]
    for name, norm in (
        ("layer_norm", lambda t: F.layer_norm(t, (t.shape[-1],))),
        ("rms_norm", lambda t: F.rms_norm(t, (t.shape[-1],))),
        ("group_norm", lambda t: F.group_norm(t, 4)),
        ("batch_norm", lambda t: F.batch_norm(t, None, None, training=True)),
    ):
        given = image if name in ("group_norm", "batch_norm") else m
        yield name, norm, [given]
        yield f"{name}, trained", _with_gradients(norm), [given]
    for name, loss, given in (
        ("cross_entropy", F.cross_entropy, [m, rows]),
        ("cross_entropy of 50257", F.cross_entropy, [real(16, 50257), index(50257, 16)]),
        ("mse_loss", F.mse_loss, [x, y]),
        ("cosine_similarity", F.cosine_similarity, [m, m]),
    ):
        yield name, loss, given
    for name, function, given in (
        ("gelu, trained", F.gelu, [x]),
        ("softmax, trained", lambda t: t.softmax(1), [m]),
        ("linear, trained", F.linear, [real(128, side), m]),
        ("embedding, trained", lambda w, i: F.embedding(i, w), [real(1000, 128), index(1000, 2048)]),
        ("embedding_bag, trained", lambda w, i: F.embedding_bag(i, w), [real(1000, 128), index(1000, 1000, 8)]),
        ("cumsum, trained", lambda t: t.cumsum(1), [m]),
        ("attention, trained", F.scaled_dot_product_attention, [heads] * 3),
    ):
        yield name, _with_gradients(function), given
    for name in _MATRICES.split():
        yield name, getattr(torch.linalg, name), [(lambda a: a + a.T)(real(64, 64))]
    for name in ("fft", "rfft", "fft2"):
        yield name, getattr(torch.fft, name), [real(64, 1024)]
    for name, cell in (("lstm", torch.nn.LSTM), ("gru", torch.nn.GRU)):
        layer = cell(64, 64)
        weights = [p.detach() for p in layer.parameters()]

        def recurrent(t: Any, *weights: Any, name: str = name) -> Any:
            first = t.new_zeros(1, t.shape[1], 64)
            state = (first, first) if name == "lstm" else first
            return getattr(torch._VF, name)(t, state, list(weights), True, 1, 0.0, False, False, False)[0]

        yield name, recurrent, [real(32, 16, 64), *weights]
        yield f"{name}, trained", _with_gradients(recurrent), [real(32, 16, 64), *weights]
    several = [real(1000) for _ in range(50)]
    yield "norms of a list", lambda *t: torch._foreach_norm(t), several
    yield "dropout", F.dropout, [x]
    yield "randn_like", torch.randn_like, [x]
    yield "multinomial", lambda t: torch.multinomial(t, 4), [torch.rand(64, 1000)]
    yield "to float8_e4m3fn", lambda t: t.to(torch.float8_e4m3fn), [x]
    yield "add of 16 elements", torch.add, [real(16), real(16)]


def _turn(function: Callable[..., Any], tensors: Sequence[Any], calls: int, wait: Callable[[], Any]) -> float:
    """Microseconds of processor time that a call takes."""
    before = time.process_time()
    for _ in range(calls):
        function(*tensors)
    wait()
    return (time.process_time() - before) / calls * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="PART OF A NAME")
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--below", type=float, default=math.inf, metavar="RATIO", help="leave out rows that are faster")
    options = parser.parse_args()
    os.environ[CPU_THREADS.name] = "1"
    if options.compiled:
        os.environ[TORCH_COMPILED.name] = "1"
    import torch
    import triton.backends.spirv.torch  # noqa: F401

    torch.set_num_threads(1)
    torch.manual_seed(0)
    ratios = []
    print(f"{'operation':<40} {'torch':>9} {'spirv':>9} {'ratio':>6}")
    for name, function, tensors in _operations():
        if options.names and not any(part in name for part in options.names):
            continue
        there = [t.to("spirv") for t in tensors]
        wait = torch.spirv.synchronize  # type: ignore[attr-defined]
        for _ in range(3):
            _turn(function, there, 1, wait)
        calls = max(1, int(1e4 / _turn(function, tensors, 1, wait)))
        turns = [[_turn(function, given, calls, wait) for given in (tensors, there)] for _ in range(5)]
        ours, theirs = (min(turn[side] for turn in turns) for side in (1, 0))
        ratios.append(theirs / ours)
        if ratios[-1] < options.below:
            print(f"{name:<40} {theirs:>9.1f} {ours:>9.1f} {ratios[-1]:>6.2f}", flush=True)
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{len(ratios)} operations, geometric mean {mean:.2f}, {sum(r < 0.5 for r in ratios)} below 0.5")


if __name__ == "__main__":
    main()
