"""torch's operations on lists of tensors, ``_foreach_…``, as one kernel each; and what scales gradients (AMP).

What they compute is in the table of expressions (expressions.py). Lists that one kernel cannot do, such as of several
types, are done tensor by tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from . import elementwise, list_norms, lists
from .dtypes import OnHost, computed_in
from .elementwise import Body
from .expressions import EXPRESSIONS
from .library import aten, enter
from .pointwise import number
from .prepared import tensors_like

_UNARY = (
    *("abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac", "lgamma"),
    *("log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh"),
    *("sqrt", "tan", "tanh", "trunc"),
)
_BINARY = ("add", "sub", "mul", "div", "maximum", "minimum")
#: Operation → what its expression is called, and the names in it of the arguments after the first.
_OPERATIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    **{name: (name, ()) for name in _UNARY},
    **{name: (name, ("other",)) for name in _BINARY},
    "clamp_min": ("maximum", ("other",)),
    "clamp_max": ("minimum", ("other",)),
    "pow": ("pow:", ("exponent",)),
    "lerp": ("lerp", ("end", "weight")),
    "addcmul": ("addcmul", ("tensor1", "tensor2", "value")),
    "addcdiv": ("addcdiv", ("tensor1", "tensor2", "value")),
}
#: What an operation is called of one tensor, if not so.
_ALONE = {"maximum": "clamp_min", "minimum": "clamp_max"}
_COPY, _ZERO = Body.of("src"), Body.of("zero.to(tl.float32)")
_UNSCALE = Body(
    "out = self * inv_scale\n"
    "finite = tl.abs(self) < float('inf')\n"
    "tl.store(found + zero, 1.0, mask=mask & (finite == 0))",
    places=frozenset(("found",)),
)
_UPDATE = Body(
    "grown = growth_tracker + 1\n"
    "full = grown == interval\n"
    "larger = tl.where(tl.abs(scale_ * growth) < float('inf'), scale_ * growth, scale_)\n"
    "bad = found_inf > 0\n"
    "scale = tl.where(bad, scale_ * backoff, tl.where(full, larger, scale_))\n"
    "tracker = tl.where(bad | full, 0.0, grown)"
)


def enter_foreach(library: torch.library.Library) -> None:
    """Enter all of them."""
    for name in _OPERATIONS:
        for variant in (f"_foreach_{name}", f"_foreach_{name}_"):
            for overload in getattr(aten, variant).overloads():
                if overload in ("default", "List", "Scalar", "ScalarList", "Tensor"):
                    op = getattr(getattr(aten, variant), overload)
                    enter(library, op, _implementation(name, variant.endswith("_")))
    enter(library, aten._foreach_norm.Scalar, list_norms.norms)
    enter(library, aten._foreach_copy_.default, _copy)
    enter(library, aten._foreach_zero_.default, _zero)
    enter(library, aten._amp_foreach_non_finite_check_and_unscale_.default, _unscale)
    enter(library, aten._amp_update_scale_.default, _update_scale)


def _implementation(name: str, inplace: bool) -> Callable[..., Any]:
    expression, arguments = _OPERATIONS[name]
    alpha = name in ("add", "sub")

    def foreach(self: Sequence[torch.Tensor], *rest: Any, **more: Any) -> Any:
        given = dict(zip((*arguments, "alpha"), rest, strict=False)) | more
        if isinstance(given.get("value"), torch.Tensor):
            given["value"] = given["value"].tolist()
        try:
            return _together(EXPRESSIONS[expression], self, _complete(given, arguments, alpha), inplace)
        except OnHost:
            return _one_by_one(_ALONE.get(name, name) + ("_" if inplace else ""), self, given, inplace)

    return foreach


def _complete(given: dict[str, Any], arguments: tuple[str, ...], alpha: bool) -> dict[str, Any]:
    """The arguments with what they are if not passed."""
    defaults = {"value": 1} if "value" in arguments else {"alpha": 1} if alpha else {}
    return {**defaults, **given}


def _together(expression: str, self: Sequence[torch.Tensor], given: dict[str, Any], inplace: bool) -> Any:
    dtype = self[0].dtype
    if not dtype.is_floating_point:
        raise OnHost("numbers that are not floats")
    compute = computed_in(dtype)
    operands: dict[str, Sequence[torch.Tensor]] = {"self": self}
    numbers: dict[str, Any] = {}
    for name, value in given.items():
        if isinstance(value, torch.Tensor):
            if value.device.type == "cpu" and not value.dim() and not value.is_complex():
                numbers[name] = _real(value.item(), compute)
            elif value.device != self[0].device or value.dim() or value.dtype != dtype:
                raise OnHost("a tensor for all")
            else:
                operands[name] = [value] * len(self)
        elif not isinstance(value, (list, tuple)):
            numbers[name] = _real(value, compute)
        elif value and isinstance(value[0], torch.Tensor):
            operands[name] = value
        else:
            if len(value) != len(self):
                raise OnHost("lists of two lengths")
            # Adam's are the same for all parameters: one number is passed, where a list would be copied to the device.
            same = value[0] != 0 and value.count(value[0]) == len(value) and len(set(map(type, value))) == 1
            numbers[name] = _real(value[0], compute) if same else [_real(item, compute) for item in value]
    outs = self if inplace else tensors_like(self)
    alike = tuple(name for name in operands if isinstance(given.get(name), (list, tuple)))
    lists.run(Body.of(expression), {"out": outs}, operands, numbers, compute, alike)
    return None if inplace else list(outs)


def _real(value: Any, compute: torch.dtype) -> int | float:
    if isinstance(value, complex):
        raise OnHost("complex numbers")
    return number(value, compute)


def _one_by_one(name: str, self: Sequence[torch.Tensor], given: dict[str, Any], inplace: bool) -> Any:
    function, results = getattr(aten, name), []
    for value in given.values():
        if isinstance(value, (list, tuple)) and len(value) != len(self):
            raise RuntimeError(f"Tensor lists must have the same number of tensors, got {len(self)} and {len(value)}")
    for place, tensor in enumerate(self):
        arguments = {n: v[place] if isinstance(v, (list, tuple)) else v for n, v in given.items()}
        named = {n: arguments.pop(n) for n in ("alpha", "value") if n in arguments}
        results.append(function(tensor, *arguments.values(), **named))
    return None if inplace else results


def _copy(self: Sequence[torch.Tensor], src: Sequence[torch.Tensor], non_blocking: bool = False) -> None:
    try:
        if not all(t.dtype.is_floating_point for t in (*self, *src)) or src[0].device != self[0].device:
            raise OnHost("numbers that are not floats, or on another device")
        lists.run(_COPY, {"out": self}, {"src": src}, {}, computed_in(src[0].dtype))
    except (OnHost, IndexError):
        for one, other in zip(self, src, strict=True):
            one.copy_(other, non_blocking)


def _zero(self: Sequence[torch.Tensor]) -> None:
    try:
        lists.run(_ZERO, {"out": self}, {}, {}, torch.float32)
    except OnHost:
        for tensor in self:
            tensor.zero_()


def _unscale(self: Sequence[torch.Tensor], found_inf: torch.Tensor, inv_scale: torch.Tensor) -> None:
    if found_inf.dtype != torch.float32 or found_inf.numel() != 1 or inv_scale.numel() != 1:
        raise OnHost("a scale that is refused")
    if not all(tensor.dtype.is_floating_point for tensor in self):
        raise OnHost("numbers that are not floats")
    every = {name: [tensor] * len(self) for name, tensor in (("found", found_inf), ("inv_scale", inv_scale))}
    lists.run(_UNSCALE, {"out": self}, {"self": self, **every}, {}, computed_in(self[0].dtype))


def _update_scale(
    self: torch.Tensor,
    growth_tracker: torch.Tensor,
    found_inf: torch.Tensor,
    scale_growth_factor: float,
    scale_backoff_factor: float,
    growth_interval: int,
) -> torch.Tensor:
    if self.dtype != torch.float32 or growth_tracker.dtype != torch.int32:
        raise OnHost("a scale that is refused")
    numbers = {"growth": scale_growth_factor, "backoff": scale_backoff_factor, "interval": float(growth_interval)}
    operands = {"scale_": self, "growth_tracker": growth_tracker, "found_inf": found_inf, **numbers}
    elementwise.run(_UPDATE, {"scale": self, "tracker": growth_tracker}, operands, torch.float32)
    return self
