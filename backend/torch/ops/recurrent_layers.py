"""LSTM and GRU layers over whole sequences: a product and a kernel per step, forward and backward.

torch composes such a layer of steps (RNN.cpp). Each step multiplies its input and adds to the gradients of all
parameters. Here one product takes the inputs of all steps, as on the CPU, and one product gives each parameter's
gradient. Where the device is the processor, LSTMs are oneDNN's, as torch's are. Torch's own composition handles the
rest: packed sequences, projections, traced tensors, autocast, and derivatives other than a plain backward pass.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.nn import functional

from ..device.cpu_fallback import fallback
from ..device.substitutes import _gru_cell, _lstm_cell
from . import prepared, processor
from .dtypes import known
from .library import ON_DEVICE, aten

_TYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def enter_recurrent_layers(library: torch.library.Library) -> None:
    """Enter lstm and gru of tensors, which torch composes."""
    for name, call in (("lstm", _lstm), ("gru", _gru)):
        op = getattr(aten, name).input
        for key in ("PrivateUse1", "AutogradPrivateUse1"):
            library.impl(f"{name}.input", functools.partial(call, op), key)
        ON_DEVICE[f"{name}.input"] = call
    for op in (aten.mkldnn_rnn_layer.default, aten.mkldnn_rnn_layer_backward.default):
        prepared.enter(library, op, processor.or_torchs(op, functools.partial(fallback, op)))


class _Lstm(torch.autograd.Function):
    """(outputs (T, B, H), last h, last c) of the gates (T, B, 4 H) that the inputs give, the weight of h (4 H, H), no
    bias, and the first h and c (B, H); ``back``: from the last step to the first."""

    @staticmethod
    def forward(ctx: Any, gates: Any, weight: Any, bias: None, back: bool, h: Any, c: Any) -> Any:
        transposed, outs, cells = weight.t(), [h], [c]
        work: list[torch.Tensor] = []
        for given in _ordered(gates.unbind(), back):
            step = aten._thnn_fused_lstm_cell(given, torch.mm(outs[-1], transposed), cells[-1])
            for made, part in zip((outs, cells, work), step, strict=True):
                made.append(part)
        every = torch.stack(_ordered(outs[1:], back))
        ctx.back = back
        ctx.save_for_backward(gates, weight, bias, h, c, every, *cells[1:], *work)
        return every, outs[-1].clone(), cells[-1].clone()

    @staticmethod
    def backward(ctx: Any, *to: Any) -> Any:
        if torch.is_grad_enabled():
            return _again(ctx, _lstm_cell, to)
        _, weight, _, h, c, outs, *saved = ctx.saved_tensors
        cells, work, to_gates = [c, *saved[: len(outs)]], saved[len(outs) :], []
        to_outs, of_h, of_c = _ordered(to[0].unbind(), ctx.back), *to[1:]
        while work:
            of_h, after = to_outs[len(work) - 1] + of_h, cells.pop()
            of_gates, of_c, _ = aten._thnn_fused_lstm_cell_backward_impl(
                of_h, of_c, cells[-1], after, work.pop(), False
            )
            of_h = of_gates @ weight
            to_gates.append(of_gates)
        every = torch.stack(_ordered(to_gates, not ctx.back))
        return every, _of_weight(every, outs, h, ctx.back), None, None, of_h, of_c


class _Gru(torch.autograd.Function):
    """(outputs (T, B, H), last h) of the gates (T, B, 3 H) that the inputs give, the weight of h (3 H, H) and its bias
    (3 H) or None, and the first h (B, H)."""

    @staticmethod
    def forward(ctx: Any, gates: Any, weight: Any, bias: Any, back: bool, h: Any) -> Any:
        transposed, outs, work = weight.t(), [h], []
        for given in _ordered(gates.unbind(), back):
            hidden = torch.mm(outs[-1], transposed)
            out, of_step = aten._thnn_fused_gru_cell(given, hidden, outs[-1], None, bias)
            outs.append(out)
            work.append(of_step)
        every = torch.stack(_ordered(outs[1:], back))
        ctx.back = back
        ctx.save_for_backward(gates, weight, bias, h, every, *work)
        return every, outs[-1].clone()

    @staticmethod
    def backward(ctx: Any, *to: Any) -> Any:
        if torch.is_grad_enabled():
            return _again(ctx, _gru_cell, to)
        _, weight, bias, h, outs, *work = ctx.saved_tensors
        to_gates, to_hidden, to_outs, of_h = [], [], _ordered(to[0].unbind(), ctx.back), to[1]
        while work:
            of_h = to_outs[len(work) - 1] + of_h
            of_gates, of_hidden, direct, *_ = aten._thnn_fused_gru_cell_backward(of_h, work.pop(), False)
            of_h = torch.addmm(direct, of_hidden, weight)
            to_gates.append(of_gates)
            to_hidden.append(of_hidden)
        every, hidden = (torch.stack(_ordered(parts, not ctx.back)) for parts in (to_gates, to_hidden))
        of_bias = None if bias is None else hidden.flatten(0, 1).sum(0)
        return every, _of_weight(hidden, outs, h, ctx.back), of_bias, None, of_h


def _again(ctx: Any, cell: Callable[..., Any], to: Sequence[torch.Tensor]) -> tuple[Any, ...]:
    """The gradients, as functions of what they depend on: for derivatives of them."""
    saved = ctx.saved_tensors
    gates, weight, bias = saved[:3]
    first = saved[3 : 3 + len(to) - 1]  # the states
    inputs = [gates, weight, bias, *first]
    twins = [t if t is None or t.requires_grad else t.detach().requires_grad_() for t in inputs]
    gates, weight, bias, *states = twins
    outs = []
    for given in _ordered(gates.unbind(), ctx.back):
        states = cell(given, states[0] @ weight.t(), states[-1], None, bias)[: len(first)]
        outs.append(states[0])
    results = torch.stack(_ordered(outs, ctx.back)), *states
    there = [t for t in twins if t is not None]
    found = iter(torch.autograd.grad(results, there, to, create_graph=True))
    gradients = [None if t is None else next(found) for t in twins]
    return *gradients[:3], None, *gradients[3:]


def _ordered(steps: Sequence[torch.Tensor], back: bool) -> list[torch.Tensor]:
    """From the first step to the last, or ``back``; from the first to the last again of what was made in that order."""
    return list(steps)[:: -1 if back else 1]


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

    if torch.backends.mkldnn.is_available() and x.dtype in processor.fast_types() and processor.is_torchs(x):
        trains = torch.is_grad_enabled() and any(t.requires_grad for t in (x, *hx, *params))

        def whole(given: Any, n: int, weight: Any, bias: Any, back: bool) -> Any:
            tensors = *given, weight, *(bias or [weight.new_zeros(len(weight))] * 2), hx[0][n], hx[1][n]
            form: Any = ([], 2, weight.shape[1], 1, biases, False, False, trains)  # 2: an LSTM (RNN.cpp)
            return aten.mkldnn_rnn_layer(*(t.contiguous() for t in tensors), back, *form)[:3]

        return _stacked(x, params, biases, layers, dropout, how, lambda *given: given[:2], whole)

    def layer(gates: Any, n: int, weight: Any, bias: Any, back: bool) -> Any:
        return _Lstm.apply(gates, weight, None, back, hx[0][n], hx[1][n])

    def gates(x: Any, weight: Any, bias: Any) -> Any:
        return functional.linear(x, weight, bias[0] + bias[1] if bias else None)

    return _stacked(x, params, biases, layers, dropout, how, gates, layer)


def _gru(op: Any, x: Any, hx: Any, params: Any, biases: bool, layers: int, dropout: float, *how: bool) -> Any:
    """aten::gru.input."""
    if not _fits(3, x, [hx], params, biases, layers, how):
        return op.decompose(x, hx, params, biases, layers, dropout, *how)

    def layer(gates: Any, n: int, weight: Any, bias: Any, back: bool) -> Any:
        return _Gru.apply(gates, weight, bias[1] if bias else None, back, hx[n])

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
    gates: Callable[..., Any],
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
