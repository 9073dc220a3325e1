"""Random kernels made of steps, each of which is written together with what NumPy computes for it.

A family (families/) has a way to start a kernel and a way to add one step. What fails is made small by leaving out the
last steps, and then whatever the wrong value does not depend on.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import ml_dtypes
import numpy as np
import torch
from triton.backends.spirv.settings import WITHOUT

from tests.fuzz.running import Found, driver_traits, fault_of
from tests.written import written

#: Of values, and of the program's number.
_NAMES = re.compile(r"\b(?:v\d+|pid)\b")
HEADER = '"""Generated."""\nimport triton\nimport triton.language as tl\n\n\n'

#: NumPy's types that are ml_dtypes' → Triton's names of them; torch's are NumPy's.
NARROW = {
    "bfloat16": "bfloat16",
    "float8_e4m3fn": "float8e4nv",
    "float8_e5m2": "float8e5",
    "float8_e4m3fnuz": "float8e4b8",
    "float8_e5m2fnuz": "float8e5b16",
}
#: NumPy's types and Triton's.
TYPES = {
    np.dtype(name): f"tl.{'int1' if name == 'bool' else name}"
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64"),
    )
} | {np.dtype(getattr(ml_dtypes, name)): f"tl.{triton}" for name, triton in NARROW.items()}

#: What lies around each memory that a kernel gets, and its length in elements.
GUARD, GUARDED = 77, 8

Array = np.ndarray[Any, np.dtype[Any]]

#: What is wrong of an array that was found.
Judge = Callable[[Array], Array]


@dataclass(frozen=True)
class Value:
    """A name in the kernel and what it holds, or its like: then ``judge`` says what of it is wrong."""

    name: str
    array: Array
    judge: Judge | None = None

    @property
    def type(self) -> str:
        """Triton's."""
        return TYPES[self.array.dtype]


@dataclass(frozen=True)
class Line:
    """A statement, of several lines where it has others in it. ``kept``: for what it does to memory."""

    text: str
    kept: bool = False


@dataclass
class Writer:
    """Writes one kernel of one program or several. ``memory``: what the pointers point to at first;
    ``expected``: what is there afterwards, or ``judges`` says of it; ``first``: elements in front of what the kernel
    gets. ``views``: further pointers, into the memory of others, behind so many elements. ``traits``: of the driver's
    compiler, others than its own. ``units``: the matrix units that dots run on, ``types``: what dots multiply."""

    rng: random.Random
    numbers: np.random.Generator
    functions: str = ""
    lines: list[Line] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    memory: dict[str, Array] = field(default_factory=dict)
    expected: dict[str, Array] = field(default_factory=dict)
    judges: dict[str, Judge] = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)
    views: dict[str, tuple[str, int]] = field(default_factory=dict)
    traits: dict[str, Any] = field(default_factory=dict)
    units: str = "auto"
    types: tuple[str, ...] = ()
    programs: int = 1
    scalar: int = 3
    named: int = 0

    def name(self) -> str:
        """A new one."""
        self.named += 1
        return f"v{self.named}"

    def pointer(self, array: Array, aligned: bool = False) -> str:
        """A new pointer to a copy of the array; at 16 bytes where ``aligned``."""
        name = f"p{len(self.memory)}"
        self.memory[name], self.expected[name] = array.copy(), array.copy()
        self.first[name] = 0 if aligned else self.rng.choice((0, 0, 1, 3))
        return name

    def view(self, of: str, behind: int) -> str:
        """A new pointer to what the pointer ``of`` has behind so many elements."""
        name = f"p{len(self.memory)}w{len(self.views)}"
        self.views[name] = of, behind
        return name

    def add(self, text: str, *arrays: Array) -> list[Value]:
        """New names for what the expression gives."""
        found = [Value(self.name(), array) for array in arrays]
        self.lines.append(Line(f"{', '.join(value.name for value in found)} = {text}"))
        self.values += found
        return found

    def add_judged(self, text: str, *results: tuple[Array, Judge]) -> None:
        """New names for what the expression gives: arrays of these types and shapes, which their judges know."""
        found = [Value(self.name(), array, judge) for array, judge in results]
        self.lines.append(Line(f"{', '.join(value.name for value in found)} = {text}"))
        self.values += found

    def line(self, text: str, kept: bool = False) -> None:
        """A statement; ``kept`` for what it does to memory."""
        self.lines.append(Line(text, kept))

    def load(self, array: Array) -> Value:
        """A tile from memory of its own."""
        pointer = self.pointer(array.reshape(-1))
        return self.add(f"tl.load({pointer} + {place(array.shape)})", array)[0]

    def pick(self, fits: Callable[[Value], bool] = lambda value: True) -> Value | None:
        """One of the values that fit, rather a late one; None if none does."""
        fitting = [value for value in self.values if fits(value)]
        if not fitting:
            return None
        return self.rng.choice(fitting[-3:] if self.rng.random() < 0.5 else fitting)


