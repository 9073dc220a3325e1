"""Operations that torch calls as native kernels (native/torch/torch_operations.cpp), through its stable C interface.

A native kernel enters Python only for a call unlike earlier ones, and passes what torch passes to kernels in Python.
The interface has no Scalars, generators, storages and streams. Operations with those, and all of a torch without the
interface, are kernels in Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from ...runtime import NAME
from .native_module import torch_native

#: Codes of torch's types (PassedType in native/torch/torch_operations.h).
_BASES = {"Tensor": "T", "int": "i", "float": "f", "bool": "b", "str": "s", "Device": "d"}
#: Types whose values the interface passes as numbers: what they are in Python, and what the interface calls them.
_CONSTANTS = {
    "ScalarType": (torch.dtype, "dtype"),
    "Layout": (torch.layout, "layout"),
    "MemoryFormat": (torch.memory_format, "memory_format"),
}
#: Operations that make tensors of any type. The interface passes types of numbers alone: it refuses uint4 and its like
#: before a kernel is entered (stableivalue_conversions.h of torch 2.13: "Not yet supported ScalarType").
_OF_ALL_TYPES = frozenset({"aten::empty.memory_format", "aten::empty_strided", "aten::_to_copy"})
_FORM = re.compile(r"(Optional\[)?(List\[)?(Optional\[)?(\w+)\]*")
#: By the type of a tensor that torch made of a number: one that both together are of the type of, if it is so made.
_PROBES = {
    number: torch.zeros((), dtype=other, device="cpu")
    for number, other in ((torch.float64, torch.float16), (torch.int64, torch.int8))
}
_NONE = object()


def operation(op: torch._ops.OpOverload) -> Any:
    """The operation as a native kernel's (a native TorchOperation). None where it cannot be one."""
    if op.name() in _OF_ALL_TYPES or not torch_native().has_torch_operations():
        return None
    arguments, results = ([_form(value) for value in values] for values in (op._schema.arguments, op._schema.returns))
    if any(base == "" for _, base in (*arguments, *results)) or not all(map(_can_be_given, results)):
        return None
    return torch_native().TorchOperation(
        name=op.name().removeprefix("aten::"),
        arguments=list(map(_passed, arguments)),
        results=list(map(_passed, results)),
        unpack=_unpacking(op),
        tensors_of=torch._C._aoti.alloc_tensors_by_stealing_from_void_ptrs,
        handle_of=torch._C._aoti.unsafe_alloc_void_ptr_from_tensor,
    )


def takes_negated(op: torch._ops.OpOverload) -> bool:
    """Whether lazily negated tensors reach the operation: for others torch resolves them first."""
    return torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), "Negative")


def takes_integers(op: torch._ops.OpOverload) -> bool:
    """Whether a number may be one that torch's compiler knows as a symbol, which no native kernel can be passed."""
    return any(base == "i" for _, base in map(_form, op._schema.arguments))


def _form(value: Any) -> tuple[tuple[bool, bool], str]:
    """(whether it may be None, is a list; the code of what it is or has) of an argument or a result of a schema. The
    code is empty where the interface does not pass such values, and for lists with None: callers share those, as
    gradients and tangents do, and the interface takes the tensors out of them."""
    match = _FORM.fullmatch(str(value.real_type))
    if match is None or match[3] is not None:
        return (False, False), ""
    name = match[4]
    return (match[1] is not None, match[2] is not None), "c" if name in _CONSTANTS else _BASES.get(name, "")


def _can_be_given(form: tuple[tuple[bool, bool], str]) -> bool:
    (is_optional, is_list), base = form
    return not is_optional and base in ("T" if is_list else "Tifb")


def _passed(form: tuple[tuple[bool, bool], str]) -> Any:
    (is_optional, is_list), base = form
    return torch_native().PassedType(base, is_list=is_list, is_optional=is_optional)


@cache
def _constants() -> dict[tuple[str, int], Any]:
    """The objects of torch by their types' names in schemas and their numbers in the interface."""
    found = {}
    for name, value in vars(torch).items():
        for kind, (type_, word) in _CONSTANTS.items():
            for start in ("aoti_torch", "torch") if isinstance(value, type_) else ():
                number = torch_native().torch_constant(f"{start}_{word}_{name}")
                if number is not None:
                    found[kind, number] = value
    return found


def _device(type_: int, index: int) -> torch.device:
    kind = torch._C._autograd.DeviceType
    name = NAME if kind(type_) == kind.PrivateUse1 else kind(type_).name.lower()
    return torch.device(name) if index < 0 else torch.device(name, index)


def _is_number(tensor: torch.Tensor) -> bool:
    """Whether torch made the tensor of a number where a tensor may stand. Of a bool it cannot be told."""
    if tensor.dim() or tensor.dtype not in _PROBES or tensor.device.type != "cpu":
        return False
    probe = _PROBES[tensor.dtype]
    return torch.result_type(probe, tensor) == probe.dtype


def _unpacking(op: torch._ops.OpOverload) -> Callable[[list[Any]], tuple[tuple[Any, ...], dict[str, Any], bool]]:
    """What the native kernel's values are in Python: (arguments by place; by name; whether tensors without dimensions
    on the CPU are numbers). As for torch's kernels in Python, those that are as by default are left out at the end."""
    schema = op._schema.arguments
    names = [argument.name for argument in schema]
    types = [_FORM.fullmatch(str(argument.real_type))[4] for argument in schema]  # type: ignore[index]
    defaults = [argument.default_value if argument.has_default_value() else _NONE for argument in schema]
    kinds, places = [*map(type, defaults)], sum(not argument.kwarg_only for argument in schema)
    constants = [at for at, type_ in enumerate(types) if type_ in _CONSTANTS or type_ == "Device"]
    tensors = [at for at, argument in enumerate(schema) if str(argument.real_type) in ("Tensor", "Optional[Tensor]")]

    def unpack(given: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any], bool]:
        end = places
        while end and type(given[end - 1]) is kinds[end - 1] and given[end - 1] == defaults[end - 1]:
            end -= 1
        named = [
            at for at in range(places, len(kinds)) if type(given[at]) is not kinds[at] or given[at] != defaults[at]
        ]
        numbers = [at for at in tensors if given[at] is not None and given[at].is_cpu]
        for at in (*constants, *numbers):
            given[at] = _value(types[at], given[at])
        are_numbers = not any([isinstance(given[at], torch.Tensor) and not given[at].dim() for at in numbers])
        return tuple(given[:end]), {names[at]: given[at] for at in named}, are_numbers

    return unpack


def _value(type_: str, value: Any) -> Any:
    if value is None:
        return None
    if type_ in _CONSTANTS:
        return _constants()[type_, value]
    if type_ == "Device":
        return _device(*value)
    if isinstance(value, torch.Tensor) and _is_number(value):
        return value.item()
    return value
