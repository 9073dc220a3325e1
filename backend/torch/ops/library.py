"""Registers operations for the device with torch, and leaves calls that the device cannot do to the CPU."""

from __future__ import annotations

import functools
import inspect
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from triton.runtime.errors import OutOfResources

from ..device.cpu_fallback import fallback
from ..device.tensor_memory import is_dense
from . import prepared, processor
from .dtypes import OnHost
from .strided_shapes import overlap, resized

_KEY = "PrivateUse1"
_COMPOSITE = ("CompositeExplicitAutogradNonFunctional", "CompositeExplicitAutograd")
#: How the types of arguments begin that are a tensor, a number, or may be left out.
_SINGLE = ("Tensor", "number", "Optional")
#: ``op``: the operation that this thread calls with numbers that torch is to make tensors of.
_calling = threading.local()
_log = logging.getLogger(__package__)
aten = torch.ops.aten

#: Operations whose outputs may not share memory with what they read, as on the CPU.
_APART = frozenset(("gather", "kthvalue", "masked_select"))
#: Operations that torch composes of allocations, copies, fills and operations with other names.
_OF_OTHERS = (
    "logsumexp",
    *("clone", "full_like", "new_full", "new_ones", "new_zeros", "ones_like", "zeros_like"),
    *("diagonal_backward", "select_backward", "slice_backward", "unfold_backward"),
)
#: Operations that have an implementation on the device, by their names.
ON_DEVICE: dict[str, Callable[..., Any]] = {}


def overloads(name: str) -> Iterator[torch._ops.OpOverload]:
    """All overloads of the operation aten::<name>; none where this torch has no such operation."""
    packet = getattr(aten, name, None)
    if packet is not None:
        for overload in packet.overloads():
            op = getattr(packet, overload)
            if torch._C._dispatch_has_kernel(op.name()):  # not one of TorchScript's alone
                yield op


def composed(op: torch._ops.OpOverload) -> bool:
    """Whether torch itself does the operation by others, such as a functional one by that with ``out``. One that it has
    a kernel of for the CPU, and composes with its gradients for others, is none (silu_backward)."""
    has = functools.partial(torch._C._dispatch_has_kernel_for_dispatch_key, op.name())
    return not has("CPU") if has("CompositeImplicitAutograd") else any(map(has, _COMPOSITE))


def enter(
    library: torch.library.Library, op: torch._ops.OpOverload, function: Callable[..., Any], elementwise: bool = False
) -> None:
    """Makes ``function`` do the operation for tensors of the device. What it raises OnHost for is done on the CPU.
    ``elementwise``: it copes with outputs that share memory with what it reads."""
    name = op.name().removeprefix("aten::")
    ON_DEVICE[name] = function
    function = function if elementwise else _apart(op, function)

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except OnHost as reason:
            _log.debug("%s is left to the CPU: %s", name, reason)
        except OutOfResources as reason:
            _log.warning("%s is left to the CPU: %s", name, reason)
        return fallback(op, *args, **kwargs)

    prepared.enter(library, op, processor.or_torchs(op, run), by_address=_writes_lists(op))


def _writes_lists(op: torch._ops.OpOverload) -> bool:
    """Whether it writes lists of tensors, whose addresses are in a table (lists.py)."""
    return any("List[Tensor]" in str(a.type) and a.alias_info and a.alias_info.is_write for a in op._schema.arguments)


def enter_composed(library: torch.library.Library) -> None:
    """Repeat earlier calls of operations that torch composes of operations in ON_DEVICE, such as ``add`` of
    ``add.out``. torch's own composition, which every out-of-tree device gets, does the first call of a kind."""
    for base in sorted({*_OF_OTHERS, *(name.partition(".")[0].removesuffix("_") for name in ON_DEVICE)}):
        for variant in (base, base + "_"):
            for op in overloads(variant):
                name = op.name().removeprefix("aten::")
                if name not in ON_DEVICE and _is_composed_for_devices(op):
                    prepared.enter(library, op, processor.or_torchs(op, composition(op)))


def composition(op: torch._ops.OpOverload) -> Callable[..., Any]:
    """torch's own composition of the operation. Of numbers where tensors may stand only a call makes tensors; it comes
    back here, still within which they are taken."""
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.PrivateUse2)
    tensors = [(place, a.name) for place, a in enumerate(op._schema.arguments) if str(a.type) == "Tensor"]

    def run(*args: Any, **kwargs: Any) -> Any:
        given = [args[place] if place < len(args) else kwargs.get(name) for place, name in tensors]
        again, _calling.op = getattr(_calling, "op", None) is op, None
        if not again and any(isinstance(value, (bool, int, float, complex)) for value in given):
            _calling.op = op
            try:
                return op(*args, **kwargs)
            finally:
                _calling.op = None
        return op.redispatch(keys, *args, **kwargs)

    return run


