"""What limits a kernel, in one sentence, with the evidence: measurements if there are any, otherwise the code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

#: The share of what the device reaches at best from which that is the limit.
_NEAR = 0.6

Facts = Mapping[str, Any]


def verdict(known: Facts, speed: Facts | None) -> str:
    """What limits the kernel, in a sentence or two. ``known``: what report.collected() found; ``speed``: of launches,
    where some were timed."""
    shares = _shares(speed) if speed is not None else None
    if shares is not None and max(shares) >= _NEAR:
        return _at_a_limit(speed or {}, *shares)
    text = next(filter(None, (found(known) for found in _SIGNS)), "")
    if shares is not None:
        return f"{_below_the_limits(speed or {}, *shares)} {text or _SMALL}"
    if speed is not None and text == "":
        return f"{_CLEAN} {_UNKNOWN}"
    return text or f"{_CLEAN} {_PROFILE}"


#: What is said where no sign was found in the code, of launches that were not measured and of those that were.
_CLEAN = (
    "Nothing in the code stands out: loads and stores of tensors move 128 bits at once, or all that a lane has; no "
    "spill and no bank conflict is known."
)
_PROFILE = "`triton-spirv profile --roofline --trace trace.json script.py` says which limit a launch meets."
_UNKNOWN = "The trace does not say which limit a launch meets: it has no roofline, or the kernel's bytes are not known."
_SMALL = (
    "Nothing in the code explains it: more programs, or more subgroups in flight, may hide the time that each access "
    "takes."
)


def _shares(speed: Facts) -> tuple[float, float] | None:
    """Which share of the device's best bandwidth and of its best arithmetic the median launch reaches; None where
    that was not measured, or the launch's bytes and operations are not known."""
    peaks = speed["peaks"]
    if not peaks or not speed["seconds"] or not (speed["bytes"] or speed["flops"]):
        return None
    memory = speed["bytes"] / speed["seconds"] / peaks["bytes_a_second"]
    return memory, speed["flops"] / speed["seconds"] / peaks["operations_a_second"]


def _at_a_limit(speed: Facts, memory: float, arithmetic: float) -> str:
    what, share = ("memory", memory) if memory >= arithmetic else ("arithmetic", arithmetic)
    best = "a copy reaches" if what == "memory" else "f32 multiply-adds reach"
    reached = f"{_about(speed)}{share:.0%} of what {best} on {_device(speed)}"
    return f"{what.capitalize()} limits it: {_launches(speed)} {reached}."


def _below_the_limits(speed: Facts, memory: float, arithmetic: float) -> str:
    return (
        f"Neither memory nor arithmetic limits it: {_launches(speed)} {_about(speed)}{memory:.0%} of a copy's "
        f"bandwidth and {arithmetic:.0%} of the f32 multiply-adds of {_device(speed)}."
    )


def _launches(speed: Facts) -> str:
    return f"the median of {speed['launches']} launches, {speed['seconds'] * 1e6:,.1f} µs, reaches"


def _about(speed: Facts) -> str:
    return "an estimated " if speed["estimated"] else ""


def _device(speed: Facts) -> str:
    return str(speed["peaks"]["device"])


def _spills(known: Facts) -> str:
    spills = known["driver"]["spills"]
    if not spills:
        return ""
    return (
        f"Most likely, registers limit it: the driver's compiler moves {spills} of them to memory; smaller blocks, or "
        "more warps, leave a lane less to hold."
    )


def _accesses(known: Facts) -> str:
    single = [one for one in known["accesses"] if one["in_loop"] and one["scalar"]]
    narrow = [one for one in known["accesses"] if not one["scalar"] and one["bits"] < 128 and one["could"]]
    if not narrow and not single:
        return ""
    if narrow:
        worst = min(narrow, key=lambda one: (not one["in_loop"], one["bits"]))
        moves = f"moves {worst['bits']} of 128 bits at once, because {worst['why'].split('; ')[0]}"
    else:
        worst = single[0]
        moves = "moves one value at a time, in a loop: a tensor of tl.arange() offsets moves many"
    instead = known.get("wider")
    write = f' Compile it with `-s "{instead.signature}"` for up to {instead.then.widest} bits.' if instead else ""
    return f"Most likely, accesses to memory limit it: the {worst['what']} of {_place(worst)} {moves}.{write}"


def _multiply_adds(known: Facts) -> str:
    for dot in known["dots"]:
        if not dot["matrix"] and known["matrix_units"]:
            why = f" ({dot['why']})" if dot["why"] else ""
            return (
                f"Most likely, multiply-adds limit it: the dot of {_place(dot)} does not run on the device's matrix "
                f"units{why}."
            )
    return ""


def _banks(known: Facts) -> str:
    found = [one for one in known["banks"] if one["steps"] > 2 * one["fewest"]]
    if not found:
        return ""
    worst = max(found, key=lambda one: one["steps"] - one["fewest"])
    times = worst["steps"] / worst["fewest"]
    return (
        f"Most likely, shared memory limits it: the {worst['what']} of {worst['operation']} at {_place(worst)} takes "
        f"{times:.1f} times the steps that its banks need (estimated from the layouts)."
    )


_SIGNS: tuple[Callable[[Facts], str], ...] = (_spills, _multiply_adds, _accesses, _banks)


def _place(entry: Facts) -> str:
    if not entry["places"]:
        return "?"
    file, _, line = entry["places"][0].rpartition(":")
    return f"{Path(file).name}:{line}"
