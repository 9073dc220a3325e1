"""A small model whose layers are Triton kernels, forward and backward, on tensors of any device that kernels take."""

from typing import Any

import torch
import triton
import triton.language as tl


@triton.jit
def product_kernel(a, b, bias, out, m, n, k, am, ak, bk, bn, HAS_BIAS: tl.constexpr, BLOCK: tl.constexpr):
    """out[m, n] = a @ b + bias, by strides, so that the gradients take transposed operands as they are."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, k, BLOCK):
        depth = start + tl.arange(0, BLOCK)
        left = tl.load(a + rows[:, None] * am + depth[None, :] * ak, (rows[:, None] < m) & (depth[None, :] < k), 0.0)
        right = tl.load(b + depth[:, None] * bk + columns * bn, (depth[:, None] < k) & (columns < n), 0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    if HAS_BIAS:
        total += tl.load(bias + columns, columns < n, 0.0)
    tl.store(out + rows[:, None] * n + columns, total, (rows[:, None] < m) & (columns < n))


@triton.jit
def norm_kernel(x, weight, out, means, scales, n, BLOCK: tl.constexpr):
    """A row of layer norm, with its mean and 1 / deviation for the gradients."""
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    value = tl.load(x + row * n + i, i < n, 0.0)
    mean = tl.sum(value) / n
    centred = tl.where(i < n, value - mean, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(centred * centred) / n + 1e-5)
    tl.store(means + row, mean)
    tl.store(scales + row, scale)
    tl.store(out + row * n + i, centred * scale * tl.load(weight + i, i < n, 0.0), i < n)


@triton.jit
def norm_gradient_kernel(x, weight, grad, means, scales, x_grad, weight_grad, n, BLOCK: tl.constexpr):
    """The gradient of a row, and the row's part of the weight's."""
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    scale = tl.load(scales + row)
    normal = (tl.load(x + row * n + i, i < n, 0.0) - tl.load(means + row)) * scale
    normal = tl.where(i < n, normal, 0.0)
    incoming = tl.load(grad + row * n + i, i < n, 0.0)
    tl.atomic_add(weight_grad + i, incoming * normal, i < n)
    incoming *= tl.load(weight + i, i < n, 0.0)
    common = tl.sum(incoming) / n, tl.sum(incoming * normal) / n
    tl.store(x_grad + row * n + i, (incoming - common[0] - normal * common[1]) * scale, i < n)


@triton.jit
def silu_kernel(x, out, n, BLOCK: tl.constexpr):
    """out = x * sigmoid(x)."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, i < n)
    tl.store(out + i, value * tl.sigmoid(value), i < n)


@triton.jit
def silu_gradient_kernel(x, grad, out, n, BLOCK: tl.constexpr):
    """out = grad * (s + x * s * (1 - s)), s = sigmoid(x)."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, i < n)
    part = tl.sigmoid(value)
    tl.store(out + i, tl.load(grad + i, i < n) * (part + value * part * (1.0 - part)), i < n)


def product(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """a @ b + bias of float32 matrices with any strides."""
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty(m, n, device=a.device)
    grid = (triton.cdiv(m, 32), triton.cdiv(n, 32))
    product_kernel[grid](a, b, bias, out, m, n, k, *a.stride(), *b.stride(), bias is not None, BLOCK=32)
    return out


class Product(torch.autograd.Function):
    """x @ weight.T + bias."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, weight)
        return product(x, weight.t(), bias)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:  # type: ignore[override]
        x, weight = ctx.saved_tensors
        return product(grad, weight), product(grad.t(), x), grad.sum(0)


class Norm(torch.autograd.Function):
    """Layer norm of rows, without a bias."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        rows, n = x.shape
        out, means, scales = torch.empty_like(x), *(torch.empty(rows, device=x.device) for _ in range(2))
        norm_kernel[(rows,)](x, weight, out, means, scales, n, BLOCK=triton.next_power_of_2(n))
        ctx.save_for_backward(x, weight, means, scales)
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:  # type: ignore[override]
        x, weight, means, scales = ctx.saved_tensors
        rows, n = x.shape
        x_grad, weight_grad = torch.empty_like(x), torch.zeros_like(weight)
        norm_gradient_kernel[(rows,)](
            x, weight, grad.contiguous(), means, scales, x_grad, weight_grad, n, BLOCK=triton.next_power_of_2(n)
        )
        return x_grad, weight_grad


class Silu(torch.autograd.Function):
    """x * sigmoid(x)."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        out = torch.empty_like(x)
        silu_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:  # type: ignore[override]
        (x,) = ctx.saved_tensors
        out = torch.empty_like(x)
        silu_gradient_kernel[(triton.cdiv(x.numel(), 256),)](x, grad.contiguous(), out, x.numel(), BLOCK=256)
        return out


class Model(torch.nn.Module):
    """Two blocks of norm, product and SiLU with a residual, then a product to classes; of kernels, or of torch's own
    operations."""

    def __init__(self, width: int, classes: int, kernels: bool) -> None:
        super().__init__()
        self.kernels = kernels
        self.norms = torch.nn.ParameterList([torch.ones(width) for _ in range(2)])
        self.layers = torch.nn.ModuleList([torch.nn.Linear(width, width) for _ in range(2)])
        self.head = torch.nn.Linear(width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of rows."""
        for norm, layer in zip(self.norms, self.layers, strict=True):
            if self.kernels:
                x = x + Silu.apply(Product.apply(Norm.apply(x, norm), layer.weight, layer.bias))  # type: ignore[no-untyped-call]
            else:
                normal = torch.nn.functional.layer_norm(x, x.shape[-1:], norm)
                x = x + torch.nn.functional.silu(layer(normal))
        if self.kernels:
            return Product.apply(x, self.head.weight, self.head.bias)  # type: ignore[no-any-return, no-untyped-call]
        return self.head(x)  # type: ignore[no-any-return]


def trained(device: str, kernels: bool, dtype: torch.dtype, steps: int = 8) -> tuple[list[torch.Tensor], list[float]]:
    """The gradients of the first step, and the losses of all: the same weights and data everywhere, rows and widths
    that no block divides."""
    generator = torch.Generator().manual_seed(52)
    torch.manual_seed(52)
    model = Model(75, 10, kernels).to(device, dtype)
    x = torch.randn(77, 75, generator=generator).to(device, dtype)
    labels = torch.randint(0, 10, (77,), generator=generator).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    gradients, losses = [], []
    for step in range(steps):
        loss = torch.nn.functional.cross_entropy(model(x), labels)
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            gradients = [p.grad.double().cpu() for p in model.parameters() if p.grad is not None]
        optimizer.step()
        losses.append(loss.item())
    return gradients, losses


def worst(found: list[torch.Tensor], exact: list[torch.Tensor]) -> float:
    """The largest |error| of a tensor beside its largest |value|."""
    assert len(found) == len(exact) > 0
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(found, exact, strict=True))
