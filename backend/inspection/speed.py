"""How fast launches of a kernel were, and the device's roofline, from a trace of ``triton-spirv profile --trace``."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from ..ahead_of_time.errors import RequestError

#: Where a trace has the device's peaks, in its "otherData".
PEAKS = "triton-spirv peaks"


def module_digest(spirv: bytes) -> str:
    """What tells a kernel's module from others in a trace."""
    return hashlib.sha256(spirv).hexdigest()[:16]


def speed(trace: Path, name: str, spirv: bytes | None) -> dict[str, Any]:
    """Launches of the kernel ``name``, of the module ``spirv`` alone where the trace has such: how many, their
    median in seconds, bytes and operations of a launch at the median, whether those are estimates, and the peaks.

    Raises RequestError if the trace cannot be read or has no launch of the kernel.
    """
    try:
        known = json.loads(trace.read_text(encoding="utf-8"))
        events = [event for event in known["traceEvents"] if event.get("cat") == "kernel"]
    except OSError as error:
        raise RequestError(f"{trace} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise RequestError(f"{trace} is not a trace: make one with triton-spirv profile --trace") from None
    named = [event for event in events if event["args"].get("kernel", event["name"]) == name]
    digest = module_digest(spirv) if spirv is not None else ""
    members = [event for event in named if event["args"].get("module") == digest] or named
    if not members:
        there = ", ".join(sorted({event["args"].get("kernel", event["name"]) for event in events})) or "none"
        raise RequestError(f"{trace} has no launch of the kernel {name}; it has launches of {there}")
    members.sort(key=lambda event: event["dur"])
    middle = members[len(members) // 2]
    return {
        "launches": len(members),
        "seconds": middle["dur"] / 1e6,
        "grid": middle["args"].get("grid", []),
        "bytes": middle["args"].get("bytes", 0),
        "flops": middle["args"].get("flops", 0),
        "estimated": bool(middle["args"].get("estimated")),
        "peaks": (known.get("otherData") or {}).get(PEAKS),
    }
