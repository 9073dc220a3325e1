"""LSTM and GRU layers over whole sequences: a product and a kernel per step, forward and backward.

torch composes such a layer of steps (RNN.cpp). Each step multiplies its input and adds to the gradients of all
parameters. Here one product takes the inputs of all steps, as on the CPU, and one product gives each parameter's
gradient. Torch's own composition handles the rest: packed sequences, projections, traced tensors, autocast, and
derivatives other than a plain backward pass.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.nn import functional

from ..device.substitutes import _gru_cell, _lstm_cell
from .dtypes import known
from .library import ON_DEVICE, aten
from .recurrent import gru_back, gru_step, lstm_back, lstm_step

_TYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def enter_recurrent_layers(library: torch.library.Library) -> None:
    """Enter lstm and gru of tensors, which torch composes."""
    for name, call in (("lstm", _lstm), ("gru", _gru)):
        op = getattr(aten, name).input
        for key in ("PrivateUse1", "AutogradPrivateUse1"):
            library.impl(f"{name}.input", functools.partial(call, op), key)
        ON_DEVICE[f"{name}.input"] = call


class _Lstm(torch.autograd.Function):
    """(outputs (T, B, H), last h, last c) of the gates (T, B, 4 H) that the inputs give, the weight of h (4 H, H), no
    bias, and the first h and c (B, H); ``back``: from the last step to the first."""

    @staticmethod
    def forward(ctx: Any, gates: Any, weight: Any, bias: None, back: bool, h: Any, c: Any) -> Any:
        outs = gates.new_empty((*gates.shape[:2], h.shape[1]))
        cells, work, hidden = torch.empty_like(outs), torch.empty_like(gates), torch.empty_like(gates[0])
        last, state, transposed = h, c, weight.t()
        for t in _order(len(gates), back):
            lstm_step(gates[t], torch.mm(last, transposed, out=hidden), state, outs[t], cells[t], work[t])
            last, state = outs[t], cells[t]
        ctx.back = back
        ctx.save_for_backward(gates, weight, bias, h, c, outs, cells, work)
        return outs, last.clone(), state.clone()

    @staticmethod
    def backward(ctx: Any, *to: Any) -> Any:
        if torch.is_grad_enabled():
            return _again(ctx, _lstm_cell, to)
        _, weight, _, h, c, outs, cells, work = ctx.saved_tensors
        order, to_gates = _order(len(outs), ctx.back), torch.empty_like(work)
        to_outs, of_h, of_c = to
        for n in reversed(range(len(order))):
            t, before = order[n], cells[order[n - 1]] if n else c
            of_c = lstm_back([to_outs[t], of_h], of_c, before, cells[t], work[t], to_gates[t])
            of_h = to_gates[t] @ weight
        return to_gates, _of_weight(to_gates, outs, h, ctx.back), None, None, of_h, of_c


class _Gru(torch.autograd.Function):
    """(outputs (T, B, H), last h) of the gates (T, B, 3 H) that the inputs give, the weight of h (3 H, H) and its bias
    (3 H) or None, and the first h (B, H)."""

    @staticmethod
    def forward(ctx: Any, gates: Any, weight: Any, bias: Any, back: bool, h: Any) -> Any:
        outs, hidden = gates.new_empty((*gates.shape[:2], h.shape[1])), torch.empty_like(gates[0])
        work = gates.new_empty((*gates.shape[:2], 5 * h.shape[1]))
        last, transposed = h, weight.t()
        for t in _order(len(gates), back):
            gru_step(gates[t], torch.mm(last, transposed, out=hidden), last, outs[t], work[t], None, bias)
            last = outs[t]
        ctx.back = back
        ctx.save_for_backward(gates, weight, bias, h, outs, work)
        return outs, last.clone()

    @staticmethod
    def backward(ctx: Any, *to: Any) -> Any:
        if torch.is_grad_enabled():
            return _again(ctx, _gru_cell, to)
        _, weight, bias, h, outs, work = ctx.saved_tensors
        to_gates, to_hidden = (outs.new_empty((*outs.shape[:2], 3 * h.shape[1])) for _ in range(2))
        to_outs, of_h = to
        for t in reversed(_order(len(outs), ctx.back)):
            direct = gru_back([to_outs[t], of_h], work[t], to_gates[t], to_hidden[t])
            of_h = torch.addmm(direct, to_hidden[t], weight)
        of_bias = None if bias is None else to_hidden.flatten(0, 1).sum(0)
        return to_gates, _of_weight(to_hidden, outs, h, ctx.back), of_bias, None, of_h


def _again(ctx: Any, cell: Callable[..., Any], to: Sequence[torch.Tensor]) -> tuple[Any, ...]:
    """The gradients, as functions of what they depend on: for derivatives of them."""
    saved = ctx.saved_tensors
    gates, weight, bias = saved[:3]
    first = saved[3 : 3 + len(to) - 1]  # the states
    inputs = [gates, weight, bias, *first]
    twins = [t if t is None or t.requires_grad else t.detach().requires_grad_() for t in inputs]
    gates, weight, bias, *states = twins
    outs: dict[int, torch.Tensor] = {}
    for t in _order(len(gates), ctx.back):
        states = cell(gates[t], states[0] @ weight.t(), states[-1], None, bias)[: len(first)]
        outs[t] = states[0]
    results = torch.stack([outs[t] for t in range(len(gates))]), *states
    there = [t for t in twins if t is not None]
    found = iter(torch.autograd.grad(results, there, to, create_graph=True))
    gradients = [None if t is None else next(found) for t in twins]
    return *gradients[:3], None, *gradients[3:]


def _order(steps: int, back: bool) -> list[int]:
    return list(range(steps))[:: -1 if back else 1]


def _of_weight(to_gates: torch.Tensor, outs: torch.Tensor, h: torch.Tensor, back: bool) -> torch.Tensor:
    """The gradient of the weight that the states before each step were multiplied by: one product."""
    before = torch.cat((outs[1:], h[None])) if back else torch.cat((h[None], outs[:-1]))
    return to_gates.flatten(0, 1).t() @ before.flatten(0, 1)


def _lstm(op: Any, x: Any, hx: Any, params: Any, biases: bool, layers: int, dropout: float, *how: bool) -> Any:
    """aten::lstm.input."""
    if not _fits(4, x, hx, params, biases, layers, how):
        out, *states = op.decompose(x, hx, params, biases, layers, dropout, *how)
        # one_layer_lstm of torch 2.11's decompositions squeezes the batch instead of the steps.
        return out, *(state.reshape(first.shape) for state, first in zip(states, hx, strict=True))

    def layer(gates: Any, n: int, weight: Any, bias: Any, back: bool) -> Any:
        return _Lstm.apply(gates, weight, None, back, hx[0][n], hx[1][n])  # type: ignore[no-untyped-call]

    def gates(x: Any, weight: Any, bias: Any) -> Any:
        return functional.linear(x, weight, bias[0] + bias[1] if bias else None)

    return _stacked(x, params, biases, layers, dropout, how, gates, layer)


def _gru(op: Any, x: Any, hx: Any, params: Any, biases: bool, layers: int, dropout: float, *how: bool) -> Any:
    """aten::gru.input."""
    if not _fits(3, x, [hx], params, biases, layers, how):
        return op.decompose(x, hx, params, biases, layers, dropout, *how)

    def layer(gates: Any, n: int, weight: Any, bias: Any, back: bool) -> Any:
        return _Gru.apply(gates, weight, bias[1] if bias else None, back, hx[n])  # type: ignore[no-untyped-call]

    def gates(x: Any, weight: Any, bias: Any) -> Any:
        return functional.linear(x, weight, bias[0] if bias else None)

    return _stacked(x, params, biases, layers, dropout, how, gates, layer)


def _fits(
    kinds: int,
    x: torch.Tensor,
    states: Sequence[torch.Tensor],
    params: Sequence[torch.Tensor],
    biases: bool,
    layers: int,
    how: Sequence[bool],
) -> bool:
    """Whether it is done here; ``kinds``: of gates. What torch refuses is not."""
    tensors = (x, *states, *params)
    if any(type(t) not in (torch.Tensor, torch.nn.Parameter) or not t.numel() for t in tensors):
        return False
    if forward_ad._current_level >= 0 or torch._C._functorch.maybe_current_level() is not None:
        return False
    alike = all(t.dtype == x.dtype and t.device == x.device for t in tensors)
    if not alike or x.dtype not in _TYPES or not known(x.dtype, x.device.index or 0) or x.dim() != 3:
        return False
    if torch.is_autocast_enabled(x.device.type):
        return False
    directions, hidden, width = 1 + how[1], states[0].shape[-1], x.shape[2]
    if any(t.shape != (layers * directions, x.shape[0 if how[2] else 1], hidden) for t in states):
        return False
    wanted: list[tuple[int, ...]] = []
    for layer in range(layers):
        given = hidden * directions if layer else width
        each = [(kinds * hidden, given), (kinds * hidden, hidden), *[(kinds * hidden,)] * (2 * biases)]
        wanted += each * directions
    return [tuple(t.shape) for t in params] == wanted


def _stacked(
    x: torch.Tensor,
    params: Sequence[torch.Tensor],
    biases: bool,
    layers: int,
    dropout: float,
    how: Sequence[bool],
    gates: Callable[..., torch.Tensor],
    layer: Callable[..., Sequence[torch.Tensor]],
) -> tuple[torch.Tensor, ...]:
    """(outputs, the last states of all layers and directions …). ``how``: train, bidirectional, batch_first."""
    train, both, batch_first = how
    x = x.transpose(0, 1) if batch_first else x
    lasts: list[Sequence[torch.Tensor]] = []
    each = 4 if biases else 2
    for number in range(layers):
        outs = []
        for back in (False, True)[: 1 + both]:
            n = 2 * number + back if both else number
            to_input, to_state, *bias = params[n * each : (n + 1) * each]
            out, *last = layer(gates(x, to_input, bias), n, to_state, bias, back)
            outs.append(out)
            lasts.append(last)
        x = torch.cat(outs, -1) if both else outs[0]
        if dropout and train and number < layers - 1:
            x = functional.dropout(x, dropout)
    states = (torch.stack(parts) for parts in zip(*lasts, strict=True))
    return x.transpose(0, 1) if batch_first else x, *states
