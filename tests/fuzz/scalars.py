"""Random kernels of scalars, which Python itself computes: names that get others' values, tuples, functions that return
early, in loops and branches. They aim at upstream's front end."""

import random
import time
from pathlib import Path
from typing import Any

import torch

from tests.fuzz.running import Found, fault_of
from tests.fuzz.steps import GUARD
from tests.written import written

_HEADER = '"""Generated."""\nimport triton\nimport triton.language as tl\n\n\n'
_INPUTS = ((0, 1, 2), (5, 5, 5), (700, 3, 9), (1, 1, 0))

#: Names that statements change, and how deep these may lie in one another.
_NAMES, _DEPTH = ("a", "b", "c", "d"), 3


class _Writer:
    """Writes statements that Python and Triton read alike: numbers from 0 to 1023."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"scalars {seed}")
        self.readable = ["a", "b"]
        self.tuples: list[str] = []
        self.functions: dict[str, bool] = {}  # whether they return two numbers
        self.lines: list[str] = []
        self.named = 0

    def name(self) -> str:
        self.named += 1
        return f"v{self.named}"

    def number(self, depth: int = 0) -> str:
        """An expression."""
        rng, choice = self.rng, self.rng.random()
        single = [name for name, two in self.functions.items() if not two]
        if choice < 0.35 or depth > 1:
            return rng.choice(self.readable)
        if choice < 0.45:
            return str(rng.randint(0, 9))
        if choice < 0.5 and self.tuples:
            return f"{rng.choice(self.tuples)}[{rng.randint(0, 1)}]"
        if choice < 0.6 and single:
            return f"{rng.choice(single)}({self.number(2)}, {self.number(2)})"
        if choice < 0.67:
            return f"({self.number(2)} if {self.condition()} else {self.number(2)})"
        if choice < 0.72:
            return f"{rng.choice(('min', 'max'))}({self.number(2)}, {rng.choice(self.readable)})"
        return f"(({self.number(depth + 1)} {rng.choice('+-*^|&')} {rng.choice(self.readable)}) & 1023)"

    def condition(self) -> str:
        rng, choice = self.rng, self.rng.random()
        text = f"{rng.choice(self.readable)} {rng.choice(('<', '>', '==', '!=', '<=', '>='))} {self.number(2)}"
        if choice < 0.3:
            return f"({text}) {rng.choice(('and', 'or'))} ({self.condition()})"
        return f"not ({text})" if choice < 0.4 else text

    def assignment(self, names: tuple[str, ...]) -> str:
        rng, choice = self.rng, self.rng.random()
        first, second = rng.sample(names, 2)
        double = [name for name, two in self.functions.items() if two]
        if choice < 0.35:
            return f"{first} = {rng.choice(self.readable)}"
        if choice < 0.5:
            return f"{first}, {second} = {second}, {first}"
        if choice < 0.6:
            return f"{first}, {second} = {self.number()}, {self.number()}"
        if choice < 0.7 and double:
            return f"{first}, {second} = {rng.choice(double)}({self.number()}, {self.number()})"
        if choice < 0.85 and self.tuples:
            name = rng.choice(self.tuples)
            return f"{name} = {rng.choice((f'({name}[1], {name}[0])', f'({self.number()} + 0, {name}[0] + 0)'))}"
        return f"{first} = {self.number()}"

    def loop(self, indent: str, names: tuple[str, ...], depth: int) -> None:
        rng, counter, kept = self.rng, self.name(), self.readable
        kind = rng.choice(("up", "from", "down", "static", "while", "while"))
        if kind == "while":
            self.lines += [f"{indent}{counter} = {self.number(2)} & 1"]
        small = f"{self.number(2)} & 3"
        self.lines.append(
            {
                "up": f"{indent}for {counter} in range({small}):",
                "from": f"{indent}for {counter} in range({small}, {self.number(2)} & 7, {rng.randint(1, 2)}):",
                "down": f"{indent}for {counter} in range({small}, {self.number(2)} & 1, -1):",
                "static": f"{indent}for {counter} in tl.static_range({rng.randint(0, 3)}):",
                "while": f"{indent}while ({counter} < 4) and ({self.condition()}):",
            }[kind]
        )
        if kind != "static":  # a constant is no name of the kernel's
            self.readable = [*kept, counter]
        self.block(indent + "    ", names, depth + 1, rng.randint(1, 3))
        self.readable = kept
        if kind == "while":
            self.lines.append(f"{indent}    {counter} += 1")

    def block(self, indent: str, names: tuple[str, ...], depth: int, steps: int) -> None:
        """So many statements."""
        rng = self.rng
        for _ in range(steps):
            choice = rng.random() if depth < _DEPTH else 1.0
            if choice < 0.25:
                self.loop(indent, names, depth)
            elif choice < 0.4:
                heads = [f"if {self.condition()}:", f"elif {self.condition()}:", "else:"]
                for head in (heads[:1], heads, [heads[0], heads[2]])[rng.randrange(3)]:
                    self.lines.append(indent + head)
                    self.block(indent + "    ", names, depth + 1, rng.randint(1, 2))
            else:
                self.lines.append(indent + self.assignment(names))

    def function(self) -> str:
        """A function of two numbers, which may return early."""
        two, name, kept = self.rng.random() < 0.5, f"f{self.name()}", self.lines
        self.lines = ["@triton.jit", f"def {name}(a, b):", "    a = a + 0", "    b = b + 0"]
        self.block("    ", _NAMES[:2], 1, self.rng.randint(1, 3))
        results = [", ".join(f"{self.number(1)} + 0" for _ in range(1 + two)) for _ in range(2)]
        if self.rng.random() < 0.5:
            self.lines += [f"    if {self.condition()}:", f"        return {results[0]}"]
        text = "\n".join([*self.lines, f"    return {results[1]}", "", "", ""])
        self.functions[name], self.lines = two, kept
        return text


def sources(seed: int) -> tuple[str, str]:
    """A kernel, and a function of Python that gives what it stores."""
    writer = _Writer(seed)
    functions = "".join(writer.function() for _ in range(writer.rng.randint(0, 2)))
    writer.readable = ["x0", "x1", "x2"]
    for name in _NAMES:
        first = writer.rng.choice((*writer.readable, "1"))
        writer.lines.append(f"    {name} = {first}")
        writer.readable = [name for name in writer.readable if name[0] != "x"] + [name, first][: 1 + (first != "1")]
    if writer.rng.random() < 0.5:
        writer.tuples.append("pair")
        writer.lines.append("    pair = (a, b)")
    writer.block("    ", _NAMES, 0, writer.rng.randint(3, 7))
    results = [*_NAMES, *(f"{name}[{part}]" for name in writer.tuples for part in (0, 1))]
    body = "\n".join(writer.lines)
    loads = "".join(f"    x{place} = tl.load(x + {place})\n" for place in range(3))
    stores = "".join(f"    tl.store(out + {place}, {text})\n" for place, text in enumerate(results))
    kernel = f"{_HEADER}{functions}@triton.jit\ndef kernel(x, out):\n{loads}{body}\n{stores}"
    python = f"{functions}def kernel(x0, x1, x2):\n{body}\n    return [{', '.join(results)}]\n"
    return kernel, python.replace("@triton.jit\n", "").replace("tl.static_range", "range")


def run(seed: int, folder: Path) -> Found:
    """One kernel, with several inputs."""
    source, python = sources(seed)
    path, names, start = folder / f"scalars_{seed}.py", dict[str, Any](), time.process_time()
    exec(python, names)
    module = written(path, source)
    fault = ""
    for inputs in _INPUTS:
        wanted = [*names["kernel"](*inputs), GUARD]
        out = torch.full((len(wanted),), GUARD, dtype=torch.int32)
        try:
            module.kernel[(1,)](torch.tensor(inputs, dtype=torch.int32), out)
        except Exception as error:
            fault = fault or fault_of(error)[:1000]
        if not fault and out.tolist() != wanted:
            fault = f"{out.tolist()} instead of {wanted} of {inputs}"
    return Found(fault, source, time.process_time() - start)
