"""A compiled kernel's launcher: a chain of launchers around the native one, made from its source and metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any

from triton.backends.driver import decompose_descriptor, wrap_handle_tensordesc_impl

from ..abi.block import GRID, hidden_arguments
from ..abi.launch_arguments import FIRST_ARGUMENT
from ..abi.scalars import triton_name
from ..availability import compile_only
from ..runtime import context as vulkan_context
from ..runtime.launches.launch import Entry, make_launcher
from ..runtime.reports.launchers import LaterLauncher, ReportingLauncher, says_failures
from . import kernel_records
from .compile_only import CompileOnlyLauncher
from .scratch_memory import ScratchLauncher
from .signatures import argument_name, flat_signature, has_descriptor
from .split_grid import PartsLauncher, SplitVariant

_LATER: ContextVar[bool] = ContextVar("reports are read later", default=False)


@contextmanager
def reports_later() -> Iterator[None]:
    """Launchers that are made meanwhile are made with ``later``: for those who make them through Triton."""
    token = _LATER.set(True)
    try:
        yield
    finally:
        _LATER.reset(token)


def _make_tensordesc_arg(arg: Any, metadata: Any, _: Any) -> list[Any]:
    if metadata is not None:
        raise RuntimeError("the SPIR-V backend does not support hardware tensor descriptors")
    return decompose_descriptor(arg)


def launcher(src: Any, metadata: Any, later: bool = False, flat: bool = False) -> Callable[..., None]:
    """The callable that a CompiledKernel runs: ``make_launcher`` for the kernel's source and metadata.

    ``later``: launches need not wait to learn of a failed assertion or a loop that the driver cut short:
    runtime/reports/launchers.py has raise_reports(), which says so, and which the caller calls before what they wrote
    is read on the host. Launches with CPU or CUDA tensors wait. ``flat``: it is called with the parts of tensor
    descriptors in their place.

    ``metadata.arguments``: [index into flat_signature, type] of each passed argument; without it all but the
    constexprs are passed. ``metadata.indirect_arguments``: the block goes into a buffer.
    ``metadata.written_arguments``: indices into the passed arguments of the pointers that may be written; None: any.
    ``metadata.global_scratch_size``, ``_align``: of a program's global scratch memory, where the kernel takes any.
    ``metadata.reports``: messages of a kernel that takes a report buffer.
    Raises ValueError if the metadata contradicts the signature.
    """
    kernel_records.note(src, metadata)
    if compile_only():
        return CompileOnlyLauncher(metadata.name)
    signature = dict(src.signature)
    tensordesc_meta = getattr(metadata, "tensordesc_meta", None)
    leaves = flat_signature([argument_name(src, key) for key in signature], list(signature.values()), tensordesc_meta)
    passed = getattr(metadata, "arguments", None)
    if passed is None:
        passed = [(index, type_) for index, (_, _, type_) in enumerate(leaves) if type_ != "constexpr"]
    if any(not 0 <= index < len(leaves) for index, _ in passed):
        raise ValueError(f"kernel '{metadata.name}': its metadata passes arguments that its signature does not have")
    entries = [(*leaves[index][:2], triton_name(type_)) for index, type_ in passed]
    reports = getattr(metadata, "reports", None)
    scratch_bytes = getattr(metadata, "global_scratch_size", 0)
    end = 1 + max((path[0] for path, _, _ in leaves), default=-1)
    hidden = hidden_arguments(bool(scratch_bytes), bool(reports))
    entries += [((end + index,), argument.name, argument.type) for index, argument in enumerate(hidden)]
    context, place = vulkan_context.current(), _place(src)
    parts = partial(_parts_launcher, context, entries, end + len(hidden), place)
    if getattr(metadata, "split_grid", False):
        launch: Callable[..., None] = parts(metadata)
    else:
        launch = _native_launcher(context, entries, place, metadata, SplitVariant(context, src, metadata, parts))
    if reports:
        kind = LaterLauncher if (later or _LATER.get()) and says_failures(reports) else ReportingLauncher
        launch = kind(context, metadata.name, launch, reports, entries)
    if scratch_bytes:
        launch = ScratchLauncher(metadata.name, launch, scratch_bytes, metadata.global_scratch_align)
    if getattr(metadata, "check_values", False):
        from .values.values_launcher import ValuesLauncher

        launch = ValuesLauncher(context, launch, src, metadata, entries, partial(launcher, src, flat=True))
    if flat or not any(has_descriptor(type_) for type_ in signature.values()):
        return launch
    unpack = wrap_handle_tensordesc_impl(
        lambda *args: launch(*args[:-1], *args[-1]), signature, tensordesc_meta, _make_tensordesc_arg
    )
    return lambda *args: unpack(*args[:FIRST_ARGUMENT], args[FIRST_ARGUMENT:])


def _place(src: Any) -> str:
    """The file and the line of a kernel's function; empty if its source is not a function."""
    code = getattr(getattr(getattr(src, "fn", None), "fn", None), "__code__", None)
    return f"{Path(code.co_filename).name}:{code.co_firstlineno}" if code is not None else ""


def _native_launcher(
    context: vulkan_context.Context, entries: list[Entry], place: str, metadata: Any, oversized: SplitVariant | None
) -> Any:
    written = getattr(metadata, "written_arguments", None)
    return make_launcher(
        context,
        metadata.name,
        entries,
        bool(getattr(metadata, "indirect_arguments", False)),
        None if written is None else {entries[index][1] for index in written},
        oversized,
        place,
    )


def _parts_launcher(
    context: vulkan_context.Context, entries: list[Entry], last: int, place: str, metadata: Any
) -> PartsLauncher:
    """For the metadata of a kernel that takes GRID at ``last``, after the arguments in ``entries``."""
    grid = [((last + index,), argument.name, argument.type) for index, argument in enumerate(GRID)]
    launch = _native_launcher(context, [*entries, *grid], place, metadata, None)
    return PartsLauncher(launch, launch.grid_limits, last)
