"""What limits a kernel, in one sentence, with the evidence: measurements if there are any, otherwise the code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

#: The share of what the device reaches at best from which that is the limit.
_NEAR = 0.6
#: The share of a loop's instructions from which spills may be what limits it. An elementwise kernel for AVX2 that waits
#: for memory has 0.05, and a reduction whose accumulators do not fit 0.16.
_SPILLED = 0.1
#: The share that distinct bytes are of all from which nothing is said to be read again.
AGAIN = 0.9

Facts = Mapping[str, Any]


def verdict(known: Facts, speed: Facts | None) -> str:
    """What limits the kernel, in a sentence or two. ``known``: what report.collected() found; ``speed``: of launches,
    where some were timed."""
    shares = _shares(speed) if speed is not None else {}
    machine = known.get("machine")
    if speed is not None and max(shares.values(), default=0) >= _NEAR:
        return f"{limits(speed)}{_lines(known) if machine else ''}"
    text = next(filter(None, (found(known) for found in (_SIGNS if machine is None else _SIGNS_OF_PROCESSOR))), "")
    if speed is not None and shares:
        small = _SMALL if machine is None else f"Nothing in the machine code explains it: {_summary(machine)}."
        return f"{limits(speed)} {text or small}"
    clean = _CLEAN if machine is None else f"Nothing in the machine code stands out: {_summary(machine)}."
    if speed is not None and text == "":
        return f"{clean} {_UNKNOWN}"
    return text or f"{clean} {_PROFILE}"


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
#: What is compared with each peak: (what limits, key of the work, key of the peak, what reaches it).
_ROOFS = (
    ("memory", "distinct", "bytes_a_second", "a copy reaches"),
    ("caches", "bytes", "bytes_of_caches", "a copy within caches reaches"),
    ("arithmetic", "flops", "operations_a_second", "f32 multiply-adds reach"),
)


def _shares(speed: Facts) -> dict[str, float]:
    """Which share of each of the device's peaks the median launch reaches; none where they were not measured, or the
    launch's bytes and operations are not known. Memory's is of distinct bytes: what is read again is in a cache."""
    peaks = speed["peaks"]
    if not peaks or not speed["seconds"] or not (speed["bytes"] or speed["flops"]):
        return {}
    work = {"distinct": speed["bytes"], **speed}
    return {what: work[key] / speed["seconds"] / peaks[peak] for what, key, peak, _ in _ROOFS if peaks.get(peak)}


def limits(speed: Facts) -> str:
    """Which of the device's peaks the median launch comes near, in a sentence or two."""
    shares = _shares(speed)
    if not shares:
        return _UNKNOWN
    launches = f"the median of {speed['launches']} launches, {speed['seconds'] * 1e6:,.1f} µs, reaches"
    about = "an estimated " if speed["estimated"] else ""
    limit, share = max(shares.items(), key=lambda one: one[1])
    best = {what: words for what, _, _, words in _ROOFS}
    if share >= _NEAR:
        verb = "limit" if limit == "caches" else "limits"
        text = (
            f"{limit.capitalize()} {verb} it: {launches} {about}{share:.0%} of what {best[limit]} on {_device(speed)}."
        )
    else:
        *most, last = (f"{part:.0%} of what {best[what]}" for what, part in shares.items())
        text = f"No peak limits it: {launches} {about}{', '.join(most)} and {last} on {_device(speed)}."
    again = speed["bytes"] / speed["distinct"] if speed.get("distinct") else 1.0
    if again * AGAIN > 1:
        then = "" if limit == "memory" and share >= _NEAR else ", and one pass would need none"
        text += f" It moves each byte {again:.1f} times: caches serve all but the first{then}."
    return text


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


def _summary(machine: Facts) -> str:
    loops = f"none of its loops ({len(machine['loops'])}) gathers or scatters, or spills many vectors"
    return f"its vectors have up to {machine['vector_bits']} bits, and {loops}"


def _gathers(known: Facts) -> str:
    if not (worst := _gathering(known)):
        return ""
    return (
        f"Most likely, accesses to memory limit it: a round of the loop at {_place(worst)} gathers or scatters "
        f"{worst['gathers']} vectors, {worst['instructions']} instructions in all, since neighbouring elements of a "
        "tile have places that are not known to be neighbours. Places that data says are best sorted."
    )


def _lines(known: Facts) -> str:
    moves = "an element apart moves a whole cache line, more than was counted, and less if the data lie closer"
    return f" The loop at {_place(worst)} gathers or scatters: {moves}." if (worst := _gathering(known)) else ""


def _gathering(known: Facts) -> Facts:
    return max((one for one in known["machine"]["loops"] if one["gathers"]), key=lambda one: one["gathers"], default={})


def _spilling_loops(known: Facts) -> str:
    many = [loop for loop in known["machine"]["loops"] if loop["spills"] > _SPILLED * loop["instructions"]]
    if not many:
        return ""
    worst = max(many, key=lambda loop: loop["spills"])
    return (
        f"Most likely, registers limit it: a round of the loop at {_place(worst)} stores {worst['spills']} vectors to "
        "the stack; a smaller block leaves less to hold."
    )


_SIGNS_OF_PROCESSOR: tuple[Callable[[Facts], str], ...] = (_gathers, _spilling_loops)


def _place(entry: Facts) -> str:
    if not entry["places"]:
        return "?"
    file, _, line = entry["places"][0].rpartition(":")
    return f"{Path(file).name}:{line}"
