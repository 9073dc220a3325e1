"""How fast launches of a kernel were, and the device's roofline, from a trace of ``triton-spirv profile --trace``."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..ahead_of_time.errors import RequestError

#: Where a trace has the device's peaks, in its "otherData".
PEAKS = "triton-spirv peaks"


@functools.lru_cache(maxsize=64)
def module_digest(spirv: bytes) -> str:
    """What tells a kernel's module from others in a trace."""
    return hashlib.sha256(spirv).hexdigest()[:16]


def speed(trace: Path, name: str, spirv: bytes | None) -> dict[str, Any]:
    """speed_of() launches of the kernel ``name`` in a trace, of the module ``spirv`` alone where it has such. Raises
    RequestError if the trace cannot be read or has no launch of the kernel."""
    known, events = _launches(trace)
    named = [event for event in events if event["args"].get("kernel", event["name"]) == name]
    digest = module_digest(spirv) if spirv is not None else ""
    members = [event for event in named if event["args"].get("module") == digest] or named
    if not members:
        there = ", ".join(sorted({event["args"].get("kernel", event["name"]) for event in events})) or "none"
        raise RequestError(f"{trace} has no launch of the kernel {name}; it has launches of {there}")
    return speed_of(members, (known.get("otherData") or {}).get(PEAKS))


def launched(trace: Path) -> frozenset[str]:
    """module_digest() of each module of a trace. Raises RequestError if it cannot be read."""
    return frozenset(event["args"].get("module", "") for event in _launches(trace)[1])


def _launches(trace: Path) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    try:
        known = json.loads(trace.read_text(encoding="utf-8"))
        return known, [event for event in known["traceEvents"] if event.get("cat") == "kernel"]
    except OSError as error:
        raise RequestError(f"{trace} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise RequestError(f"{trace} is not a trace: make one with triton-spirv profile --trace") from None


def speed_of(events: Sequence[Mapping[str, Any]], peaks: Mapping[str, Any] | None) -> dict[str, Any]:
    """Facts of launches, events of a trace in their order, without the first of several: how many, their median in
    seconds, the median launch's bytes, distinct bytes and operations, whether these are estimates, and the peaks."""
    middle = sorted(events := events[1:] or events, key=lambda event: event["dur"])[len(events) // 2]
    facts = middle["args"]
    return {
        "launches": len(events),
        "seconds": middle["dur"] / 1e6,
        "grid": facts.get("grid", []),
        "bytes": facts.get("bytes", 0),
        "distinct": facts.get("distinct", facts.get("bytes", 0)),
        "flops": facts.get("flops", 0),
        "estimated": bool(facts.get("estimated")),
        "peaks": peaks,
    }