def place(shape: tuple[int, ...]) -> str:
    """Offsets of the elements of a tile that lies in memory without gaps."""
    terms, stride = [], 1
    for axis in range(len(shape) - 1, -1, -1):
        where = ", ".join(":" if other == axis else "None" for other in range(len(shape)))
        index = f"tl.arange(0, {shape[axis]})" + (f"[{where}]" if len(shape) > 1 else "")
        terms.append(index if stride == 1 else f"{index} * {stride}")
        stride *= shape[axis]
    return "(" + " + ".join(reversed(terms)) + ")" if terms else "0"


@dataclass(frozen=True)
class Family:
    """A sort of kernels. ``functions``: those that its kernels call; ``refusals``: names of errors that are as good as
    the right values. ``without``: what kernels are compiled without, too (reference.py)."""

    name: str
    start: Callable[[Writer], None]
    step: Callable[[Writer], None]
    functions: str = ""
    most_steps: int = 8
    refusals: tuple[str, ...] = ()
    without: str = ""


@dataclass(frozen=True)
class Kernel:
    """A kernel with its memory before and after."""

    lines: tuple[Line, ...]
    functions: str
    memory: dict[str, Array]
    expected: dict[str, Array]
    judges: dict[str, Judge]
    first: dict[str, int]
    views: dict[str, tuple[str, int]]
    traits: dict[str, Any]
    units: str
    refusals: tuple[str, ...]
    warps: int
    programs: int
    scalar: int

    @property
    def source(self) -> str:
        """The kernel, and how it is launched."""
        return "\n".join(
            [
                f"# num_warps={self.warps}, matrix_units={self.units!r}, grid {self.programs}, n={self.scalar}, "
                f"elements in front {self.first}",
                *([f"# views {self.views}, traits {self.traits}"] if self.views or self.traits else []),
                "@triton.jit",
                f"def kernel({', '.join((*self.memory, *self.views))}, n):",
                *(f"    {part}" for line in self.lines for part in line.text.splitlines()),
                "",
            ]
        )

    def without_idle_lines(self) -> Kernel:
        """The same without the lines that no store depends on."""
        needed: set[str] = set()
        kept = []
        for line in reversed(self.lines):
            names = set(_NAMES.findall(line.text.partition(" = ")[0]))
            if line.kept or names & needed:
                kept.append(line)
                needed |= set(_NAMES.findall(line.text))
        text = "\n".join(line.text for line in kept)
        views = {name: view for name, view in self.views.items() if re.search(rf"\b{name}\b", text)}
        bases = {of for of, _ in views.values()}
        memory = {
            name: array for name, array in self.memory.items() if name in bases or re.search(rf"\b{name}\b", text)
        }
        return replace(self, lines=tuple(reversed(kept)), memory=memory, views=views)


def _unused(writer: Writer) -> list[Value]:
    """The values that no other one was computed from."""
    used = {name for line in writer.lines for name in re.findall(r"\bv\d+\b", line.text.partition(" = ")[2])}
    return [value for value in writer.values if value.name not in used]


