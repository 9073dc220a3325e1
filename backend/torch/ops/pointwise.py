"""torch's elementwise operations: the tables in expressions.py, in all of their overloads.

Shapes, strides and types of results are torch's own: where torch makes the result itself (operations that it composes
of the overload with ``out``) nothing else is asked; elsewhere dtypes.py and torch._prims_common say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
from torch._prims_common import compute_elementwise_output_strides

from ...runtime import NAME
from ..device.tensor_memory import dense_strides, empty_strided
from . import elementwise
from .addressing import PLANS
from .bounds import PROBABILITY, ZERO_DIVISION, fault_of
from .dtypes import OnHost, computed_in, converted, promoted
from .elementwise import TILE, Body
from .expressions import (
    ACTIVATIONS,
    BITWISE,
    BY_TEXT,
    DEFAULT,
    EXPRESSIONS,
    INTEGERS,
    INTEGERS_ONLY,
    PROMOTIONS,
    TO_BOOL,
    TO_FLOAT,
)
from .kept import Kept
from .library import composed, enter, overloads
from .splitting import lines_of, parts, split
from .strided_shapes import broadcast, resized

#: Numbers that take part in type promotion; others (alpha, value …) follow the type.
_PROMOTING = frozenset(("self", "other", "exponent", "min", "max"))
#: Arguments that change nothing: of the result of leaky_relu the sign is its argument's.
_WITHOUT_EFFECT = frozenset(("self_is_result",))
_TENSORS = ("Tensor", "Optional[Tensor]")
_NUMBERS = ("number", "Optional[number]", "float", "int", "bool")
_FLOAT_LIMIT = 3.5e38
#: Of functions of float32 alone, whose text is long.
_FLOAT32_ONLY = "sp."
#: Elements of a program of long expressions.
_LONG_TILE = 256

#: Operations whose outputs torch wants of the result's own type.
_OF_ONE_TYPE = frozenset(
    "abs bitwise_not ceil clamp:both clamp:min clamp:max elu floor frac gelu hardshrink hardsigmoid hardswish hardtanh "
    "heaviside isneginf isposinf leaky_relu lerp mish nan_to_num: neg round round:after round:before sgn sign signbit "
    "silu softplus softshrink trunc".split()
)
#: Activations that torch has of integers, and all of DEFAULT that it has of bool.
_OF_INTEGERS = frozenset(("hardtanh", "hardtanh_backward", "threshold", "threshold_backward"))
_OF_BOOL = frozenset(("add", "mul", "maximum", "minimum", "fmax", "fmin", "sgn", "sign", "heaviside", *BITWISE))
_OF_BOOL -= {"bitwise_left_shift", "bitwise_right_shift"}
_OF_FLOATS = (
    frozenset(("logaddexp", "logaddexp2", "log_sigmoid:", "log_sigmoid_backward:", *ACTIVATIONS)) - _OF_INTEGERS
)

#: Divisions whose divisor must not be 0 where it is an integer.
_DIVISIONS = frozenset((("floor_divide",), ("remainder",), ("fmod",), ("div", "trunc"), ("div", "floor")))
_CHECK_DIVISOR = f"tl.store(fault + zero, {ZERO_DIVISION}, mask=mask & (other == 0))\n"


#: Operations → the lines that note what they refuse, before their result.
_CHECKS = {
    "binary_cross_entropy:": f"wrong = ((self >= 0) & (self <= 1) & (target >= 0) & (target <= 1)) == 0\n"
    f"tl.store(fault + zero, {PROBABILITY}, mask=mask & wrong)\n"
}


@dataclass(frozen=True)
class _Operation:
    """An overload. ``kind``: 'functional', 'inplace' or 'out'."""

    op: torch._ops.OpOverload
    names: tuple[str, ...]
    defaults: dict[str, Any]
    tensors: frozenset[str]
    numbers: frozenset[str]
    kind: str
    out: str


@dataclass(frozen=True)
class Resolved:
    """What follows from the types of a call's operands. ``split``: complex numbers' parts are computed with."""

    compute: torch.dtype
    dtype: torch.dtype
    body: Body
    split: bool = False


_resolved: Kept[Resolved] = Kept(PLANS)


@cache
def _operation(op: torch._ops.OpOverload) -> _Operation:
    schema = op._schema
    arguments = [argument for argument in schema.arguments if not argument.is_out]
    outs = [argument.name for argument in schema.arguments if argument.is_out]
    written = [a.name for a in arguments if a.alias_info is not None and a.alias_info.is_write]
    return _Operation(
        op,
        tuple(argument.name for argument in arguments),
        {a.name: a.default_value for a in schema.arguments if a.has_default_value()},
        frozenset(a.name for a in arguments if str(a.type) in _TENSORS),
        frozenset(a.name for a in arguments if str(a.type) in _NUMBERS),
        "out" if outs else "inplace" if written else "functional",
        outs[0] if outs else "",
    )


def enter_pointwise(library: torch.library.Library) -> None:
    """All overloads of the tables' operations that torch does not compose of others."""
    for name in (*EXPRESSIONS, "gelu", "gelu_backward"):
        for variant in (name, name + "_"):
            for op in overloads(variant):
                if not composed(op) and _usable(op, name):
                    enter(library, op, _implementation(op, name), elementwise=True)


