"""Fused steps of Adam, AdamW and SGD: a kernel a parameter (torch.optim with fused=True)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from .elementwise import Body, run
from .library import enter_by_name
from .types import OnHost

_List = Sequence[torch.Tensor]

_ADAM = """grad = {sign}grad
{decay}
m = m + (1 - beta1) * (grad - m)
v = beta2 * v + (1 - beta2) * grad * grad
first = 1 - libdevice.pow(beta1, step)
second = 1 - libdevice.pow(beta2, step)
p = p - lr / first * m / (libdevice.sqrt(v) / libdevice.sqrt(second) + eps)"""
_COUPLED, _DECOUPLED = "grad = grad + weight_decay * p", "p = p - lr * weight_decay * p"
_SGD = """grad = {sign}grad + weight_decay * p
{momentum}
p = p - lr * {step}"""


def enter_optimizers(library: torch.library.Library) -> None:
    """Enter all of them."""
    enter_by_name(library, _TABLE)


def _adam(decay: str) -> Callable[..., None]:
    def step(
        self: _List,
        grads: _List,
        exp_avgs: _List,
        exp_avg_sqs: _List,
        max_exp_avg_sqs: _List,
        state_steps: _List,
        *,
        lr: Any,
        beta1: float,
        beta2: float,
        weight_decay: float,
        eps: float,
        amsgrad: bool,
        maximize: bool,
        grad_scale: torch.Tensor | None = None,
        found_inf: torch.Tensor | None = None,
    ) -> None:
        if amsgrad or grad_scale is not None or found_inf is not None:
            raise OnHost("amsgrad, or scaled gradients")
        _check(self, grads, exp_avgs, exp_avg_sqs)
        body = Body(_ADAM.format(sign="-" if maximize else "", decay=decay))
        numbers = {"beta1": beta1, "beta2": beta2, "weight_decay": weight_decay, "eps": eps, "lr": lr}
        for p, grad, m, v, count in zip(self, grads, exp_avgs, exp_avg_sqs, state_steps, strict=True):
            given = {name: _number(value) for name, value in numbers.items()}
            run(body, {"p": p, "m": m, "v": v}, {"p": p, "m": m, "v": v, "grad": grad, "step": count, **given}, p.dtype)

    return step


def _number(value: Any) -> Any:
    return float(value) if not isinstance(value, torch.Tensor) else value


def _check(*lists: _List) -> None:
    for tensors in zip(*lists, strict=True):
        if any(tensor.dtype not in (torch.float32, torch.float64) for tensor in tensors):
            raise OnHost("parameters in less than float32")


def _sgd(
    self: _List,
    grads: _List,
    momentum_buffer_list: _List,
    *,
    weight_decay: float,
    momentum: float,
    lr: Any,
    dampening: float,
    nesterov: bool,
    maximize: bool,
    is_first_step: bool,
    grad_scale: torch.Tensor | None = None,
    found_inf: torch.Tensor | None = None,
) -> None:
    if grad_scale is not None or found_inf is not None:
        raise OnHost("scaled gradients")
    _check(self, grads)
    moving = bool(momentum_buffer_list)
    update = "buffer = grad" if is_first_step else "buffer = momentum * buffer + (1 - dampening) * grad"
    step = "grad" if not moving else "(grad + momentum * buffer)" if nesterov else "buffer"
    text = _SGD.format(sign="-" if maximize else "", momentum=update if moving else "", step=step)
    numbers = {"weight_decay": weight_decay, "lr": lr}
    if moving:
        numbers |= {"momentum": momentum, "dampening": dampening}
    given = {name: _number(value) for name, value in numbers.items()}
    for place, (p, grad) in enumerate(zip(self, grads, strict=True)):
        outputs = {"p": p} | ({"buffer": momentum_buffer_list[place]} if moving else {})
        run(Body(text), outputs, {**outputs, "grad": grad, **given}, p.dtype)


_TABLE: dict[str, Callable[..., Any]] = {
    "_fused_adam_": _adam(_COUPLED),
    "_fused_adam_.tensor_lr": _adam(_COUPLED),
    "_fused_adamw_": _adam(_DECOUPLED),
    "_fused_adamw_.tensor_lr": _adam(_DECOUPLED),
    "_fused_sgd_": _sgd,
    "_fused_sgd_.tensor_lr": _sgd,
}
