"""Kernels that others wrote, on CPU tensors: liger-kernel's, forward and backward, against PyTorch in float64."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction
from liger_kernel.ops.geglu import LigerGELUMulFunction
from liger_kernel.ops.layer_norm import LigerLayerNormFunction
from liger_kernel.ops.rms_norm import LigerRMSNormFunction
from liger_kernel.ops.rope import LigerRopeFunction
from liger_kernel.ops.swiglu import LigerSiLUMulFunction
from torch.nn import functional

EPSILON = 1e-6

#: Largest difference, relative to the largest number of the reference.
TOLERANCE = {torch.float32: 2e-6, torch.bfloat16: 2e-2}

Function = Callable[..., torch.Tensor | tuple[torch.Tensor, ...]]


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    """Normally distributed float32 numbers."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def close(actual: torch.Tensor, expected: torch.Tensor, tolerance: float, what: str) -> None:
    """Fails where they differ by more than ``tolerance`` times the largest number that is expected."""
    error = (actual.detach().double() - expected.detach()).abs().max().item() / expected.detach().abs().max().item()
    assert error <= tolerance, f"{what}: relative error {error:.2e}, allowed {tolerance:.0e}"  # a NaN fails too


def compare(ours: Function, reference: Function, inputs: Sequence[torch.Tensor], dtype: torch.dtype) -> None:
    """Results and gradients of ``ours`` on CPU tensors against ``reference`` in float64 on the same numbers."""
    given = [value.to(dtype).requires_grad_() for value in inputs]
    wide = [value.detach().double().requires_grad_() for value in given]
    # Some of the kernels overwrite their inputs, so each gets a copy that still leads back to them.
    results: Any = ours(*(value.clone() for value in given))
    expected: Any = reference(*wide)
    results, expected = ((value if isinstance(value, tuple) else (value,)) for value in (results, expected))
    gradients = [random(*value.shape, seed=100 + index).to(dtype) for index, value in enumerate(expected)]
    for index, (value, wanted) in enumerate(zip(results, expected, strict=True)):
        close(value, wanted, TOLERANCE[dtype], f"result {index}")
    torch.autograd.backward(results, [gradient.clone() for gradient in gradients])
    torch.autograd.backward(expected, [gradient.double() for gradient in gradients])
    for index, (value, wanted) in enumerate(zip(given, wide, strict=True)):
        assert value.grad is not None and wanted.grad is not None
        close(value.grad, wanted.grad, 2 * TOLERANCE[dtype], f"gradient of input {index}")


dtypes = pytest.mark.parametrize("dtype", list(TOLERANCE), ids=["fp32", "bf16"])


@dtypes
@pytest.mark.parametrize("columns", [96, 1000])
def test_rms_norm(dtype: torch.dtype, columns: int) -> None:
    def reference(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPSILON) * weight

    compare(
        lambda x, weight: LigerRMSNormFunction.apply(x, weight, EPSILON, 0.0, "llama", True, None),
        reference,
        [random(5, 7, columns), random(columns, seed=1)],
        dtype,
    )


@dtypes
@pytest.mark.parametrize("columns", [96, 1000])
def test_layer_norm(dtype: torch.dtype, columns: int) -> None:
    compare(
        lambda x, weight, bias: LigerLayerNormFunction.apply(x, weight, bias, EPSILON),
        lambda x, weight, bias: functional.layer_norm(x, (columns,), weight, bias, EPSILON),
        [random(33, columns), random(columns, seed=1), random(columns, seed=2)],
        dtype,
    )


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (LigerSiLUMulFunction.apply, lambda a, b: functional.silu(a) * b),
        (LigerGELUMulFunction.apply, lambda a, b: functional.gelu(a, approximate="tanh") * b),
    ],
    ids=["swiglu", "geglu"],
)
@dtypes
def test_gated_activations(function: Any, expected: Any, dtype: torch.dtype) -> None:
    compare(function, expected, [random(3, 11, 300), random(3, 11, 300, seed=1)], dtype)


@dtypes
def test_rope(dtype: torch.dtype) -> None:
    length, head = 13, 64
    angles = torch.arange(length)[:, None] * 10000.0 ** (-torch.arange(0, head, 2) / head)[None, :]
    angles = torch.cat([angles, angles], dim=1)[None].to(dtype)
    cosine, sine = angles.cos(), angles.sin()

    def rotated(x: torch.Tensor) -> torch.Tensor:
        turned = torch.cat([-x[..., head // 2 :], x[..., : head // 2]], dim=-1)
        return x * cosine.double()[:, None] + turned * sine.double()[:, None]

    compare(
        lambda q, k: LigerRopeFunction.apply(q, k, cosine, sine),
        lambda q, k: (rotated(q), rotated(k)),
        [random(2, 6, length, head), random(2, 2, length, head, seed=1)],
        dtype,
    )


@dtypes
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy(dtype: torch.dtype, smoothing: float) -> None:
    rows, classes = 37, 1000
    target = torch.randint(0, classes, (rows,), generator=torch.Generator().manual_seed(1))
    target[3] = -100  # ignored
    compare(
        lambda x: LigerCrossEntropyFunction.apply(x, target, None, -100, 0.0, smoothing, "mean", None)[0],
        lambda x: functional.cross_entropy(x, target, ignore_index=-100, label_smoothing=smoothing),
        [3 * random(rows, classes)],
        dtype,
    )