def _usable(op: torch._ops.OpOverload, name: str) -> bool:
    """Whether its results are one tensor, its arguments tensors, numbers and text, and the expression of ``name`` of
    all tensors and numbers: an overload may have more."""
    schema, operation = op._schema, _operation(op)
    allowed = {*_TENSORS, *_NUMBERS, "str", "Optional[str]"}
    texts = [EXPRESSIONS.get(name, ""), *(text for (base, _), text in BY_TEXT.items() if base == name)]
    named = {word for text in texts for word in re.findall(r"\w+", text)}
    if not named | _WITHOUT_EFFECT >= operation.tensors | operation.numbers:
        return False
    return len(schema.returns) == 1 and all(str(argument.type) in allowed for argument in schema.arguments)


def _implementation(op: torch._ops.OpOverload, name: str) -> Callable[..., Any]:
    operation = _operation(op)

    def implementation(*args: Any, **kwargs: Any) -> Any:
        values = dict(zip(operation.names, args, strict=False))
        if len(args) > len(operation.names):
            kwargs = {**kwargs, operation.out: args[-1]}
        values |= kwargs
        out = values.pop(operation.out, None) if operation.out else None
        given = {key: values.get(key, operation.defaults.get(key)) for key in operation.names}
        if operation.kind == "inplace":
            out = given["self"]
        return apply(name, given, out)

    return implementation


def apply(name: str, given: dict[str, Any], out: torch.Tensor | None) -> torch.Tensor:
    """The operation ``name`` of the tables, of arguments by their schema's names, into ``out`` or a new tensor."""
    operands: dict[str, Any] = {}
    numbers: dict[str, bool | int | float | complex] = {}
    tensors: list[torch.Tensor] = []
    texts = []
    what: list[Any] = [name, torch.get_default_dtype()]  # what types follow from
    for key, value in given.items():
        if isinstance(value, torch.Tensor):
            if value.device.type == NAME:
                operands[key] = value
                tensors.append(value)
                what += key, value.dtype, value.dim() == 0
                continue
            value = single(value)
        if isinstance(value, (bool, int, float, complex)):
            operands[key] = numbers[key] = value
            what += key, type(value)
        elif isinstance(value, str):
            texts.append(value)
            what.append(value)
        elif value is not None or key != "rounding_mode":
            raise OnHost(f"{key}={value!r}")
    resolved = _resolved.get(tuple(what), lambda: _resolve(name, texts, operands))
    shape = broadcast(*(tensor.shape for tensor in tensors))
    other_type = out is not None and out.dtype != resolved.dtype
    holds = out is not None and torch.can_cast(resolved.dtype, out.dtype)
    if other_type and (name in _OF_ONE_TYPE or (resolved.split and holds)):
        raise OnHost("an output of another type")
    if name == "softshrink" and not 0 <= numbers["lambd"].real <= torch.finfo(resolved.dtype).max:
        raise OnHost("a limit that is refused")
    for key, value in () if resolved.split else numbers.items():
        truth = key == "alpha" and resolved.dtype == torch.bool and isinstance(value, int)
        operands[key] = number(bool(value) if truth else value, resolved.compute)
    if out is None:
        out = empty_strided(shape, output_strides(tensors, shape), dtype=resolved.dtype, device=tensors[0].device)
    else:
        check_output(out, resolved.dtype, shape, any([out is tensor for tensor in tensors]), tensors)
        if out.is_complex() and not resolved.split:
            return out.copy_(apply(name, given, None))
    if resolved.split:
        outputs = dict(zip(("out_re", "out_im"), parts(out), strict=True)) if out.is_complex() else {"out": out}
        elementwise.run(resolved.body, outputs, split(operands), resolved.compute)
        return out
    if resolved.body.places:
        operands["fault"] = fault_of(out.device, name.rstrip(":"))
    body = resolved.body
    if other_type and resolved.dtype != resolved.compute:  # the result is rounded to its own type first, as in torch
        body = replace(body, text=f"{body.text}\nout = {converted('out', resolved.compute, resolved.dtype)}")
    elementwise.run(body, {"out": out}, operands, resolved.compute)
    return out


