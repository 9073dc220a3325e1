"""Cells of LSTM and GRU, one kernel each way; torch/device/substitutes.py has what they compute, for the rest.

torch makes the products with the inputs of all steps at once. A step then is one product and one kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..device import substitutes
from .dtypes import OnHost, computed_in, or_not_implemented, require
from .elementwise import Body, run

_Optional = torch.Tensor | None

_LSTM = """i, f, o = fn.sigmoid(gate0), fn.sigmoid(gate1), fn.sigmoid(gate3)
g = fn.tanh(gate2)
cy = f * cx + i * g
hy = o * fn.tanh(cy)"""
_LSTM_BACKWARD = """top = fn.tanh(cy)
of_cell = grad_hy * o * (1 - top * top) + grad_cy
to_cx = of_cell * f
to_i = of_cell * g * i * (1 - i)
to_f = of_cell * cx * f * (1 - f)
to_g = of_cell * i * (1 - g * g)
to_o = grad_hy * top * o * (1 - o)"""
_GRU = """r, z = fn.sigmoid(gate0), fn.sigmoid(gate1)
hn = hidden2
n = fn.tanh(gate2 + r * hn)
kept = hx
hy = n + z * (hx - n)"""
_GRU_BACKWARD = """to_n = grad_hy * (1 - z) * (1 - n * n)
to_z = grad_hy * (hx - n) * z * (1 - z)
to_r = to_n * hn * r * (1 - r)
hidden_r, hidden_z, hidden_n = to_r, to_z, to_n * r
to_hx = grad_hy * z"""


def enter_recurrent(library: torch.library.Library) -> None:
    """Enter them, by way of torch/device/substitutes.py, which torch asks."""
    cells: dict[str, Callable[..., Any]] = {"lstm_cell": _lstm, "lstm_cell_backward": _lstm_backward}
    cells |= {"gru_cell": _gru, "gru_cell_backward": _gru_backward}
    substitutes.KERNELS.update({name: or_not_implemented(cell) for name, cell in cells.items()})


def _compute(text: str, outputs: dict[str, torch.Tensor], operands: dict[str, torch.Tensor]) -> None:
    tensors = [*outputs.values(), *operands.values()]
    kind = tensors[0].dtype
    require(kind, tensors[0].device.index or 0)
    if not kind.is_floating_point or any(tensor.dtype != kind for tensor in tensors):
        raise OnHost("cells of other types, or of several")
    run(Body(text), outputs, operands, computed_in(kind))


def _parts(tensor: torch.Tensor, names: Sequence[str]) -> dict[str, torch.Tensor]:
    """Views of the columns (of the last dimension) by name, in equal parts."""
    return dict(zip(names, tensor.chunk(len(names), -1), strict=True))


def _gates(
    count: int,
    given: torch.Tensor,
    hidden: torch.Tensor,
    given_bias: _Optional = None,
    hidden_bias: _Optional = None,
    *,
    apart: int,
) -> tuple[list[str], dict[str, torch.Tensor]]:
    """(lines that assign gate0, gate1, …, operands). Of gate ``apart`` the hidden part is hidden<apart> instead."""
    operands: dict[str, torch.Tensor] = {}
    sums = [[f"given{n}"] for n in range(count)], [[f"state{n}"] for n in range(count)]
    for kind, tensor in (("given", given), ("state", hidden)):
        operands |= _parts(tensor, [f"{kind}{n}" for n in range(count)])
    for kind, bias, terms in (("given_bias", given_bias, sums[0]), ("state_bias", hidden_bias, sums[1])):
        if bias is not None:
            operands |= _parts(bias, [f"{kind}{n}" for n in range(count)])
            for n in range(count):
                terms[n].append(f"{kind}{n}")
    lines = []
    for n in range(count):
        if n == apart:
            lines += [f"gate{n} = {' + '.join(sums[0][n])}", f"hidden{n} = {' + '.join(sums[1][n])}"]
        else:
            lines.append(f"gate{n} = ({' + '.join(sums[0][n])}) + ({' + '.join(sums[1][n])})")
    return lines, operands


def _lstm(
    input_gates: torch.Tensor, hidden_gates: torch.Tensor, cx: torch.Tensor, *biases: _Optional
) -> tuple[torch.Tensor, ...]:
    """aten::_thnn_fused_lstm_cell: (hy, cy, workspace of i, f, g and o)."""
    workspace = torch.empty(hidden_gates.shape, dtype=cx.dtype, device=cx.device)
    hy, cy = (torch.empty(cx.shape, dtype=cx.dtype, device=cx.device) for _ in range(2))
    lines, operands = _gates(4, input_gates, hidden_gates, *biases, apart=-1)
    outputs = {"hy": hy, "cy": cy, **_parts(workspace, "ifgo")}
    _compute("\n".join([*lines, _LSTM]), outputs, {**operands, "cx": cx})
    return hy, cy, workspace


def _lstm_backward(
    grad_hy: _Optional, grad_cy: _Optional, cx: torch.Tensor, cy: torch.Tensor, workspace: torch.Tensor, has_bias: bool
) -> tuple[_Optional, ...]:
    """(grad_gates, grad_cx, grad_bias)."""
    if grad_hy is None and grad_cy is None:
        return None, None, None
    given = {"grad_hy": grad_hy, "grad_cy": grad_cy}
    operands = {"cx": cx, "cy": cy, **_parts(workspace, "ifgo")}
    operands |= {name: gradient for name, gradient in given.items() if gradient is not None}
    lines = [f"{name} = 0.0" for name in given if name not in operands]
    grad_gates, grad_cx = torch.empty_like(workspace), torch.empty(cx.shape, dtype=cx.dtype, device=cx.device)
    outputs = {"to_cx": grad_cx, **_parts(grad_gates, ("to_i", "to_f", "to_g", "to_o"))}
    _compute("\n".join([*lines, _LSTM_BACKWARD]), outputs, operands)
    return grad_gates, grad_cx, grad_gates.sum(0) if has_bias else None


def _gru(
    input_gates: torch.Tensor, hidden_gates: torch.Tensor, hx: torch.Tensor, *biases: _Optional
) -> tuple[torch.Tensor, ...]:
    """aten::_thnn_fused_gru_cell: (hy, workspace of r, z, n, hx and the hidden part of n)."""
    workspace = torch.empty((*hx.shape[:-1], 5 * hx.shape[-1]), dtype=hx.dtype, device=hx.device)
    hy = torch.empty(hx.shape, dtype=hx.dtype, device=hx.device)
    lines, operands = _gates(3, input_gates, hidden_gates, *biases, apart=2)
    outputs = {"hy": hy, **_parts(workspace, ("r", "z", "n", "kept", "hn"))}
    _compute("\n".join([*lines, _GRU]), outputs, {**operands, "hx": hx})
    return hy, workspace


def _gru_backward(grad_hy: torch.Tensor, workspace: torch.Tensor, has_bias: bool) -> tuple[_Optional, ...]:
    """(grad_input_gates, grad_hidden_gates, grad_hx, grad_input_bias, grad_hidden_bias)."""
    shape = *grad_hy.shape[:-1], 3 * grad_hy.shape[-1]
    given, hidden = (torch.empty(shape, dtype=grad_hy.dtype, device=grad_hy.device) for _ in range(2))
    grad_hx = torch.empty(grad_hy.shape, dtype=grad_hy.dtype, device=grad_hy.device)
    outputs = {"to_hx": grad_hx, **_parts(given, ("to_r", "to_z", "to_n"))}
    outputs |= _parts(hidden, ("hidden_r", "hidden_z", "hidden_n"))
    _compute(_GRU_BACKWARD, outputs, {"grad_hy": grad_hy, **_parts(workspace, ("r", "z", "n", "hx", "hn"))})
    biases = (given.sum(0), hidden.sum(0)) if has_bias else (None, None)
    return given, hidden, grad_hx, *biases
