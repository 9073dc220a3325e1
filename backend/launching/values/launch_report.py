"""What a report of a wrong value carries: how to compile the kernel again, and what it was launched with."""

from __future__ import annotations

import base64
import platform
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from ...abi.launch_arguments import FIRST_ARGUMENT, LaunchArgument, argument_at
from ...options import SPIRVOptions
from ...runtime.launches.launch import Entry
from .host_copies import Storage

#: Raised where its keys change.
FORMAT = 1


def report(
    message: str,
    facts: Mapping[str, Any],
    compiled: Any,
    metadata: Any,
    args: Sequence[Any],
    entries: Sequence[Entry],
    before: Sequence[Any],
    storages: Sequence[Storage],
) -> dict[str, Any]:
    """``compiled``: the reference; ``metadata``: of the usual kernel; ``before``: the bytes of ``storages`` before the
    launch with ``args``, which are kept apart, under "data"."""
    return {
        "format": FORMAT,
        "message": message,
        **facts,
        "grid": list(args[: LaunchArgument.STREAM]),
        "arguments": [_argument(args, entry) for entry in entries if FIRST_ARGUMENT + entry[0][0] < len(args)],
        "options": {entry.name: getattr(metadata, entry.name) for entry in fields(SPIRVOptions)},
        "target": {"arch": metadata.target.arch, "warp_size": metadata.target.warp_size},
        "versions": {"triton": metadata.triton_version, "python": platform.python_version(), "os": platform.platform()},
        **{stage: compiled.asm[stage] for stage in ("ttir", "ttgir") if stage in compiled.asm},
        "data": lambda: [
            {"address": one.address, "bytes": base64.b64encode(values.tobytes()).decode()}
            for one, values in zip(storages, before, strict=True)
        ],
    }


def _argument(args: Sequence[Any], entry: Entry) -> dict[str, Any]:
    path, name, type_ = entry
    value = argument_at(args, path)
    if not hasattr(value, "data_ptr"):
        return {"name": name, "type": type_, "value": value if isinstance(value, int | float | bool) else str(value)}
    told = {"name": name, "type": type_, "address": value.data_ptr(), "dtype": str(getattr(value, "dtype", ""))}
    shape, stride = getattr(value, "shape", None), getattr(value, "stride", None)
    if shape is not None and stride is not None:
        told |= {"shape": list(shape), "strides": list(stride())}
    return told