def single(tensor: torch.Tensor) -> bool | int | float | complex:
    """The number in a CPU tensor without dimensions, which torch lets stand among tensors of a device. Raises OnHost,
    which ends in an error, for others."""
    if tensor.device.type != "cpu" or tensor.dim():
        raise OnHost(f"a tensor on {tensor.device}")
    return tensor.item()


def number(value: bool | int | float | complex, compute: torch.dtype) -> int | float:
    """A number as a kernel that computes in ``compute`` is passed it. Raises OnHost if it does not fit."""
    if compute.is_complex or isinstance(value, complex):
        raise OnHost("complex numbers")
    if compute.is_floating_point:
        value = float(value)
        if compute == torch.float32 and _FLOAT_LIMIT < abs(value) < float("inf"):
            raise OnHost(f"{value} is past float32")
        return value
    if value != value or value in (float("inf"), float("-inf")) or int(value) != value:
        raise OnHost(f"{value} among {compute}")
    limits = torch.iinfo(torch.int8 if compute == torch.bool else compute)
    if not limits.min <= value <= limits.max or value >= 2**63:
        raise OnHost(f"{value} is past {compute}")
    return int(value)


def _resolve(name: str, texts: list[str], operands: dict[str, Any]) -> Resolved:
    tensors = [value for value in operands.values() if isinstance(value, torch.Tensor)]
    if not tensors:
        raise OnHost("no tensor on the device")
    promoting = [v for k, v in operands.items() if isinstance(v, torch.Tensor) or k in _PROMOTING]
    kind = PROMOTIONS.get(f"{name}:{texts[0]}" if texts else name, DEFAULT)
    common = promoted(promoting)
    if _is_refused(name, kind, common, operands):
        raise OnHost(f"{name} of {common}")
    if kind == TO_FLOAT and not _is_float(common):
        common = torch.get_default_dtype()
    if common.is_complex:
        lines, compute, dtype = lines_of(name, texts, torch.complex64 if common == torch.complex32 else common)
        return Resolved(compute, dtype, Body(lines), split=True)
    dtype = torch.bool if kind == TO_BOOL else common
    compute = torch.bool if name in BITWISE and dtype == torch.bool else computed_in(common)
    return Resolved(compute, dtype, _body(name, texts, compute))


