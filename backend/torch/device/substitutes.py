"""Operations that do not reach the fallback (cpu_fallback.py) by themselves, and operations that torch asks only of
out-of-tree devices, so that the CPU has no kernels for them: recurrent cells are composed of other operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .cpu_fallback import fallback

_aten = torch.ops.aten
_Optional = torch.Tensor | None


#: Kernels of operations that are here, by name, entered from outside this package. One that returns NotImplemented
#: leaves the call to the CPU.
KERNELS: dict[str, Callable[..., Any]] = {}


def _by_kernel(name: str, *args: Any) -> Any:
    return KERNELS[name](*args) if name in KERNELS else NotImplemented


def _convolution(*args: Any) -> Any:
    result = _by_kernel("convolution", *args)
    return fallback(_aten.convolution.default, *args) if result is NotImplemented else result


def _convolution_backward(grad: torch.Tensor, source: torch.Tensor, weight: torch.Tensor, *args: Any) -> Any:
    """``args``: stride, padding, dilation, transposed, output_padding, groups, output_mask."""
    transposed, groups = args[3], args[5]
    channels = weight.size(1) * groups if transposed else weight.size(0)
    given = grad, source, weight, [channels], *args
    result = _by_kernel("convolution_backward", *given)
    return fallback(_aten.convolution_backward.default, *given) if result is NotImplemented else result


def _lstm_cell(
    input_gates: torch.Tensor,
    hidden_gates: torch.Tensor,
    cx: torch.Tensor,
    input_bias: _Optional = None,
    hidden_bias: _Optional = None,
) -> tuple[torch.Tensor, ...]:
    """(hy, cy, workspace): gates are (batch, 4 hidden), cells (batch, hidden), the workspace (batch, 4 hidden)."""
    gates = _biased(input_gates, input_bias) + _biased(hidden_gates, hidden_bias)
    i, f, g, o = gates.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * cx + i * g
    return o * cy.tanh(), cy, torch.cat((i, f, g, o), 1)


def _lstm_cell_backward(
    grad_hy: _Optional, grad_cy: _Optional, cx: torch.Tensor, cy: torch.Tensor, workspace: torch.Tensor, has_bias: bool
) -> tuple[_Optional, ...]:
    """(grad_gates, grad_cx, grad_bias)."""
    if grad_hy is None and grad_cy is None:
        return None, None, None
    i, f, g, o = workspace.chunk(4, 1)
    tanh = cy.tanh()
    grad_hy = torch.zeros_like(cy) if grad_hy is None else grad_hy
    grad_cell = grad_hy * o * (1 - tanh * tanh)
    if grad_cy is not None:
        grad_cell = grad_cell + grad_cy
    grad_gates = torch.cat(
        (
            grad_cell * g * i * (1 - i),
            grad_cell * cx * f * (1 - f),
            grad_cell * i * (1 - g * g),
            grad_hy * tanh * o * (1 - o),
        ),
        1,
    )
    return grad_gates, grad_cell * f, grad_gates.sum(0) if has_bias else None


def _gru_cell(
    input_gates: torch.Tensor,
    hidden_gates: torch.Tensor,
    hx: torch.Tensor,
    input_bias: _Optional = None,
    hidden_bias: _Optional = None,
) -> tuple[torch.Tensor, ...]:
    """(hy, workspace): gates are (batch, 3 hidden), the state (batch, hidden), the workspace (batch, 5 hidden)."""
    input_r, input_z, input_n = _biased(input_gates, input_bias).chunk(3, 1)
    hidden_r, hidden_z, hidden_n = _biased(hidden_gates, hidden_bias).chunk(3, 1)
    r, z = (input_r + hidden_r).sigmoid(), (input_z + hidden_z).sigmoid()
    n = (input_n + r * hidden_n).tanh()
    return n + z * (hx - n), torch.cat((r, z, n, hx, hidden_n), 1)


def _gru_cell_backward(grad_hy: torch.Tensor, workspace: torch.Tensor, has_bias: bool) -> tuple[_Optional, ...]:
    """(grad_input_gates, grad_hidden_gates, grad_hx, grad_input_bias, grad_hidden_bias)."""
    r, z, n, hx, hidden_n = workspace.chunk(5, 1)
    grad_n = grad_hy * (1 - z) * (1 - n * n)
    grad_z = grad_hy * (hx - n) * z * (1 - z)
    grad_r = grad_n * hidden_n * r * (1 - r)
    grad_input, grad_hidden = torch.cat((grad_r, grad_z, grad_n), 1), torch.cat((grad_r, grad_z, grad_n * r), 1)
    biases = (grad_input.sum(0), grad_hidden.sum(0)) if has_bias else (None, None)
    return grad_input, grad_hidden, grad_hy * z, *biases


def _biased(gates: torch.Tensor, bias: _Optional) -> torch.Tensor:
    return gates if bias is None else gates + bias


def _or(composed: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel of ``composed``'s name, where it does a call."""
    name = composed.__name__.removeprefix("_")

    def run(*args: Any) -> Any:
        result = _by_kernel(name, *args)
        return composed(*args) if result is NotImplemented else result

    return run


def _to_copy(self: torch.Tensor, *, non_blocking: bool = False, **how: Any) -> torch.Tensor:
    """aten::_to_copy, as torch does it, except that it never asks for pinned memory: torch has none of a device from
    outside its tree, and would take a copy to the host that need not be waited for there."""
    return torch.empty_like(self, **how).copy_(self, non_blocking)


def _as_it_is(op: Any) -> Callable[..., Any]:
    """Runs an operation on the CPU whose own kernel looks for a device's part without torch's dispatcher."""
    return lambda *args, **kwargs: fallback(op, *args, **kwargs)


#: By the operation's name.
SUBSTITUTES: dict[str, Callable[..., Any]] = {
    "_to_copy": _to_copy,
    "convolution_overrideable": _convolution,
    "convolution_backward_overrideable": _convolution_backward,
    "kaiser_window": _as_it_is(_aten.kaiser_window.default),
    "kaiser_window.periodic": _as_it_is(_aten.kaiser_window.periodic),
    "kaiser_window.beta": _as_it_is(_aten.kaiser_window.beta),
    "_thnn_fused_lstm_cell": _or(_lstm_cell),
    "_thnn_fused_lstm_cell_backward_impl": _or(_lstm_cell_backward),
    "_thnn_fused_gru_cell": _or(_gru_cell),
    "_thnn_fused_gru_cell_backward": _or(_gru_cell_backward),
}