def _is_composed_for_devices(op: torch._ops.OpOverload) -> bool:
    has = functools.partial(torch._C._dispatch_has_kernel_for_dispatch_key, op.name())
    found = any(map(has, _COMPOSITE)) and not has("CompositeImplicitAutograd") and not has(_KEY)
    if not {"self_scalar", "x_scalar"}.isdisjoint(op.overloadpacket.overloads()):  # numbers may stand first, too
        return False
    return found and (_takes_numbers(op) or "Scalar" not in "".join(op.overloadpacket.overloads()))


def _takes_numbers(op: torch._ops.OpOverload) -> bool:
    """Whether torch makes tensors of numbers that the operation is called with from Python."""
    arguments = op._schema.arguments
    tensors = [argument for argument in arguments if str(argument.type) == "Tensor"]
    if len(tensors) < 2:
        return True
    given = [argument for argument in arguments if not argument.has_default_value() and not argument.kwarg_only]
    if given[:1] != tensors[:1] or any(not str(one.type).startswith(_SINGLE) for one in given):
        return False
    named = op._schema.name.partition("::")[2]
    return sum(one in tensors for one in given) < 2 or torch._C._should_allow_numbers_as_tensors(named)


def _apart(op: torch._ops.OpOverload, function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` with outputs that share no memory with what it reads: where a caller's do, they get the result
    afterwards. An operation that torch has in place too may write the very tensor that is its first argument."""
    schema = op._schema
    outs = [argument.name for argument in schema.arguments if argument.is_out]
    if not outs:
        return function
    base = schema.name.removeprefix("aten::")
    has_inplace = getattr(aten, base + "_", None) is not None

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        dtype = kwargs.get("dtype")
        if dtype is not None and any(kwargs[name].dtype != dtype for name in outs):
            raise OnHost(f"an output that is not of {dtype}")
        given = [*args, *[value for name, value in kwargs.items() if name not in outs]]
        fresh: dict[str, torch.Tensor] = {}
        for name in outs:
            out = kwargs.get(name)
            read = given[1:] if has_inplace and given and given[0] is out else given
            if isinstance(out, torch.Tensor) and _meets(out, read):
                if base in _APART or (base == "cat" and any([_meets_for_torch(out, one) for one in given[0]])):
                    raise RuntimeError(
                        f"{base}: unsupported operation: some elements of the input tensor and the written-to tensor "
                        "refer to a single memory location. Please clone() the tensor before performing the operation."
                    )
                fresh[name] = torch.empty_like(out)
        if not fresh:
            return function(*args, **kwargs)
        function(*args, **{**kwargs, **fresh})
        for name, result in fresh.items():
            resized(kwargs[name], result.shape).copy_(result)
        results = tuple(kwargs[name] for name in outs)
        return results[0] if len(results) == 1 else results

    return run


def _meets_for_torch(out: torch.Tensor, value: torch.Tensor) -> bool:
    """Whether torch sees that they overlap: it does not look between the elements of other tensors."""
    return overlap(value, out) and (value is out or (is_dense(value) and is_dense(out)))


def _meets(out: torch.Tensor, values: Sequence[Any]) -> bool:
    found = any([overlap(one, out) for one in values if isinstance(one, torch.Tensor)])
    return found or any([_meets(out, one) for one in values if isinstance(one, (list, tuple))])


def enter_by_name(library: torch.library.Library, table: dict[str, Callable[..., Any]]) -> None:
    """enter() for a table of names with their overloads ('mm.out'), several in a row if one function does them all;
    those that torch does not have are left out. Outputs that the function has no arguments for get its results."""
    for names, function in table.items():
        for name in names.split():
            base, _, overload = name.partition(".")
            packet = getattr(aten, base, None)
            if packet is not None and (overload or "default") in packet.overloads():
                op = getattr(packet, overload or "default")
                enter(library, op, _into_outputs(op, function))


def _into_outputs(op: torch._ops.OpOverload, function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, whose results are copied into the operation's outputs if it does not take those itself."""
    outs = [argument.name for argument in op._schema.arguments if argument.is_out]
    if not outs or any(
        p.name in outs or p.kind is p.VAR_KEYWORD for p in inspect.signature(function).parameters.values()
    ):
        return function

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        targets = tuple(kwargs.pop(name) for name in outs)
        results = function(*args, **kwargs)
        for target, result in zip(targets, results if isinstance(results, tuple) else (results,), strict=True):
            if target.dtype != result.dtype:
                raise OnHost(f"an output of {target.dtype}, not {result.dtype}")
            resized(target, result.shape).copy_(result)
        return targets if len(targets) > 1 else targets[0]

    return run