def _is_float(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point or dtype.is_complex


def _is_refused(name: str, kind: str, common: torch.dtype, operands: dict[str, Any]) -> bool:
    """Whether torch refuses operands of these types, as it does not see where a caller gives the output."""
    dtypes = {value.dtype for value in operands.values() if isinstance(value, torch.Tensor)}
    booleans = [key for key, value in operands.items() if isinstance(value, bool)]
    floats = [key for key, value in operands.items() if isinstance(value, torch.Tensor) and _is_float(value.dtype)]
    whole = not _is_float(common)
    return (
        (kind == DEFAULT and common == torch.bool and name not in _OF_BOOL)
        or (whole and name in _OF_FLOATS)
        or (name in ("sub", "rsub") and (torch.bool in dtypes or "other" in booleans))
        or ("alpha" in booleans and common != torch.bool)
        or (name == "addcdiv" and not {"tensor1", "tensor2"} & {*floats})
        or (name in ("heaviside", "lerp") and len(dtypes) > 1)
    )


def output_strides(tensors: Sequence[torch.Tensor], shape: torch.Size) -> tuple[int, ...]:
    """The strides of a new result of operands that are broadcast to ``shape``, by torch's rule."""
    if all(tensor.shape == shape and tensor.is_contiguous() for tensor in tensors):
        return dense_strides(shape)
    expanded = [
        torch.empty_strided(tensor.shape, tensor.stride(), device="meta", dtype=tensor.dtype).expand(shape)
        for tensor in tensors
    ]
    return tuple(compute_elementwise_output_strides(*expanded))


def _body(name: str, texts: list[str], compute: torch.dtype) -> Body:
    if texts:
        if (name, texts[0]) not in BY_TEXT:
            raise OnHost(f"{name} of {texts[0]!r}")
        expression = BY_TEXT[name, texts[0]]
    elif not compute.is_floating_point and name in INTEGERS:
        expression = INTEGERS[name]
    else:
        expression = EXPRESSIONS[name]
    small = compute == torch.int8 and name not in BITWISE
    if name in INTEGERS_ONLY and (compute.is_floating_point or small):
        raise OnHost(f"{name} of {compute}")
    long = _FLOAT32_ONLY in expression
    if long and compute == torch.float64:
        raise OnHost(f"{name} in float64")
    if not compute.is_floating_point and (
        any(floats in expression for floats in ("libdevice.", _FLOAT32_ONLY))
        or PROMOTIONS[name] != TO_BOOL
        and "0.0" in expression
    ):
        raise OnHost(f"{name} of {compute}")
    if not compute.is_floating_point and (name, *texts) in _DIVISIONS:
        return Body(f"{_CHECK_DIVISOR}out = {expression}", places=frozenset(("fault",)))
    if name in _CHECKS:
        return Body(f"{_CHECKS[name]}out = {expression}", places=frozenset(("fault",)))
    return Body.of(expression, tile=_LONG_TILE if long else TILE)


def of_type(out: torch.Tensor, dtype: torch.dtype, shape: Sequence[int]) -> torch.Tensor:
    """``out``, with the shape of the result, whose type it has to have: the CPU says what is wrong with another."""
    if out.dtype != dtype:
        raise OnHost(f"an output of {out.dtype}, not {dtype}")
    return resized(out, shape)


def check_output(
    out: torch.Tensor,
    dtype: torch.dtype,
    shape: torch.Size,
    inplace: bool = False,
    operands: Sequence[torch.Tensor] = (),
) -> None:
    """Give ``out`` the shape of the result, and where it has another one, the strides that a new result of the
    ``operands`` has. Raises RuntimeError, as torch does, where it cannot hold the result."""
    if not torch.can_cast(dtype, out.dtype):
        raise RuntimeError(f"result type {_name(dtype)} can't be cast to the desired output type {_name(out.dtype)}")
    if out.shape == shape:
        return
    if inplace:
        raise RuntimeError(f"output with shape {list(out.shape)} doesn't match the broadcast shape {list(shape)}")
    resized(out, shape)
    if operands and out.numel():
        out.as_strided_(shape, output_strides(operands, shape))


_NAMES = {torch.float32: "Float", torch.float64: "Double", torch.float16: "Half", torch.bool: "Bool"}
_NAMES |= {torch.int64: "Long", torch.int32: "Int", torch.int16: "Short", torch.int8: "Char", torch.uint8: "Byte"}
_NAMES |= {torch.bfloat16: "BFloat16", torch.complex64: "ComplexFloat", torch.complex128: "ComplexDouble"}


def _name(dtype: torch.dtype) -> str:
    return _NAMES.get(dtype, str(dtype).removeprefix("torch."))
