"""Nests of loops with constant bounds, in the kernel and in functions that are applied to each element, which turn too
often for some drivers: the values are right, or the launch says so."""

import numpy as np

from tests.fuzz.steps import Family, Writer, place

_SIZES = (16, 64, 256)


def _nest(
    writer: Writer, variable: str, most: int, indent: str, condition: str, depth: int = 0
) -> tuple[list[str], int]:
    """Statements that count up a variable, at most so many times, and how often. ``condition``: one that holds."""
    rng = writer.rng
    lines, count = [f"{indent}{variable} += 1"], 1
    if most < 2:
        return lines, count
    trips = rng.randint(0, most) if rng.random() < 0.2 else rng.choice((2, 3, most // 2, most))
    trips = min(trips, most)
    step, first = rng.choice((1, 1, 2, 3)), rng.choice((0, 0, -2, 5))
    counter, inner = writer.name(), indent + "    "
    end = first + trips * step - rng.randrange(step)
    head = f"{indent}for {counter} in range({first}, {end}, {step}):"
    if rng.random() < 0.2:
        head = f"{indent}for {counter} in range({end}, {first}, -{step}):"
        trips = len(range(end, first, -step))
    else:
        trips = len(range(first, end, step))
    body, inside = _nest(writer, variable, most // max(trips, 1) - 1 if depth < 2 else 0, inner, condition, depth + 1)
    if rng.random() < 0.2:
        body = [f"{inner}if {condition}:", *("    " + line for line in body)]
    return [*lines, head, *body], count + trips * inside


def _function(writer: Writer, arguments: str, most: int, result: str) -> tuple[str, int]:
    """A function that counts up ``b``, and by how much."""
    lines, count = _nest(writer, "b", most, "    ", "b > -100000000")
    name = f"function{writer.name()}"
    writer.functions += "\n".join(
        ["@triton.jit", f"def {name}({arguments}):", *lines, f"    return {result}", "", "", ""]
    )
    return name, count


def _start(writer: Writer) -> None:
    writer.load(writer.numbers.integers(-50, 50, writer.rng.choice(_SIZES)).astype(np.int32))


def _step(writer: Writer) -> None:
    rng = writer.rng
    value = writer.pick()
    assert value is not None
    size, most = value.array.size, rng.choice((3, 40, 400, 4000))
    kind = rng.choice(("map", "map", "reduce", "scan", "kernel"))
    if kind == "map":
        name, count = _function(writer, "b", most, "b")
        writer.add(f"tl.map_elementwise({name}, {value.name})", value.array + np.int32(count))
    elif kind == "kernel":
        tile = writer.name()
        lines, count = _nest(writer, tile, most, "", "n > 2")
        writer.line("\n".join([f"{tile} = {value.name}", *lines]))
        writer.add(f"{tile} + tl.zeros({list(value.array.shape)}, tl.int32)", value.array + np.int32(count))
    elif size <= 64:
        name, count = _function(writer, "a, b", most, "a + b")
        sums = np.cumsum(value.array, dtype=np.int32) + np.arange(size, dtype=np.int32) * np.int32(count)
        if kind == "scan":
            writer.add(f"tl.associative_scan({value.name}, 0, {name})", sums)
        else:
            writer.add(f"tl.reduce({value.name}, 0, {name}) + {place((size,))} * 0", np.full(size, sums[-1]))


FAMILY = Family("nests", _start, _step, most_steps=3, refusals=("LoopLimitExceeded",))
