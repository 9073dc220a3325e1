"""Functions with early returns in nested branches, loops, numbers and tiles in tuples, which call each other.

A function's text runs as Python on NumPy's arrays for the expected values.
"""

import random
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.fuzz.steps import Family, Writer

_TL = SimpleNamespace(where=np.where, maximum=np.maximum, minimum=np.minimum, sum=np.sum, max=np.max)
_TESTS = ("n > {k}", "n == {k}", "s > n", "tl.max(v) > {k}", "n + s < {k}", "not (s > {k})", "n > 1 and s < {k}")
_TILES = ("v + s", "v * 2 - n", "tl.where(v > n, v, w)", "tl.maximum(v, w) + 1", "w - v", "v ^ {k}", "w + tl.max(v)")
_NUMBERS = ("s + 1", "s * 2", "n - s", "s + {k}")


class _Function:
    """Writes one function of tiles v and w and numbers n and s, which gives a tile and a number."""

    def __init__(self, rng: random.Random, name: str, callees: list[str]) -> None:
        self.rng, self.callees = rng, callees
        self.lines = ["@triton.jit", f"def {name}(v, w, n, s):"]
        self.block("    ", 0, False)
        self.lines += ["    return v + w, s", "", ""]

    def text(self, rows: tuple[str, ...]) -> str:
        return self.rng.choice(rows).format(k=self.rng.randint(0, 5))

    def assign(self, indent: str) -> None:
        choice = self.rng.random()
        if self.callees and choice < 0.3:
            self.lines.append(f"{indent}{self.rng.choice('vw')}, s = {self.rng.choice(self.callees)}(w, v, n, s)")
        elif choice < 0.75:
            self.lines.append(f"{indent}{self.rng.choice('vw')} = {self.text(_TILES)}")
        else:
            self.lines.append(f"{indent}s = {self.text(_NUMBERS)}")

    def block(self, indent: str, depth: int, loop: bool) -> None:
        for _ in range(self.rng.randint(1, 3)):
            choice = self.rng.random()
            if depth < 3 and choice < 0.45:
                self.lines.append(f"{indent}if {self.text(_TESTS)}:")
                self.block(indent + "    ", depth + 1, loop)
                if not loop and self.rng.random() < 0.5:
                    self.lines.append(f"{indent}    return {self.text(_TILES)}, {self.text(_NUMBERS)}")
                if self.rng.random() < 0.5:
                    self.lines.append(f"{indent}else:")
                    self.block(indent + "    ", depth + 1, loop)
            elif depth < 2 and not loop and choice < 0.6:
                self.lines.append(f"{indent}for i in range({self.rng.choice(('n', '2', 'n - 1', '0'))}):")
                self.block(indent + "    ", depth + 1, True)
                self.lines.append(f"{indent}    s += i")
            else:
                self.assign(indent)


def _start(writer: Writer) -> None:
    rng = writer.rng
    writer.scalar = rng.choice((0, 2, 3, 4, 5))  # Triton compiles 1 as a constant
    functions: list[str] = []
    for number in range(rng.randint(1, 3)):
        name = f"function_{number}"
        writer.functions += "\n".join(_Function(rng, name, functions).lines) + "\n"
        functions.append(name)
    shape = rng.choice(((16,), (8, 8), (64,), (2, 32)))
    for _ in range(2):
        writer.load(writer.numbers.integers(-4, 9, shape).astype(rng.choice((np.int32, np.int64))))


def _step(writer: Writer) -> None:
    v, w = writer.pick(), writer.pick()
    assert v is not None and w is not None
    functions = writer.functions.count("def function_")
    name = f"function_{writer.rng.randrange(functions)}"
    text = "\n".join(line for line in writer.functions.splitlines() if not line.startswith("@"))
    names: dict[str, Any] = {"tl": _TL}
    exec(text, names)
    wide = v.array.astype(np.int64), w.array.astype(np.int64)
    number = np.int32(writer.scalar)  # which overflows as the kernel's do
    tile, _ = names[name](*wide, number, number)
    other = writer.name()
    writer.line(f"{other}, {other}_number = {name}({v.name}.to(tl.int64), {w.name}.to(tl.int64), n, n)")
    writer.add(f"{other} ^ 3", np.asarray(tile).astype(np.int64) ^ 3)


FAMILY = Family("returns", _start, _step, most_steps=3)
