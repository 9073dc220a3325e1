"""What limits a kernel, in one sentence, with the evidence: measurements if there are any, otherwise the code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

#: The share of what the device reaches at best from which that is the limit.
_NEAR = 0.6

Facts = Mapping[str, Any]


def verdict(known: Facts, speed: Facts | None) -> str:
    """One sentence. ``known``: what report.collected() found; ``speed``: of launches, where some were timed."""
    measured = _measured(speed) if speed is not None else ""
    if measured:
        return measured
    for found in _SIGNS:
        if text := found(known):
            return text
    return (
        "Nothing in the code stands out: loads and stores of tensors move 128 bits at once, or all that a lane has; no "
        "spill and no bank conflict is known. `triton-spirv profile --roofline` says which limit a launch meets."
    )


def _measured(speed: Facts) -> str:
    peaks = speed["peaks"]
    if not peaks or not speed["seconds"]:
        return ""
    memory = speed["bytes"] / speed["seconds"] / peaks["bytes_a_second"]
    arithmetic = speed["flops"] / speed["seconds"] / peaks["operations_a_second"]
    what, share = ("memory", memory) if memory >= arithmetic else ("arithmetic", arithmetic)
    best = "a copy" if what == "memory" else "f32 multiply-adds"
    about = "an estimated " if speed["estimated"] else ""
    if share < _NEAR:
        return ""
    return (
        f"{what.capitalize()} limits it: the median of {speed['launches']} launches reaches {about}{share:.0%} of what "
        f"{best} reach{'es' if what == 'memory' else ''} on {peaks['device']}."
    )


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
        moves = "moves one number at a time, in a loop: a tensor of tl.arange() offsets moves many"
    return f"Most likely, accesses to memory limit it: the {worst['what']} of {_place(worst)} {moves}."


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