def generate(family: Family, seed: int, steps: int | None = None) -> Kernel:
    """A kernel of the family; with ``steps``, the first ones of it, of which the last's values are stored."""
    writer = Writer(random.Random(f"{family.name} {seed}"), np.random.default_rng(seed), family.functions)
    whole = writer.rng.randint(family.most_steps // 2, family.most_steps)
    warps = writer.rng.choice((1, 2, 4, 8))
    family.start(writer)
    before = len(writer.values)
    with np.errstate(all="ignore"):
        for _ in range(whole if steps is None else min(steps, whole)):
            before = len(writer.values)
            family.step(writer)
    for value in writer.values[before:] if steps is not None else _unused(writer):
        array = value.array.astype(np.int8) if value.array.dtype == bool else value.array
        pointer = writer.pointer(np.zeros(array.size, array.dtype))
        writer.expected[pointer] = array.reshape(-1)
        if value.judge is not None:
            writer.judges[pointer] = value.judge
        stored = f"{value.name}.to(tl.int8)" if value.array.dtype == bool else value.name
        writer.lines.append(Line(f"tl.store({pointer} + {place(array.shape)}, {stored})", kept=True))
    return Kernel(
        tuple(writer.lines), writer.functions, writer.memory, writer.expected, writer.judges, writer.first,
        writer.views, writer.traits, writer.units, family.refusals, warps, writer.programs, writer.scalar,
    )  # fmt: skip


def _guarded(array: Array, first: int) -> Array:
    """The array between elements that have to stay as they are."""
    around = np.full(GUARDED, GUARD, array.dtype)
    return np.concatenate([around[:first], array, around])


def tensor_of(array: Array) -> torch.Tensor:
    """A tensor of the same memory."""
    if array.dtype.name not in NARROW:
        return torch.from_numpy(array)
    bits = torch.from_numpy(array.view(f"i{array.dtype.itemsize}"))
    return bits.view(getattr(torch, array.dtype.name))


def _wrong(kernel: Kernel, name: str, found: Array) -> Array:
    """Which elements of a pointer's memory are wrong, those around what it points to among them."""
    wanted = _guarded(kernel.expected[name], kernel.first[name])
    wrong = (found != wanted) & ((found == found) | (wanted == wanted))
    if name in kernel.judges:
        part = slice(kernel.first[name], kernel.first[name] + kernel.expected[name].size)
        wrong[part] = kernel.judges[name](found[part])
    return wrong


def fault(kernel: Kernel, folder: Path) -> str:
    """What is wrong after a launch; empty if nothing is."""
    path = folder / f"steps_{abs(hash(kernel.source))}.py"
    module = written(path, HEADER + kernel.functions + kernel.source)
    memory = {name: _guarded(array, kernel.first[name]) for name, array in kernel.memory.items()}
    arguments = {name: tensor_of(array)[kernel.first[name] :] for name, array in memory.items()}
    views = [arguments[of][behind:] for of, behind in kernel.views.values()]
    try:
        with driver_traits(kernel.traits):
            module.kernel[(kernel.programs,)](
                *arguments.values(), *views, kernel.scalar, num_warps=kernel.warps, matrix_units=kernel.units
            )
    except Exception as error:
        return "" if type(error).__name__ in kernel.refusals else fault_of(error)[:1000]
    for name, found in memory.items():
        wrong = _wrong(kernel, name, found)
        if wrong.any():
            where = int(wrong.nonzero()[0][0])
            wanted = _guarded(kernel.expected[name], kernel.first[name])[where]
            return (
                f"{name}: {int(wrong.sum())} of {wrong.size} values are wrong, the first at {where}: "
                f"{found[where]} instead of {wanted}"
            )
    return ""


def run(family: Family, seed: int, folder: Path, seconds: float = 60.0) -> Found:
    """One kernel; where it fails, the first steps of it that do, as far as they are found in so many seconds."""
    kernel, start = generate(family, seed), time.process_time()
    found = fault(kernel, folder)
    if family.without:
        with patch.dict(os.environ, {WITHOUT.name: family.without}):
            left_out = fault(kernel, folder)
        found = f"{found or 'right'}; without {family.without!r}: {left_out or 'right'}" if found or left_out else ""
    spent, deadline = time.process_time() - start, time.monotonic() + seconds
    steps = 0
    while found and steps < family.most_steps and time.monotonic() < deadline:
        steps += 1
        smaller = generate(family, seed, steps).without_idle_lines()
        if why := fault(smaller, folder):
            return Found(why, HEADER + kernel.functions + smaller.source, spent)
    return Found(found, HEADER + kernel.functions + kernel.source, spent)
