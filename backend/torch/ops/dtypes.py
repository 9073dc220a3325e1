"""torch's element types, Triton's names for them, and the type in which each is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, reduce
from typing import Any

import torch

from ... import runtime

#: torch's element type → Triton's. What is not here is left to the CPU.
NAMES = {
    torch.bool: "i1",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.int16: "i16",
    torch.uint16: "u16",
    torch.int32: "i32",
    torch.uint32: "u32",
    torch.int64: "i64",
    torch.uint64: "u64",
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
    torch.float32: "fp32",
    torch.float64: "fp64",
}
#: The names that kernels' text has for them.
IN_SOURCE = {
    "i1": "tl.int1",
    "i8": "tl.int8",
    "u8": "tl.uint8",
    "i16": "tl.int16",
    "u16": "tl.uint16",
    "i32": "tl.int32",
    "u32": "tl.uint32",
    "i64": "tl.int64",
    "u64": "tl.uint64",
    "fp16": "tl.float16",
    "bf16": "tl.bfloat16",
    "fp32": "tl.float32",
    "fp64": "tl.float64",
}
#: An integer of each size, as which elements are moved that are not computed with.
_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_HALVES = (torch.float16, torch.bfloat16)


class OnHost(Exception):
    """Raised by an operation that cannot be done on the device as it was called: the CPU does it."""


def or_not_implemented(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, which returns NotImplemented where it raises OnHost, for those who ask for it by name."""

    def call(*args: Any) -> Any:
        try:
            return function(*args)
        except OnHost:
            return NotImplemented

    return call


def computed_in(dtype: torch.dtype) -> torch.dtype:
    """The type in which arithmetic of ``dtype`` is done: float32 for the 16-bit floats (torch's opmath), int8 for bool,
    whose sums and products then are as of 0 and 1."""
    if dtype in _HALVES:
        return torch.float32
    return torch.int8 if dtype == torch.bool else dtype


def promoted(operands: Iterable[torch.Tensor | bool | int | float | complex]) -> torch.dtype:
    """The type that elementwise operands promote to, by torch's rule; torch._prims_common imports sympy to tell it.
    Tensors with dimensions come before those without, and these before numbers: only a higher kind of number among
    those that come later, such as floats beside integers, changes the type."""
    numbers, points, arrays = groups = [list[torch.dtype]() for _ in range(3)]
    for one in operands:
        if not isinstance(one, torch.Tensor):
            numbers.append(torch.result_type(one, False))
        else:
            (arrays if one.dim() else points).append(one.dtype)
    found = [reduce(torch.promote_types, group) for group in groups if group]
    return reduce(lambda low, high: torch.result_type(_example(1, high), _example((), low)), found)


def _example(shape: Any, dtype: torch.dtype) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device="meta")


def as_integer(dtype: torch.dtype) -> torch.dtype:
    """The integer type as which elements of ``dtype`` are moved. Raises OnHost for elements of 16 bytes."""
    if dtype.itemsize not in _INTEGERS:
        raise OnHost(f"{dtype} has no integer of its size")
    return _INTEGERS[dtype.itemsize]


@cache
def known(dtype: torch.dtype, device: int) -> bool:
    """Whether kernels of the device can load, compute with and store ``dtype``."""
    if dtype not in NAMES:
        return False
    capabilities = runtime.of_device(device).capabilities
    return dtype != torch.float64 or capabilities.has("float64")


@cache
def adds_wide(device: int) -> bool:
    """Whether kernels of the device can add to a number of 64 bits that others add to."""
    return runtime.of_device(device).capabilities.has("int64_atomics")


def require(dtype: torch.dtype, device: int) -> None:
    """Raises OnHost unless known()."""
    if not known(dtype, device):
        raise OnHost(f"{dtype} is not computed with on the device")


def number_type(compute: torch.dtype) -> str:
    """In which type a number is passed to a kernel that computes in ``compute``."""
    return NAMES[compute] if compute.is_floating_point else "i64"


def converted(name: str, source: torch.dtype, target: torch.dtype) -> str:
    """The text of ``name``, computed in ``source`` or a bool, as ``target``. Floats become narrow integers by way of
    int64, as on the CPU: the low bits of the number without its fraction."""
    if target == torch.bool:
        return f"fn.truth({name})"
    to = IN_SOURCE[NAMES[target]]
    if target.is_floating_point or target in (torch.int64, torch.uint64) or not source.is_floating_point:
        return f"({name}).to({to})"
    return f"fn.whole({name}).to({to})"
