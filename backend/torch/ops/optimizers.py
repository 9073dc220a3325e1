"""Fused steps of Adam, AdamW, Adagrad and SGD: one kernel for all parameters (torch.optim with fused=True).

None is left to the CPU that can be done here: torch's CPU code takes gradients and state as if they had the order of
memory of their parameter, and is wrong for momentum of parameters in less than float32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..device.tensor_memory import is_dense, is_ours
from . import lists
from .dtypes import OnHost, computed_in, known
from .elementwise import Body
from .lists import List
from .strided_shapes import are_apart

_Optional = torch.Tensor | None

_COUPLED, _DECOUPLED = "grad = grad + weight_decay * p", "p = p - lr * weight_decay * p"
_ADAM = """m = m + (1 - beta1) * (grad - m)
v = beta2 * v + (1 - beta2) * grad * grad
first = 1 - libdevice.pow(beta1, step)
second = 1 - libdevice.pow(beta2, step)"""
_LARGEST = "largest = fn.maximum(largest, v)"


def _step(
    decay: str,
    update: str,
    change: str,
    outputs: dict[str, List],
    operands: dict[str, List],
    numbers: dict[str, Any],
    maximize: bool,
    grad_scale: _Optional,
    found_inf: _Optional,
) -> None:
    """Run a step: the lines ``decay`` and ``update``, then p less the rate times ``change``. ``grad_scale``: what
    gradients are divided by first, which are written, too; ``found_inf``: nothing is done where it is not 0. It is
    computed in float32, or float64 where the parameters have that."""
    kind, count = computed_in(outputs["p"][0].dtype), len(outputs["p"])
    lines = []
    if grad_scale is not None:
        operands, outputs = {**operands, "grad_scale": [grad_scale] * count}, {**outputs, "scaled": operands["grad"]}
        lines += ["grad = grad / grad_scale", "scaled = grad"]
    if found_inf is not None:
        operands = {**operands, "found_inf": [found_inf] * count}
        lines.append("mask = mask & (found_inf == 0)")
    if maximize:
        lines.append("grad = -grad")
    for name, value in numbers.items():
        if isinstance(value, torch.Tensor) and is_ours(value):
            operands = {**operands, name: [value] * count}
    plain = {name: float(value) for name, value in numbers.items() if name not in operands}
    body = Body("\n".join((*lines, decay, *([update] if update else ()), f"p = p - lr * ({change})")))
    try:
        lists.run(body, outputs, operands, plain, kind)
    except OnHost:
        _step_of_any(body, outputs, operands, plain, kind)


def _step_of_any(
    body: Body, outputs: Mapping[str, List], operands: Mapping[str, List], numbers: dict[str, float], kind: torch.dtype
) -> None:
    """A step of tensors of any order of memory: with copies of those that do not have their parameter's. If that does
    not do, of several types or parameters that share memory, the parameters step one after the other."""
    parameters = outputs["p"]
    given = (*outputs.values(), *operands.values())
    if not known(kind, parameters[0].device.index or 0):
        if not all(_same_order(t, p) for tensors in given for t, p in zip(tensors, parameters, strict=True)):
            raise RuntimeError(
                f"a fused step in {kind}, which the device does not have, of tensors whose strides differ: pass "
                "foreach=True to the optimizer"
            )
        raise OnHost(f"a step in {kind}")
    written = {id(tensor): tensor for tensors in outputs.values() for tensor in tensors}
    several = len(parameters) > 1
    if not several or are_apart(written.values()):
        copies: dict[int, torch.Tensor] = {}
        for tensors in given:
            for tensor, parameter in zip(tensors, parameters, strict=True):
                if id(tensor) not in copies:
                    stays = (several or id(tensor) in written) and is_ours(tensor)
                    copies[id(tensor)] = _in_order_of(parameter, tensor, stays)
        own = [{n: [copies[id(t)] for t in tensors] for n, tensors in roles.items()} for roles in (outputs, operands)]
        try:
            lists.run(body, own[0], own[1], numbers, kind)
        except OnHost:
            if not several:
                raise
        else:
            for key, tensor in written.items():
                if copies[key] is not tensor:
                    tensor.copy_(copies[key])
            return
    for place in range(len(parameters)):
        one, read = ({n: [tensors[place]] for n, tensors in roles.items()} for roles in (outputs, operands))
        _step_of_any(body, one, read, numbers, kind)


def _same_order(tensor: torch.Tensor, like: torch.Tensor) -> bool:
    return tensor.numel() == 1 or (tensor.stride() == like.stride() and is_dense(tensor))


def _in_order_of(like: torch.Tensor, tensor: torch.Tensor, stays: bool) -> torch.Tensor:
    """``tensor``, if it stays where it can, which has the order of ``like``, or a copy that has that."""
    if stays and is_dense(like) and _same_order(tensor, like):
        return tensor
    if tensor.dim() == 0:
        return tensor.to(like.device, copy=True)
    if tensor.shape != like.shape or tensor.device != like.device:
        raise OnHost("tensors of several shapes or devices")
    strides = like.stride() if is_dense(like) else torch.empty(like.shape, device="meta").stride()
    return torch.empty_strided(like.shape, strides, dtype=tensor.dtype, device=like.device).copy_(tensor)


def _adam(decay: str) -> Callable[..., None]:
    def step(
        self: List,
        grads: List,
        exp_avgs: List,
        exp_avg_sqs: List,
        max_exp_avg_sqs: List,
        state_steps: List,
        *,
        lr: Any,
        beta1: float,
        beta2: float,
        weight_decay: float,
        eps: float,
        amsgrad: bool,
        maximize: bool,
        grad_scale: _Optional = None,
        found_inf: _Optional = None,
    ) -> None:
        update, root = (f"{_ADAM}\n{_LARGEST}", "largest") if amsgrad else (_ADAM, "v")
        change = f"m / first / (libdevice.sqrt({root}) / libdevice.sqrt(second) + eps)"
        state = {"p": self, "m": exp_avgs, "v": exp_avg_sqs} | ({"largest": max_exp_avg_sqs} if amsgrad else {})
        numbers = {"beta1": beta1, "beta2": beta2, "weight_decay": weight_decay, "eps": eps, "lr": lr}
        operands = {**state, "grad": grads, "step": state_steps}
        _step(decay, update, change, state, operands, numbers, maximize, grad_scale, found_inf)

    return step


def _sgd(
    self: List,
    grads: List,
    momentum_buffer_list: List,
    *,
    weight_decay: float,
    momentum: float,
    lr: Any,
    dampening: float,
    nesterov: bool,
    maximize: bool,
    is_first_step: bool,
    grad_scale: _Optional = None,
    found_inf: _Optional = None,
) -> None:
    moving = bool(momentum_buffer_list)
    update = "buffer = grad" if is_first_step else "buffer = momentum * buffer + (1 - dampening) * grad"
    change = "grad" if not moving else "grad + momentum * buffer" if nesterov else "buffer"
    numbers = {"weight_decay": weight_decay, "lr": lr}
    if moving:
        numbers |= {"momentum": momentum, "dampening": dampening}
    state = {"p": self} | ({"buffer": momentum_buffer_list} if moving else {})
    operands = {**state, "grad": grads}
    _step(_COUPLED, update if moving else "", change, state, operands, numbers, maximize, grad_scale, found_inf)


def _adagrad(
    self: List,
    grads: List,
    state_sums: List,
    state_steps: List,
    *,
    lr: Any,
    lr_decay: float,
    weight_decay: float,
    eps: float,
    maximize: bool,
    grad_scale: _Optional = None,
    found_inf: _Optional = None,
) -> None:
    state = {"p": self, "total": state_sums}
    numbers = {"lr": lr, "lr_decay": lr_decay, "weight_decay": weight_decay, "eps": eps}
    operands = {**state, "grad": grads, "step": state_steps}
    update, change = "total = total + grad * grad", "grad / (1 + (step - 1) * lr_decay) / (libdevice.sqrt(total) + eps)"
    _step(_COUPLED, update, change, state, operands, numbers, maximize, grad_scale, found_inf)


TABLE: dict[str, Callable[..., Any]] = {
    f"{name}{overload}": step
    for name, step in (
        ("_fused_adam_", _adam(_COUPLED)),
        ("_fused_adamw_", _adam(_DECOUPLED)),
        ("_fused_adagrad_", _adagrad),
        ("_fused_sgd_", _sgd),
    )
    for overload in ("", ".tensor_lr")
}
